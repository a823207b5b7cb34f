"""What the NVML back end reads from a device, over the stand-in library."""

from collections.abc import Iterator
from dataclasses import fields, replace

import pynvml
import pytest

from esnode.drivers.nvml import NvmlDriver
from esnode.drivers.nvml.fields import REPROBE_READS
from esnode.readings.gpu import GpuIdentity, GpuReading
from tests.nvml_stand_in import StandInNvml, install
from tests.nvml_stand_in_gpu import (
    MIB,
    NOT_SUPPORTED,
    StandInGpu,
    make_gpus,
)

UNKNOWN = pynvml.NVML_ERROR_UNKNOWN
GPU = "GPU-0f3c2b1a-0d4e-4c6b-9a7f-1e2d3c4b5a60"


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


def test_an_identity_holds_what_does_not_change(library: StandInNvml) -> None:
    driver = NvmlDriver()

    inventory = driver.discover()

    assert inventory.driver == "nvml"
    assert inventory.driver_version == "590.48.01"
    assert inventory.library_version == "13.590.48.01"
    assert inventory.cuda_version == "13.1"
    assert inventory.found_count == 2
    assert inventory.lost == ()
    assert inventory.gpus[0] == GpuIdentity(
        uuid=GPU,
        index=0,
        name="NVIDIA H100 80GB HBM3",
        vendor="nvidia",
        pci_bus_id="00000000:01:00.0",
        serial="1653323014880",
        vbios_version="96.00.A5.00.01",
        architecture="hopper",
        minor_number=0,
        numa_node=0,
        pci_device_id="0x233010de",
        pci_subsystem_id="0x16c110de",
        board_id=9,
        is_mig_supported=True,
    )


def test_an_identity_is_none_where_the_device_does_not_say(gpu: StandInGpu) -> None:
    gpu.texts["nvmlDeviceGetSerial"] = "0"
    gpu.numa_nodes = (0, 1)
    gpu.scalars["nvmlDeviceGetArchitecture"] = 0xFFFFFFFF
    gpu.codes = {
        "nvmlDeviceGetMigMode": NOT_SUPPORTED,
        "nvmlDeviceGetVbiosVersion": UNKNOWN,
        "nvmlDeviceGetPciInfo_v3": UNKNOWN,
    }

    identity = NvmlDriver().discover().gpus[0]

    assert identity.serial is None
    assert identity.numa_node is None
    assert identity.architecture is None
    assert identity.is_mig_supported is False
    assert identity.vbios_version is None
    assert identity.pci_bus_id is None
    assert identity.name == "NVIDIA H100 80GB HBM3"


def test_an_idle_h100_is_read_in_base_units(gpu: StandInGpu) -> None:
    reading = read_first(NvmlDriver())

    assert replace(reading, ecc=(), absent=(), violation_seconds_total=()) == GpuReading(
        identity=reading.identity,
        utilization_ratio=0.0,
        memory_utilization_ratio=0.0,
        encoder_utilization_ratio=0.0,
        decoder_utilization_ratio=0.0,
        memory_total_bytes=81_559 * MIB,
        memory_used_bytes=0,
        memory_free_bytes=81_080 * MIB,
        memory_reserved_bytes=479 * MIB,
        bar1_total_bytes=131_072 * MIB,
        bar1_used_bytes=1 * MIB,
        temperature_celsius=41.0,
        memory_temperature_celsius=48.0,
        slowdown_celsius=89.0,
        shutdown_celsius=95.0,
        temperature_margin_celsius=46.0,
        power_average_watts=69.85,
        power_instant_watts=69.62,
        power_limit_default_watts=700.0,
        power_limit_min_watts=200.0,
        power_limit_max_watts=700.0,
        power_limit_requested_watts=700.0,
        power_limit_enforced_watts=700.0,
        energy_joules_total=4_521_337.25,
        clock_sm_hertz=345e6,
        clock_memory_hertz=2619e6,
        clock_graphics_hertz=345e6,
        clock_video_hertz=765e6,
        clock_sm_max_hertz=1980e6,
        clock_memory_max_hertz=2619e6,
        clock_graphics_max_hertz=1980e6,
        performance_state=0,
        throttle_reasons=("gpu_idle",),
        is_ecc_enabled=True,
        remapped_rows=(("corrected", 0), ("uncorrected", 0)),
        is_remap_pending=False,
        is_remap_failed=False,
        pcie_link_generation=5,
        pcie_link_generation_max=5,
        pcie_link_width=16,
        pcie_link_width_max=16,
        pcie_replays_total=9,
        is_persistence_enabled=True,
        is_mig_enabled=False,
        processes=(),
    )


def test_a_read_makes_no_slow_and_no_unused_call(library: StandInNvml) -> None:
    read_first(NvmlDriver())

    assert "nvmlDeviceGetPcieThroughput" not in library.calls
    assert "nvmlDeviceGetProcessUtilization" not in library.calls
    assert "nvmlDeviceGetViolationStatus" not in library.calls
    assert library.calls["nvmlDeviceGetPowerUsage"] == 0
    assert library.calls["nvmlDeviceGetFieldValues"] == 1


SINGLE_FIELDS = [
    ("nvmlDeviceGetEncoderUtilization", "encoder_utilization_ratio"),
    ("nvmlDeviceGetDecoderUtilization", "decoder_utilization_ratio"),
    ("nvmlDeviceGetUtilizationRates", "utilization_ratio"),
    ("nvmlDeviceGetUtilizationRates", "memory_utilization_ratio"),
    ("nvmlDeviceGetBAR1MemoryInfo", "bar1_total_bytes"),
    ("nvmlDeviceGetMarginTemperature", "temperature_margin_celsius"),
    ("nvmlDeviceGetTemperatureThreshold", "slowdown_celsius"),
    ("nvmlDeviceGetTemperatureThreshold", "shutdown_celsius"),
    ("nvmlDeviceGetPowerManagementDefaultLimit", "power_limit_default_watts"),
    ("nvmlDeviceGetPowerManagementLimitConstraints", "power_limit_min_watts"),
    ("nvmlDeviceGetPowerManagementLimitConstraints", "power_limit_max_watts"),
    ("nvmlDeviceGetPowerManagementLimit", "power_limit_requested_watts"),
    ("nvmlDeviceGetEnforcedPowerLimit", "power_limit_enforced_watts"),
    ("nvmlDeviceGetTotalEnergyConsumption", "energy_joules_total"),
    ("nvmlDeviceGetClockInfo", "clock_sm_hertz"),
    ("nvmlDeviceGetMaxClockInfo", "clock_memory_max_hertz"),
    ("nvmlDeviceGetPerformanceState", "performance_state"),
    ("nvmlDeviceGetCurrentClocksEventReasons", "throttle_reasons"),
    ("nvmlDeviceGetEccMode", "is_ecc_enabled"),
    ("nvmlDeviceGetCurrPcieLinkGeneration", "pcie_link_generation"),
    ("nvmlDeviceGetMaxPcieLinkGeneration", "pcie_link_generation_max"),
    ("nvmlDeviceGetCurrPcieLinkWidth", "pcie_link_width"),
    ("nvmlDeviceGetMaxPcieLinkWidth", "pcie_link_width_max"),
    ("nvmlDeviceGetPcieReplayCounter", "pcie_replays_total"),
    ("nvmlDeviceGetPersistenceMode", "is_persistence_enabled"),
    ("nvmlDeviceGetMigMode", "is_mig_enabled"),
]


@pytest.mark.parametrize(
    ("function", "what"),
    [pytest.param(function, what, id=what) for function, what in SINGLE_FIELDS],
)
@pytest.mark.parametrize(
    ("code", "word"),
    [
        pytest.param(NOT_SUPPORTED, "NOT_SUPPORTED (3)", id="unsupported"),
        pytest.param(UNKNOWN, "UNKNOWN (999)", id="unknown"),
        pytest.param(pynvml.NVML_ERROR_TIMEOUT, "TIMEOUT (10)", id="timeout"),
    ],
)
def test_a_refused_value_is_absent_alone_with_its_function_and_code(
    gpu: StandInGpu, function: str, what: str, code: int, word: str
) -> None:
    driver = NvmlDriver()
    whole = read_first(driver)
    gpu.codes[function] = code

    reading = read_first(driver)

    same_call = {other for name, other in SINGLE_FIELDS if name == function}
    assert getattr(reading, what) is None
    assert reasons(reading)[what] == f"{function}: {word}"
    changed = {
        entry.name
        for entry in fields(reading)
        if getattr(reading, entry.name) != getattr(whole, entry.name)
    }
    assert changed - {"absent"} <= same_call | {
        "bar1_used_bytes",
        "clock_memory_hertz",
        "clock_graphics_hertz",
        "clock_video_hertz",
        "clock_sm_max_hertz",
        "clock_graphics_max_hertz",
    }


def test_every_value_but_the_identity_may_be_missing(gpu: StandInGpu) -> None:
    driver = NvmlDriver()
    identity = driver.discover().gpus[0]
    for table in gpu.tables.values():
        table.clear()
    gpu.scalars.clear()
    gpu.field_values.clear()
    for function in (
        "nvmlDeviceGetTemperatureV",
        "nvmlDeviceGetMarginTemperature",
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetEncoderUtilization",
        "nvmlDeviceGetDecoderUtilization",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetBAR1MemoryInfo",
        "nvmlDeviceGetPowerManagementLimitConstraints",
        "nvmlDeviceGetEccMode",
        "nvmlDeviceGetMigMode",
        "nvmlDeviceGetRemappedRows",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
    ):
        gpu.codes[function] = NOT_SUPPORTED

    reading = driver.read(identity)

    assert replace(reading, absent=()) == GpuReading(identity=identity)
    assert all("(3)" in absence.reason for absence in reading.absent)


def test_text_that_is_no_text_is_absent(gpu: StandInGpu) -> None:
    gpu.texts["nvmlDeviceGetVbiosVersion"] = "96.\udcff"

    identity = NvmlDriver().discover().gpus[0]

    assert identity.vbios_version is None
    assert identity.serial == "1653323014880"


def test_an_unsupported_value_is_asked_again_after_a_while(
    library: StandInNvml, gpu: StandInGpu
) -> None:
    function = "nvmlDeviceGetTotalEnergyConsumption"
    driver = NvmlDriver()
    identity = driver.discover().gpus[0]
    gpu.codes[function] = NOT_SUPPORTED
    driver.read(identity)
    del gpu.codes[function]

    skipped = [driver.read(identity) for _ in range(REPROBE_READS - 1)]
    probed = driver.read(identity)

    assert {reading.energy_joules_total for reading in skipped} == {None}
    assert reasons(skipped[-1])["energy_joules_total"] == f"{function}: NOT_SUPPORTED (3)"
    assert probed.energy_joules_total == 4_521_337.25
    assert library.calls[function] == 2


def test_a_passing_error_is_asked_again_at_once(library: StandInNvml, gpu: StandInGpu) -> None:
    driver = NvmlDriver()
    gpu.codes["nvmlDeviceGetTotalEnergyConsumption"] = UNKNOWN
    read_first(driver)
    gpu.codes.clear()

    reading = read_first(driver)

    assert reading.energy_joules_total == 4_521_337.25
