"""The power setter over a simulated machine, with the machine's own file as the witness."""

from pathlib import Path

import pytest

from esnode.control.split import Chassis, NodePart, bound_watts, floor_watts, split
from esnode.control.supply import Efficiency
from esnode.drivers.limits import GpuLimits
from esnode.drivers.simulated.machine import (
    CLEAR,
    FORGET_LIMIT,
    HANG,
    LOST,
    REFUSE_LIMIT,
    FaultInjected,
    Load,
    LoadSet,
    Rebooted,
)
from esnode.drivers.simulated.parts import H100, SUPPLY_EFFICIENCY_RATIO
from esnode.drivers.simulated.truth import PhysicalTruth
from esnode.readings.limits import (
    EnforcedLimit,
    Limit,
    LimitRefused,
    LimitWritten,
)
from esnode.setter import (
    Journal,
    LimitsRead,
    LimitsSet,
    ListRanges,
    PowerSetter,
    RangesListed,
    ReadLimits,
    SetLimits,
)
from tests.simulated_world import World, happen

SETTLE_SECONDS = 2.0
DEADLINE_SECONDS = 10.0


class Machine:
    """A simulated machine with a setter, and its truth."""

    def __init__(self, folder: Path, spec: str, *, deadline_seconds: float = DEADLINE_SECONDS):
        self.world = World()
        self.path = folder / "machine"
        self.store = self.world.store(self.path, spec)
        self.driver = self.world.gpus(self.path, spec)
        self.setter = PowerSetter(
            [GpuLimits(self.driver)], Journal(folder), deadline_seconds=deadline_seconds
        )
        self.uuids = tuple(gpu.uuid for gpu in self.driver.discover().gpus)

    def order(self, *watts: int) -> LimitsSet:
        limits = tuple(
            Limit(device=uuid, watts=one) for uuid, one in zip(self.uuids, watts, strict=True)
        )
        reply = self.setter.ask(SetLimits(limits=limits, reason="a test", source="rack"))
        assert isinstance(reply, LimitsSet)
        return reply

    def limits(self) -> tuple[EnforcedLimit, ...]:
        reply = self.setter.ask(ReadLimits())
        assert isinstance(reply, LimitsRead)
        return reply.limits

    def pass_seconds(self, seconds: float) -> None:
        self.world.now_seconds += seconds

    def truth(self) -> PhysicalTruth:
        return PhysicalTruth(list(self.store.history()), host_boot_id=self.world.host_boot_id)

    def caps(self) -> list[int]:
        caps = self.truth().caps_in_force_watts(self.world.now_seconds)
        assert caps is not None
        return [caps[uuid] for uuid in self.uuids]

    def sums_until_now(self) -> list[int]:
        """What all caps came to at every instant at which one may have changed."""
        truth = self.truth()
        return [
            sum((truth.caps_in_force_watts(instant) or {}).values())
            for instant in truth.cap_instants(self.world.now_seconds)
        ]

    def break_gpu(self, place: int, kind: str) -> None:
        happen(self.store, FaultInjected(gpu=self.uuids[place], kind=kind))


def test_a_limit_is_in_force_once_it_has_settled(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "h100x2")

    reply = machine.order(400, 300)
    at_once = machine.caps()
    machine.pass_seconds(H100.settle_seconds)

    assert [outcome.enforced_watts for outcome in reply.outcomes] == [700, 700]
    assert at_once == [700, 700]
    assert machine.caps() == [400, 300]
    assert [limit.enforced_watts for limit in machine.limits()] == [400, 300]


def test_a_raise_waits_for_the_lowering_in_the_hardware_itself(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "h100x2")
    machine.order(300, 700)
    machine.pass_seconds(SETTLE_SECONDS)

    replies = []
    for _ in range(6):
        replies.append(machine.order(600, 400))
        machine.pass_seconds(0.5)
    machine.pass_seconds(SETTLE_SECONDS)

    assert isinstance(replies[0].outcomes[0], LimitRefused)
    assert "still obeys 700 W, not 400 W" in replies[0].outcomes[0].reason
    assert isinstance(replies[-1].outcomes[0], LimitWritten)
    assert machine.caps() == [600, 400]
    # 1400 W as the machine came up, 1000 W since the first order; never 1300 W on the way.
    assert max(sum_ for sum_ in machine.sums_until_now() if sum_ != 1400) == 1000


def test_a_reboot_forgets_the_limit_and_the_setter_raises_and_restores_nothing(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path, "h100x2")
    machine.order(400, 300)
    machine.pass_seconds(SETTLE_SECONDS)

    happen(machine.store, Rebooted(host_boot_id=machine.world.host_boot_id, is_host_reboot=False))
    after = machine.limits()
    machine.pass_seconds(60.0)

    assert [limit.enforced_watts for limit in after] == [700, 700]
    assert machine.caps() == [700, 700]


def test_limits_outlive_the_setter(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "h100x2")
    machine.order(400, 300)
    machine.pass_seconds(SETTLE_SECONDS)

    machine.driver.release()
    del machine.setter
    machine.pass_seconds(60.0)

    assert machine.caps() == [400, 300]


def test_a_refusing_gpu_says_so_and_the_other_is_lowered(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "h100x2")
    machine.break_gpu(0, REFUSE_LIMIT)

    reply = machine.order(400, 300)
    machine.pass_seconds(SETTLE_SECONDS)

    refused = reply.outcomes[0]
    assert isinstance(refused, LimitRefused)
    assert refused.enforced_watts == 700
    assert "refuses power limits" in refused.reason
    assert machine.caps() == [700, 300]


def test_a_forgotten_limit_shows_at_the_next_look(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "h100x2")
    machine.order(400, 300)
    machine.pass_seconds(SETTLE_SECONDS)

    machine.break_gpu(0, FORGET_LIMIT)

    assert [limit.enforced_watts for limit in machine.limits()] == [700, 300]
    assert machine.caps() == [700, 300]


def test_a_lost_gpu_is_unknown_and_the_other_is_lowered(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "h100x2")
    machine.limits()
    machine.break_gpu(0, LOST)

    reply = machine.order(400, 300)
    machine.pass_seconds(SETTLE_SECONDS)

    assert reply.outcomes[0].enforced_watts is None
    assert [limit.enforced_watts for limit in machine.limits()] == [None, 300]
    assert machine.caps()[1] == 300


def test_a_hanging_gpu_keeps_no_other_from_being_lowered(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "h100x2", deadline_seconds=1.0)
    machine.setter.ask(ListRanges())
    machine.break_gpu(0, HANG)

    reply = machine.order(400, 300)
    machine.break_gpu(0, CLEAR)
    machine.pass_seconds(SETTLE_SECONDS)

    assert isinstance(reply.outcomes[0], LimitRefused)
    assert reply.outcomes[0].enforced_watts is None
    assert machine.caps() == [700, 300]


def test_a_machine_whose_file_is_broken_is_an_absence(tmp_path: Path) -> None:
    path = tmp_path / "machine"
    path.mkdir()
    driver = World().gpus(path, "h100x2")
    setter = PowerSetter([GpuLimits(driver)], Journal(tmp_path))

    reply = setter.ask(ListRanges())

    assert isinstance(reply, RangesListed)
    assert reply.ranges == ()
    assert [entry.what for entry in reply.absent] == ["limits:simulated"]


@pytest.mark.parametrize("cap", [4800, 5600, 7000])
def test_a_split_cap_bounds_what_the_machine_draws_at_its_inlet(tmp_path: Path, cap: int) -> None:
    machine = Machine(tmp_path, "h100x4+l40sx2")
    listed = machine.setter.ask(ListRanges())
    assert isinstance(listed, RangesListed)
    chassis = Chassis(
        rest_watts=4 * 300 + 2 * 180,
        efficiency=Efficiency(points=((0, SUPPLY_EFFICIENCY_RATIO),)),
    )
    happen(machine.store, *(LoadSet(gpu=uuid, load=Load(ratio=1.0)) for uuid in machine.uuids))

    parts = [
        NodePart(
            range=one, demand_watts=None, is_settable=True, enforced_watts=limit.enforced_watts
        )
        for one, limit in zip(listed.ranges, machine.limits(), strict=True)
    ]
    machine.order(*(limit.watts for limit in split(cap, parts, chassis)))
    machine.pass_seconds(SETTLE_SECONDS)

    truth = machine.truth().at(machine.world.now_seconds)
    after = [
        NodePart(
            range=one, demand_watts=None, is_settable=True, enforced_watts=limit.enforced_watts
        )
        for one, limit in zip(listed.ranges, machine.limits(), strict=True)
    ]
    bound = bound_watts(after, chassis)
    assert floor_watts(parts, chassis) <= cap
    assert bound is not None
    assert truth is not None
    assert truth.chassis_power_watts <= bound <= cap
    # Boards differ by up to 3 % in what the same work draws, which only matters uncapped.
    assert truth.chassis_power_watts >= 0.95 * min(cap, bound)
