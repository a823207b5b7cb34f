"""One source's worker: one call at a time, never waited for past its deadline."""

from collections.abc import Callable

import pytest
import structlog
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from esnode.collectors.base import CollectFailed, CollectUnavailable
from esnode.worker import Worker, every, run_in_thread, run_inline
from tests.fake_sources import Hang


async def ask(worker: Worker, read: Callable[[], object], *, deadline: float = 2.0) -> None:
    await worker.ask(
        read, interval_seconds=5.0, deadline_seconds=deadline, stale_after_seconds=17.0
    )


def raising(error: BaseException) -> Callable[[], object]:
    def read() -> object:
        raise error

    return read


async def never(call: Callable[[], None], limiter: trio.CapacityLimiter) -> None:
    """A runner whose calls do not come back by themselves."""
    await trio.sleep_forever()


async def test_a_good_read_is_kept_with_the_time_at_which_it_began(
    autojump_clock: MockClock,
) -> None:
    worker = Worker("cpu", runner=run_inline)
    await trio.sleep(3.0)
    begun = trio.current_time()

    await ask(worker, lambda: "value")

    assert worker.sample is not None
    assert (worker.sample.value, worker.sample.taken_at_seconds) == ("value", begun)
    assert worker.sample.stale_after_seconds == 17.0
    assert (worker.status.state, worker.status.reason) == ("ok", "")
    assert worker.status.last_success_at_seconds == begun
    assert worker.status.duration_seconds == 0.0
    assert worker.status.interval_seconds == 5.0


async def test_a_failed_read_is_counted_and_the_last_value_stays(
    autojump_clock: MockClock,
) -> None:
    worker = Worker("cpu", runner=run_inline)
    await ask(worker, lambda: "value")

    await ask(worker, raising(CollectFailed("no /proc/stat")))
    await ask(worker, raising(CollectFailed("no /proc/stat")))

    assert worker.sample is not None
    assert (worker.status.state, worker.status.reason) == ("failed", "no /proc/stat")
    assert worker.status.errors_total == 2
    assert worker.status.last_success_at_seconds == 0.0


async def test_a_subject_that_this_machine_lacks_is_no_error(autojump_clock: MockClock) -> None:
    worker = Worker("ipmi", runner=run_inline)

    await ask(worker, raising(CollectUnavailable("no ipmitool")))

    assert (worker.status.state, worker.status.reason) == ("unavailable", "no ipmitool")
    assert worker.status.errors_total == 0
    assert worker.sample is None


async def test_a_subject_that_was_there_and_is_gone_is_a_failure(
    autojump_clock: MockClock,
) -> None:
    worker = Worker("gpu", runner=run_inline)
    await ask(worker, lambda: "value")

    await ask(worker, raising(CollectUnavailable("driver unloaded")))

    assert (worker.status.state, worker.status.errors_total) == ("failed", 1)


async def test_a_bug_in_a_collector_is_a_failure_with_its_trace_logged_once(
    autojump_clock: MockClock,
) -> None:
    worker = Worker("cpu", runner=run_inline)
    structlog.reset_defaults()

    with capture_logs() as lines:
        await ask(worker, raising(ZeroDivisionError("division by zero")))
        await ask(worker, raising(ZeroDivisionError("division by zero")))

    assert worker.status.state == "failed"
    assert worker.status.reason == "bug in the collector: ZeroDivisionError: division by zero"
    assert worker.status.errors_total == 2
    assert [line["event"] for line in lines] == ["collector_bug"]


async def test_recovery_clears_the_reason(autojump_clock: MockClock) -> None:
    worker = Worker("cpu", runner=run_inline)
    await ask(worker, raising(CollectFailed("broken")))

    await ask(worker, lambda: "value")

    assert (worker.status.state, worker.status.reason) == ("ok", "")
    assert worker.status.errors_total == 1


async def test_a_call_that_passes_its_deadline_is_stalled_and_counted_once(
    autojump_clock: MockClock,
) -> None:
    worker = Worker("filesystem", "/mnt", runner=never)
    await trio.sleep(1.1)
    begun = trio.current_time()

    for _ in range(4):
        await ask(worker, lambda: "value")
        await trio.sleep(5.0)

    assert worker.status.state == "stalled"
    assert worker.status.reason == "no answer within 2 s; waiting for it to come back"
    assert worker.status.stalls_total == 1
    assert worker.status.stalled_since_seconds == begun
    assert worker.is_waiting
    assert worker.sample is None


async def test_a_call_left_behind_before_its_deadline_is_noticed_when_it_is_late(
    autojump_clock: MockClock,
) -> None:
    worker = Worker("filesystem", "/mnt", runner=never)
    with trio.move_on_after(0.5):  # the configuration changes
        await ask(worker, lambda: "value")
    assert worker.status.state == "pending"

    await ask(worker, lambda: "value")
    soon = worker.status.state
    await trio.sleep(2.0)
    await ask(worker, lambda: "value")

    assert (soon, worker.status.state) == ("pending", "stalled")
    assert (worker.status.stalls_total, worker.status.stalled_since_seconds) == (1, 0.0)


async def test_no_second_call_is_made_while_one_hangs_in_its_thread() -> None:
    worker = Worker("filesystem", "/mnt", runner=run_in_thread)
    with Hang() as hang:
        for _ in range(3):
            await ask(worker, hang, deadline=0.05)

        assert hang.calls == 1
        assert worker.status.stalls_total == 1


async def test_what_comes_home_late_is_kept_with_its_true_age() -> None:
    worker = Worker("filesystem", "/mnt", runner=run_in_thread)
    begun = trio.current_time()
    with Hang("late") as hang:
        await ask(worker, hang, deadline=0.05)
        hang.release()
        await until(lambda: not worker.is_waiting)
        with Hang() as next_hang:
            await ask(worker, next_hang, deadline=0.05)

    assert worker.sample is not None
    assert worker.sample.value == "late"
    assert begun <= worker.sample.taken_at_seconds < begun + 0.05
    assert worker.status.last_success_at_seconds == worker.sample.taken_at_seconds
    assert (worker.status.state, worker.status.stalls_total) == ("stalled", 2)
    assert worker.status.duration_seconds is None


async def test_a_source_that_came_back_is_asked_again() -> None:
    worker = Worker("filesystem", "/mnt", runner=run_in_thread)
    with Hang() as hang:
        await ask(worker, hang, deadline=0.05)
        hang.release()
        await until(lambda: not worker.is_waiting)

    await ask(worker, lambda: "prompt")

    assert worker.sample is not None
    assert worker.sample.value == "prompt"
    assert (worker.status.state, worker.status.stalled_since_seconds) == ("ok", None)
    assert worker.status.stalls_total == 1


async def test_an_error_that_comes_home_late_is_counted() -> None:
    worker = Worker("filesystem", "/mnt", runner=run_in_thread)
    gate = Hang()

    def read() -> object:
        gate()
        raise CollectFailed("input/output error")

    await ask(worker, read, deadline=0.05)
    gate.release()
    await until(lambda: not worker.is_waiting)
    await ask(worker, raising(CollectFailed("again")), deadline=0.05)

    assert worker.status.errors_total == 2
    assert worker.status.stalled_since_seconds is None


async def until(is_so: Callable[[], bool]) -> None:
    with trio.fail_after(10):
        while not is_so():  # noqa: ASYNC110  # nothing to wait on: a thread sets it
            await trio.sleep(0.005)


@pytest.mark.parametrize("interval", [0.1, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("phase", [0.0, 0.004, 0.028, 0.1])
async def test_turns_are_at_fixed_times_and_each_comes_once(
    autojump_clock: MockClock, interval: float, phase: float
) -> None:
    await trio.sleep(1234.567)
    start = trio.current_time()
    turns: list[float] = []

    async def act() -> None:
        turns.append(trio.current_time() - start)

    with trio.move_on_after(phase + interval * 20.5):
        await every(interval, act, phase_seconds=phase)

    assert turns == pytest.approx([phase + interval * turn for turn in range(21)])


async def test_a_turn_that_was_missed_is_left_out(autojump_clock: MockClock) -> None:
    turns: list[float] = []

    async def act() -> None:
        turns.append(trio.current_time())
        await trio.sleep(2.5 if len(turns) == 1 else 0)

    with trio.move_on_after(5.5):
        await every(1.0, act)

    assert turns == pytest.approx([0.0, 3.0, 4.0, 5.0])
