"""One source's worker: at most one blocking call at a time, never waited for past its deadline.

A hung driver, mount or tool cannot be cancelled, only left behind: its thread stays until the
kernel lets go. So a source whose last call has not come back gets no second one; it is `stalled`,
and the others are not affected. What a call brings home late is kept and served with its true age.

`Worker` is bookkeeping and waits for nothing. `Crew` is the edge that runs the calls. A thread for
each call would cost more than most reads do (0.1 ms for a file of /proc), so one thread makes the
calls of a round one after another; a call that keeps it for longer than `PATIENCE_SECONDS` has it
to itself from then on, and the next thread goes on with the rest.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import structlog
import trio

from esnode.collectors.base import CollectFailed, CollectUnavailable
from esnode.readings.sample import Sample, SourceStatus

log = structlog.get_logger("esnode.collect")

PATIENCE_SECONDS = 0.02
"""Twenty times what a usual read takes, and nothing that the other sources would notice."""

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a source is asked."""

    interval_seconds: float
    deadline_seconds: float
    stale_after_seconds: float


class Call:
    """One blocking call; written by its thread, read by the event loop once `is_done`."""

    def __init__(self, read: Callable[[], object], clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self.begun_at_seconds: float | None = None
        self.ended_at_seconds: float | None = None
        self.is_done = False
        self.is_dropped = False
        """It was never begun and never will be."""
        self.value: object = None
        self.error: Exception | None = None

    def run(self) -> None:
        """Make the call. Nothing is raised: the outcome is in the fields."""
        self.begun_at_seconds = self._clock()
        try:
            self.value = self._read()
        except Exception as error:  # per collector: one of three places where this is legal
            self.error = error
        self.ended_at_seconds = self._clock()
        self.is_done = True


class Worker:
    """The calls of one source, and how they went."""

    def __init__(self, collector: str, target: str, *, clock: Clock) -> None:
        self.status = SourceStatus(collector=collector, target=target)
        self.sample: Sample[Any] | None = None
        self._clock = clock
        self._call: Call | None = None
        self._terms: Terms | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether a call is out that has not come back."""
        return self._call is not None and not (self._call.is_done or self._call.is_dropped)

    def begin(self, read: Callable[[], object], terms: Terms) -> Call | None:
        """The next call to make; ``None`` while the last one is still out."""
        self._terms = terms
        self.harvest(self._clock())
        if self._call is not None:
            return None
        self.status = replace(self.status, interval_seconds=terms.interval_seconds)
        self._call = Call(read, self._clock)
        return self._call

    def harvest(self, now: float) -> None:
        """Take in what has come back, and say of a call when it has passed its deadline."""
        call, terms = self._call, self._terms
        if call is None or terms is None:
            return
        if call.is_done:
            self._call = None
            self._finish(call, terms)
        elif call.is_dropped:
            self._call = None
        elif (
            call.begun_at_seconds is not None
            and self.status.stalled_since_seconds is None
            and now - call.begun_at_seconds >= terms.deadline_seconds
        ):
            self.status = replace(
                self.status,
                state="stalled",
                reason=f"no answer within {terms.deadline_seconds:g} s; "
                "waiting for it to come back",
                stalled_since_seconds=call.begun_at_seconds,
                last_error_at_seconds=call.begun_at_seconds,
                stalls_total=self.status.stalls_total + 1,
            )

    def _finish(self, call: Call, terms: Terms) -> None:
        begun, ended = call.begun_at_seconds or 0.0, call.ended_at_seconds or 0.0
        changes: dict[str, Any] = {
            "stalled_since_seconds": None,
            "duration_seconds": ended - begun,
        }
        if call.error is not None:
            changes |= self._failure(call.error, begun)
        else:
            self.sample = Sample(
                value=call.value,
                taken_at_seconds=begun,
                stale_after_seconds=terms.stale_after_seconds,
            )
            changes |= {"last_success_at_seconds": begun, "state": "ok", "reason": ""}
        self.status = replace(self.status, **changes)

    def _failure(self, error: Exception, begun: float) -> dict[str, Any]:
        # What was there once and is gone is a failure, not a machine that has none.
        if isinstance(error, CollectUnavailable) and self.status.last_success_at_seconds is None:
            return {"state": "unavailable", "reason": str(error)}
        failed: dict[str, Any] = {
            "state": "failed",
            "reason": str(error),
            "errors_total": self.status.errors_total + 1,
            "last_error_at_seconds": begun,
        }
        if isinstance(error, CollectFailed):
            return failed
        # A collector's own bug: the others go on, and the trace is in the log once per change.
        if self.status.state != "failed":
            log.error("collector_bug", source=self.status.name, exc_info=error)
        return failed | {"reason": f"bug in the collector: {type(error).__name__}: {error}"}


class Crew:
    """Runs calls in threads: as few as will do, and one more for each call that hangs."""

    def __init__(self, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._patience_seconds = patience_seconds

    def start(self, call: Call) -> None:
        """Begin one call that is known to take long, in a thread of its own."""
        trio.lowlevel.start_thread_soon(call.run, _ignore)

    async def run(self, calls: Iterable[Call]) -> None:
        """Make the calls one after another; ends when all have ended or have been left behind."""
        waiting = deque(calls)
        try:
            while waiting:
                shift = _Shift(waiting)
                trio.lowlevel.start_thread_soon(shift.work, _ignore)
                await shift.wait(self._patience_seconds)
        finally:
            while waiting:  # only when cancelled
                _drop_next(waiting)


class InlineCrew(Crew):
    """Runs calls on the spot: a thread under a virtual clock would look as if it took for ever."""

    def start(self, call: Call) -> None:
        """Make the call now."""
        call.run()

    async def run(self, calls: Iterable[Call]) -> None:
        """Make the calls now."""
        for call in calls:
            call.run()
        await trio.lowlevel.checkpoint()


class _Shift:
    """One thread's turn at the calls that wait."""

    def __init__(self, waiting: deque[Call]) -> None:
        self._waiting = waiting
        self._current: Call | None = None
        self._is_over = False
        self._is_relieved = False

    def work(self) -> None:
        """In the thread: make calls until there are none, or until another thread goes on."""
        while not self._is_relieved:
            try:
                self._current = self._waiting.popleft()
            except IndexError:
                break
            self._current.run()
        self._is_over = True

    async def wait(self, patience_seconds: float) -> None:
        """Until the turn is over, or one call has kept the thread for too long."""
        while not self._is_over:
            before = self._current
            await trio.sleep(patience_seconds)
            if before is not None and self._current is before and not before.is_done:
                self._is_relieved = True
                return


def _drop_next(waiting: deque[Call]) -> None:
    try:
        waiting.popleft().is_dropped = True
    except IndexError:  # a thread took it
        return


def _ignore(outcome: object) -> None:
    """What a call brought home is in the call."""
