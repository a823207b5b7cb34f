"""The work of one node: takes jobs in, starts them where there is room, follows them to their end.

Its own file because it is the whole of what may start a job here, in an order that is a promise:
the journal is read, strangers' runs are ended, what still runs is adopted, and only then anything
is started; a start is on disk before it is done. The agent's end leaves every run alone. It must
not know HTTP, nor how a place is chosen (`placing`).
"""

import contextlib
from collections import Counter
from pathlib import Path
from typing import Any

import structlog
import trio

from cluster.durable import DurableFailed
from esnode.snapshot import Snapshot
from esnode.workloads.adapters import Given
from esnode.workloads.book import HELD, Book, Contradicted, Job, Owner, Phase, kept_spec
from esnode.workloads.choosing import Chosen, Making
from esnode.workloads.document import JobView
from esnode.workloads.forgetting import old_ends
from esnode.workloads.ids import JobId, make_job_id
from esnode.workloads.journal import JournalUnusable
from esnode.workloads.means import JobRefused, WorkMeans
from esnode.workloads.records import (
    Ended,
    Purpose,
    Result,
    Starting,
    StopAsked,
    Submitted,
)
from esnode.workloads.spec import JobSpec
from esnode.workloads.tasks import Tasks
from esnode.workloads.tending import Tender, TendMeans
from esnode.workloads.use_files import keep_use, read_use

log = structlog.get_logger("esnode.jobs")

DECIDE_SECONDS = 1.0
READ_AGAIN_SECONDS = 10.0
FORGET_SECONDS = 60.0


class Workloads:
    """The jobs of one node."""

    def __init__(self, means: WorkMeans) -> None:
        self.means = means
        self.trouble = "the journal of jobs is not read yet"
        """Why no job can be taken in or started; empty while all is well."""
        self.notes: list[str] = []
        self.turns: Counter[str] = Counter()
        """What happened to jobs since the agent started."""
        self.waits: dict[JobId, tuple[str, ...]] = {}
        self.tenders: dict[JobId, Tender] = {}
        self.snapshot: Snapshot | None = None
        self.tasks = Tasks()
        """The predecessor's."""
        self._nursery: trio.Nursery | None = None
        self._woken = trio.Event()
        self._passed = trio.Event()

    @property
    def book(self) -> Book:
        """All jobs, as on disk."""
        return self.means.journal.book

    @property
    def running_count(self) -> int | None:
        """Jobs that run; None while it is not known."""
        return None if self.trouble else len(self.book.held(Phase.RUNNING, Phase.STOPPING))

    @property
    def is_any_held(self) -> bool:
        """Whether a job of this node waits or runs."""
        return bool(self.book.held(*HELD))

    # -- life -------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look after this node's jobs until cancelled; what runs goes on after that."""
        means = self.means
        await self._begin()
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            for job in self._live():
                log.info("job_adopted", job=job.id, name=job.name)
                self._tend(job, None, await read_use(self.folder_of(job.id)))
            self.trouble = ""
            nursery.start_soon(self._forget_for_ever)
            nursery.start_soon(keep_use, means.meter, self._live, self.folder_of)
            while True:
                self._woken = trio.Event()
                await self._decide()
                passed, self._passed = self._passed, trio.Event()
                passed.set()
                with trio.move_on_after(DECIDE_SECONDS):
                    await self._woken.wait()

    async def _begin(self) -> None:
        """Read the journal, however long it takes to become readable; end what has no right."""
        while True:
            try:
                note = await trio.to_thread.run_sync(self.means.journal.load)
            except JournalUnusable as unusable:
                if self.trouble != str(unusable):
                    log.error("jobs_unusable", detail=str(unusable))
                self.trouble = str(unusable)
                await trio.sleep(READ_AGAIN_SECONDS)
                continue
            break
        if note:
            self._note(note)
        await trio.to_thread.run_sync(self.means.adapter.prepare)
        owned = {job.id: job.epoch for job in self.book if job.is_held}
        for line in await trio.to_thread.run_sync(self.means.adapter.sweep, owned):
            self._note(line)

    def _note(self, line: str) -> None:
        self.notes.append(line)
        log.warning("jobs_note", detail=line)

    def tick(self, snapshot: Snapshot) -> None:
        """What the machine does now."""
        self.snapshot = snapshot
        self.means.meter.take(snapshot, self._live())

    def wake(self) -> None:
        """Something has changed: decide at once."""
        self._woken.set()

    # -- views ------------------------------------------------------------------------------------

    def view(self, job_id: JobId) -> JobView:
        """One job with what is known of its run.

        Raises:
            JobRefused: this node knows none of that id.
        """
        return self._view(self.find(job_id))

    def views(self) -> tuple[JobView, ...]:
        """All of them, oldest first."""
        return tuple(map(self._view, self.book))

    def _view(self, job: Job) -> JobView:
        tender, meter = self.tenders.get(job.id), self.means.meter
        use = meter.use_of(job)
        return JobView(
            job=job,
            seen=None if tender is None else tender.seen,
            stage="" if tender is None else tender.stage,
            trouble="" if tender is None else tender.trouble,
            waits=self.waits.get(job.id, ()),
            power_watts=meter.power_watts_of(job),
            run_energy_joules=use.energy_joules,
            run_tokens=use.tokens,
        )

    def folder_of(self, job_id: JobId) -> Path:
        """Where a job's own files lie."""
        return self.means.journal.folder / job_id

    def _live(self) -> tuple[Job, ...]:
        return self.book.held(Phase.RUNNING, Phase.STOPPING)

    # -- orders -----------------------------------------------------------------------------------

    async def submit(self, spec: JobSpec, owner: Owner, job_id: JobId | None = None) -> Job:
        """Take a job in; on disk when this returns. The same id again is the same job.

        Raises:
            JobRefused: it is not taken in.
        """
        now = self.means.unix_clock()
        job_id = job_id or make_job_id(now, self.means.rng)
        known = self.book.get(job_id)
        if known is not None:
            return _same(known, spec, owner)
        self._check_usable()
        submitted = Submitted(
            job=job_id,
            epoch=1,
            at_unix_seconds=now,
            spec=kept_spec(spec),
            uid=owner.uid,
            gid=owner.gid,
            groups=owner.groups,
            user=owner.user,
            waits_since_unix_seconds=now,
        )
        try:
            await self.means.journal.add(submitted)
        except DurableFailed as failed:
            raise JobRefused(f"not taken in: {failed}") from None
        except Contradicted:
            return _same(self.find(job_id), spec, owner)  # the same, asked twice at once
        job = self.find(job_id)
        self._tell("submitted", job, f"by {owner.user or owner.uid}")
        self.wake()
        return job

    async def settle(self, job_id: JobId) -> None:
        """Wait until a pass has looked at a job that was just taken in; not for ever."""
        with trio.move_on_after(2 * DECIDE_SECONDS):
            while self.find(job_id).phase is Phase.QUEUED and job_id not in self.waits:
                await self._passed.wait()

    def find(self, job_id: JobId) -> Job:
        """A job that this node knows.

        Raises:
            JobRefused: it knows none of that id.
        """
        job = self.book.get(job_id)
        if job is None:
            raise JobRefused(f"no job {job_id} on this node", is_unknown=True)
        return job

    async def stop(
        self,
        job_id: JobId,
        purpose: Purpose,
        *,
        by: str,
        reason: str,
        promised_by_unix_seconds: float = 0.0,
    ) -> Job:
        """Have a job end; what is queued ends at once.

        Raises:
            JobRefused: it is not to be ended here.
        """
        self._check_usable()
        job, now = self.find(job_id), self.means.unix_clock()
        if job.phase is Phase.QUEUED and purpose is Purpose.REQUEUE:
            raise JobRefused(f"job {job.id} is queued already")
        if not job.is_held:
            where = f" on {job.to_name or job.to_node}" if job.to_node else ""
            raise JobRefused(f"job {job.id} is {job.phase}{where}: there is nothing to stop here")
        record: Ended | StopAsked
        if job.phase is Phase.QUEUED:
            record = Ended(
                job=job.id,
                epoch=job.epoch,
                at_unix_seconds=now,
                result=Result.STOPPED,
                reason=f"{reason} ({by})",
            )
        else:
            record = StopAsked(
                job=job.id,
                epoch=job.epoch,
                at_unix_seconds=now,
                purpose=purpose,
                by=by,
                reason=reason,
                promised_by_unix_seconds=promised_by_unix_seconds,
            )
        try:
            await self.means.journal.add(record)
        except DurableFailed as failed:
            raise JobRefused(f"not stopped: {failed}") from None
        except Contradicted as contradicted:
            raise JobRefused(str(contradicted)) from None
        job = self.find(job_id)
        self._tell("stopping" if job.is_live else "ended", job, job.reason)
        if job.id in self.tenders:
            self.tenders[job.id].wake()
        self.wake()
        return job

    def _check_usable(self) -> None:
        if self.trouble:
            raise JobRefused(f"no job is taken in or changed: {self.trouble}")

    # -- deciding ---------------------------------------------------------------------------------

    async def _decide(self) -> None:
        now = self.means.unix_clock()
        queued = self.book.held(Phase.QUEUED)
        if not queued:
            self.waits = {}
            return
        if not self.means.gate.is_open:
            reason = f"this machine starts no work now: {self.means.gate.reason}"
            self.waits = {job.id: (reason,) for job in queued}
            return
        decided = self.means.placer.decide(self.book, self.snapshot, now)
        self.waits = dict(decided.waits)
        for making in decided.stops:
            await self._make_room(making)
        for chosen in decided.starts:
            await self._start(chosen)

    async def _make_room(self, making: Making) -> None:
        try:
            await self.stop(
                making.job,
                making.purpose,
                by="esnode",
                reason=making.reason,
                promised_by_unix_seconds=making.promised_by_unix_seconds,
            )
        except JobRefused as refused:
            log.warning("job_keeps_its_place", job=making.job, detail=str(refused))

    async def _start(self, chosen: Chosen) -> None:
        job = self.find(chosen.job)
        starting = Starting(
            job=job.id,
            epoch=job.epoch,
            at_unix_seconds=self.means.unix_clock(),
            attempt=job.attempt + 1,
            gpus=chosen.given.gpus,
            boot_id=chosen.given.boot_id,
        )
        try:
            await self.means.journal.add(starting)
        except DurableFailed as failed:
            self.waits = {**self.waits, job.id: (f"its start cannot be kept: {failed}",)}
            return
        job = self.find(job.id)
        self._tell("started", job, ", ".join(job.gpus) or "no GPU")
        self._tend(job, chosen.given, None)

    def _tend(self, job: Job, given: Given | None, kept: dict[str, Any] | None) -> None:
        assert self._nursery is not None
        means = self.means
        tender = Tender(
            TendMeans(
                journal=means.journal,
                adapter=means.adapter,
                unix_clock=means.unix_clock,
                read_boot_id=means.read_boot_id,
                drain=means.drain,
                use_of=means.meter.use_of,
            ),
            job.id,
        )
        self.tenders[job.id] = tender
        means.meter.begin(job, kept)
        self._nursery.start_soon(self._run_tender, tender, given)

    async def _run_tender(self, tender: Tender, given: Given | None) -> None:
        await tender.run(given)
        job = tender.job
        del self.tenders[job.id]
        self.means.meter.end(job)
        self.means.placer.freed(tender.gpus, self.means.unix_clock())
        self._tell("ended" if job.phase is Phase.ENDED else "queued again", job, job.reason)
        self.wake()

    def _tell(self, kind: str, job: Job, line: str) -> None:
        log.info("job_" + kind.replace(" ", "_"), job=job.id, name=job.name, detail=line)
        is_over = job.phase is Phase.ENDED and job.result is not None
        self.turns[str(job.result) if is_over else kind] += 1
        self.means.tell(kind, job, line)

    async def _forget_for_ever(self) -> None:
        """Now and then forget ends that nobody asks for any more."""
        while True:
            await trio.sleep(FORGET_SECONDS)
            records = old_ends(self.book, self.means.unix_clock())
            if records:
                with contextlib.suppress(DurableFailed):  # a later pass
                    await self.means.journal.add(*records)


def _same(job: Job, spec: JobSpec, owner: Owner) -> Job:
    """The job that was asked for once more.

    Raises:
        JobRefused: another one has that id.
    """
    if job.spec != spec or job.owner.uid != owner.uid:
        raise JobRefused(f"job {job.id} is here already, with another spec or submitter")
    return job
