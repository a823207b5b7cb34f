"""One run of one job, from its start or from where an earlier agent left it, to its end.

Its own file because everything that waits for a job waits here, one task for each. The end of a run
is kept when it is proved, however often the disk refuses. The agent's own end leaves the run alone.
It must not know why a job is to end, nor what else runs.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import trio

from cluster.durable import DurableFailed
from esnode.workloads.adapters import Adapter, AdapterFailed, Given, Seen, StartRefused
from esnode.workloads.book import Contradicted, Job
from esnode.workloads.folding import MACHINE_RESTARTED, SUPERVISOR_GONE, End, fold_end
from esnode.workloads.ids import JobId
from esnode.workloads.journal import JobJournal
from esnode.workloads.metering import Use
from esnode.workloads.records import Purpose

LOOK_SECONDS = 2.0
LOOK_ENDING_SECONDS = 0.2
RETRY_SECONDS = 1.0
SAVED_LOOK_SECONDS = 0.2
KILL_AFTER_SECONDS = 10.0
"""Beyond a job's own grace: then its supervisor is not waited for."""

T = TypeVar("T")


@dataclass(slots=True, kw_only=True, eq=False)
class TendMeans:
    """What a run's task has at hand."""

    journal: JobJournal
    adapter: Adapter
    unix_clock: Callable[[], float]
    read_boot_id: Callable[[], str]
    drain: Callable[[Job], Awaitable[None]]
    """Waits until an engine has no more requests under way."""
    use_of: Callable[[Job], Use]
    """What the run has used, asked once it has ended."""


class Tender:
    """The task of one run."""

    def __init__(self, means: TendMeans, job: JobId) -> None:
        self._means = means
        self._id = job
        self._woken = trio.Event()
        self._limiter = trio.CapacityLimiter(1)
        self.gpus = means.journal.book.gpus_of(job)
        """Those that it was given; none once it is queued again."""
        self._stopping: trio.CancelScope | None = None
        self._stopping_for: Purpose | None = None
        self.seen: Seen | None = None
        self.trouble = ""
        """Why its end is not kept yet, or why it does not end."""
        self.stage = ""
        """What is done to end it: ``draining``, ``saving``, ``stopping``."""

    @property
    def job(self) -> Job:
        """As the journal has it."""
        job = self._means.journal.book.get(self._id)
        assert job is not None
        return job

    def wake(self) -> None:
        """Look at once: it was asked to end, or its supervisor has ended."""
        self._woken.set()

    async def run(self, given: Given | None) -> None:
        """Start it with what it is given, or go on with a run that is there; until its end."""
        end = None if given is None else await self._start(given)
        if end is None:
            async with trio.open_nursery() as nursery:
                end = await self._watch(nursery)
                nursery.cancel_scope.cancel()
        await self._keep(end)

    async def _start(self, given: Given) -> End | None:
        try:
            self._saw(await self._ask(lambda: self._means.adapter.start(self.job, given)))
        except StartRefused as refused:
            return End(reason=f"cannot start: {refused}", is_own=True, is_refused=True)
        except AdapterFailed as failed:
            return End(reason=f"could not be started: {failed}", is_own=False, has_run=False)
        return None

    async def _watch(self, nursery: trio.Nursery) -> End:
        while True:
            self._woken = trio.Event()
            end = await self._look()
            if end is not None:
                return end
            stop = self.job.stop
            if stop is not None and stop.purpose is not self._stopping_for:
                if self._stopping is not None:
                    self._stopping.cancel()
                self._stopping, self._stopping_for = trio.CancelScope(), stop.purpose
                nursery.start_soon(self._end_it, stop.purpose, self._stopping)
            with trio.move_on_after(LOOK_SECONDS if stop is None else LOOK_ENDING_SECONDS):
                await self._woken.wait()

    async def _look(self) -> End | None:
        """How the run has ended; None while it goes on or its end is not proved."""
        job = self.job
        seen = await self._ask(lambda: self._means.adapter.look(job))
        self._saw(seen)
        if seen.is_ended:
            self.trouble = ""
            return _end_of(seen)
        if seen.is_supervised:
            self.trouble = seen.trouble
            return None
        is_new_boot = self._means.read_boot_id() != job.boot_id
        if not is_new_boot:
            await self._ask(lambda: self._means.adapter.kill(job))
        left = await self._ask(lambda: self._means.adapter.why_not_dead(job))
        self.trouble = f"it cannot be ended: {left}" if left else ""
        if left:
            return None
        if seen.end:
            return _end_of(seen)
        return End(reason=MACHINE_RESTARTED if is_new_boot else SUPERVISOR_GONE, is_own=False)

    async def _end_it(self, purpose: Purpose, scope: trio.CancelScope) -> None:
        """Drain, save, stop, kill: as far as this purpose wants, until the run is over."""
        means, job = self._means, self.job
        assert job.spec is not None
        with scope:
            if purpose is not Purpose.CANCEL:
                if job.spec.adapter == "engine":
                    self.stage = "draining"
                    with trio.move_on_after(job.spec.drain_timeout_seconds):
                        await means.drain(job)
                if job.spec.checkpoint == "app":
                    self.stage = "saving"
                    await self._save(job)
            self.stage = "stopping"
            await self._ask(lambda: means.adapter.stop(job))
            await trio.sleep(job.spec.stop_grace_seconds + KILL_AFTER_SECONDS)
            while True:
                await self._ask(lambda: means.adapter.kill(job))
                await trio.sleep(KILL_AFTER_SECONDS)

    async def _save(self, job: Job) -> None:
        assert job.spec is not None
        adapter = self._means.adapter
        with trio.move_on_after(job.spec.checkpoint_timeout_seconds):
            await self._ask(lambda: adapter.checkpoint(job))
            while True:
                if await self._ask(lambda: adapter.is_saved(job)):
                    return
                await trio.sleep(SAVED_LOOK_SECONDS)
        self.trouble = "it did not save its state in time: work since its last save is lost"

    async def _keep(self, end: End) -> None:
        """Keep the end on disk, whatever it takes; then take away what is left of the run."""
        use = self._means.use_of(self.job)
        end = replace(end, energy_joules=use.energy_joules, tokens=use.tokens)
        while True:
            job, now = self.job, self._means.unix_clock()
            try:
                await self._means.journal.add(fold_end(job, end, now_unix_seconds=now))
                break
            except DurableFailed as failed:
                self.trouble = f"its end is not kept yet: {failed}"
                await trio.sleep(RETRY_SECONDS)
            except Contradicted as contradicted:
                if not self.job.is_live:
                    break  # kept before
                self.trouble = f"its end is not kept yet: {contradicted}"
                await trio.sleep(RETRY_SECONDS)
        await self._ask(lambda: self._means.adapter.clean(self.job))

    def _saw(self, seen: Seen) -> None:
        self.seen = seen

    async def _ask(self, verb: Callable[[], T]) -> T:
        """One verb of the adapter, in a thread; it may hang, and only this run waits for it."""
        return await trio.to_thread.run_sync(verb, abandon_on_cancel=True, limiter=self._limiter)


def _end_of(seen: Seen) -> End:
    if seen.end.startswith("cannot start"):
        return End(reason=seen.end, is_own=True, is_refused=True)
    if seen.exit_signal is not None:
        reason = f"ended by signal {seen.exit_signal}"
    elif seen.exit_code is not None:
        reason = f"ended with code {seen.exit_code}"
    else:
        reason = seen.end or "ended"
    return End(
        reason=reason,
        is_own=seen.end == "exited",
        is_fenced=seen.end == "fenced",
        exit_code=seen.exit_code,
        exit_signal=seen.exit_signal,
    )
