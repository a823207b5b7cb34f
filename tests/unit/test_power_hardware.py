"""From a cap to the devices and back."""

from pathlib import Path

import pytest
import trio

from cluster.rack.actuator import HardwareRefused
from esnode.clock import boottime_seconds
from esnode.control.supply import Efficiency
from esnode.powering.devices import Devices
from esnode.powering.hardware import OBEY_SECONDS_MIN, PowerHardware
from esnode.setter import Journal, PowerSetter
from tests.limit_devices import MemoryDevice, MemoryDevices
from tests.unit.test_actuator import SETTLE, look, settled, writes


def test_a_lower_cap_overtakes_a_write_that_has_not_been_obeyed_yet() -> None:
    actuator = settled(2000)
    at = 10.0
    effects = actuator.want(1900, at)

    for lower in range(1800, 1000, -100):
        actuator.want(lower, at)
        is_overtaken = actuator.is_lower_wanted(lower + 100)
        at += 0.1
        effects += actuator.written(2000, at)  # nobody waited until it was obeyed
        assert is_overtaken
    effects += actuator.written(1100, at + 0.1)
    look(actuator, 1100, at + SETTLE)
    early = actuator.bound_watts(at + SETTLE)
    look(actuator, 1100, at + 0.1 + SETTLE)

    assert writes(effects) == list(range(1900, 1000, -100))
    assert not any(isinstance(one, HardwareRefused) for one in effects)
    assert (early, actuator.bound_watts(at + 0.1 + SETTLE)) == (2000, 1100)


@pytest.mark.parametrize(
    ("is_overtaken", "is_waited_for"),
    [
        pytest.param(True, False, id="a lower cap is wanted"),
        pytest.param(False, True, id="none is"),
    ],
)
async def test_a_cap_that_is_overtaken_is_not_waited_for(
    tmp_path: Path, is_overtaken: bool, is_waited_for: bool
) -> None:
    device = MemoryDevice(is_late=True)
    devices = Devices(settle_seconds=0.2, rest_watts=100, efficiency=Efficiency(points=((0, 1.0),)))
    setter = PowerSetter([MemoryDevices({"gpu": device})], Journal(tmp_path))
    hardware = PowerHardware(setter, devices, clock=boottime_seconds, tell=lambda told: None)
    await hardware.discover()
    began = trio.current_time()

    in_force = await hardware.set_cap(
        500, "a test", lambda in_force, begun: None, is_overtaken=lambda: is_overtaken
    )

    assert (trio.current_time() - began >= OBEY_SECONDS_MIN) == is_waited_for
    assert (device.requested_watts, in_force) == (400, 800)
