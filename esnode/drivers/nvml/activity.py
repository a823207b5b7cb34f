"""What a device does now: utilisation, memory, temperatures, power, clocks, fans.

Its own file because `health` asks what went wrong, which is a different list of calls. Units are
converted here and nowhere else: NVML speaks of percent, milliwatts, millijoules and megahertz.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pynvml

from esnode.drivers.nvml.fields import FieldId, Fields
from esnode.drivers.nvml.identity import is_power_usage_averaged
from esnode.readings.gpu import THROTTLE_REASONS, GpuReading

_HERTZ_PER_MEGAHERTZ = 1e6
_MILLI = 1000
"""Thousandths in a unit: milliwatts to watts, millijoules to joules."""
_NANO = 1_000_000_000

_PERFORMANCE_STATES = range(16)
"""NVML's 32 means that the state is unknown."""

_POLICY_FIELDS: dict[str, FieldId] = {
    "power": (pynvml.NVML_FI_DEV_PERF_POLICY_POWER, 0),
    "thermal": (pynvml.NVML_FI_DEV_PERF_POLICY_THERMAL, 0),
    "sync_boost": (pynvml.NVML_FI_DEV_PERF_POLICY_SYNC_BOOST, 0),
    "board_limit": (pynvml.NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT, 0),
    "low_utilization": (pynvml.NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION, 0),
    "reliability": (pynvml.NVML_FI_DEV_PERF_POLICY_RELIABILITY, 0),
}
"""Nanosecond counters by policy. Field values, since nvmlDeviceGetViolationStatus is deprecated.

Source: nvml.h, NVML_FI_DEV_PERF_POLICY_*.
"""

_REASON_COUNTERS = ("sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
_REASON_FIELDS_FROM = ((590, 269), (581, None), (575, 251), (0, None))
"""First driver branch to the field of the first of `_REASON_COUNTERS`; the others follow it.

NVIDIA has renumbered them: what counts nanoseconds in one branch is a setting of power smoothing in
another, and the binding that is installed says nothing of the driver that is loaded. Branches
between those that we know are not asked. Source: nvidia-ml-py 12.570, 12.575, 13.580 and 13.590,
NVML_FI_DEV_CLOCKS_EVENT_REASON_*.
"""


def violation_fields(driver_version: str | None) -> dict[str, FieldId]:
    """The nanosecond counters of held clocks, as this driver numbers them."""
    major = (driver_version or "").partition(".")[0]
    branch = int(major) if major.isascii() and major.isdigit() and len(major) < 6 else 0
    first = next(field for since, field in _REASON_FIELDS_FROM if branch >= since)
    if first is None:
        return _POLICY_FIELDS
    reasons = {name: (first + place, 0) for place, name in enumerate(_REASON_COUNTERS)}
    return _POLICY_FIELDS | reasons


def add_utilization(reading: GpuReading, fields: Fields) -> GpuReading:
    """Add the shares of time in which the engines were busy."""
    rates = fields.take("utilization_ratio", pynvml.nvmlDeviceGetUtilizationRates, fields.handle)
    if rates is None:
        fields.leave_out("memory_utilization_ratio", fields.absent[-1].reason)
    encoder = fields.take(
        "encoder_utilization_ratio", pynvml.nvmlDeviceGetEncoderUtilization, fields.handle
    )
    decoder = fields.take(
        "decoder_utilization_ratio", pynvml.nvmlDeviceGetDecoderUtilization, fields.handle
    )
    return replace(
        reading,
        utilization_ratio=_to_ratio(
            "utilization_ratio", None if rates is None else rates.gpu, fields
        ),
        memory_utilization_ratio=_to_ratio(
            "memory_utilization_ratio", None if rates is None else rates.memory, fields
        ),
        encoder_utilization_ratio=_to_ratio(
            "encoder_utilization_ratio", None if encoder is None else encoder[0], fields
        ),
        decoder_utilization_ratio=_to_ratio(
            "decoder_utilization_ratio", None if decoder is None else decoder[0], fields
        ),
    )


def add_memory(reading: GpuReading, fields: Fields) -> GpuReading:
    """Add the fill of the device's memory and of its BAR1 window."""
    reserved: int | None = None
    memory: pynvml.c_nvmlMemory_t | pynvml.c_nvmlMemory_v2_t | None = fields.take(
        "memory_reserved_bytes",
        pynvml.nvmlDeviceGetMemoryInfo,
        fields.handle,
        pynvml.nvmlMemory_v2,
    )
    if isinstance(memory, pynvml.c_nvmlMemory_v2_t):
        reserved = memory.reserved
    else:
        # Drivers before 510 have the first version alone, which counts reserved memory as used.
        memory = fields.take("memory_total_bytes", pynvml.nvmlDeviceGetMemoryInfo, fields.handle)
    if memory is not None and max(memory.used, memory.free, reserved or 0) > memory.total:
        # What a struct of another version than the driver's looks like.
        for what in ("memory_total_bytes", "memory_used_bytes", "memory_free_bytes"):
            fields.leave_out(
                what,
                f"nvmlDeviceGetMemoryInfo: {memory.used} bytes used and {memory.free} free "
                f"of {memory.total} cannot be",
            )
        memory = None
        reserved = None
    bar1 = fields.take("bar1_total_bytes", pynvml.nvmlDeviceGetBAR1MemoryInfo, fields.handle)
    return replace(
        reading,
        memory_total_bytes=None if memory is None else memory.total,
        memory_used_bytes=None if memory is None else memory.used,
        memory_free_bytes=None if memory is None else memory.free,
        memory_reserved_bytes=reserved,
        bar1_total_bytes=None if bar1 is None else bar1.bar1Total,
        bar1_used_bytes=None if bar1 is None else bar1.bar1Used,
    )


def add_temperatures(reading: GpuReading, fields: Fields) -> GpuReading:
    """Add the core's temperature, its thresholds and the distance to its own limit."""
    margin: int | None = None
    if hasattr(pynvml, "nvmlDeviceGetMarginTemperature"):
        margin = fields.take(
            "temperature_margin_celsius", pynvml.nvmlDeviceGetMarginTemperature, fields.handle
        )
    else:
        fields.leave_out(
            "temperature_margin_celsius",
            "this version of nvidia-ml-py has no nvmlDeviceGetMarginTemperature",
        )
    slowdown = fields.take(
        "slowdown_celsius",
        pynvml.nvmlDeviceGetTemperatureThreshold,
        fields.handle,
        pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN,
    )
    shutdown = fields.take(
        "shutdown_celsius",
        pynvml.nvmlDeviceGetTemperatureThreshold,
        fields.handle,
        pynvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN,
    )
    return replace(
        reading,
        temperature_celsius=_to_float(_take_core_temperature(fields)),
        slowdown_celsius=_to_float(slowdown),
        shutdown_celsius=_to_float(shutdown),
        temperature_margin_celsius=_to_float(margin),
    )


def add_field_values(
    reading: GpuReading, fields: Fields, violations: Mapping[str, FieldId]
) -> GpuReading:
    """Add what NVML gives as field values: power, memory temperature, violation counters."""
    wanted: dict[str, FieldId] = {
        "power_average_watts": (
            pynvml.NVML_FI_DEV_POWER_AVERAGE,
            pynvml.NVML_POWER_SCOPE_GPU,
        ),
        "power_instant_watts": (
            pynvml.NVML_FI_DEV_POWER_INSTANT,
            pynvml.NVML_POWER_SCOPE_GPU,
        ),
        "memory_temperature_celsius": (pynvml.NVML_FI_DEV_MEMORY_TEMP, 0),
        **{f"violation_seconds_total.{name}": field for name, field in violations.items()},
    }
    values = fields.take_field_values(wanted)
    for name in _REASON_COUNTERS:
        if name not in violations:
            fields.leave_out(
                f"violation_seconds_total.{name}",
                "the number that this branch of the driver has for it is not known",
            )
    memory_celsius = values.get("memory_temperature_celsius")
    if memory_celsius == 0:
        # Parts without this sensor answer with success and 0.
        fields.leave_out("memory_temperature_celsius", "the device has no such sensor (it says 0)")
        memory_celsius = None
    return _add_power_usage(
        replace(
            reading,
            power_average_watts=_divide(values.get("power_average_watts"), _MILLI),
            power_instant_watts=_divide(values.get("power_instant_watts"), _MILLI),
            memory_temperature_celsius=_to_float(memory_celsius),
            violation_seconds_total=tuple(
                (name, values[key] / _NANO)
                for name in violations
                if (key := f"violation_seconds_total.{name}") in values
            ),
        ),
        fields,
    )


def add_power_limits(reading: GpuReading, fields: Fields) -> GpuReading:
    """Add the limits of the part itself; and the energy."""

    def take(what: str, function: Callable[[pynvml.c_nvmlDevice_t], int]) -> float | None:
        return _divide(fields.take(what, function, fields.handle), _MILLI)

    limits = fields.take(
        "power_limit_min_watts",
        pynvml.nvmlDeviceGetPowerManagementLimitConstraints,
        fields.handle,
    )
    if limits is None:
        fields.leave_out("power_limit_max_watts", fields.absent[-1].reason)
    return replace(
        reading,
        power_limit_min_watts=None if limits is None else limits[0] / _MILLI,
        power_limit_max_watts=None if limits is None else limits[1] / _MILLI,
        power_limit_default_watts=take(
            "power_limit_default_watts", pynvml.nvmlDeviceGetPowerManagementDefaultLimit
        ),
        energy_joules_total=take("energy_joules_total", pynvml.nvmlDeviceGetTotalEnergyConsumption),
    )


def add_limits_in_force(reading: GpuReading, fields: Fields) -> GpuReading:
    """Add the limit that was asked for, and the one in force."""

    def take(what: str, function: Callable[[pynvml.c_nvmlDevice_t], int]) -> float | None:
        return _divide(fields.take(what, function, fields.handle), _MILLI)

    return replace(
        reading,
        power_limit_requested_watts=take(
            "power_limit_requested_watts", pynvml.nvmlDeviceGetPowerManagementLimit
        ),
        power_limit_enforced_watts=take(
            "power_limit_enforced_watts", pynvml.nvmlDeviceGetEnforcedPowerLimit
        ),
    )


def add_clocks(reading: GpuReading, fields: Fields) -> GpuReading:
    """Add the clocks, their maxima, the performance state and what holds the clocks back."""

    def take(what: str, clock: int) -> float | None:
        value = fields.take(what, pynvml.nvmlDeviceGetClockInfo, fields.handle, clock)
        return _to_hertz(value)

    def take_max(what: str, clock: int) -> float | None:
        value = fields.take(what, pynvml.nvmlDeviceGetMaxClockInfo, fields.handle, clock)
        return _to_hertz(value)

    return replace(
        reading,
        clock_sm_hertz=take("clock_sm_hertz", pynvml.NVML_CLOCK_SM),
        clock_memory_hertz=take("clock_memory_hertz", pynvml.NVML_CLOCK_MEM),
        clock_graphics_hertz=take("clock_graphics_hertz", pynvml.NVML_CLOCK_GRAPHICS),
        clock_video_hertz=take("clock_video_hertz", pynvml.NVML_CLOCK_VIDEO),
        clock_sm_max_hertz=take_max("clock_sm_max_hertz", pynvml.NVML_CLOCK_SM),
        clock_memory_max_hertz=take_max("clock_memory_max_hertz", pynvml.NVML_CLOCK_MEM),
        clock_graphics_max_hertz=take_max("clock_graphics_max_hertz", pynvml.NVML_CLOCK_GRAPHICS),
        performance_state=_take_performance_state(fields),
        throttle_reasons=_take_throttle_reasons(fields),
    )


def add_fans(reading: GpuReading, fields: Fields) -> GpuReading:
    """Add the fans' speeds. All or none: a fan is known by its place in the row only."""
    count = fields.take("fan_speed_ratios", pynvml.nvmlDeviceGetNumFans, fields.handle)
    speeds: list[float] = []
    for fan in range(count or 0):
        percent = fields.take(
            "fan_speed_ratios", pynvml.nvmlDeviceGetFanSpeed_v2, fields.handle, fan
        )
        if percent is None:
            return reading
        # May exceed 1: it is a share of the speed that the fan's maker rates as maximal (nvml.h).
        speeds.append(percent / 100)
    return replace(reading, fan_speed_ratios=tuple(speeds))


def name_throttle_reasons(bits: int) -> tuple[str, ...]:
    """Name the active bits in `THROTTLE_REASONS` order; a bit that nvml.h does not name is kept."""
    return tuple(
        THROTTLE_REASONS[bit] if bit < len(THROTTLE_REASONS) else f"bit_{bit}"
        for bit in range(bits.bit_length())
        if bits >> bit & 1
    )


def _add_power_usage(reading: GpuReading, fields: Fields) -> GpuReading:
    """Fill the one power value that the device's older function gives, where the newer gave none.

    Which of the two that is depends on the part: see `is_power_usage_averaged`.
    """
    is_averaged = is_power_usage_averaged(reading.identity)
    what = "power_average_watts" if is_averaged else "power_instant_watts"
    given = reading.power_average_watts if is_averaged else reading.power_instant_watts
    if given is not None:
        return reading
    milliwatts = fields.take(f"{what}.usage", pynvml.nvmlDeviceGetPowerUsage, fields.handle)
    if milliwatts is None:
        return reading
    fields.absent = [absence for absence in fields.absent if absence.what != what]
    watts = milliwatts / _MILLI
    if is_averaged:
        return replace(reading, power_average_watts=watts)
    return replace(reading, power_instant_watts=watts)


def _take_core_temperature(fields: Fields) -> int | None:
    what = "temperature_celsius"
    if hasattr(pynvml, "nvmlDeviceGetTemperatureV"):
        celsius = fields.take(
            f"{what}.versioned",
            pynvml.nvmlDeviceGetTemperatureV,
            fields.handle,
            pynvml.NVML_TEMPERATURE_GPU,
        )
        if celsius is not None:
            return celsius
        fields.absent.pop()
    # The older function is deprecated, and the only one that drivers before 570 have.
    return fields.take(
        what, pynvml.nvmlDeviceGetTemperature, fields.handle, pynvml.NVML_TEMPERATURE_GPU
    )


def _take_performance_state(fields: Fields) -> int | None:
    state = fields.take("performance_state", pynvml.nvmlDeviceGetPerformanceState, fields.handle)
    if state is None or state in _PERFORMANCE_STATES:
        return state
    fields.leave_out("performance_state", f"nvmlDeviceGetPerformanceState: {state}, unknown")
    return None


def _take_throttle_reasons(fields: Fields) -> tuple[str, ...] | None:
    bits = fields.take(
        "throttle_reasons", pynvml.nvmlDeviceGetCurrentClocksEventReasons, fields.handle
    )
    return None if bits is None else name_throttle_reasons(bits)


def _to_ratio(what: str, percent: int | None, fields: Fields) -> float | None:
    """Turn percent into a ratio; more than 100 % is no share of time."""
    if percent is None:
        return None
    if percent > 100:
        fields.leave_out(what, f"NVML says {percent} %, which is no share of time")
        return None
    return percent / 100


def _to_float(value: float | None) -> float | None:
    return None if value is None else float(value)


def _divide(value: float | None, divisor: float) -> float | None:
    return None if value is None else value / divisor


def _to_hertz(megahertz: int | None) -> float | None:
    return None if megahertz is None else megahertz * _HERTZ_PER_MEGAHERTZ
