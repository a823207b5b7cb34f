"""One GPU of the stand-in NVML: its values, and how it answers each function.

Its own file because `nvml_stand_in` is the library around it. Defaults are those of an idle
H100 SXM with driver 590. The answers are written into what the binding's `byref()` hands over.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pynvml

MIB = 1024 * 1024

NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED
LOST = pynvml.NVML_ERROR_GPU_IS_LOST
INVALID_ARGUMENT = pynvml.NVML_ERROR_INVALID_ARGUMENT

SUCCESS = pynvml.NVML_SUCCESS
_UINT = pynvml.NVML_VALUE_TYPE_UNSIGNED_INT
_ULONGLONG = pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG


@dataclass(frozen=True)
class Process:
    pid: int
    used_bytes: int = 0
    instance: int = 0xFFFFFFFF


MEMORY_UNKNOWN = 2**64 - 1


def _h100_scalars() -> dict[str, int]:
    """What functions with one result give."""
    return {
        "nvmlDeviceGetMinorNumber": 0,
        "nvmlDeviceGetArchitecture": pynvml.NVML_DEVICE_ARCH_HOPPER,
        "nvmlDeviceGetBoardId": 0x9,
        "nvmlDeviceGetPersistenceMode": 1,
        "nvmlDeviceGetMarginTemperature": 46,
        "nvmlDeviceGetPowerUsage": 69_850,
        "nvmlDeviceGetEnforcedPowerLimit": 700_000,
        "nvmlDeviceGetPowerManagementLimit": 700_000,
        "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
        "nvmlDeviceGetTotalEnergyConsumption": 4_521_337_250,
        "nvmlDeviceGetPerformanceState": 0,
        "nvmlDeviceGetCurrentClocksEventReasons": 0x1,
        "nvmlDeviceGetCurrPcieLinkGeneration": 5,
        "nvmlDeviceGetMaxPcieLinkGeneration": 5,
        "nvmlDeviceGetCurrPcieLinkWidth": 16,
        "nvmlDeviceGetMaxPcieLinkWidth": 16,
        "nvmlDeviceGetPcieReplayCounter": 9,
        "nvmlDeviceGetNumFans": 0,
    }


def _h100_tables() -> dict[str, dict[tuple[int, ...], int]]:
    """What functions with an enum argument (or several) give; a missing key is not supported."""
    clocks = {
        (pynvml.NVML_CLOCK_GRAPHICS,): 345,
        (pynvml.NVML_CLOCK_SM,): 345,
        (pynvml.NVML_CLOCK_MEM,): 2619,
        (pynvml.NVML_CLOCK_VIDEO,): 765,
    }
    maxima = {
        (pynvml.NVML_CLOCK_GRAPHICS,): 1980,
        (pynvml.NVML_CLOCK_SM,): 1980,
        (pynvml.NVML_CLOCK_MEM,): 2619,
        (pynvml.NVML_CLOCK_VIDEO,): 1545,
    }
    located = {
        (error, scope, location): 0
        for error in (0, 1)
        for scope in (0, 1)
        for location in (
            pynvml.NVML_MEMORY_LOCATION_DEVICE_MEMORY,
            pynvml.NVML_MEMORY_LOCATION_SRAM,
        )
    }
    return {
        "nvmlDeviceGetClockInfo": clocks,
        "nvmlDeviceGetMaxClockInfo": maxima,
        "nvmlDeviceGetTemperature": {(pynvml.NVML_TEMPERATURE_GPU,): 41},
        "nvmlDeviceGetTemperatureThreshold": {
            (pynvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN,): 95,
            (pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN,): 89,
        },
        "nvmlDeviceGetTotalEccErrors": {(e, s): 0 for e in (0, 1) for s in (0, 1)},
        "nvmlDeviceGetMemoryErrorCounter": located,
        "nvmlDeviceGetFanSpeed_v2": {},
    }


def _h100_field_values() -> dict[int, int]:
    """Field id to value; a missing id is not supported."""
    return {
        pynvml.NVML_FI_DEV_POWER_AVERAGE: 69_850,
        pynvml.NVML_FI_DEV_POWER_INSTANT: 69_620,
        pynvml.NVML_FI_DEV_MEMORY_TEMP: 48,
        pynvml.NVML_FI_DEV_PERF_POLICY_POWER: 0,
        pynvml.NVML_FI_DEV_PERF_POLICY_THERMAL: 0,
        pynvml.NVML_FI_DEV_PERF_POLICY_SYNC_BOOST: 0,
        pynvml.NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT: 0,
        pynvml.NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION: 0,
        pynvml.NVML_FI_DEV_PERF_POLICY_RELIABILITY: 0,
        269: 0,
        270: 0,
        271: 0,
    }


@dataclass
class StandInGpu:
    """One device. Everything may be changed while a driver reads it."""

    uuid: str = "GPU-5f3c2b1a-0d4e-4c6b-9a7f-1e2d3c4b5a60"
    texts: dict[str, str] = field(
        default_factory=lambda: {
            "nvmlDeviceGetName": "NVIDIA H100 80GB HBM3",
            "nvmlDeviceGetSerial": "1653323014887",
            "nvmlDeviceGetVbiosVersion": "96.00.A5.00.01",
        }
    )
    pci_bus_id: str = "00000000:00:09.0"
    pci_device_id: int = 0x233010DE
    pci_subsystem_id: int = 0x16C110DE
    numa_nodes: tuple[int, ...] = (1,)
    scalars: dict[str, int] = field(default_factory=_h100_scalars)
    tables: dict[str, dict[tuple[int, ...], int]] = field(default_factory=_h100_tables)
    field_values: dict[int, int] = field(default_factory=_h100_field_values)
    utilization_percent: tuple[int, int] = (0, 0)
    encoder_percent: int = 0
    decoder_percent: int = 0
    memory: dict[str, int] = field(
        default_factory=lambda: {
            "total": 81_559 * MIB,
            "reserved": 479 * MIB,
            "used": 0,
            "free": 81_080 * MIB,
        }
    )
    bar1: tuple[int, int] = (131_072 * MIB, 1 * MIB)
    limit_bounds_milliwatts: tuple[int, int] = (200_000, 700_000)
    ecc_mode: int = 1
    mig_mode: int = 0
    remapped_rows: tuple[int, int, int, int] = (0, 0, 0, 0)
    compute: list[Process] = field(default_factory=list)
    graphics: list[Process] = field(default_factory=list)
    codes: dict[str, int] = field(default_factory=dict)
    """Return codes by function, instead of an answer."""
    lost_code: int | None = None
    """When set, every call for this device returns it."""
    _hangs: dict[str, threading.Event] = field(default_factory=dict)
    arrived: threading.Event = field(default_factory=threading.Event)
    """Set when a call has begun to hang."""

    def hang(self, function: str) -> None:
        """Let calls of one function block until `resume`."""
        self.arrived.clear()
        self._hangs[function] = threading.Event()

    def resume(self) -> None:
        for event in self._hangs.values():
            event.set()
        self._hangs.clear()

    def wait_if_hanging(self, function: str) -> None:
        event = self._hangs.get(function)
        if event is not None:
            self.arrived.set()
            event.wait()


def number_of(argument: object) -> int:
    return getattr(argument, "value", argument)  # type: ignore[return-value]


def give(reference: object, value: int) -> int:
    reference._obj.value = value  # type: ignore[attr-defined]
    return SUCCESS


def give_text(buffer: object, text: str) -> int:
    buffer.value = text.encode("utf-8", "surrogateescape")  # type: ignore[attr-defined]
    return SUCCESS


def answer(gpu: StandInGpu, name: str, rest: tuple[object, ...]) -> int:
    if name == "nvmlDeviceGetUUID":
        return give_text(rest[0], gpu.uuid)
    if name in gpu.texts:
        return give_text(rest[0], gpu.texts[name])
    if name == "nvmlDeviceGetMarginTemperature":
        rest[0]._obj.marginTemperature = gpu.scalars[name]  # type: ignore[attr-defined]
        return SUCCESS
    if name in gpu.scalars:
        return give(rest[0], gpu.scalars[name])
    if name in gpu.tables:
        key = tuple(number_of(argument) for argument in rest[:-1])
        value = gpu.tables[name].get(key)
        return NOT_SUPPORTED if value is None else give(rest[-1], value)
    special = _SPECIAL_CALLS.get(name)
    return NOT_SUPPORTED if special is None else special(gpu, *rest)


def _give_pairs(*pairs: tuple[object, int]) -> int:
    for reference, value in pairs:
        give(reference, value)
    return SUCCESS


def _pci(gpu: StandInGpu, reference: object) -> int:
    info = reference._obj  # type: ignore[attr-defined]
    info.busId = gpu.pci_bus_id.encode()
    info.pciDeviceId = gpu.pci_device_id
    info.pciSubSystemId = gpu.pci_subsystem_id
    return SUCCESS


def _memory_affinity(gpu: StandInGpu, size: object, reference: object, _scope: object) -> int:
    words = reference._obj  # type: ignore[attr-defined]
    for node in gpu.numa_nodes:
        words[node // 64] |= 1 << node % 64
    return SUCCESS


def _utilization(gpu: StandInGpu, reference: object) -> int:
    rates = reference._obj  # type: ignore[attr-defined]
    rates.gpu, rates.memory = gpu.utilization_percent
    return SUCCESS


def _memory(gpu: StandInGpu, reference: object) -> int:
    memory = reference._obj  # type: ignore[attr-defined]
    memory.total, memory.free = gpu.memory["total"], gpu.memory["free"]
    memory.used = gpu.memory["used"] + gpu.memory["reserved"]
    return SUCCESS


def _memory_v2(gpu: StandInGpu, reference: object) -> int:
    memory = reference._obj  # type: ignore[attr-defined]
    if memory.version != pynvml.nvmlMemory_v2:
        return pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH
    for name, value in gpu.memory.items():
        setattr(memory, name, value)
    return SUCCESS


def _bar1(gpu: StandInGpu, reference: object) -> int:
    bar1 = reference._obj  # type: ignore[attr-defined]
    bar1.bar1Total, bar1.bar1Used = gpu.bar1
    bar1.bar1Free = gpu.bar1[0] - gpu.bar1[1]
    return SUCCESS


def _temperature_v(gpu: StandInGpu, reference: object) -> int:
    request = reference._obj  # type: ignore[attr-defined]
    if request.version != pynvml.nvmlTemperature_v1:
        return pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH
    request.temperature = gpu.tables["nvmlDeviceGetTemperature"][(request.sensorType,)]
    return SUCCESS


def _set_limit(gpu: StandInGpu, limit: object) -> int:
    minimum, maximum = gpu.limit_bounds_milliwatts
    if not minimum <= number_of(limit) <= maximum:
        return INVALID_ARGUMENT
    gpu.scalars["nvmlDeviceGetPowerManagementLimit"] = number_of(limit)
    gpu.scalars["nvmlDeviceGetEnforcedPowerLimit"] = number_of(limit)
    return SUCCESS


def _field_values(gpu: StandInGpu, count: object, reference: object) -> int:
    for entry in list(reference._obj)[: number_of(count)]:  # type: ignore[attr-defined]
        value = gpu.field_values.get(entry.fieldId)
        entry.nvmlReturn = NOT_SUPPORTED if value is None else SUCCESS
        if value is not None and value > 2**32 - 1:
            entry.valueType = _ULONGLONG
            entry.value.ullVal = value
        elif value is not None:
            entry.valueType = _UINT
            entry.value.uiVal = value
    return SUCCESS


def _processes(entries: list[Process], count: object, array: object) -> int:
    capacity = count._obj.value  # type: ignore[attr-defined]
    count._obj.value = len(entries)  # type: ignore[attr-defined]
    if not entries:
        return SUCCESS
    if array is None or capacity < len(entries):
        return pynvml.NVML_ERROR_INSUFFICIENT_SIZE
    for slot, entry in enumerate(entries):
        array[slot].pid = entry.pid  # type: ignore[index]
        array[slot].usedGpuMemory = entry.used_bytes  # type: ignore[index]
        array[slot].gpuInstanceId = entry.instance  # type: ignore[index]
    return SUCCESS


_SPECIAL_CALLS: dict[str, Callable[..., int]] = {
    "nvmlDeviceGetPciInfo_v3": _pci,
    "nvmlDeviceGetMemoryAffinity": _memory_affinity,
    "nvmlDeviceGetUtilizationRates": _utilization,
    "nvmlDeviceGetEncoderUtilization": lambda gpu, util, period: _give_pairs(
        (util, gpu.encoder_percent), (period, 167_000)
    ),
    "nvmlDeviceGetDecoderUtilization": lambda gpu, util, period: _give_pairs(
        (util, gpu.decoder_percent), (period, 167_000)
    ),
    "nvmlDeviceGetMemoryInfo": _memory,
    "nvmlDeviceGetMemoryInfo_v2": _memory_v2,
    "nvmlDeviceGetBAR1MemoryInfo": _bar1,
    "nvmlDeviceGetTemperatureV": _temperature_v,
    "nvmlDeviceGetPowerManagementLimitConstraints": lambda gpu, low, high: _give_pairs(
        (low, gpu.limit_bounds_milliwatts[0]), (high, gpu.limit_bounds_milliwatts[1])
    ),
    "nvmlDeviceSetPowerManagementLimit": _set_limit,
    "nvmlDeviceGetFieldValues": _field_values,
    "nvmlDeviceGetEccMode": lambda gpu, current, pending: _give_pairs(
        (current, gpu.ecc_mode), (pending, gpu.ecc_mode)
    ),
    "nvmlDeviceGetMigMode": lambda gpu, current, pending: _give_pairs(
        (current, gpu.mig_mode), (pending, gpu.mig_mode)
    ),
    "nvmlDeviceGetRemappedRows": lambda gpu, *references: _give_pairs(
        *zip(references, gpu.remapped_rows, strict=True)
    ),
    "nvmlDeviceGetComputeRunningProcesses_v3": lambda gpu, count, array: _processes(
        gpu.compute, count, array
    ),
    "nvmlDeviceGetGraphicsRunningProcesses_v3": lambda gpu, count, array: _processes(
        gpu.graphics, count, array
    ),
}


def make_gpus(count: int) -> list[StandInGpu]:
    """Some alike devices with their own identities."""
    gpus = []
    for index in range(count):
        gpu = StandInGpu(
            uuid=f"GPU-{index}f3c2b1a-0d4e-4c6b-9a7f-1e2d3c4b5a60",
            pci_bus_id=f"00000000:{index + 1:02X}:00.0",
            numa_nodes=(index % 2,),
        )
        gpu.texts["nvmlDeviceGetSerial"] = f"165332301488{index}"
        gpu.scalars["nvmlDeviceGetMinorNumber"] = index
        gpus.append(gpu)
    return gpus
