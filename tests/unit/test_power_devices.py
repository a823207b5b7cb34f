"""A cap that is said to be in force bounds all devices together, also while limits move."""

import pytest

from esnode.control.foreign import GivenUp, LowerAgain
from esnode.control.supply import Efficiency
from esnode.powering.devices import DeviceLoad, Devices
from esnode.readings.limits import (
    EnforcedLimit,
    Kind,
    Limit,
    LimitRange,
    LimitRefused,
    LimitWritten,
)

SETTLE_SECONDS = 2.0
EXACT = Efficiency(points=((0, 1.0),))
BUSY = DeviceLoad(draw_watts=600.0, is_capped=True)
IDLE = DeviceLoad(draw_watts=80.0, is_capped=False)


def limits_of(device: str, kind: Kind = "gpu") -> LimitRange:
    return LimitRange(
        device=device, kind=kind, minimum_watts=200, maximum_watts=700, default_watts=700
    )


class Machine:
    """Two devices that obey at once; the rest of the machine draws 100 W."""

    def __init__(self, *kinds: Kind) -> None:
        self.devices = Devices(settle_seconds=SETTLE_SECONDS, rest_watts=100, efficiency=EXACT)
        self.names = [f"{kind}{place}" for place, kind in enumerate(kinds or ("gpu", "gpu"))]
        self.devices.found(
            limits_of(name, "cpu" if name.startswith("cpu") else "gpu") for name in self.names
        )
        self.in_force = dict.fromkeys(self.names, 700)
        self.see(0.0)

    def see(self, now: float) -> tuple[object, ...]:
        return self.devices.seen(
            (
                EnforcedLimit(device=name, enforced_watts=watts, requested_watts=watts)
                for name, watts in self.in_force.items()
            ),
            now,
        )

    def write(self, now: float) -> dict[str, int]:
        plan = self.devices.plan(now)
        self.devices.asked(plan, now)
        self.in_force |= {limit.device: limit.watts for limit in plan}
        self.devices.answered(
            (
                LimitWritten(
                    device=limit.device,
                    asked_watts=limit.watts,
                    before_watts=None,
                    enforced_watts=limit.watts,
                )
                for limit in plan
            ),
            now,
        )
        return {limit.device: limit.watts for limit in plan}


def test_without_a_cap_the_limits_are_what_bounds() -> None:
    assert Machine().devices.in_force_watts == 1500
    assert Machine().devices.plan(1.0) == ()


def test_a_cap_is_divided_and_counts_whole_once_the_limits_are_below_it() -> None:
    machine = Machine()
    machine.devices.cap_watts = 1001

    written = machine.write(10.0)

    assert written == {"gpu0": 451, "gpu1": 450}
    assert machine.devices.in_force_watts == 1001


def test_while_a_limit_has_not_come_down_the_old_one_is_in_force() -> None:
    machine = Machine()
    machine.devices.cap_watts = 900
    plan = machine.devices.plan(10.0)
    machine.devices.asked(plan, 10.0)

    assert machine.devices.in_force_watts == 1500


def test_a_device_is_raised_only_once_the_other_has_settled_lower() -> None:
    machine = Machine()
    machine.devices.cap_watts = 1000
    machine.write(10.0)
    machine.devices.loaded({"gpu0": BUSY, "gpu1": IDLE}, 15.0)

    first = machine.write(20.0)
    waiting = machine.devices.is_raise_waiting
    early = machine.write(21.9)
    late = machine.write(22.1)

    assert first == {"gpu1": 200}
    assert waiting
    assert early == {}
    assert late == {"gpu0": 700}
    assert not machine.devices.is_raise_waiting


def test_a_raise_that_fits_beside_all_that_may_show_is_made_at_once() -> None:
    machine = Machine()
    machine.devices.cap_watts = 700
    machine.write(10.0)
    machine.devices.cap_watts = 1100

    written = machine.write(20.0)

    assert written == {"gpu0": 500, "gpu1": 500}
    assert machine.devices.in_force_watts == 1100


def test_an_unknown_limit_makes_the_whole_cap_unknown_and_is_written() -> None:
    machine = Machine()
    machine.devices.cap_watts = 1000
    machine.devices.seen(
        [EnforcedLimit(device="gpu0", enforced_watts=None, requested_watts=None)], 1.0
    )

    assert machine.devices.in_force_watts is None
    assert "gpu0" in {limit.device for limit in machine.devices.plan(2.0)}


def test_a_processor_that_refuses_counts_at_its_maximum() -> None:
    machine = Machine("gpu", "cpu")
    machine.devices.cap_watts = 1000
    machine.devices.answered(
        [LimitRefused(device="cpu1", asked_watts=300, enforced_watts=400, reason="locked")], 1.0
    )

    written = machine.write(10.0)

    assert written == {"gpu0": 200}
    assert [one.refusal for one in machine.devices.views()] == ["", "locked"]


def test_somebody_who_goes_on_raising_a_device_makes_it_count_at_what_is_found() -> None:
    machine = Machine()
    machine.devices.cap_watts = 1000
    machine.write(0.0)
    findings: list[object] = []
    for round_ in range(1, 5):
        machine.in_force["gpu0"] = 650
        findings += machine.see(10.0 * round_)
        machine.write(10.0 * round_ + 1)

    assert [type(one) for one in findings] == [LowerAgain, LowerAgain, LowerAgain, GivenUp]
    machine.in_force["gpu0"] = 650
    machine.see(60.0)
    machine.write(61.0)
    assert machine.in_force == {"gpu0": 650, "gpu1": 250}
    assert machine.devices.in_force_watts == 1000


@pytest.mark.parametrize(
    ("rest_watts", "lowest", "highest"),
    [
        pytest.param(300, 700, 1700, id="an operator's figure"),
        pytest.param(None, 1200, 2200, id="200 W, and 300 W for each GPU"),
    ],
)
def test_the_range_of_a_machine_counts_its_worst_rest(
    rest_watts: int | None, lowest: int, highest: int
) -> None:
    devices = Devices(settle_seconds=2.0, rest_watts=rest_watts, efficiency=EXACT)
    devices.found([limits_of("gpu0"), limits_of("gpu1")])

    for second in range(1, 2000):
        devices.rest.observe(
            draw_watts=200.0,
            devices_watts=150.0,
            cap_watts=None,
            efficiency=EXACT,
            now=float(second),
        )

    assert (devices.lowest_watts, devices.highest_watts) == (lowest, highest)


def test_views_tell_who_set_what() -> None:
    machine = Machine()
    before = [one.set_by for one in machine.devices.views()]
    machine.devices.cap_watts = 1000
    machine.write(1.0)
    ours = [one.set_by for one in machine.devices.views()]
    machine.in_force["gpu1"] = 333
    machine.see(10.0)

    assert before == ["default", "default"]
    assert ours == ["esnode", "esnode"]
    assert [one.set_by for one in machine.devices.views()] == ["esnode", "other"]


def test_a_limit_on_its_way_to_ours_is_ours() -> None:
    machine = Machine()
    machine.devices.cap_watts = 700
    machine.write(1.0)
    machine.devices.cap_watts = 1100
    plan = machine.devices.plan(20.0)
    machine.devices.asked(plan, 20.0)
    machine.devices.answered(
        (
            LimitWritten(
                device=one.device, asked_watts=one.watts, before_watts=300, enforced_watts=300
            )
            for one in plan
        ),
        20.0,
    )

    assert [one.set_by for one in machine.devices.views()] == ["esnode", "esnode"]


def test_limits_of_an_earlier_life_are_taken_over() -> None:
    machine = Machine()
    machine.in_force = {"gpu0": 450, "gpu1": 450}
    machine.see(0.0)
    machine.devices.cap_watts = 1000

    written = machine.write(10.0)

    assert written == machine.in_force
    assert [one.set_by for one in machine.devices.views()] == ["esnode", "esnode"]
    assert machine.write(11.0) == {}


def test_a_limit_that_is_not_known_was_set_by_nobody_known() -> None:
    machine = Machine()
    machine.devices.seen(
        [EnforcedLimit(device="gpu0", enforced_watts=None, requested_watts=None)], 1.0
    )

    assert [one.set_by for one in machine.devices.views()] == ["unknown", "default"]


class Stubborn(Machine):
    """Its first device takes no raise."""

    def write(self, now: float) -> dict[str, int]:
        plan = self.devices.plan(now)
        self.devices.asked(plan, now)
        for limit in plan:
            before = self.in_force[limit.device]
            outcome: LimitRefused | LimitWritten
            if limit.device == "gpu0" and limit.watts > before:
                outcome = LimitRefused(
                    device="gpu0", asked_watts=limit.watts, enforced_watts=before, reason="no"
                )
            else:
                self.in_force[limit.device] = limit.watts
                outcome = LimitWritten(
                    device=limit.device,
                    asked_watts=limit.watts,
                    before_watts=before,
                    enforced_watts=limit.watts,
                )
            self.devices.answered([outcome], now)
        return {limit.device: limit.watts for limit in plan}


def test_what_a_device_refuses_goes_to_those_that_take_it() -> None:
    machine = Stubborn()
    machine.devices.cap_watts = 500
    machine.write(1.0)
    machine.devices.cap_watts = 900

    for second in range(10, 20):
        machine.write(float(second))

    assert machine.in_force == {"gpu0": 200, "gpu1": 599}
    assert [one.is_refusing for one in machine.devices.views()] == [True, False]


def test_a_device_that_refused_is_tried_again_with_a_watt_and_then_gets_its_part() -> None:
    machine = Stubborn()
    machine.devices.cap_watts = 500
    machine.write(1.0)
    machine.devices.cap_watts = 900
    for second in range(10, 20):
        machine.write(float(second))

    tried = [machine.write(float(second)) for second in range(20, 50)]
    machine.__class__ = Machine  # it takes raises now
    later = [machine.write(float(second)) for second in range(50, 120)]

    assert [one for one in tried if one] == [{"gpu0": 201}]
    assert {"gpu0": 201} in later
    assert machine.in_force == {"gpu0": 400, "gpu1": 400}
    assert not any(one.is_refusing for one in machine.devices.views())


def test_a_limit_is_never_a_device_that_was_not_found() -> None:
    machine = Machine()
    machine.devices.seen(
        [EnforcedLimit(device="strange", enforced_watts=9, requested_watts=9)], 1.0
    )
    machine.devices.cap_watts = 900

    assert {limit.device for limit in machine.devices.plan(2.0)} == {"gpu0", "gpu1"}
    assert all(isinstance(limit, Limit) for limit in machine.devices.plan(2.0))
