"""The jobs of one node, as its journal says: the run rights that it holds, held, or gave away.

Pure. Its own file because everything that may start a job asks it first, and because what it
refuses is what would make two copies: a start without the right, a right that is passed twice, an
epoch that goes down. It must not know processes, nor why a job is started or stopped.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from esnode.workloads.ids import JobId
from esnode.workloads.records import (
    AnyRecord,
    Declined,
    Ended,
    Forgotten,
    Handed,
    Kept,
    Purpose,
    Released,
    Reowned,
    Result,
    Starting,
    StopAsked,
    Stopped,
    Submitted,
)
from esnode.workloads.spec import JobSpec
from esnode.workloads.spec_reading import SpecRefused, document_of, spec_of


class Contradicted(Exception):
    """A record does not follow from what is known of the job; one line."""


class Phase(StrEnum):
    """Where a job is with this node."""

    QUEUED = "queued"
    RUNNING = "running"
    """It may run: from just before its start until its end is proved."""
    STOPPING = "stopping"
    """It may run, and is to end."""
    ENDED = "ended"
    HANDED = "handed"
    """Given to another node, which has not said yet that it has it."""
    GONE = "gone"
    """Another node has it."""
    DECLINED = "declined"
    """Offered to this node, which has promised never to start it."""


HELD = (Phase.QUEUED, Phase.RUNNING, Phase.STOPPING)
"""This node has the run right."""
LIVE = (Phase.RUNNING, Phase.STOPPING)
"""Something of it may run here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """As whom a job runs."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    user: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job as this node knows it. Times are seconds of the Unix clock."""

    id: JobId
    epoch: int
    phase: Phase
    spec: JobSpec | None = None
    """None for one that was declined."""
    owner: Owner = field(default_factory=lambda: Owner(uid=0, gid=0))
    submitted_unix_seconds: float = 0.0
    """To this node."""
    waits_since_unix_seconds: float = 0.0
    from_node: str = ""
    attempt: int = 0
    """Which start here, from 1 on."""
    gpus: tuple[str, ...] = ()
    boot_id: str = ""
    started_unix_seconds: float | None = None
    ended_unix_seconds: float | None = None
    """Also when it was last stopped to be queued again."""
    stop: StopAsked | None = None
    result: Result | None = None
    reason: str = ""
    """Why it is as it is, in one line."""
    exit_code: int | None = None
    exit_signal: int | None = None
    not_before_unix_seconds: float = 0.0
    promised_by_unix_seconds: float = 0.0
    requeues_count: int = 0
    requeued_unix_seconds: float | None = None
    energy_joules: float | None = None
    """Of the GPUs, of runs that have ended; None while nothing is known."""
    tokens: float | None = None
    to_node: str = ""
    to_name: str = ""

    @property
    def is_held(self) -> bool:
        """Whether this node has its run right."""
        return self.phase in HELD

    @property
    def is_live(self) -> bool:
        """Whether something of it may run here."""
        return self.phase in LIVE

    @property
    def name(self) -> str:
        """As people call it."""
        return "" if self.spec is None else self.spec.name


class Book:
    """All jobs of one node."""

    def __init__(self, records: Iterable[AnyRecord] = ()) -> None:
        self._jobs: dict[JobId, Job] = {}
        for record in records:
            self.apply(record)

    def __iter__(self) -> Iterator[Job]:
        """In the order in which they came."""
        return iter(self._jobs.values())

    def __len__(self) -> int:
        return len(self._jobs)

    def get(self, job: JobId) -> Job | None:
        """One job."""
        return self._jobs.get(job)

    def gpus_of(self, job: JobId) -> tuple[str, ...]:
        """The GPUs that a job has."""
        found = self._jobs.get(job)
        return () if found is None else found.gpus

    def held(self, *phases: Phase) -> tuple[Job, ...]:
        """Those in one of these phases."""
        return tuple(job for job in self._jobs.values() if job.phase in phases)

    def check(self, record: AnyRecord) -> None:
        """Whether a record may be written.

        Raises:
            Contradicted: it may not.
        """
        _after(self._jobs.get(record.job), record)

    def apply(self, record: AnyRecord) -> Job | None:
        """Take in a record that is on disk; the job after it.

        Raises:
            Contradicted: it does not follow.
        """
        after = _after(self._jobs.get(record.job), record)
        if after is None:
            del self._jobs[record.job]
        else:
            self._jobs[record.job] = after
        return after

    def sum_up(self, at_unix_seconds: float) -> tuple[AnyRecord, ...]:
        """Records that make the same book, one for each job."""
        return tuple(
            Kept(job=job.id, epoch=job.epoch, at_unix_seconds=at_unix_seconds, state=_state_of(job))
            for job in self._jobs.values()
        )


def _after(job: Job | None, record: AnyRecord) -> Job | None:
    match record:
        case Kept():
            _check_new(job, record)
            return job_of(record.state)
        case Submitted():
            _check_new(job, record)
            return _submitted(record)
        case Declined():
            _check_new(job, record)
            return Job(
                id=record.job, epoch=record.epoch, phase=Phase.DECLINED, reason=record.reason
            )
        case _ if job is None:
            raise Contradicted(f"job {record.job} is not known here")
        case Handed() | Reowned():
            return _passed(job, record)
        case _ if record.epoch != job.epoch:
            raise Contradicted(f"job {job.id} is of epoch {job.epoch} here, not {record.epoch}")
        case Released():
            _check_phase(job, "is released", Phase.HANDED)
            return replace(job, phase=Phase.GONE, ended_unix_seconds=record.at_unix_seconds)
        case Forgotten():
            _check_phase(job, "is forgotten", Phase.ENDED, Phase.GONE, Phase.DECLINED)
            return None
        case _:
            return _lived(job, record)


def _lived(job: Job, record: Starting | StopAsked | Stopped | Ended) -> Job:
    """What happens to a job of this node's own."""
    match record:
        case Starting():
            _check_phase(job, "is started", Phase.QUEUED)
            return replace(
                job,
                phase=Phase.RUNNING,
                attempt=record.attempt,
                gpus=record.gpus,
                boot_id=record.boot_id,
                started_unix_seconds=record.at_unix_seconds,
                ended_unix_seconds=None,
                stop=None,
                reason="",
            )
        case StopAsked():
            _check_phase(job, "is stopped", *LIVE)
            if job.stop is not None and job.stop.purpose is Purpose.CANCEL:
                raise Contradicted(f"job {job.id} is cancelled already")
            return replace(job, phase=Phase.STOPPING, stop=record, reason=record.reason)
        case Stopped():
            _check_phase(job, "is queued again", *LIVE)
            return replace(
                job,
                phase=Phase.QUEUED,
                gpus=(),
                stop=None,
                reason=record.reason,
                ended_unix_seconds=record.at_unix_seconds,
                requeued_unix_seconds=record.at_unix_seconds,
                requeues_count=job.requeues_count + 1,
                not_before_unix_seconds=record.not_before_unix_seconds,
                promised_by_unix_seconds=record.promised_by_unix_seconds,
                energy_joules=_added(job.energy_joules, record.energy_joules),
                tokens=_added(job.tokens, record.tokens),
            )
        case Ended():
            _check_phase(job, "ends", *HELD)
            return replace(
                job,
                phase=Phase.ENDED,
                result=record.result,
                reason=record.reason,
                exit_code=record.exit_code,
                exit_signal=record.exit_signal,
                ended_unix_seconds=record.at_unix_seconds,
                energy_joules=_added(job.energy_joules, record.energy_joules),
                tokens=_added(job.tokens, record.tokens),
            )


def _passed(job: Job, record: Handed | Reowned) -> Job:
    if record.epoch <= job.epoch:
        raise Contradicted(f"job {job.id} is of epoch {job.epoch} here already")
    if isinstance(record, Handed):
        _check_phase(job, "is handed over", Phase.QUEUED)
        return replace(
            job,
            epoch=record.epoch,
            phase=Phase.HANDED,
            to_node=record.to_node,
            to_name=record.to_name,
            reason=record.reason,
            started_unix_seconds=None,
        )
    _check_phase(job, "is taken back", Phase.HANDED)
    return replace(
        job, epoch=record.epoch, phase=Phase.QUEUED, to_node="", to_name="", reason=record.reason
    )


def _submitted(record: Submitted) -> Job:
    return Job(
        id=record.job,
        epoch=record.epoch,
        phase=Phase.QUEUED,
        spec=read_kept_spec(record.spec),
        owner=Owner(uid=record.uid, gid=record.gid, groups=record.groups, user=record.user),
        submitted_unix_seconds=record.at_unix_seconds,
        waits_since_unix_seconds=record.waits_since_unix_seconds,
        from_node=record.from_node,
    )


def _check_new(job: Job | None, record: AnyRecord) -> None:
    """A right comes to this node once, and again only with a higher epoch."""
    if job is None:
        return
    if job.phase not in (Phase.HANDED, Phase.GONE, Phase.DECLINED) or record.epoch <= job.epoch:
        raise Contradicted(f"job {job.id} is here already, {job.phase} as epoch {job.epoch}")


def _check_phase(job: Job, what: str, *phases: Phase) -> None:
    if job.phase not in phases:
        raise Contradicted(f"job {job.id} is {job.phase}: it is none that {what}")


def _added(before: float | None, more: float | None) -> float | None:
    return before if more is None else (before or 0.0) + more


def read_kept_spec(text: str) -> JobSpec:
    """The spec in a journal.

    Raises:
        Contradicted: it is none.
    """
    try:
        return spec_of(json.loads(text))
    except (ValueError, SpecRefused) as error:
        raise Contradicted(f"a job's spec in the journal cannot be read: {error}") from None


def kept_spec(spec: JobSpec) -> str:
    """The spec as it is kept in a journal."""
    return json.dumps(document_of(spec), separators=(",", ":"))


def _state_of(job: Job) -> str:
    document = asdict(replace(job, spec=None))
    document["spec"] = None if job.spec is None else document_of(job.spec)
    return json.dumps(document, separators=(",", ":"))


def job_of(state: str) -> Job:
    """The job that a summed-up record keeps.

    Raises:
        Contradicted: it is none.
    """
    try:
        document: dict[str, Any] = json.loads(state)
        spec, stop, result = document["spec"], document["stop"], document["result"]
        owner = document["owner"]
        document |= {
            "phase": Phase(document["phase"]),
            "gpus": tuple(document["gpus"]),
            "spec": None if spec is None else spec_of(spec),
            "owner": Owner(**{**owner, "groups": tuple(owner["groups"])}),
            "result": None if result is None else Result(result),
            "stop": stop and StopAsked(**{**stop, "purpose": Purpose(stop["purpose"])}),
        }
        return Job(**document)
    except (ValueError, KeyError, TypeError, SpecRefused) as error:
        raise Contradicted(f"a summed-up job cannot be read: {error}") from None
