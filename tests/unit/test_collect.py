"""All sources together: one that hangs delays nobody, targets come and go."""

from collections.abc import Callable

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from esnode.clock import monotonic_seconds
from esnode.collect import Collection, Plan
from esnode.collectors.base import CollectFailed
from esnode.readings.sample import SourceStatus
from esnode.worker import Crew, InlineCrew
from tests.fake_sources import Fan, Hang, Single, plan_of


def virtual() -> Collection:
    return Collection(clock=trio.current_time, crew=InlineCrew())


def real() -> Collection:
    return Collection(clock=monotonic_seconds, crew=Crew(patience_seconds=0.01))


async def collect_for(collection: Collection, plan: Plan, seconds: float) -> None:
    with trio.move_on_after(seconds):
        await collection.run(plan)


def statuses(collection: Collection) -> dict[str, SourceStatus]:
    return {status.name: status for status in collection.reading().sources}


def is_in(collection: Collection, name: str, state: str) -> bool:
    return any(s.name == name and s.state == state for s in collection.reading().sources)


async def test_each_source_is_read_at_its_own_interval(autojump_clock: MockClock) -> None:
    fast, slow = Single("cpu"), Single("memory")
    collection = virtual()

    await collect_for(collection, plan_of(fast, slow, intervals={"memory": 10.0}), 19.9)

    assert fast.reads == pytest.approx([0.0, 5.0, 10.0, 15.0])
    assert slow.reads == pytest.approx([0.0, 10.0])
    reading = collection.reading()
    assert reading.cpu is not None
    assert reading.cpu.stale_after_seconds == 17.0
    assert reading.disabled == ("app",)


@pytest.mark.parametrize("interval", [0.1, 0.3, 0.7, 1.0])
async def test_turns_are_at_fixed_times_and_each_comes_once(
    autojump_clock: MockClock, interval: float
) -> None:
    await trio.sleep(1234.567)
    start = trio.current_time()
    source = Single("cpu")

    await collect_for(virtual(), plan_of(source, interval=interval), interval * 20.5)

    assert [at - start for at in source.reads] == pytest.approx(
        [interval * turn for turn in range(21)]
    )


async def test_a_turn_that_was_missed_is_left_out(autojump_clock: MockClock) -> None:
    class LateOnce(InlineCrew):
        is_late = True

        async def run(self, calls) -> None:  # type: ignore[no-untyped-def]
            await super().run(calls)
            if self.is_late:
                self.is_late = False
                await trio.sleep(2.5)

    source = Single("cpu")
    collection = Collection(clock=trio.current_time, crew=LateOnce())

    await collect_for(collection, plan_of(source, interval=1.0), 5.5)

    # The turn of second 1 is made late, the next ones are again on time.
    assert source.reads == pytest.approx([0.0, 2.5, 3.0, 4.0, 5.0])


async def test_a_failing_source_does_not_touch_the_others(autojump_clock: MockClock) -> None:
    def fail() -> object:
        raise CollectFailed("broken")

    def bug() -> object:
        raise KeyError("oops")

    collection = virtual()

    await collect_for(
        collection, plan_of(Single("cpu", fail), Single("memory", bug), Single("disk")), 11.0
    )

    assert {name: status.state for name, status in statuses(collection).items()} == {
        "cpu": "failed",
        "memory": "failed",
        "disk": "ok",
    }
    assert statuses(collection)["cpu"].errors_total == 3


async def test_targets_are_read_one_by_one_and_follow_the_discovery(
    autojump_clock: MockClock,
) -> None:
    fan = Fan("filesystem", {"/": lambda: "root", "/data": lambda: "data"})
    collection = virtual()
    seen: list[set[str]] = []

    async def change() -> None:
        await trio.sleep(1.0)
        seen.append(set(collection.reading().filesystems))
        fan.targets["/new"] = lambda: "new"
        del fan.targets["/data"]
        await trio.sleep(5.0)
        seen.append(set(collection.reading().filesystems))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(change)
        await collect_for(collection, plan_of(fan), 7.0)

    assert seen == [{"/", "/data"}, {"/", "/new"}]
    assert set(statuses(collection)) == {"filesystem", "filesystem:/", "filesystem:/new"}


async def test_targets_that_are_known_are_read_while_the_list_cannot_be_had(
    autojump_clock: MockClock,
) -> None:
    fan = Fan("filesystem", {"/": lambda: "root"})
    collection = virtual()

    async def break_it() -> None:
        await trio.sleep(1.0)

        def fail() -> None:
            raise CollectFailed("no mountinfo")

        fan.look = fail

    async with trio.open_nursery() as nursery:
        nursery.start_soon(break_it)
        await collect_for(collection, plan_of(fan), 11.0)

    assert statuses(collection)["filesystem"].state == "failed"
    assert statuses(collection)["filesystem:/"].state == "ok"
    assert fan.reads == ["/", "/", "/"]


async def test_one_target_that_fails_takes_only_itself_away(autojump_clock: MockClock) -> None:
    def lost() -> object:
        raise CollectFailed("GPU is lost")

    fan = Fan("gpu", {"GPU-a": lost, "GPU-b": lambda: "fine"})
    collection = virtual()

    await collect_for(collection, plan_of(fan), 1.0)

    assert set(collection.reading().gpus) == {"GPU-b"}
    assert statuses(collection)["gpu:GPU-a"].reason == "GPU is lost"


async def test_a_new_plan_shows_its_own_collectors_and_keeps_the_targets_of_those_that_stay(
    autojump_clock: MockClock,
) -> None:
    fan = Fan("gpu", {"GPU-a": lambda: "fine", "GPU-b": lambda: "fine"})
    collection = virtual()
    await collect_for(collection, plan_of(fan, Single("cpu")), 1.0)

    del fan.targets["GPU-a"]
    collection._take_up(plan_of(Single("memory"), fan))
    at_once = set(statuses(collection))
    await collect_for(collection, plan_of(Single("memory"), fan), 6.0)

    assert at_once == {"memory", "gpu", "gpu:GPU-a", "gpu:GPU-b"}
    assert set(statuses(collection)) == {"memory", "gpu", "gpu:GPU-b"}
    assert fan.reads.count("GPU-b") == 3
    assert collection.reading().cpu is None


async def test_what_was_read_before_a_change_of_plan_is_shown_after_it(
    autojump_clock: MockClock,
) -> None:
    collection = virtual()
    await collect_for(collection, plan_of(Single("cpu")), 1.0)

    collection._take_up(plan_of(Single("cpu")))

    assert collection.reading().cpu is not None


async def test_the_targets_of_a_collector_that_is_turned_off_are_gone(
    autojump_clock: MockClock,
) -> None:
    collection = virtual()
    await collect_for(collection, plan_of(Fan("gpu", {"GPU-a": lambda: "fine"})), 1.0)

    await collect_for(collection, plan_of(Single("cpu")), 1.0)

    assert set(statuses(collection)) == {"cpu"}
    assert collection.reading().gpus == {}


async def test_a_plan_without_collectors_waits_for_the_next(autojump_clock: MockClock) -> None:
    collection = virtual()

    await collect_for(collection, Plan(disabled=("cpu",)), 60.0)

    assert collection.reading().disabled == ("cpu",)


async def test_a_collector_that_keeps_something_gives_it_back_at_the_end(
    autojump_clock: MockClock,
) -> None:
    class Keeper(Single):
        is_closed = False

        def close(self) -> None:
            self.is_closed = True

    keeper = Keeper("cpu")

    await collect_for(virtual(), plan_of(keeper), 1.0)

    assert keeper.is_closed


async def until(is_so: Callable[[], bool]) -> None:
    with trio.fail_after(10):
        while not is_so():  # noqa: ASYNC110  # nothing to wait on: threads change it
            await trio.sleep(0.005)


async def test_a_source_that_hangs_in_its_thread_leaves_the_others_on_time() -> None:
    collection = real()
    other = Single("memory")
    with Hang() as hang:
        async with trio.open_nursery() as nursery:
            plan = plan_of(Single("cpu", hang), other, interval=0.1, deadline=0.05)
            nursery.start_soon(collection.run, plan)
            await until(lambda: len(other.reads) >= 5)
            cpu = statuses(collection)["cpu"]
            nursery.cancel_scope.cancel()

        assert (cpu.state, cpu.stalls_total, hang.calls) == ("stalled", 1, 1)
        assert statuses(collection)["memory"].stalls_total == 0


async def test_one_target_that_hangs_delays_no_other_and_not_the_discovery() -> None:
    collection = real()
    with Hang() as hang:
        fan = Fan("filesystem", {"/dead": hang, "/": lambda: "root"})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(collection.run, plan_of(fan, interval=0.1, deadline=0.05))
            await until(lambda: fan.reads.count("/") >= 4)
            fan.targets["/new"] = lambda: "new"
            await until(lambda: "/new" in collection.reading().filesystems)
            states = {name: status.state for name, status in statuses(collection).items()}
            nursery.cancel_scope.cancel()

        assert states["filesystem:/dead"] == "stalled"
        assert states["filesystem:/"] == states["filesystem"] == "ok"
        assert hang.calls == 1


async def test_a_hung_target_is_not_called_again_by_a_new_plan_nor_when_it_was_away() -> None:
    collection = real()
    with Hang() as hang:
        fan = Fan("filesystem", {"/dead": hang, "/": lambda: "root"})
        plan = plan_of(fan, interval=0.1, deadline=0.05)
        for _ in range(3):
            fan.reads.clear()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(collection.run, plan)
                await until(lambda: fan.reads.count("/") >= 2)
                del fan.targets["/dead"]
                await until(lambda: "filesystem:/dead" not in statuses(collection))
                fan.targets["/dead"] = hang
                await until(lambda: "filesystem:/dead" in statuses(collection))
                nursery.cancel_scope.cancel()

        assert (hang.calls, hang.running) == (1, 1)


async def test_a_hung_source_is_counted_once_across_a_change_of_plan() -> None:
    collection = real()
    with Hang() as hang:
        plan = plan_of(Single("cpu", hang), interval=0.1, deadline=0.05)
        for _ in range(3):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(collection.run, plan)
                await until(lambda: is_in(collection, "cpu", "stalled"))
                await trio.sleep(0.15)
                nursery.cancel_scope.cancel()

        assert (statuses(collection)["cpu"].stalls_total, hang.calls) == (1, 1)


async def test_a_discovery_that_comes_home_late_is_followed_late() -> None:
    collection = real()
    with Hang() as hang:
        fan = Fan("gpu", {"GPU-a": lambda: "fine"}, look=hang)
        async with trio.open_nursery() as nursery:
            # The next turn is a minute away, and yet the targets are not kept waiting for it.
            nursery.start_soon(collection.run, plan_of(fan, interval=60.0, deadline=0.05))
            await until(lambda: is_in(collection, "gpu", "stalled"))
            hang.release()
            await until(lambda: "GPU-a" in collection.reading().gpus)
            nursery.cancel_scope.cancel()

    assert statuses(collection)["gpu"].stalls_total == 1


async def test_known_targets_are_read_though_the_list_hangs_across_a_change_of_plan() -> None:
    collection = real()
    fan = Fan("gpu", {"GPU-a": lambda: "fine"})
    plan = plan_of(fan, interval=0.1, deadline=0.05)
    with Hang() as hang:
        for look in (lambda: None, hang):
            fan.look = look
            fan.reads.clear()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(collection.run, plan)
                await until(lambda: len(fan.reads) >= 3)
                nursery.cancel_scope.cancel()

        assert statuses(collection)["gpu"].state == "stalled"
        assert statuses(collection)["gpu:GPU-a"].state == "ok"


async def test_a_hung_source_comes_back_by_itself() -> None:
    collection = real()
    with Hang("late") as hang:
        async with trio.open_nursery() as nursery:
            plan = plan_of(Single("cpu", hang), interval=0.1, deadline=0.05)
            nursery.start_soon(collection.run, plan)
            await until(lambda: is_in(collection, "cpu", "stalled"))
            hang.release()
            await until(lambda: is_in(collection, "cpu", "ok"))
            nursery.cancel_scope.cancel()

    assert collection.reading().cpu is not None
    assert statuses(collection)["cpu"].stalls_total == 1
