"""The predecessor's way of choosing a device for a task, for those who still ask in its shapes.

Its own file because it is kept for compatibility alone (`/orchestrator/submit`): its score adds
seconds, joules and gigabytes as they are, which `scoring` does not. Two of its faults are not kept:
equal scores go to the lowest id instead of to chance, and a value that is not known is none instead
of 0. It must not know HTTP.

    score = 1.0 perf - 0.7 energy - 0.5 load^2 - 0.3 GB
    perf = -seconds * (1.0, 0.7 or 0.4 for a latency class of high, medium, low)
    energy = watts * seconds

Source: the predecessor's behaviour, as the parity list records it (section 5.3).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

KINDS = ("cpu", "gpu", "npu", "memoryaccel")
LATENCY_WEIGHTS = {"high": 1.0, "medium": 0.7, "low": 0.4}
PERFORMANCE_WEIGHT = 1.0
ENERGY_WEIGHT = 0.7
LOAD_WEIGHT = 0.5
BYTES_WEIGHT = 0.3
LOAD_RATIO_MAX = 0.95
"""From here on a device takes nothing."""
TEMPERATURE_CELSIUS_MAX = 85.0
"""Above it a device takes nothing while thermal management is on."""
SPEED_RATIO_MIN = 0.1
"""A busy device is never counted as slower than this share of its peak."""
LOAD_STEP_RATIO = 0.2
"""What a task is assumed to add to the load, for the watts of it."""
LOAD_ADDED_RATIO_MAX = 0.5
"""The most that one task adds to the load of the device it is assigned to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What a task may run on."""

    id: str
    kind: str
    """One of `KINDS`."""
    peak_flops_tflops: float
    mem_gb: float
    power_watts_idle: float
    power_watts_max: float
    current_load: float
    """0..1."""
    temperature_celsius: float | None = None
    real_power_watts: float | None = None
    assigned_tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is to be run."""

    id: str
    est_flops: float
    est_bytes: float
    latency_class: str = "medium"
    """One of `LATENCY_WEIGHTS`."""
    preferred_kinds: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What becomes of a task."""

    status: str
    """``Assigned`` or ``Queued``."""
    assigned_device: str | None
    devices: tuple[Device, ...]
    """All of them, as they are with the task assigned."""


def score(task: Task, device: Device) -> float:
    """The predecessor's sum."""
    speed = device.peak_flops_tflops * 1e12 * max(SPEED_RATIO_MIN, 1.0 - device.current_load)
    seconds = task.est_flops / max(speed, 1e-6)
    performance = -seconds * LATENCY_WEIGHTS.get(task.latency_class, LATENCY_WEIGHTS["medium"])
    return (
        PERFORMANCE_WEIGHT * performance
        - ENERGY_WEIGHT * _watts(device) * seconds
        - LOAD_WEIGHT * device.current_load**2
        - BYTES_WEIGHT * task.est_bytes / 1e9
    )


def choose(task: Task, devices: Iterable[Device], *, is_thermal_on: bool = False) -> Device | None:
    """The device of the highest score that takes tasks; of equal ones the lowest id."""
    open_ones = [one for one in devices if _takes(task, one, is_thermal_on=is_thermal_on)]
    return min(open_ones, key=lambda one: (-score(task, one), one.id), default=None)


def submit(task: Task, devices: Sequence[Device], *, is_thermal_on: bool = False) -> Submission:
    """Assign a task, or leave it queued where no device takes it."""
    chosen = choose(task, devices, is_thermal_on=is_thermal_on)
    if chosen is None:
        return Submission(status="Queued", assigned_device=None, devices=tuple(devices))
    return Submission(
        status="Assigned",
        assigned_device=chosen.id,
        devices=tuple(assign(task, one) if one.id == chosen.id else one for one in devices),
    )


def assign(task: Task, device: Device) -> Device:
    """The device with one more task."""
    peak = device.peak_flops_tflops * 1e12
    added = min(task.est_flops / peak, LOAD_ADDED_RATIO_MAX) if peak > 0 else LOAD_ADDED_RATIO_MAX
    return replace(
        device,
        current_load=min(1.0, device.current_load + added),
        assigned_tasks=(*device.assigned_tasks, task.id),
    )


def _takes(task: Task, device: Device, *, is_thermal_on: bool) -> bool:
    if task.preferred_kinds and device.kind not in task.preferred_kinds:
        return False
    if device.current_load >= LOAD_RATIO_MAX:
        return False
    celsius = device.temperature_celsius
    return not (is_thermal_on and celsius is not None and celsius > TEMPERATURE_CELSIUS_MAX)


def _watts(device: Device) -> float:
    if device.real_power_watts is not None:
        return device.real_power_watts
    load = min(device.current_load + LOAD_STEP_RATIO, 1.0)
    return device.power_watts_idle + (device.power_watts_max - device.power_watts_idle) * load
