"""How the NVML back end words single values: units, sanity, and the functions they come from."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pynvml
import pytest

from esnode.drivers.nvml import NvmlDriver
from esnode.drivers.nvml.activity import name_throttle_reasons
from esnode.drivers.nvml.identity import is_power_usage_averaged
from esnode.readings.gpu import EccCount, GpuIdentity, GpuProcess, GpuReading
from tests.nvml_stand_in import StandInNvml, install
from tests.nvml_stand_in_gpu import (
    MEMORY_UNKNOWN,
    MIB,
    NOT_SUPPORTED,
    Process,
    StandInGpu,
    make_gpus,
)

UNKNOWN = pynvml.NVML_ERROR_UNKNOWN


@pytest.fixture
def library() -> Iterator[StandInNvml]:
    stand_in = StandInNvml(make_gpus(2))
    with install(stand_in):
        yield stand_in


@pytest.fixture
def gpu(library: StandInNvml) -> StandInGpu:
    return library.gpus[0]


def read_first(driver: NvmlDriver) -> GpuReading:
    return driver.read(driver.discover().gpus[0])


def reasons(reading: GpuReading) -> dict[str, str]:
    return {absence.what: absence.reason for absence in reading.absent}


@pytest.mark.parametrize(
    ("percent", "ratio", "memory_ratio"),
    [
        pytest.param((100, 10), 1.0, 0.1, id="busy"),
        pytest.param((101, 10), None, 0.1, id="impossible-core"),
        pytest.param((7, 4_294_967_295), 0.07, None, id="impossible-memory"),
    ],
)
def test_utilisation_above_100_percent_is_absent(
    gpu: StandInGpu, percent: tuple[int, int], ratio: float | None, memory_ratio: float | None
) -> None:
    gpu.utilization_percent = percent

    reading = read_first(NvmlDriver())

    assert reading.utilization_ratio == ratio
    assert reading.memory_utilization_ratio == memory_ratio
    refused = {what for what in reasons(reading) if what.endswith("utilization_ratio")}
    assert len(refused) == (ratio is None) + (memory_ratio is None)


@pytest.mark.parametrize(
    ("bits", "names"),
    [
        pytest.param(0, (), id="none"),
        pytest.param(0x4, ("sw_power_cap",), id="power"),
        pytest.param(0x48, ("hw_slowdown", "hw_thermal_slowdown"), id="two"),
        pytest.param(0x1A0, ("sw_thermal_slowdown", "hw_power_brake_slowdown",
                             "display_clocks_setting"), id="three"),
        pytest.param(0x1002, ("applications_clocks_setting", "bit_12"), id="unnamed"),
    ],
)  # fmt: skip
def test_throttle_reasons_are_named_bit_by_bit(bits: int, names: tuple[str, ...]) -> None:
    assert name_throttle_reasons(bits) == names


def test_violation_counters_become_seconds_by_policy(gpu: StandInGpu) -> None:
    gpu.field_values = {
        pynvml.NVML_FI_DEV_PERF_POLICY_POWER: 7_500_000_000,
        pynvml.NVML_FI_DEV_PERF_POLICY_THERMAL: 0,
        270: 250_000_000,
    }

    reading = read_first(NvmlDriver())

    assert reading.violation_seconds_total == (
        ("power", 7.5),
        ("thermal", 0.0),
        ("hw_thermal_slowdown", 0.25),
    )
    assert (
        reasons(reading)["violation_seconds_total.board_limit"]
        == "nvmlDeviceGetFieldValues field 77: NOT_SUPPORTED (3)"
    )


@pytest.mark.parametrize(
    ("driver_version", "first"),
    [
        pytest.param("535.54.03", None, id="before-there-were-any"),
        pytest.param("570.86.15", None, id="570-has-power-smoothing-there"),
        pytest.param("575.51.03", 251, id="575"),
        pytest.param("580.65.06", 251, id="580"),
        pytest.param("585.1", None, id="between-those-known"),
        pytest.param("590.48.01", 269, id="590"),
        pytest.param("615.71", 269, id="later"),
        pytest.param("unreadable", None, id="not-a-version"),
    ],
)
def test_counters_that_nvidia_renumbered_are_asked_by_the_loaded_drivers_numbers(
    library: StandInNvml, gpu: StandInGpu, driver_version: str, first: int | None
) -> None:
    library.versions["nvmlSystemGetDriverVersion"] = driver_version
    gpu.field_values = dict.fromkeys(range(251, 274), 5_000_000_000)
    if first is not None:
        gpu.field_values |= {first: 10**9, first + 1: 2 * 10**9, first + 2: 3 * 10**9}

    reading = read_first(NvmlDriver())

    expected = (
        ("sw_thermal_slowdown", 1.0),
        ("hw_thermal_slowdown", 2.0),
        ("hw_power_brake_slowdown", 3.0),
    )
    assert reading.violation_seconds_total == (() if first is None else expected)
    is_told = "violation_seconds_total.hw_thermal_slowdown" in reasons(reading)
    assert is_told is (first is None)


@pytest.mark.parametrize(
    ("architecture", "device_id", "average", "instant"),
    [
        pytest.param(pynvml.NVML_DEVICE_ARCH_HOPPER, 0x233010DE, 250.5, None, id="h100"),
        pytest.param(pynvml.NVML_DEVICE_ARCH_AMPERE, 0x223010DE, 250.5, None, id="a6000"),
        pytest.param(pynvml.NVML_DEVICE_ARCH_AMPERE, 0x20B210DE, None, 250.5, id="a100"),
        pytest.param(pynvml.NVML_DEVICE_ARCH_TURING, 0x1EB810DE, None, 250.5, id="t4"),
    ],
)
def test_power_usage_fills_the_field_that_it_means_on_this_part(
    gpu: StandInGpu,
    architecture: int,
    device_id: int,
    average: float | None,
    instant: float | None,
) -> None:
    gpu.scalars["nvmlDeviceGetArchitecture"] = architecture
    gpu.pci_device_id = device_id
    gpu.scalars["nvmlDeviceGetPowerUsage"] = 250_500
    gpu.field_values.clear()

    reading = read_first(NvmlDriver())

    assert (reading.power_average_watts, reading.power_instant_watts) == (average, instant)
    named = {what for what in reasons(reading) if what.startswith("power_") and "limit" not in what}
    assert named == {"power_instant_watts" if instant is None else "power_average_watts"}


def test_power_usage_is_asked_where_field_values_fail_as_a_whole(gpu: StandInGpu) -> None:
    gpu.codes["nvmlDeviceGetFieldValues"] = UNKNOWN

    reading = read_first(NvmlDriver())

    assert reading.power_average_watts == 69.85
    assert reading.power_instant_watts is None
    assert reading.violation_seconds_total == ()


def test_a_part_without_architecture_name_is_taken_for_an_old_one() -> None:
    identity = GpuIdentity(uuid="GPU-1", index=0, name="Tesla K80", vendor="nvidia")

    assert not is_power_usage_averaged(identity)
    assert is_power_usage_averaged(replace(identity, architecture="ada"))


def test_a_memory_temperature_of_zero_is_no_temperature(gpu: StandInGpu) -> None:
    gpu.field_values[pynvml.NVML_FI_DEV_MEMORY_TEMP] = 0

    reading = read_first(NvmlDriver())

    assert reading.memory_temperature_celsius is None
    assert "no such sensor" in reasons(reading)["memory_temperature_celsius"]


def test_an_old_driver_gives_temperature_and_memory_by_its_older_functions(
    library: StandInNvml, gpu: StandInGpu
) -> None:
    library.remove_symbols(
        "nvmlDeviceGetTemperatureV", "nvmlDeviceGetMarginTemperature", "nvmlDeviceGetMemoryInfo_v2"
    )
    gpu.memory["used"] = 1000 * MIB

    reading = read_first(NvmlDriver())

    assert reading.temperature_celsius == 41.0
    assert reading.memory_used_bytes == 1479 * MIB
    assert reading.memory_reserved_bytes is None
    assert reasons(reading)["temperature_margin_celsius"].endswith("FUNCTION_NOT_FOUND (13)")
    assert "temperature_celsius.versioned" not in reasons(reading)


def test_an_old_binding_gives_the_temperature_and_no_margin(
    gpu: StandInGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(pynvml, "nvmlDeviceGetTemperatureV")
    monkeypatch.delattr(pynvml, "nvmlDeviceGetMarginTemperature")

    reading = read_first(NvmlDriver())

    assert reading.temperature_celsius == 41.0
    assert reading.temperature_margin_celsius is None
    assert "this version of nvidia-ml-py" in reasons(reading)["temperature_margin_celsius"]


def test_more_memory_used_than_there_is_means_a_foreign_struct(gpu: StandInGpu) -> None:
    gpu.memory["used"] = gpu.memory["total"] + 1

    reading = read_first(NvmlDriver())

    assert reading.memory_total_bytes is None
    assert reading.memory_used_bytes is None
    assert "cannot be" in reasons(reading)["memory_used_bytes"]


@pytest.mark.parametrize(
    ("speeds", "code", "expected"),
    [
        pytest.param({(0,): 30, (1,): 104}, None, (0.3, 1.04), id="two"),
        pytest.param({(0,): 30}, None, (), id="one-of-two-silent"),
        pytest.param({}, NOT_SUPPORTED, (), id="no-fans"),
    ],
)
def test_fans_are_read_all_or_none(
    gpu: StandInGpu, speeds: dict[tuple[int, ...], int], code: int | None, expected: tuple[float]
) -> None:
    gpu.scalars["nvmlDeviceGetNumFans"] = 2
    gpu.tables["nvmlDeviceGetFanSpeed_v2"] = speeds
    if code is not None:
        gpu.codes["nvmlDeviceGetNumFans"] = code

    reading = read_first(NvmlDriver())

    assert reading.fan_speed_ratios == expected
    assert ("fan_speed_ratios" in reasons(reading)) == (not expected)


def test_error_counters_keep_kind_scope_and_place(gpu: StandInGpu) -> None:
    gpu.tables["nvmlDeviceGetTotalEccErrors"] = {(0, 0): 3, (1, 1): 1}
    gpu.tables["nvmlDeviceGetMemoryErrorCounter"] = {
        (0, 0, pynvml.NVML_MEMORY_LOCATION_SRAM): 2,
        (1, 1, pynvml.NVML_MEMORY_LOCATION_L2_CACHE): 2**40,
    }

    reading = read_first(NvmlDriver())

    def count(error: str, scope: str, location: str, errors_total: int) -> EccCount:
        return EccCount(error=error, scope=scope, location=location, errors_total=errors_total)

    assert reading.ecc == (
        count("corrected", "volatile", "total", 3),
        count("uncorrected", "aggregate", "total", 1),
        count("corrected", "volatile", "sram", 2),
        count("uncorrected", "aggregate", "l2_cache", 2**40),
    )
    assert reasons(reading)["ecc.cbu"] == "nvmlDeviceGetMemoryErrorCounter: NOT_SUPPORTED (3)"
    assert "ecc.total.corrected.aggregate" in reasons(reading)


def test_retired_pages_are_read_before_ampere_and_remapped_rows_since(gpu: StandInGpu) -> None:
    gpu.field_values[pynvml.NVML_FI_DEV_RETIRED_SBE] = 4
    gpu.field_values[pynvml.NVML_FI_DEV_RETIRED_DBE] = 1
    gpu.remapped_rows = (2, 1, 1, 0)

    newer = read_first(NvmlDriver())
    gpu.scalars["nvmlDeviceGetArchitecture"] = pynvml.NVML_DEVICE_ARCH_VOLTA
    older = read_first(NvmlDriver())

    assert newer.retired_pages == ()
    assert newer.remapped_rows == (("corrected", 2), ("uncorrected", 1))
    assert (newer.is_remap_pending, newer.is_remap_failed) == (True, False)
    assert older.retired_pages == (
        ("multiple_single_bit_ecc_errors", 4),
        ("double_bit_ecc_error", 1),
    )
    assert older.remapped_rows == ()
    assert older.is_remap_pending is None


def test_an_unknown_performance_state_is_absent(gpu: StandInGpu) -> None:
    gpu.scalars["nvmlDeviceGetPerformanceState"] = 32

    reading = read_first(NvmlDriver())

    assert reading.performance_state is None
    assert "32" in reasons(reading)["performance_state"]


def test_processes_are_merged_and_named(gpu: StandInGpu, tmp_path: Path) -> None:
    for pid, name in ((11327, "memhog\n"), (11345, "gpu_burn\n")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "comm").write_text(name)
    gpu.compute = [
        Process(11345, 200 * MIB, instance=1),
        Process(11345, 100 * MIB, instance=2),
        Process(11327, MEMORY_UNKNOWN),
        Process(400, 2**60),
    ]
    gpu.graphics = [Process(11345, 300 * MIB), Process(77, 9 * MIB)]

    reading = read_first(NvmlDriver(procfs_path=tmp_path))

    assert reading.processes == (
        GpuProcess(pid=77, kind="graphics", name=None, memory_used_bytes=9 * MIB),
        GpuProcess(pid=400, kind="compute", name=None, memory_used_bytes=None),
        GpuProcess(pid=11327, kind="compute", name="memhog", memory_used_bytes=None),
        GpuProcess(pid=11345, kind="compute", name="gpu_burn", memory_used_bytes=300 * MIB),
    )


def test_processes_are_unknown_if_those_that_compute_cannot_be_listed(gpu: StandInGpu) -> None:
    gpu.compute = [Process(5, 1 * MIB)]
    gpu.codes["nvmlDeviceGetGraphicsRunningProcesses_v3"] = NOT_SUPPORTED
    driver = NvmlDriver()

    some = read_first(driver)
    gpu.codes["nvmlDeviceGetComputeRunningProcesses_v3"] = UNKNOWN
    gpu.codes["nvmlDeviceGetGraphicsRunningProcesses_v3"] = pynvml.NVML_SUCCESS
    none = read_first(driver)

    assert some.processes is not None
    assert [process.pid for process in some.processes] == [5]
    assert "processes.graphics" in reasons(some)
    assert none.processes is None
