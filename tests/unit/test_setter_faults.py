"""The power setter when devices or the journal fail, and what the journal says."""

import threading
from pathlib import Path

from esnode.readings.limits import EnforcedLimit, Limit, LimitWritten
from esnode.setter import (
    Journal,
    LimitsSet,
    PowerSetter,
    SetLimits,
)
from tests.limit_devices import MemoryDevice, MemoryDevices
from tests.setter_bench import DEADLINE_SECONDS, SetterBench, at, refusal


def test_a_lost_device_is_unknown_and_never_nought(tmp_path: Path) -> None:
    bench = SetterBench(tmp_path, a=at(700), b=at(700))
    bench.ranges()
    bench.devices.devices["a"].is_lost = True

    read = bench.read()
    reply = bench.order(a=400, b=400)

    assert read.limits[0] == EnforcedLimit(device="a", enforced_watts=None, requested_watts=None)
    assert [(entry.what, entry.reason) for entry in read.absent] == [("limit:a", "a is lost")]
    assert refusal(reply).enforced_watts is None
    assert "whether it was set is unknown: a is lost" in refusal(reply).reason
    assert isinstance(reply.outcomes[1], LimitWritten)


def test_a_device_that_does_not_answer_keeps_the_range_it_had(tmp_path: Path) -> None:
    bench = SetterBench(tmp_path, a=at(700))
    before = bench.ranges()
    bench.devices.devices["a"].is_lost = True

    after = bench.ranges()

    assert after.ranges == before.ranges
    assert [entry.reason for entry in after.absent] == ["a is lost"]


def test_a_device_that_takes_limits_no_more_loses_its_range(tmp_path: Path) -> None:
    bench = SetterBench(tmp_path, a=at(700))
    bench.ranges()
    bench.devices.devices["a"].is_rangeless = True

    assert bench.ranges().ranges == ()


def test_a_hung_device_keeps_no_other_from_being_lowered(tmp_path: Path) -> None:
    bench = SetterBench(tmp_path, a=at(700), b=at(700))
    bench.ranges()
    gate = bench.devices.devices["a"].gate = threading.Event()

    reply = bench.order(a=400, b=400)
    gate.set()

    assert "an earlier call has not come back" in refusal(reply).reason
    assert refusal(reply).enforced_watts is None
    assert reply.outcomes[1].enforced_watts == 400


def test_a_hung_device_answers_again_once_it_wakes(tmp_path: Path) -> None:
    bench = SetterBench(tmp_path, a=at(700))
    bench.ranges()
    gate = bench.devices.devices["a"].gate = threading.Event()
    bench.read()
    gate.set()

    for _ in range(100):
        (limit,) = bench.read().limits
        if limit.enforced_watts is not None:
            break
        threading.Event().wait(0.02)

    assert limit.enforced_watts == 700


def test_a_bug_in_a_driver_is_a_refusal_of_its_device_alone(tmp_path: Path) -> None:
    class Broken(MemoryDevices):
        def set_limit(self, device: str, watts: int) -> None:
            if device == "a":
                raise ZeroDivisionError("division\nby zero")
            super().set_limit(device, watts)

    devices = Broken({"a": at(700), "b": at(700)})
    setter = PowerSetter([devices], Journal(tmp_path))
    limits = (Limit(device="a", watts=300), Limit(device="b", watts=300))

    reply = setter.ask(SetLimits(limits=limits, reason="", source="rack"))

    assert isinstance(reply, LimitsSet)
    assert refusal(reply).reason == "division by zero"
    assert reply.outcomes[1].enforced_watts == 300


def test_the_journal_holds_each_change_before_and_after(tmp_path: Path) -> None:
    bench = SetterBench(tmp_path, a=at(700), b=MemoryDevice(refuses=True))

    bench.order(a=400, b=300)

    head = {"at_unix_seconds": 1_800_000_000.0, "order": 1, "source": "rack", "reason": "a test"}
    assert bench.lines() == [
        {
            **head,
            "phase": "before",
            "changes": [
                {"device": "a", "asked_watts": 400, "before_watts": 700},
                {"device": "b", "asked_watts": 300, "before_watts": 700},
            ],
        },
        {
            **head,
            "phase": "after",
            "outcomes": [
                {"device": "a", "asked_watts": 400, "enforced_watts": 400},
                {"device": "b", "asked_watts": 300, "enforced_watts": 700, "refused": "b refuses"},
            ],
        },
    ]


def test_an_order_that_is_refused_whole_is_in_the_journal_too(tmp_path: Path) -> None:
    bench = SetterBench(tmp_path, a=at(700))

    bench.order(a=9000)

    assert [line["phase"] for line in bench.lines()] == ["after"]


def test_the_line_before_is_written_before_the_hardware(tmp_path: Path) -> None:
    seen: list[list[object]] = []
    bench = SetterBench(tmp_path, a=at(700))

    class Watching(MemoryDevices):
        def set_limit(self, device: str, watts: int) -> None:
            seen.append([line["phase"] for line in bench.lines()])
            super().set_limit(device, watts)

    watching = Watching({"a": at(700)})
    setter = PowerSetter([watching], bench.journal)
    limits = (Limit(device="a", watts=300),)

    setter.ask(SetLimits(limits=limits, reason="", source="rack"))

    assert seen == [["before"]]


def test_without_a_journal_a_lowering_goes_ahead_and_a_raise_does_not(tmp_path: Path) -> None:
    bench = SetterBench(tmp_path, a=at(700), b=at(300))
    bench.journal.path.mkdir()

    reply = bench.order(a=400, b=500)

    assert reply.journal_fault is not None
    assert "Is a directory" in reply.journal_fault
    assert reply.outcomes[0].enforced_watts == 400
    assert refusal(reply, 1).reason.startswith("nothing is raised without a journal: ")
    assert refusal(reply, 1).enforced_watts == 300
    assert bench.devices.writes == [("a", 400)]


def test_a_disk_that_hangs_delays_a_lowering_once_and_by_little(tmp_path: Path) -> None:
    hold = threading.Event()

    class Hanging(Journal):
        def append(self, entry: object) -> None:
            hold.wait(30.0)

    devices = MemoryDevices({"a": at(700)})
    setter = PowerSetter([devices], Hanging(tmp_path), deadline_seconds=DEADLINE_SECONDS)

    def lower(watts: int) -> LimitsSet:
        limits = (Limit(device="a", watts=watts),)
        reply = setter.ask(SetLimits(limits=limits, reason="", source="rack"))
        assert isinstance(reply, LimitsSet)
        return reply

    first, second = lower(500), lower(400)
    hold.set()

    assert devices.writes == [("a", 500), ("a", 400)]
    assert first.journal_fault == "journal: an earlier call has not come back"
    assert second.journal_fault == "journal: an earlier call has not come back"
