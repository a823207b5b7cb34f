"""The power setter over devices in memory."""

import threading
from pathlib import Path

import pytest

from esnode.readings.limits import Limit, LimitRefused, LimitWritten
from esnode.setter import (
    HardLimit,
    Journal,
    LimitsSet,
    PowerSetter,
    Refused,
    SetLimits,
)
from tests.limit_devices import MemoryDevice, MemoryDevices
from tests.setter_bench import SetterBench, at, refusal


def test_a_limit_is_set_and_what_is_enforced_comes_back(tmp_path: Path) -> None:
    bench = SetterBench(tmp_path, a=at(700))

    reply = bench.order(a=400)

    assert reply == LimitsSet(
        outcomes=(LimitWritten(device="a", asked_watts=400, before_watts=700, enforced_watts=400),)
    )
    assert bench.devices.devices["a"].enforced_watts == 400


def test_what_is_enforced_and_not_what_was_asked_comes_back(tmp_path: Path) -> None:
    bench = SetterBench(tmp_path, a=MemoryDevice(is_late=True))

    reply = bench.order(a=400)

    assert reply.outcomes == (
        LimitWritten(device="a", asked_watts=400, before_watts=700, enforced_watts=700),
    )


def test_what_goes_down_is_written_before_what_goes_up(tmp_path: Path) -> None:
    bench = SetterBench(tmp_path, a=at(300), b=at(600), c=at(300), d=at(600))

    reply = bench.order(a=500, b=400, c=400, d=450)

    down, up = bench.devices.writes[:2], bench.devices.writes[2:]
    assert sorted(down) == [("b", 400), ("d", 450)]
    assert sorted(up) == [("a", 500), ("c", 400)]
    assert max(bench.devices.sums) <= 1800
    assert [outcome.device for outcome in reply.outcomes] == ["a", "b", "c", "d"]


def test_nothing_goes_up_while_something_has_not_come_down(tmp_path: Path) -> None:
    bench = SetterBench(tmp_path, a=at(300), b=MemoryDevice(is_late=True))

    first = bench.order(a=500, b=400)
    bench.devices.devices["b"].enforced_watts = 400
    second = bench.order(a=500, b=400)

    assert refusal(first) == LimitRefused(
        device="a",
        asked_watts=500,
        enforced_watts=300,
        reason="waits: b still obeys 700 W, not 400 W",
    )
    assert max(bench.devices.sums[:1]) == 1000
    assert isinstance(second.outcomes[0], LimitWritten)
    assert bench.devices.devices["a"].enforced_watts == 500


def test_nothing_goes_up_while_a_lowering_is_refused(tmp_path: Path) -> None:
    bench = SetterBench(tmp_path, a=at(300), b=MemoryDevice(refuses=True))

    reply = bench.order(a=500, b=400)

    assert refusal(reply, 0).reason.startswith("waits: b still obeys")
    assert refusal(reply, 1) == LimitRefused(
        device="b", asked_watts=400, enforced_watts=700, reason="b refuses"
    )
    assert bench.devices.devices["a"].enforced_watts == 300


def test_a_device_on_its_way_down_is_raised_only_as_a_raise(tmp_path: Path) -> None:
    bench = SetterBench(
        tmp_path,
        a=MemoryDevice(enforced_watts=700, requested_watts=300),
        b=MemoryDevice(is_late=True),
    )

    reply = bench.order(a=500, b=400)

    assert refusal(reply).reason.startswith("waits: b")


def test_what_is_in_force_already_is_not_written_again(tmp_path: Path) -> None:
    bench = SetterBench(tmp_path, a=at(400))

    reply = bench.order(a=400)

    assert reply.outcomes == (
        LimitWritten(device="a", asked_watts=400, before_watts=400, enforced_watts=400),
    )
    assert bench.devices.writes == []
    assert not bench.journal.path.exists()


@pytest.mark.parametrize(
    ("watts", "reason"),
    [
        pytest.param(199, "199 W is outside 200 to 700 W", id="below-the-hardware"),
        pytest.param(701, "701 W is outside 200 to 700 W", id="above-the-hardware"),
    ],
)
def test_nothing_is_set_outside_the_hardwares_range(
    tmp_path: Path, watts: int, reason: str
) -> None:
    bench = SetterBench(tmp_path, a=at(500))

    assert refusal(bench.order(a=watts)).reason == reason
    assert bench.devices.writes == []


def test_nothing_is_set_outside_the_hard_limits(tmp_path: Path) -> None:
    hard = HardLimit(device="a", minimum_watts=300, maximum_watts=600)
    bench = SetterBench(tmp_path, hard, a=at(700), b=at(700))

    reply = bench.order(a=650, b=650)

    assert refusal(reply).reason == "650 W is outside 300 to 600 W"
    assert isinstance(reply.outcomes[1], LimitWritten)
    assert [(one.minimum_watts, one.maximum_watts) for one in bench.ranges().ranges] == [
        (300, 600),
        (200, 700),
    ]


def test_hard_limits_never_widen_a_range(tmp_path: Path) -> None:
    hard = HardLimit(device="a", minimum_watts=0, maximum_watts=9000)
    bench = SetterBench(tmp_path, hard, a=at(700))

    assert refusal(bench.order(a=900)).reason == "900 W is outside 200 to 700 W"


def test_hard_limits_that_leave_nothing_leave_the_device_alone(tmp_path: Path) -> None:
    bench = SetterBench(tmp_path, HardLimit(device="a", maximum_watts=100), a=at(700))

    listed = bench.ranges()

    assert listed.ranges == ()
    assert "hard limits leave nothing of 200 to 700 W" in listed.absent[0].reason
    assert "no range is known" in refusal(bench.order(a=300)).reason


def test_a_limit_found_above_a_hard_limit_is_not_touched_without_an_order(tmp_path: Path) -> None:
    bench = SetterBench(tmp_path, HardLimit(device="a", maximum_watts=500), a=at(700))

    bench.ranges()
    bench.read()

    assert bench.devices.writes == []


def test_an_unknown_device_is_refused_and_the_others_are_set(tmp_path: Path) -> None:
    bench = SetterBench(tmp_path, a=at(700))

    reply = bench.order(a=400, nowhere=300)

    assert isinstance(reply.outcomes[0], LimitWritten)
    assert "no range is known of a device 'nowhere'" in refusal(reply, 1).reason


def test_a_device_twice_in_an_order_is_refused_whole(tmp_path: Path) -> None:
    bench = SetterBench(tmp_path, a=at(700))
    limits = (Limit(device="a", watts=300), Limit(device="a", watts=600))

    reply = bench.setter.ask(SetLimits(limits=limits, reason="", source="rack"))

    assert isinstance(reply, Refused)
    assert bench.devices.writes == []


def test_two_back_ends_are_set_by_one_order(tmp_path: Path) -> None:
    gpus = MemoryDevices({"GPU-1": at(700)}, name="one")
    packages = MemoryDevices({"intel-rapl:0": at(350)}, name="two")
    setter = PowerSetter([gpus, packages], Journal(tmp_path))
    limits = (Limit(device="intel-rapl:0", watts=250), Limit(device="GPU-1", watts=300))

    reply = setter.ask(SetLimits(limits=limits, reason="", source="rack"))

    assert isinstance(reply, LimitsSet)
    assert gpus.writes == [("GPU-1", 300)]
    assert packages.writes == [("intel-rapl:0", 250)]


def test_a_setter_that_ends_leaves_all_limits_as_they_are(tmp_path: Path) -> None:
    bench = SetterBench(tmp_path, a=at(700))
    bench.order(a=300)

    del bench.setter

    assert bench.devices.devices["a"].enforced_watts == 300
    assert bench.devices.writes == [("a", 300)]


def test_orders_from_several_threads_come_one_after_another(tmp_path: Path) -> None:
    bench = SetterBench(tmp_path, a=at(700), b=at(700))
    bench.ranges()
    threads = [
        threading.Thread(target=bench.order, kwargs={"a": 300 + n, "b": 400 + n}) for n in range(8)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    phases = [(line["order"], line["phase"]) for line in bench.lines()]
    assert sorted(number for number, phase in phases if phase == "before") == list(range(1, 9))
    assert [phase for _, phase in phases] == ["before", "after"] * 8
    assert bench.read().absent == ()
