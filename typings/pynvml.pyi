# Types of what esnode uses of NVIDIA's binding (distribution nvidia-ml-py); it ships none.
from collections.abc import Sequence

class c_nvmlDevice_t: ...

class NVMLError(Exception):
    value: int
    def __init__(self, value: int) -> None: ...

class c_nvmlUtilization_t:
    gpu: int
    memory: int

class c_nvmlMemory_v2_t:
    total: int
    reserved: int
    free: int
    used: int

class c_nvmlMemory_t:
    total: int
    free: int
    used: int

class c_nvmlBAR1Memory_t:
    bar1Total: int
    bar1Free: int
    bar1Used: int

class nvmlPciInfo_t:
    busId: str
    domain: int
    bus: int
    device: int
    pciDeviceId: int
    pciSubSystemId: int

class c_nvmlValue_t:
    dVal: float
    uiVal: int
    ulVal: int
    ullVal: int
    sllVal: int
    siVal: int
    usVal: int

class c_nvmlFieldValue_t:
    fieldId: int
    scopeId: int
    valueType: int
    nvmlReturn: int
    value: c_nvmlValue_t

class nvmlFriendlyObject:
    pid: int
    usedGpuMemory: int | None

NVML_SUCCESS: int
NVML_ERROR_UNINITIALIZED: int
NVML_ERROR_INVALID_ARGUMENT: int
NVML_ERROR_NOT_SUPPORTED: int
NVML_ERROR_NO_PERMISSION: int
NVML_ERROR_DRIVER_NOT_LOADED: int
NVML_ERROR_LIBRARY_NOT_FOUND: int
NVML_ERROR_FUNCTION_NOT_FOUND: int
NVML_ERROR_GPU_IS_LOST: int
NVML_ERROR_RESET_REQUIRED: int
NVML_ERROR_LIB_RM_VERSION_MISMATCH: int
NVML_ERROR_VGPU_ECC_NOT_SUPPORTED: int
NVML_ERROR_ARGUMENT_VERSION_MISMATCH: int
NVML_ERROR_DEPRECATED: int
NVML_ERROR_GPU_NOT_FOUND: int
NVML_ERROR_UNKNOWN: int

NVML_DEVICE_ARCH_KEPLER: int
NVML_DEVICE_ARCH_MAXWELL: int
NVML_DEVICE_ARCH_PASCAL: int
NVML_DEVICE_ARCH_VOLTA: int
NVML_DEVICE_ARCH_TURING: int
NVML_DEVICE_ARCH_AMPERE: int
NVML_DEVICE_ARCH_ADA: int
NVML_DEVICE_ARCH_HOPPER: int

NVML_TEMPERATURE_GPU: int
NVML_TEMPERATURE_THRESHOLD_SHUTDOWN: int
NVML_TEMPERATURE_THRESHOLD_SLOWDOWN: int

NVML_CLOCK_GRAPHICS: int
NVML_CLOCK_SM: int
NVML_CLOCK_MEM: int
NVML_CLOCK_VIDEO: int

NVML_MEMORY_ERROR_TYPE_CORRECTED: int
NVML_MEMORY_ERROR_TYPE_UNCORRECTED: int
NVML_VOLATILE_ECC: int
NVML_AGGREGATE_ECC: int
NVML_MEMORY_LOCATION_L1_CACHE: int
NVML_MEMORY_LOCATION_L2_CACHE: int
NVML_MEMORY_LOCATION_DEVICE_MEMORY: int
NVML_MEMORY_LOCATION_REGISTER_FILE: int
NVML_MEMORY_LOCATION_TEXTURE_MEMORY: int
NVML_MEMORY_LOCATION_CBU: int
NVML_MEMORY_LOCATION_SRAM: int

NVML_VALUE_TYPE_DOUBLE: int
NVML_VALUE_TYPE_UNSIGNED_INT: int
NVML_VALUE_TYPE_UNSIGNED_LONG: int
NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: int
NVML_VALUE_TYPE_SIGNED_LONG_LONG: int
NVML_VALUE_TYPE_SIGNED_INT: int
NVML_VALUE_TYPE_UNSIGNED_SHORT: int

NVML_FI_DEV_RETIRED_SBE: int
NVML_FI_DEV_RETIRED_DBE: int
NVML_FI_DEV_MEMORY_TEMP: int
NVML_FI_DEV_PERF_POLICY_POWER: int
NVML_FI_DEV_PERF_POLICY_THERMAL: int
NVML_FI_DEV_PERF_POLICY_SYNC_BOOST: int
NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT: int
NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION: int
NVML_FI_DEV_PERF_POLICY_RELIABILITY: int
NVML_FI_DEV_POWER_AVERAGE: int
NVML_FI_DEV_POWER_INSTANT: int
NVML_POWER_SCOPE_GPU: int

nvmlMemory_v2: int
NVML_AFFINITY_SCOPE_NODE: int

def nvmlInit() -> None: ...
def nvmlShutdown() -> None: ...
def nvmlSystemGetDriverVersion() -> str: ...
def nvmlSystemGetNVMLVersion() -> str: ...
def nvmlSystemGetCudaDriverVersion_v2() -> int: ...
def nvmlDeviceGetCount() -> int: ...
def nvmlDeviceGetHandleByIndex(index: int) -> c_nvmlDevice_t: ...
def nvmlDeviceGetHandleByUUID(uuid: str) -> c_nvmlDevice_t: ...
def nvmlDeviceGetName(handle: c_nvmlDevice_t) -> str: ...
def nvmlDeviceGetUUID(handle: c_nvmlDevice_t) -> str: ...
def nvmlDeviceGetSerial(handle: c_nvmlDevice_t) -> str: ...
def nvmlDeviceGetMinorNumber(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetPciInfo_v3(handle: c_nvmlDevice_t) -> nvmlPciInfo_t: ...
def nvmlDeviceGetArchitecture(device: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetBoardId(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetVbiosVersion(handle: c_nvmlDevice_t) -> str: ...
def nvmlDeviceGetMemoryAffinity(
    handle: c_nvmlDevice_t, nodeSetSize: int, scope: int
) -> Sequence[int]: ...
def nvmlDeviceGetPersistenceMode(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetUtilizationRates(handle: c_nvmlDevice_t) -> c_nvmlUtilization_t: ...
def nvmlDeviceGetMemoryInfo(
    handle: c_nvmlDevice_t, version: int | None = None
) -> c_nvmlMemory_t | c_nvmlMemory_v2_t: ...
def nvmlDeviceGetBAR1MemoryInfo(handle: c_nvmlDevice_t) -> c_nvmlBAR1Memory_t: ...
def nvmlDeviceGetTemperature(handle: c_nvmlDevice_t, sensor: int) -> int: ...
def nvmlDeviceGetTemperatureV(handle: c_nvmlDevice_t, sensor: int, version: int = ...) -> int: ...
def nvmlDeviceGetMarginTemperature(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetTemperatureThreshold(handle: c_nvmlDevice_t, threshold: int) -> int: ...
def nvmlDeviceGetNumFans(device: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetFanSpeed_v2(handle: c_nvmlDevice_t, fan: int) -> int: ...
def nvmlDeviceGetPowerUsage(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetEnforcedPowerLimit(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetPowerManagementLimit(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetPowerManagementDefaultLimit(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetPowerManagementLimitConstraints(handle: c_nvmlDevice_t) -> list[int]: ...
def nvmlDeviceSetPowerManagementLimit(handle: c_nvmlDevice_t, limit: int) -> None: ...
def nvmlDeviceGetTotalEnergyConsumption(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetClockInfo(handle: c_nvmlDevice_t, type: int) -> int: ...
def nvmlDeviceGetMaxClockInfo(handle: c_nvmlDevice_t, type: int) -> int: ...
def nvmlDeviceGetPerformanceState(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetCurrentClocksEventReasons(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetEccMode(handle: c_nvmlDevice_t) -> list[int]: ...
def nvmlDeviceGetTotalEccErrors(
    handle: c_nvmlDevice_t, errorType: int, counterType: int
) -> int: ...
def nvmlDeviceGetMemoryErrorCounter(
    handle: c_nvmlDevice_t, errorType: int, counterType: int, locationType: int
) -> int: ...
def nvmlDeviceGetRemappedRows(device: c_nvmlDevice_t) -> tuple[int, int, int, int]: ...
def nvmlDeviceGetCurrPcieLinkGeneration(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetMaxPcieLinkGeneration(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetCurrPcieLinkWidth(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetMaxPcieLinkWidth(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetPcieReplayCounter(handle: c_nvmlDevice_t) -> int: ...
def nvmlDeviceGetFieldValues(
    handle: c_nvmlDevice_t, fieldIds: Sequence[int | tuple[int, int]]
) -> Sequence[c_nvmlFieldValue_t]: ...
def nvmlDeviceGetEncoderUtilization(handle: c_nvmlDevice_t) -> list[int]: ...
def nvmlDeviceGetDecoderUtilization(handle: c_nvmlDevice_t) -> list[int]: ...
def nvmlDeviceGetComputeRunningProcesses_v3(
    handle: c_nvmlDevice_t,
) -> list[nvmlFriendlyObject]: ...
def nvmlDeviceGetGraphicsRunningProcesses_v3(
    handle: c_nvmlDevice_t,
) -> list[nvmlFriendlyObject]: ...
def nvmlDeviceGetMigMode(device: c_nvmlDevice_t) -> list[int]: ...
