"""What happens to jobs at one node, as it is kept on its disk: one record for each turn.

Its own file because it is the journal's format: additive within its version, read years later. A
record is written before what it says is done (a start, an answer to a submitter), or after it is
known (an end). What a run right is: the design's section on work. It must not know files.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar, TypeAlias

from esnode.workloads.ids import BadJobId, JobId, parse_job_id


class BadRecord(Exception):
    """Bytes are no record that this version knows; one line."""


class Result(StrEnum):
    """How a job has ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    """Somebody with the right to do so ended it."""
    INTERRUPTED = "interrupted"
    """Its machine or its supervisor ended under it, and it may not run again."""


class Purpose(StrEnum):
    """Why a job that runs is to end."""

    CANCEL = "cancel"
    """For good: somebody does not want it any more."""
    REQUEUE = "requeue"
    """It makes room, and is queued again."""
    END = "end"
    """It makes room for good: it may not run again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Part of all records."""

    kind: ClassVar[str] = ""
    job: JobId
    epoch: int
    at_unix_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted(Record):
    """The job is the own of this node from now on."""

    kind: ClassVar[str] = "submitted"
    spec: str
    """The document of the spec as JSON."""
    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    user: str = ""
    from_node: str = ""
    """Id of the node that handed it over; empty where it was submitted here."""
    waits_since_unix_seconds: float
    """When it was first submitted, anywhere: its age in the queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Starting(Record):
    """It is about to be started with these GPUs; whatever follows, it may run from now on."""

    kind: ClassVar[str] = "starting"
    attempt: int
    gpus: tuple[str, ...] = ()
    boot_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAsked(Record):
    """It is to end."""

    kind: ClassVar[str] = "stop"
    purpose: Purpose
    by: str
    reason: str
    promised_by_unix_seconds: float = 0.0
    """When it is to be on again, where it makes room; 0: no promise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped(Record):
    """Nothing of it runs any more: proved, and it is queued again."""

    kind: ClassVar[str] = "requeued"
    reason: str
    not_before_unix_seconds: float = 0.0
    promised_by_unix_seconds: float = 0.0
    """Until then it is started again if anything can be; 0: no promise."""
    energy_joules: float | None = None
    tokens: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Record):
    """It is over: proved, or it never ran."""

    kind: ClassVar[str] = "ended"
    result: Result
    reason: str
    exit_code: int | None = None
    exit_signal: int | None = None
    energy_joules: float | None = None
    tokens: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed(Record):
    """The run right of `epoch` is another node's: never to be started here again."""

    kind: ClassVar[str] = "handed"
    to_node: str
    to_name: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Released(Record):
    """The other node has it on its disk."""

    kind: ClassVar[str] = "released"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reowned(Record):
    """The other node has promised never to start it: this one has it again, as `epoch`."""

    kind: ClassVar[str] = "reowned"
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined(Record):
    """A promise never to start the job as `epoch`, whoever hands it over."""

    kind: ClassVar[str] = "declined"
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten(Record):
    """An old end is no longer shown."""

    kind: ClassVar[str] = "forgotten"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept(Record):
    """A whole job, in the place of all its records before."""

    kind: ClassVar[str] = "kept"
    state: str
    """The job as JSON."""


AnyRecord: TypeAlias = (
    Submitted
    | Starting
    | StopAsked
    | Stopped
    | Ended
    | Handed
    | Released
    | Reowned
    | Declined
    | Forgotten
    | Kept
)
_KINDS: dict[str, type[Any]] = {
    one.kind: one
    for one in (
        Submitted,
        Starting,
        StopAsked,
        Stopped,
        Ended,
        Handed,
        Released,
        Reowned,
        Declined,
        Forgotten,
        Kept,
    )
}
_ENUMS: dict[str, type[StrEnum]] = {"result": Result, "purpose": Purpose}


def encode_record(record: AnyRecord) -> bytes:
    """The record as one line of JSON."""
    return json.dumps({"kind": record.kind, **asdict(record)}, separators=(",", ":")).encode()


def decode_record(data: bytes) -> AnyRecord:
    """The record that these bytes are.

    Raises:
        BadRecord: they are none that this version knows.
    """
    try:
        document = json.loads(data)
        kind = _KINDS[document.pop("kind")]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadRecord("a record that this version does not know") from None
    return _built(kind, document)


def _built(kind: type[Any], document: Mapping[str, Any]) -> AnyRecord:
    """Names that a later version added are left out: what they add, this one does not do."""
    values: dict[str, Any] = {}
    try:
        for one in fields(kind):
            if one.name not in document:
                continue
            value = document[one.name]
            if one.name in _ENUMS:
                value = _ENUMS[one.name](value)
            values[one.name] = tuple(value) if isinstance(value, list) else value
        parse_job_id(document["job"])
        if not isinstance(document["epoch"], int) or document["epoch"] < 1:
            raise BadRecord(f"a record of epoch {document['epoch']!r}")
        record: AnyRecord = kind(**values)
    except (KeyError, TypeError, ValueError, BadJobId) as error:
        raise BadRecord(f"a damaged record of kind {kind.kind!r}: {error}") from None
    return record
