import json
import threading
from pathlib import Path

import pytest

from esnode.collectors.base import CollectFailed
from esnode.collectors.chassis import ChassisCollector
from esnode.drivers.base import DeviceFault, DriverUnavailable, GpuDriver, PowerLimitRefused
from esnode.drivers.simulated.driver import SimulatedGpus
from esnode.drivers.simulated.machine import ChangeRefused, FaultInjected, InletSet, Rebooted
from esnode.drivers.simulated.parts import UnknownSpec
from esnode.drivers.simulated.store import Store
from esnode.readings.gpu import THROTTLE_REASONS, GpuReading
from tests.simulated_world import World, happen


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "machine.json"


def break_gpu(world: World, path: Path, index: int, kind: str, count: int | None = None) -> None:
    store = Store(path, clocks=world.clocks())
    happen(store, FaultInjected(gpu=store.read().gpus[index].uuid, kind=kind, count=count))


def test_it_is_a_gpu_driver_made_in_one_line(tmp_path: Path) -> None:
    driver: GpuDriver = SimulatedGpus(tmp_path / "machine.json", "h100x2")

    inventory = driver.discover()

    assert (inventory.driver, inventory.found_count, inventory.lost) == ("simulated", 2, ())
    assert driver.read(inventory.gpus[0]).power_limit_enforced_watts == 700


def test_discovery_lists_the_parts_of_a_mixed_machine(world: World, path: Path) -> None:
    inventory = world.gpus(path, "mixed").discover()

    assert [gpu.index for gpu in inventory.gpus] == [0, 1, 2, 3, 4, 5]
    assert [gpu.name for gpu in inventory.gpus][3:5] == ["NVIDIA H100 80GB HBM3", "NVIDIA L40S"]
    assert len({gpu.pci_bus_id for gpu in inventory.gpus}) == 6
    assert [gpu.numa_node for gpu in inventory.gpus] == [0, 0, 0, 1, 1, 1]


def test_an_unknown_spec_is_refused_before_any_file_is_made(path: Path) -> None:
    with pytest.raises(UnknownSpec):
        SimulatedGpus(path, "tpux8")

    assert not path.exists()


def test_another_machine_at_the_path_makes_the_driver_unavailable(world, path) -> None:
    world.gpus(path, "h100x2").discover()

    with pytest.raises(DriverUnavailable, match="holds a h100x2, not a a100x1"):
        world.gpus(path, "a100x1").discover()


def test_an_idle_gpu_reads_like_the_recorded_one(world: World, path: Path) -> None:
    driver = world.gpus(path)

    reading = driver.read(driver.discover().gpus[0])

    assert reading.utilization_ratio == 0.0
    assert reading.power_instant_watts == pytest.approx(69.6, rel=0.05)
    assert reading.clock_sm_hertz == 345e6
    assert reading.clock_memory_hertz == 2619e6
    assert reading.memory_used_bytes == 0
    assert reading.memory_free_bytes == (81559 - 479) * 2**20
    assert (reading.throttle_reasons, reading.performance_state) == (("gpu_idle",), 0)
    assert reading.processes == ()
    assert [absence.what for absence in reading.absent] == ["fan_speed_ratios"]


def test_a_busy_gpu_shows_its_work_its_owner_and_its_heat(world: World, path: Path) -> None:
    driver = world.gpus(path)
    gpu = driver.discover().gpus[0]
    driver.set_load(gpu.uuid, 1.0, owner_pid=4242, memory_bytes=10 * 2**30)
    world.now_seconds += 300

    reading = driver.read(gpu)

    assert reading.utilization_ratio == 1.0
    assert reading.clock_sm_hertz == 1980e6
    assert reading.memory_used_bytes == 10 * 2**30
    assert reading.temperature_celsius is not None
    assert 65 <= reading.temperature_celsius <= 80
    assert reading.temperature_margin_celsius == 87 - reading.temperature_celsius
    assert reading.memory_temperature_celsius == reading.temperature_celsius + 8
    assert reading.throttle_reasons == ()
    assert reading.energy_joules_total == pytest.approx(300 * reading.power_instant_watts, rel=0.01)
    assert reading.processes is not None
    (process,) = reading.processes
    assert (process.pid, process.name, process.memory_used_bytes) == (4242, "job-4242", 10 * 2**30)


def test_a_part_without_a_memory_sensor_says_so(world: World, path: Path) -> None:
    driver = world.gpus(path, "l40sx1")

    reading = driver.read(driver.discover().gpus[0])

    assert reading.memory_temperature_celsius is None
    assert {absence.what for absence in reading.absent} >= {"memory_temperature_celsius"}
    assert reading.performance_state == 8


@pytest.mark.parametrize("spec", ["h100x1", "h200x1", "b200x1", "a100x1", "l40sx1"])
def test_no_field_is_missing_without_a_reason(world: World, path: Path, spec: str) -> None:
    driver = world.gpus(path, spec)
    gpu = driver.discover().gpus[0]
    driver.set_load(gpu.uuid, 0.7)
    world.now_seconds += 60

    reading = driver.read(gpu)

    missing = {name for name in GpuReading.__slots__ if getattr(reading, name) is None}
    explained = {absence.what for absence in reading.absent}
    assert missing <= explained
    assert set(reading.throttle_reasons or ()) <= set(THROTTLE_REASONS)


def test_a_power_limit_is_requested_at_once_and_enforced_after_settling(world, path) -> None:
    driver = world.gpus(path)
    gpu = driver.discover().gpus[0]

    driver.set_power_limit(gpu, 400)

    at_once = driver.read(gpu)
    world.now_seconds += 1.3
    settled = driver.read(gpu)
    assert (at_once.power_limit_requested_watts, at_once.power_limit_enforced_watts) == (400, 700)
    assert (settled.power_limit_requested_watts, settled.power_limit_enforced_watts) == (400, 400)


def test_asking_for_the_limit_that_is_set_writes_nothing(world: World, path: Path) -> None:
    driver = world.gpus(path)
    gpu = driver.discover().gpus[0]
    driver.set_power_limit(gpu, 400)

    driver.set_power_limit(gpu, 400)

    assert len(Store(path).history()) == 2


@pytest.mark.parametrize("watts", [0, 199, 701, -5])
def test_a_limit_out_of_range_is_refused(world: World, path: Path, watts: int) -> None:
    driver = world.gpus(path)
    gpu = driver.discover().gpus[0]

    with pytest.raises(PowerLimitRefused, match="takes 200 to 700 W"):
        driver.set_power_limit(gpu, watts)


def test_a_gpu_that_refuses_limits_keeps_the_old_one(world: World, path: Path) -> None:
    driver = world.gpus(path)
    gpu = driver.discover().gpus[0]
    driver.set_power_limit(gpu, 400)
    world.now_seconds += 2
    break_gpu(world, path, 0, "refuse-limit")

    with pytest.raises(PowerLimitRefused, match="simulated fault"):
        driver.set_power_limit(gpu, 300)

    assert driver.read(gpu).power_limit_enforced_watts == 400


def test_a_lost_gpu_faults_alone_and_moves_to_the_lost_of_the_inventory(world, path) -> None:
    driver = world.gpus(path)
    first, second = driver.discover().gpus
    break_gpu(world, path, 0, "lost")

    with pytest.raises(DeviceFault) as read_fault:
        driver.read(first)
    with pytest.raises(DeviceFault) as limit_fault:
        driver.set_power_limit(first, 300)
    inventory = driver.discover()

    assert read_fault.value.is_lost
    assert limit_fault.value.is_lost
    assert driver.read(second).utilization_ratio == 0.0
    assert [gpu.uuid for gpu in inventory.gpus] == [second.uuid]
    assert [absence.what for absence in inventory.lost] == ["gpu:0"]
    assert inventory.found_count == 2


def test_a_gpu_of_another_machine_is_lost(world: World, tmp_path: Path) -> None:
    stranger = SimulatedGpus(tmp_path / "other.json", "h100x1").discover().gpus[0]
    driver = world.gpus(tmp_path / "machine.json")
    driver.discover()

    with pytest.raises(DeviceFault, match="no GPU") as fault:
        driver.read(stranger)
    assert fault.value.is_lost


def test_a_hanging_gpu_blocks_its_reader_until_it_is_cleared(world: World, path: Path) -> None:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            break_gpu(world, path, 0, "clear")

    driver = SimulatedGpus(path, "h100x1", clocks=world.clocks(), sleep=sleep)
    gpu = driver.discover().gpus[0]
    break_gpu(world, path, 0, "hang")

    assert driver.read(gpu).utilization_ratio == 0.0
    assert pauses == [0.05] * 3


def test_a_hanging_gpu_does_not_hold_up_the_others(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    driver = SimulatedGpus(path, "h100x2")
    hanging, well = driver.discover().gpus
    store = Store(path)
    happen(store, FaultInjected(gpu=hanging.uuid, kind="hang"))
    thread = threading.Thread(target=driver.read, args=(hanging,))
    thread.start()
    try:
        assert driver.read(well).utilization_ratio == 0.0
        assert thread.is_alive()
    finally:
        happen(store, FaultInjected(gpu=hanging.uuid, kind="clear"))
        thread.join(timeout=10)
    assert not thread.is_alive()


def test_memory_errors_and_error_reports_are_counted(world: World, path: Path) -> None:
    driver = world.gpus(path)
    gpu = driver.discover().gpus[0]
    break_gpu(world, path, 0, "ecc-corrected", 12)
    break_gpu(world, path, 0, "xid", 63)

    counts = {(ecc.error, ecc.scope): ecc.errors_total for ecc in driver.read(gpu).ecc}
    assert counts["corrected", "volatile"] == counts["corrected", "aggregate"] == 12
    assert [xid.code for xid in driver.xids(gpu.uuid)] == [63]


def test_a_stuck_sensor_says_the_same_whatever_happens(world: World, path: Path) -> None:
    driver = world.gpus(path)
    gpu = driver.discover().gpus[0]
    before = driver.read(gpu)
    break_gpu(world, path, 0, "sensor-stuck")
    driver.set_load(gpu.uuid, 1.0)
    world.now_seconds += 100

    after = driver.read(gpu)

    assert after.temperature_celsius == before.temperature_celsius
    assert after.power_instant_watts == before.power_instant_watts
    assert after.utilization_ratio == 1.0


def test_a_simulated_reboot_is_another_boot_with_limits_lost(world: World, path: Path) -> None:
    driver = world.gpus(path)
    gpu = driver.discover().gpus[0]
    driver.set_power_limit(gpu, 400)
    first_boot = driver.boot_id()

    happen(
        Store(path, clocks=world.clocks()), Rebooted(host_boot_id="boot-a", is_host_reboot=False)
    )

    assert driver.boot_id() != first_boot
    assert driver.read(gpu).power_limit_enforced_watts == 700


def test_a_host_reboot_is_seen_by_a_reader_that_never_writes(world: World, path: Path) -> None:
    driver = world.gpus(path)
    gpu = driver.discover().gpus[0]
    driver.set_power_limit(gpu, 400)
    world.now_seconds, world.host_boot_id = 50.0, "boot-b"

    assert driver.read(gpu).power_limit_requested_watts == 700


def test_performance_is_whole_without_a_cap_and_less_with_one(world: World, path: Path) -> None:
    driver = world.gpus(path)
    gpu = driver.discover().gpus[0]

    idle = driver.performance_ratio(gpu.uuid)
    driver.set_load(gpu.uuid, 1.0)
    free = driver.performance_ratio(gpu.uuid)
    driver.set_power_limit(gpu, 300)
    world.now_seconds += 2
    capped = driver.performance_ratio(gpu.uuid)

    assert (idle, free) == (None, 1.0)
    assert capped is not None
    assert 0.3 < capped < 0.5


def test_a_load_that_cannot_be_is_refused(world: World, path: Path) -> None:
    driver = world.gpus(path)
    gpu = driver.discover().gpus[0]

    with pytest.raises(ChangeRefused, match=r"not 1\.5"):
        driver.set_load(gpu.uuid, 1.5)
    with pytest.raises(ChangeRefused, match="no GPU"):
        driver.set_load("GPU-x", 1.0)
    assert driver.load(gpu.uuid).ratio == 0.0


def test_the_chassis_meter_reads_all_gpus_and_the_rest(world: World, path: Path) -> None:
    driver = world.gpus(path, "h100x8")
    gpus = driver.discover().gpus
    meter = ChassisCollector(driver)
    idle = meter.read().power_watts

    for gpu in gpus:
        driver.set_load(gpu.uuid, 1.0)

    assert 2900 < idle < 3400
    assert 8000 < meter.read().power_watts < 8700


def test_a_machine_that_cannot_be_read_is_one_line_for_everyone(world: World, path: Path) -> None:
    driver = world.gpus(path)
    gpu = driver.discover().gpus[0]
    path.write_text(json.dumps({"format_version": 99}))

    with pytest.raises(DriverUnavailable, match="another version"):
        driver.read(gpu)
    with pytest.raises(DriverUnavailable, match="another version"):
        driver.discover()
    with pytest.raises(CollectFailed, match="another version"):
        ChassisCollector(driver).read()
    with pytest.raises(DeviceFault, match="another version"):
        driver.set_power_limit(gpu, 300)


def test_the_meter_may_be_read_before_the_gpus_are_discovered(world: World, path: Path) -> None:
    assert ChassisCollector(world.gpus(path)).read().power_watts > 0


def test_a_machine_removed_under_a_running_driver_is_built_anew(world: World, path: Path) -> None:
    driver = world.gpus(path)
    old = driver.discover().gpus[0]
    for name in ("machine.json", "machine.json.history"):
        path.with_name(name).unlink()

    new = driver.discover().gpus[0]

    assert new.uuid != old.uuid
    with pytest.raises(DeviceFault, match="no GPU"):
        driver.read(old)


def test_release_and_discover_find_the_same_gpus_again(world: World, path: Path) -> None:
    driver = world.gpus(path)
    before = driver.discover()

    driver.release()
    happen(Store(path, clocks=world.clocks()), InletSet(inlet_celsius=35.0))

    assert driver.discover() == before


def test_what_was_mended_at_opening_can_be_told(world: World, path: Path) -> None:
    world.gpus(path).discover()
    path.write_text("")

    driver = world.gpus(path)
    driver.discover()

    assert driver.repairs == ("rebuilt the state from the history",)
