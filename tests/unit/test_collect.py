"""All sources together: one that hangs delays nobody, targets come and go."""

from collections.abc import Callable

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from esnode.collect import Collection, Plan
from esnode.collectors.base import CollectFailed
from esnode.readings.sample import SourceStatus
from esnode.worker import run_inline
from tests.fake_sources import Fan, Hang, Single, plan_of


async def collect_for(collection: Collection, plan: Plan, seconds: float) -> None:
    with trio.move_on_after(seconds):
        await collection.run(plan)


def statuses(collection: Collection) -> dict[str, SourceStatus]:
    return {status.name: status for status in collection.reading().sources}


def is_in(collection: Collection, name: str, state: str) -> bool:
    return any(s.name == name and s.state == state for s in collection.reading().sources)


async def test_each_source_is_read_at_its_own_interval(autojump_clock: MockClock) -> None:
    fast, slow = Single("cpu"), Single("memory")
    collection = Collection(runner=run_inline)

    await collect_for(collection, plan_of(fast, slow, intervals={"memory": 10.0}), 19.9)

    assert fast.reads == pytest.approx([0.0, 5.0, 10.0, 15.0])
    assert slow.reads == pytest.approx([0.004, 10.004])
    reading = collection.reading()
    assert reading.cpu is not None
    assert reading.cpu.stale_after_seconds == 17.0
    assert reading.disabled == ("app",)


async def test_a_failing_source_does_not_touch_the_others(autojump_clock: MockClock) -> None:
    def fail() -> object:
        raise CollectFailed("broken")

    def bug() -> object:
        raise KeyError("oops")

    collection = Collection(runner=run_inline)

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
    collection = Collection(runner=run_inline)
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
    collection = Collection(runner=run_inline)

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
    collection = Collection(runner=run_inline)

    await collect_for(collection, plan_of(fan), 1.0)

    assert set(collection.reading().gpus) == {"GPU-b"}
    assert statuses(collection)["gpu:GPU-a"].reason == "GPU is lost"


async def test_a_new_plan_shows_its_own_collectors_and_keeps_the_targets_of_those_that_stay(
    autojump_clock: MockClock,
) -> None:
    fan = Fan("gpu", {"GPU-a": lambda: "fine"})
    collection = Collection(runner=run_inline)
    await collect_for(collection, plan_of(fan, Single("cpu")), 1.0)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(collect_for, collection, plan_of(Single("memory"), fan), 6.0)
        await trio.testing.wait_all_tasks_blocked()
        at_once = set(statuses(collection))
        del fan.targets["GPU-a"]
        await trio.sleep(5.5)
        later = set(statuses(collection))

    assert at_once == {"memory", "gpu", "gpu:GPU-a"}
    assert later == {"memory", "gpu"}
    assert collection.reading().cpu is None


async def test_the_targets_of_a_collector_that_is_turned_off_are_gone(
    autojump_clock: MockClock,
) -> None:
    collection = Collection(runner=run_inline)
    await collect_for(collection, plan_of(Fan("gpu", {"GPU-a": lambda: "fine"})), 1.0)

    await collect_for(collection, plan_of(Single("cpu")), 1.0)

    assert set(statuses(collection)) == {"cpu"}
    assert collection.reading().gpus == {}


async def until(is_so: Callable[[], bool]) -> None:
    with trio.fail_after(10):
        while not is_so():  # noqa: ASYNC110  # nothing to wait on: threads change it
            await trio.sleep(0.005)


async def test_a_source_that_hangs_in_its_thread_leaves_the_others_on_time() -> None:
    collection = Collection()
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
    collection = Collection()
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
    collection = Collection()
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

        assert hang.calls == 1
        assert hang.running == 1


async def test_a_discovery_that_comes_home_late_is_followed_late() -> None:
    collection = Collection()
    with Hang() as hang:
        fan = Fan("gpu", {"GPU-a": lambda: "fine"}, look=hang)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(collection.run, plan_of(fan, interval=0.1, deadline=0.05))
            await until(lambda: is_in(collection, "gpu", "stalled"))
            fan.look = lambda: None
            hang.release()
            await until(lambda: "GPU-a" in collection.reading().gpus)
            nursery.cancel_scope.cancel()

    assert statuses(collection)["gpu"].stalls_total == 1


async def test_a_hung_source_comes_back_by_itself() -> None:
    collection = Collection()
    with Hang("late") as hang:
        async with trio.open_nursery() as nursery:
            plan = plan_of(Single("cpu", hang), interval=0.1, deadline=0.05)
            nursery.start_soon(collection.run, plan)
            await until(lambda: is_in(collection, "cpu", "stalled"))
            hang.release()
            await until(lambda: is_in(collection, "cpu", "ok"))
            nursery.cancel_scope.cancel()

    reading = collection.reading()
    assert reading.cpu is not None
    assert statuses(collection)["cpu"].stalls_total == 1
