"""A real GPU through NVML: readings are sane, and nothing of the device is changed.

Skipped where there is none. On a machine that has one: `pytest tests/hardware`.
"""

import time
from collections.abc import Iterator

import pytest

from esnode.clock import monotonic_seconds
from esnode.drivers.base import DriverUnavailable
from esnode.drivers.nvml import NvmlDriver
from esnode.readings.gpu import GpuIdentity

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def driver() -> Iterator[NvmlDriver]:
    nvml = NvmlDriver()
    try:
        nvml.discover()
    except DriverUnavailable as error:
        pytest.skip(f"no NVIDIA GPU here: {error}")
    yield nvml
    nvml.release()


@pytest.fixture
def gpu(driver: NvmlDriver) -> GpuIdentity:
    return driver.discover().gpus[0]


def test_every_gpu_that_is_counted_answers_or_is_named_as_lost(driver: NvmlDriver) -> None:
    inventory = driver.discover()

    assert len(inventory.gpus) + len(inventory.lost) == inventory.found_count
    assert len({gpu.uuid for gpu in inventory.gpus}) == len(inventory.gpus)
    assert inventory.driver_version


def test_its_readings_are_plausible(driver: NvmlDriver, gpu: GpuIdentity) -> None:
    reading = driver.read(gpu)

    assert reading.memory_total_bytes is not None
    assert reading.memory_total_bytes > 1 << 30
    assert reading.memory_used_bytes is None or (
        0 <= reading.memory_used_bytes <= reading.memory_total_bytes
    )
    assert reading.temperature_celsius is None or 5 < reading.temperature_celsius < 110
    assert reading.utilization_ratio is None or 0 <= reading.utilization_ratio <= 1
    low, high = reading.power_limit_min_watts, reading.power_limit_max_watts
    enforced = reading.power_limit_enforced_watts
    if low is not None and high is not None and enforced is not None:
        assert low <= enforced <= high
    assert all(absence.reason for absence in reading.absent)


def test_its_energy_counter_agrees_with_its_power(driver: NvmlDriver, gpu: GpuIdentity) -> None:
    before, started = driver.read(gpu), monotonic_seconds()
    time.sleep(2.0)
    after, seconds = driver.read(gpu), monotonic_seconds() - started
    power = after.power_watts
    if before.energy_joules_total is None or after.energy_joules_total is None or power is None:
        pytest.skip("this part has no energy counter or tells no power")

    drawn = (after.energy_joules_total - before.energy_joules_total) / seconds

    assert drawn == pytest.approx(power, rel=0.5, abs=15)
