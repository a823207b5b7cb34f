"""What holds for every GPU back end."""

import threading
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from esnode.drivers.base import DeviceFault, PowerLimitRefused
from esnode.readings.gpu import GpuReading
from esnode.readings.limits import EnforcedLimit
from tests.gpu_benches import BENCHES, GpuBench

SETTLE_SECONDS = 3.0
"""Within which a limit that was taken must be in force."""

WAIT_SECONDS = 10.0


@pytest.fixture(params=[pytest.param(name, id=name) for name in BENCHES])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GpuBench]:
    with BENCHES[request.param](tmp_path) as made:
        yield made


def read_all(bench: GpuBench) -> list[GpuReading]:
    return [bench.driver.read(gpu) for gpu in bench.driver.discover().gpus]


def test_discovery_is_stable(bench: GpuBench) -> None:
    first = bench.driver.discover()
    bench.pass_seconds(1.0)
    second = bench.driver.discover()

    assert first == second


def test_an_inventory_counts_what_it_lists(bench: GpuBench) -> None:
    inventory = bench.driver.discover()

    uuids = [gpu.uuid for gpu in inventory.gpus]
    assert inventory.driver == bench.driver.name
    assert len(uuids) == inventory.found_count >= 2
    assert len(set(uuids)) == len(uuids)
    assert [gpu.index for gpu in inventory.gpus] == list(range(len(uuids)))
    assert inventory.lost == ()


def test_an_identity_is_in_the_common_form(bench: GpuBench) -> None:
    for gpu in bench.driver.discover().gpus:
        assert gpu.uuid.strip() == gpu.uuid != ""
        assert gpu.name
        assert gpu.vendor == gpu.vendor.lower() != ""
        assert gpu.pci_bus_id is None or gpu.pci_bus_id == gpu.pci_bus_id.lower()
        assert gpu.architecture is None or gpu.architecture == gpu.architecture.lower()


def test_a_reading_is_of_the_device_asked_for(bench: GpuBench) -> None:
    for gpu in bench.driver.discover().gpus:
        assert bench.driver.read(gpu).identity == gpu


def test_shares_lie_between_nought_and_one(bench: GpuBench) -> None:
    for reading in read_all(bench):
        for entry in fields(reading):
            value = getattr(reading, entry.name)
            if entry.name.endswith("utilization_ratio") and value is not None:
                assert 0.0 <= value <= 1.0, entry.name


def test_quantities_are_not_negative(bench: GpuBench) -> None:
    for reading in read_all(bench):
        for entry in fields(reading):
            value = getattr(reading, entry.name)
            suffixes = ("_bytes", "_watts", "_hertz", "_total", "_joules_total")
            if isinstance(value, int | float) and entry.name.endswith(suffixes):
                assert value >= 0, entry.name


def test_memory_in_use_fits_into_the_device(bench: GpuBench) -> None:
    for reading in read_all(bench):
        assert reading.memory_total_bytes is not None
        assert reading.memory_used_bytes is not None
        assert reading.memory_used_bytes <= reading.memory_total_bytes


def test_limits_are_in_order(bench: GpuBench) -> None:
    for reading in read_all(bench):
        assert reading.power_limit_min_watts is not None
        assert reading.power_limit_enforced_watts is not None
        assert reading.power_limit_max_watts is not None
        assert (
            reading.power_limit_min_watts
            <= reading.power_limit_enforced_watts
            <= reading.power_limit_max_watts
        )


def test_energy_never_falls(bench: GpuBench) -> None:
    gpu = bench.driver.discover().gpus[0]

    energies = []
    for _ in range(5):
        energies.append(bench.driver.read(gpu).energy_joules_total or 0.0)
        bench.pass_seconds(2.0)

    assert energies == sorted(energies)
    assert energies[-1] > energies[0]


def test_a_limit_that_is_taken_is_in_force_within_seconds(bench: GpuBench) -> None:
    first, second = bench.driver.discover().gpus[:2]
    before = bench.driver.read(second).power_limit_enforced_watts

    bench.driver.set_power_limit(first, 400)
    requested = bench.driver.read(first).power_limit_requested_watts
    bench.pass_seconds(SETTLE_SECONDS)

    assert requested == 400.0
    assert bench.driver.read(first).power_limit_enforced_watts == 400.0
    assert bench.driver.read_power_limit(first) == EnforcedLimit(
        device=first.uuid, enforced_watts=400, requested_watts=400
    )
    assert bench.driver.read(second).power_limit_enforced_watts == before


@pytest.mark.parametrize(
    "beyond",
    [
        pytest.param(("power_limit_min_watts", -1), id="below"),
        pytest.param(("power_limit_max_watts", +1), id="above"),
    ],
)
def test_a_limit_out_of_range_is_refused_and_the_old_one_stays(
    bench: GpuBench, beyond: tuple[str, int]
) -> None:
    gpu = bench.driver.discover().gpus[0]
    bench.driver.set_power_limit(gpu, 450)
    bench.pass_seconds(SETTLE_SECONDS)
    bound, step = beyond
    watts = int(getattr(bench.driver.read(gpu), bound)) + step

    with pytest.raises(PowerLimitRefused) as caught:
        bench.driver.set_power_limit(gpu, watts)
    bench.pass_seconds(SETTLE_SECONDS)

    assert str(watts) in str(caught.value)
    assert bench.driver.read(gpu).power_limit_enforced_watts == 450.0


def test_a_lost_device_is_a_fault_and_the_others_answer(bench: GpuBench) -> None:
    first, second = bench.driver.discover().gpus[:2]
    bench.lose(first.uuid)

    with pytest.raises(DeviceFault) as of_reading:
        bench.driver.read(first)
    with pytest.raises(DeviceFault) as of_limit:
        bench.driver.set_power_limit(first, 400)

    assert of_reading.value.is_lost
    assert of_limit.value.is_lost
    assert "\n" not in of_reading.value.reason
    assert bench.driver.read(second).identity == second


def test_a_lost_device_is_counted_and_named(bench: GpuBench) -> None:
    before = bench.driver.discover()
    lost = before.gpus[0]
    bench.lose(lost.uuid)

    after = bench.driver.discover()

    assert after.found_count == before.found_count
    assert after.gpus == before.gpus[1:]
    assert [absence.what for absence in after.lost] == [f"gpu:{lost.index}"]


def test_a_hanging_device_blocks_its_own_call_alone(bench: GpuBench) -> None:
    first, second = bench.driver.discover().gpus[:2]
    bench.hang(first.uuid)
    readings: list[GpuReading] = []
    worker = threading.Thread(target=lambda: readings.append(bench.driver.read(first)), daemon=True)
    worker.start()

    other = bench.driver.read(second)
    inventory = bench.driver.discover()

    assert other.identity == second
    assert first in inventory.gpus
    assert readings == []
    bench.resume(first.uuid)
    worker.join(WAIT_SECONDS)
    assert [reading.identity for reading in readings] == [first]


def test_a_released_driver_can_be_used_again(bench: GpuBench) -> None:
    before = bench.driver.discover()
    bench.driver.read(before.gpus[0])

    bench.driver.release()
    bench.driver.release()
    after = bench.driver.discover()

    assert after == before
    assert bench.driver.read(after.gpus[0]).identity == after.gpus[0]
