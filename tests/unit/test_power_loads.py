"""Draws of one moment: what teaches the rest of a machine, and what the whole machine draws."""

from dataclasses import replace

import pytest

from esnode.control.rest import Rest
from esnode.control.supply import Efficiency
from esnode.powering.devices import DeviceLoad, Devices
from esnode.powering.loads import Learning, device_loads, is_held_back, node_draw
from esnode.powering.wishes import Wishes
from esnode.readings.gpu import GpuIdentity, GpuReading
from esnode.readings.limits import LimitRange
from esnode.snapshot import GpuState, NodePower, PowerState, RaplZoneState, Snapshot

EXACT = Efficiency(points=((0, 1.0),))


def snapshot(
    gpu_watts: float | None,
    meter_watts: float | None,
    *,
    reasons: tuple[str, ...] | None = (),
    meter_age_seconds: float = 0.1,
    gpu_age_seconds: float = 0.1,
    is_estimated: bool = False,
) -> Snapshot:
    identity = GpuIdentity(uuid="gpu", index=0, name="a GPU", vendor="nobody")
    reading = GpuReading(identity=identity, power_average_watts=gpu_watts, throttle_reasons=reasons)
    node = None
    if meter_watts is not None:
        node = NodePower(
            power_watts=meter_watts,
            source="dcmi",
            is_estimated=is_estimated,
            age_seconds=meter_age_seconds,
        )
    return Snapshot(
        taken_at_seconds=0.0,
        sequence=1,
        gpus=(
            GpuState(uuid="gpu", is_up=True, index=0, reading=reading, age_seconds=gpu_age_seconds),
        ),
        power=PowerState(node=node),
    )


def learned(*seen: tuple[Snapshot, float | None]) -> int:
    rest, learning = Rest(100), Learning()
    for second, (one, devices_watts) in enumerate(seen, 1):
        learning.observe(
            rest, one, devices_watts, cap_watts=None, efficiency=EXACT, now=float(second)
        )
    return rest.watts


def test_a_machine_that_holds_still_teaches_its_rest() -> None:
    assert learned((snapshot(500, 900), 500.0), (snapshot(501, 902), 501.0)) > 400


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param([(snapshot(100, 900), 100.0)], id="one look alone"),
        pytest.param(
            [(snapshot(100, 300), 100.0), (snapshot(300, 1200), 300.0)], id="both on their way"
        ),
        pytest.param(
            [(snapshot(500, 900), 500.0), (snapshot(501, 902), None)],
            id="a device that says nothing",
        ),
        pytest.param(
            [
                (snapshot(500, 900), 500.0),
                (snapshot(501, 902, meter_age_seconds=30.0), 501.0),
            ],
            id="an old meter",
        ),
        pytest.param(
            [
                (snapshot(500, 900), 500.0),
                (snapshot(501, 902, is_estimated=True), 501.0),
            ],
            id="a model",
        ),
        pytest.param(
            [
                (snapshot(500, 900), 500.0),
                (snapshot(501, 902, gpu_age_seconds=5.0), 501.0),
            ],
            id="an old device",
        ),
    ],
)
def test_nothing_is_learned_from(seen: list[tuple[Snapshot, float | None]]) -> None:
    assert learned(*seen) == 100


def test_the_meter_speaks_for_the_machine_and_else_its_devices_do() -> None:
    rest = Rest(100)

    metered = node_draw(snapshot(500, 900), 500.0, rest, EXACT)
    modelled = node_draw(snapshot(500, None), 500.0, rest, EXACT)
    estimated = node_draw(snapshot(500, 900, is_estimated=True), 500.0, rest, EXACT)
    unknown = node_draw(snapshot(None, None), None, rest, EXACT)

    assert (metered.watts, metered.source, metered.is_estimated) == (900, "dcmi", False)
    assert (modelled.watts, modelled.is_estimated) == (600, True)
    assert (estimated.watts, estimated.is_estimated) == (600, True)
    assert unknown.watts is None


def test_processors_are_loads_by_the_name_of_their_zone() -> None:
    zone = RaplZoneState(
        path="intel-rapl:0", zone="package", socket=0, power_watts=90.0, energy_joules_total=1.0
    )
    one = replace(snapshot(500, 900), power=PowerState(zones=(zone,)))

    assert device_loads(one)["intel-rapl:0"] == DeviceLoad(draw_watts=90.0, is_capped=None)


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        pytest.param(("sw_power_cap",), True, id="held back"),
        pytest.param((), False, id="free"),
        pytest.param(None, None, id="says nothing"),
    ],
)
def test_a_device_says_whether_power_holds_it_back(
    reasons: tuple[str, ...] | None, expected: bool | None
) -> None:
    assert is_held_back(device_loads(snapshot(500, 900, reasons=reasons))) is expected


def test_wishes_are_told_above_the_floor_and_never_beyond_the_hardware() -> None:
    devices = Devices(settle_seconds=2.0, rest_watts=100, efficiency=EXACT)
    devices.found([LimitRange(device="gpu", kind="gpu", minimum_watts=200, maximum_watts=700)])
    wishes = Wishes(priority=2)
    busy = snapshot(650, 750, reasons=("sw_power_cap",))

    wishes.take(busy, devices, is_settled=False, now=1.0)
    wants = wishes.wants(busy, devices, 300, is_short=False, now=1.0)

    assert (wants.maximum_watts, wants.minimum_watts, wants.priority) == (500, 0, 2)
    assert wants.demand_watts == 500
    assert wishes.draw.watts == 750


def test_what_work_was_promised_is_asked_of_the_rack_also_while_nothing_draws_it() -> None:
    devices = Devices(settle_seconds=2.0, rest_watts=100, efficiency=EXACT)
    devices.found([LimitRange(device="gpu", kind="gpu", minimum_watts=200, maximum_watts=700)])
    idle = snapshot(60, 160)
    wants = []
    for promised in (0, 150):
        wishes = Wishes(promised_watts=lambda promised=promised: promised)
        wishes.take(idle, devices, is_settled=False, now=1.0)
        wants.append(wishes.wants(idle, devices, 300, is_short=False, now=1.0))

    assert [one.minimum_watts for one in wants] == [0, 150]
    assert wants[0].demand_watts < 150
    assert wants[1].demand_watts == 150
