"""One source's worker: at most one blocking call at a time, never waited for past its deadline.

A hung driver, mount or tool cannot be cancelled, only abandoned: its thread stays until the kernel
lets go. So each source has a worker of its own that counts the abandoned call and starts no second
one. What the call brings home late is kept and served with its true age.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol

import structlog
import trio

from esnode.collectors.base import CollectFailed, CollectUnavailable
from esnode.readings.sample import Sample, SourceStatus

log = structlog.get_logger("esnode.collect")


class Runner(Protocol):
    """How a blocking call is run: in a thread, or inline under a virtual clock."""

    def __call__(self, call: Callable[[], None], limiter: trio.CapacityLimiter) -> Awaitable[None]:
        """Run `call` to its end, or be cancelled and leave it behind."""
        ...


async def run_in_thread(call: Callable[[], None], limiter: trio.CapacityLimiter) -> None:
    """Run in a worker thread that is left behind when its deadline passes."""
    await trio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=limiter)


async def run_inline(call: Callable[[], None], limiter: trio.CapacityLimiter) -> None:
    """Run on the spot: a thread under a virtual clock would look as if it took for ever."""
    call()
    await trio.lowlevel.checkpoint()


class _Call:
    """One blocking call; written by its thread, read by the event loop once `is_done`."""

    def __init__(self, read: Callable[[], object], started_at_seconds: float) -> None:
        self._read = read
        self.started_at_seconds = started_at_seconds
        self.is_done = False
        self.value: object = None
        self.error: Exception | None = None

    def run(self) -> None:
        """Make the call. Nothing is raised: the outcome is in the fields."""
        try:
            self.value = self._read()
        except Exception as error:  # per collector: one of three places where this is legal
            self.error = error
        self.is_done = True


class Worker:
    """Asks one source, and remembers how that went."""

    def __init__(self, collector: str, target: str = "", *, runner: Runner) -> None:
        self.status = SourceStatus(collector=collector, target=target)
        self.sample: Sample[Any] | None = None
        self._runner = runner
        self._limiter = trio.CapacityLimiter(1)
        self._call: _Call | None = None

    async def ask(
        self,
        read: Callable[[], object],
        *,
        interval_seconds: float,
        deadline_seconds: float,
        stale_after_seconds: float,
    ) -> None:
        """Read once, unless the last read has still not come back."""
        self.status = replace(self.status, interval_seconds=interval_seconds)
        if self._call is not None:
            if not self._call.is_done:
                self._note_stall(self._call, deadline_seconds)
                return
            self._finish(self._call, stale_after_seconds, is_late=True)
        call = self._call = _Call(read, trio.current_time())
        with trio.move_on_after(deadline_seconds):
            await self._runner(call.run, self._limiter)
        if call.is_done:
            self._finish(call, stale_after_seconds, is_late=False)
        else:
            self._note_stall(call, deadline_seconds)

    def _note_stall(self, call: _Call, deadline_seconds: float) -> None:
        """Say once of a call that it has passed its deadline.

        A call may also be left behind before that, by a change of configuration.
        """
        age_seconds = trio.current_time() - call.started_at_seconds
        if self.status.stalled_since_seconds is not None or age_seconds < deadline_seconds:
            return
        self.status = replace(
            self.status,
            state="stalled",
            reason=f"no answer within {deadline_seconds:g} s; waiting for it to come back",
            stalled_since_seconds=call.started_at_seconds,
            stalls_total=self.status.stalls_total + 1,
        )

    def _finish(self, call: _Call, stale_after_seconds: float, *, is_late: bool) -> None:
        self._call = None
        changes: dict[str, Any] = {"stalled_since_seconds": None}
        if not is_late:
            changes["duration_seconds"] = trio.current_time() - call.started_at_seconds
        if call.error is None:
            self.sample = Sample(
                value=call.value,
                taken_at_seconds=call.started_at_seconds,
                stale_after_seconds=stale_after_seconds,
            )
            changes |= {"last_success_at_seconds": call.started_at_seconds}
            changes |= {"state": "ok", "reason": ""}
        else:
            changes |= self._failure(call.error)
        self.status = replace(self.status, **changes)

    def _failure(self, error: Exception) -> dict[str, Any]:
        # What was there once and is gone is a failure, not a machine that has none.
        if isinstance(error, CollectUnavailable) and self.status.last_success_at_seconds is None:
            return {"state": "unavailable", "reason": str(error)}
        errors_total = self.status.errors_total + 1
        if isinstance(error, CollectFailed):
            return {"state": "failed", "reason": str(error), "errors_total": errors_total}
        # A collector's own bug: the others go on, and the trace is in the log once per change.
        if self.status.state != "failed":
            log.error("collector_bug", source=self.status.name, exc_info=error)
        reason = f"bug in the collector: {type(error).__name__}: {error}"
        return {"state": "failed", "reason": reason, "errors_total": errors_total}


async def every(
    interval_seconds: float, act: Callable[[], Awaitable[None]], *, phase_seconds: float = 0.0
) -> None:
    """Do something at fixed times for ever; a time that has passed is left out, never caught up."""
    start = trio.current_time() + phase_seconds
    await trio.sleep_until(start)
    while True:
        await act()
        passed = trio.current_time() - start
        await trio.sleep_until(start + (int(passed / interval_seconds) + 1) * interval_seconds)
