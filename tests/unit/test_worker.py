"""The calls of one source, and the crew that makes them."""

from collections.abc import Callable

import pytest
import structlog
import trio
from structlog.testing import capture_logs

from esnode.clock import monotonic_seconds
from esnode.collectors.base import CollectFailed, CollectUnavailable
from esnode.worker import Call, Crew, InlineCrew, Terms, Worker
from tests.fake_sources import Hang

TERMS = Terms(interval_seconds=5.0, deadline_seconds=2.0, stale_after_seconds=17.0)


class Bench:
    """One worker, and a clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0
        self.worker = Worker("filesystem", "/mnt", clock=lambda: self.now)

    def ask(self, read: Callable[[], object], *, took: float = 0.0) -> None:
        """A whole call, made on the spot."""
        call = self.worker.begin(lambda: self._take(took, read), TERMS)
        assert call is not None
        call.run()
        self.worker.harvest(self.now)

    def _take(self, seconds: float, read: Callable[[], object]) -> object:
        self.now += seconds
        return read()


@pytest.fixture
def bench() -> Bench:
    return Bench()


def raising(error: Exception) -> Callable[[], object]:
    def read() -> object:
        raise error

    return read


def test_a_good_read_is_kept_with_the_time_at_which_it_began(bench: Bench) -> None:
    bench.ask(lambda: "value", took=0.5)

    sample, status = bench.worker.sample, bench.worker.status
    assert sample is not None
    assert (sample.value, sample.taken_at_seconds) == ("value", 100.0)
    assert sample.stale_after_seconds == 17.0
    assert (status.state, status.reason) == ("ok", "")
    assert (status.last_success_at_seconds, status.duration_seconds) == (100.0, 0.5)
    assert status.interval_seconds == 5.0
    assert status.name == "filesystem:/mnt"


def test_a_failed_read_is_counted_and_the_last_value_stays(bench: Bench) -> None:
    bench.ask(lambda: "value")

    bench.ask(raising(CollectFailed("input/output error")))
    bench.now = 101.0
    bench.ask(raising(CollectFailed("input/output error")), took=0.5)

    status = bench.worker.status
    assert bench.worker.sample is not None
    assert (status.state, status.reason) == ("failed", "input/output error")
    assert (status.errors_total, status.last_success_at_seconds) == (2, 100.0)
    assert status.last_error_at_seconds == 101.0


def test_a_subject_that_this_machine_lacks_is_no_error(bench: Bench) -> None:
    bench.ask(raising(CollectUnavailable("no ipmitool")))

    status = bench.worker.status
    assert (status.state, status.reason) == ("unavailable", "no ipmitool")
    assert (status.errors_total, bench.worker.sample) == (0, None)


def test_a_subject_that_was_there_and_is_gone_is_a_failure(bench: Bench) -> None:
    bench.ask(lambda: "value")

    bench.ask(raising(CollectUnavailable("driver unloaded")))

    assert (bench.worker.status.state, bench.worker.status.errors_total) == ("failed", 1)


def test_a_bug_in_a_collector_is_a_failure_with_its_trace_logged_once(bench: Bench) -> None:
    structlog.reset_defaults()

    with capture_logs() as lines:
        bench.ask(raising(ZeroDivisionError("division by zero")))
        bench.ask(raising(ZeroDivisionError("division by zero")))

    status = bench.worker.status
    assert status.state == "failed"
    assert status.reason == "bug in the collector: ZeroDivisionError: division by zero"
    assert status.errors_total == 2
    assert [line["event"] for line in lines] == ["collector_bug"]


def test_recovery_clears_the_reason(bench: Bench) -> None:
    bench.ask(raising(CollectFailed("broken")))

    bench.ask(lambda: "value")

    status = bench.worker.status
    assert (status.state, status.reason, status.errors_total) == ("ok", "", 1)


def begun(bench: Bench) -> Call:
    """A call that its thread has begun and that does not come back."""
    call = bench.worker.begin(lambda: "late", TERMS)
    assert call is not None
    call.begun_at_seconds = bench.now
    return call


def test_a_call_that_passes_its_deadline_is_stalled_and_counted_once(bench: Bench) -> None:
    begun(bench)
    states = []
    for seconds in (1.9, 0.1, 5.0, 3600.0):
        bench.now += seconds
        assert bench.worker.begin(lambda: "second", TERMS) is None
        states.append(bench.worker.status.state)

    status = bench.worker.status
    assert states == ["pending", "stalled", "stalled", "stalled"]
    assert status.reason == "no answer within 2 s; waiting for it to come back"
    assert (status.stalls_total, status.stalled_since_seconds) == (1, 100.0)
    assert bench.worker.is_waiting


def test_what_comes_home_late_is_kept_with_its_true_age(bench: Bench) -> None:
    call = begun(bench)
    bench.now += 60.0
    bench.worker.harvest(bench.now)

    call.value, call.ended_at_seconds, call.is_done = "late", bench.now, True
    bench.worker.harvest(bench.now)

    sample, status = bench.worker.sample, bench.worker.status
    assert sample is not None
    assert (sample.value, sample.taken_at_seconds) == ("late", 100.0)
    assert sample.fresh(bench.now) is None
    assert (status.state, status.stalled_since_seconds) == ("ok", None)
    assert (status.stalls_total, status.duration_seconds) == (1, 60.0)


def test_a_second_call_that_hangs_is_a_second_stall(bench: Bench) -> None:
    for _ in range(2):
        call = begun(bench)
        bench.now += 3.0
        bench.worker.harvest(bench.now)
        call.ended_at_seconds, call.is_done = bench.now, True
        bench.worker.harvest(bench.now)

    assert bench.worker.status.stalls_total == 2


def test_an_error_that_comes_home_late_is_counted(bench: Bench) -> None:
    call = begun(bench)
    bench.now += 3.0
    bench.worker.harvest(bench.now)

    call.error, call.ended_at_seconds, call.is_done = CollectFailed("no"), bench.now, True
    bench.worker.harvest(bench.now)

    assert (bench.worker.status.state, bench.worker.status.errors_total) == ("failed", 1)


def test_a_call_that_was_never_begun_is_no_stall_and_makes_room_when_dropped(
    bench: Bench,
) -> None:
    call = bench.worker.begin(lambda: "value", TERMS)
    assert call is not None
    bench.now += 60.0
    bench.worker.harvest(bench.now)
    waiting = bench.worker.is_waiting

    call.is_dropped = True

    assert (waiting, bench.worker.is_waiting) == (True, False)
    assert bench.worker.status.state == "pending"
    assert bench.worker.begin(lambda: "value", TERMS) is not None


def calls_of(*reads: Callable[[], object]) -> list[Call]:
    return [Call(read, monotonic_seconds) for read in reads]


async def until(is_so: Callable[[], bool]) -> None:
    with trio.fail_after(10):
        while not is_so():  # noqa: ASYNC110  # nothing to wait on: threads change it
            await trio.sleep(0.002)


async def test_a_round_is_made_in_its_order() -> None:
    order: list[int] = []
    calls = calls_of(*(lambda n=n: order.append(n) for n in range(20)))

    await Crew().run(calls)

    assert order == list(range(20))
    assert all(call.is_done for call in calls)


async def test_an_empty_round_is_over_at_once() -> None:
    with trio.fail_after(1):
        await Crew().run([])


async def test_a_call_that_hangs_keeps_its_thread_and_the_round_goes_on() -> None:
    with Hang() as first, Hang() as second:
        calls = calls_of(lambda: "a", first, lambda: "b", second, lambda: "c")

        with trio.fail_after(5):
            await Crew(patience_seconds=0.01).run(calls)

        assert [call.is_done for call in calls] == [True, False, True, False, True]
        assert [call.begun_at_seconds is not None for call in calls] == [True] * 5
        second.release()
        await until(lambda: calls[3].is_done)
        assert calls[3].value == "late"
        assert not calls[1].is_done


async def test_a_call_that_raises_does_not_end_the_round() -> None:
    calls = calls_of(raising(CollectFailed("no")), lambda: "value")

    await Crew().run(calls)

    assert [str(call.error) for call in calls] == ["no", "None"]


async def test_calls_that_were_not_begun_are_dropped_when_the_round_is_cancelled() -> None:
    with Hang() as hang:
        calls = calls_of(hang, lambda: "value")

        with trio.move_on_after(0.02):
            await Crew(patience_seconds=5.0).run(calls)

        assert [call.is_dropped for call in calls] == [False, True]
    await until(lambda: calls[0].is_done)
    assert not calls[1].is_done


async def test_a_slow_call_has_a_thread_of_its_own_from_the_start() -> None:
    with Hang() as hang:
        (slow,) = calls_of(hang)
        crew = Crew()
        crew.start(slow)
        (quick,) = calls_of(lambda: "value")

        await crew.run([quick])

        assert (quick.is_done, slow.is_done) == (True, False)
    await until(lambda: slow.is_done)


async def test_an_inline_crew_makes_its_calls_on_the_spot() -> None:
    order: list[str] = []
    slow, quick = calls_of(lambda: order.append("slow"), lambda: order.append("quick"))
    crew = InlineCrew()

    crew.start(slow)
    await crew.run([quick])

    assert order == ["slow", "quick"]
