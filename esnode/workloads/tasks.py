"""The predecessor's devices and tasks, for programs that still speak its shapes.

Pure. Its own file because it is kept for compatibility alone. This machine's GPUs are devices from
the start; others can be registered. A task that names a command becomes a job, see `job_spec_of`;
one that names none is placed and answered, as it always was. It must not know HTTP.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from esnode.placing.curves import PEAKS
from esnode.placing.devices import KINDS, LATENCY_WEIGHTS, Device, Submission, Task, submit
from esnode.snapshot import GpuState, Snapshot
from esnode.workloads.spec import JobSpec
from esnode.workloads.spec_reading import SpecRefused, spec_of

DEVICES_MAX = 1000
PENDING_MAX = 1000
_NUMBERS = (
    "peak_flops_tflops",
    "mem_gb",
    "power_watts_idle",
    "power_watts_max",
    "current_load",
)


class TaskRefused(Exception):
    """A body is no device, or no task; one line."""


class Tasks:
    """What was registered, and what waits."""

    def __init__(self) -> None:
        self._devices: dict[str, Device] = {}
        self._pending: dict[str, Task] = {}

    @property
    def pending(self) -> tuple[str, ...]:
        """Ids of tasks that no device takes."""
        return tuple(self._pending)

    def register(self, body: Mapping[str, Any]) -> Device:
        """Take in a device, in the place of one of the same id.

        Raises:
            TaskRefused: it is none.
        """
        device = read_device(body)
        if device.id not in self._devices and len(self._devices) >= DEVICES_MAX:
            raise TaskRefused(f"there are {DEVICES_MAX} devices already")
        self._devices[device.id] = device
        return device

    def devices(self, snapshot: Snapshot | None) -> tuple[Device, ...]:
        """The GPUs of this machine, and what was registered."""
        own = [] if snapshot is None else list(filter(None, map(_own_device, snapshot.gpus)))
        names = {one.id for one in own}
        return (*own, *(one for one in self._devices.values() if one.id not in names))

    def submit(self, task: Task, snapshot: Snapshot | None, *, is_thermal_on: bool) -> Submission:
        """Place a task, or keep it until a device takes it."""
        self._try_pending(snapshot, is_thermal_on=is_thermal_on)
        result = submit(task, self.devices(snapshot), is_thermal_on=is_thermal_on)
        if result.assigned_device is None:
            if task.id not in self._pending and len(self._pending) >= PENDING_MAX:
                raise TaskRefused(f"{PENDING_MAX} tasks wait already")
            self._pending[task.id] = task
        self._keep(result.devices)
        return result

    def _try_pending(self, snapshot: Snapshot | None, *, is_thermal_on: bool) -> None:
        for task in list(self._pending.values()):
            result = submit(task, self.devices(snapshot), is_thermal_on=is_thermal_on)
            if result.assigned_device is not None:
                del self._pending[task.id]
                self._keep(result.devices)

    def _keep(self, devices: Iterable[Device]) -> None:
        for one in devices:
            if one.id in self._devices:
                self._devices[one.id] = one


def read_device(body: Mapping[str, Any]) -> Device:
    """The device that a body describes.

    Raises:
        TaskRefused: it describes none.
    """
    values = {name: _number(body, name) for name in _NUMBERS}
    kind = body.get("kind", "gpu")
    if not isinstance(kind, str) or kind.lower() not in KINDS:
        raise TaskRefused(f"kind: one of {', '.join(KINDS)}")
    tasks = body.get("assigned_tasks", [])
    if not isinstance(tasks, list) or not all(isinstance(one, str) for one in tasks):
        raise TaskRefused("assigned_tasks: a list of ids")
    if not 0 <= values["current_load"] <= 1:
        raise TaskRefused("current_load: 0 to 1")
    return Device(
        id=_id(body),
        kind=kind.lower(),
        temperature_celsius=_number(body, "temperature_celsius", None),
        real_power_watts=_number(body, "real_power_watts", None),
        assigned_tasks=tuple(tasks),
        **values,
    )


def read_task(body: Mapping[str, Any]) -> Task:
    """The task that a body describes.

    Raises:
        TaskRefused: it describes none.
    """
    latency = str(body.get("latency_class", "medium")).lower()
    if latency not in LATENCY_WEIGHTS:
        raise TaskRefused(f"latency_class: one of {', '.join(LATENCY_WEIGHTS)}")
    kinds = body.get("preferred_kinds")
    if kinds is not None and not (
        isinstance(kinds, list) and all(isinstance(one, str) for one in kinds)
    ):
        raise TaskRefused(f"preferred_kinds: a list of {', '.join(KINDS)}")
    return Task(
        id=_id(body),
        est_flops=_number(body, "est_flops"),
        est_bytes=_number(body, "est_bytes", 0.0) or 0.0,
        latency_class=latency,
        preferred_kinds=None if kinds is None else tuple(one.lower() for one in kinds),
    )


def job_spec_of(body: Mapping[str, Any], task: Task) -> JobSpec | None:
    """The job that a task is; None for one that names no command.

    Raises:
        TaskRefused: its command is none.
    """
    command = body.get("command")
    if command is None:
        return None
    kinds = task.preferred_kinds or ()
    name = re.sub(r"[^a-z0-9._-]+", "-", task.id.lower()).strip("-._")[:63] or "task"
    document: dict[str, Any] = {
        "name": name,
        "command": command,
        "latency": task.latency_class,
        "devices": {"gpu": 1 if "gpu" in kinds or not kinds else 0},
    }
    try:
        return spec_of(document)
    except SpecRefused as refused:
        raise TaskRefused("; ".join(refused.lines)) from None


def document_of_device(device: Device) -> dict[str, Any]:
    """A device in the predecessor's shape."""
    return {**asdict(device), "assigned_tasks": list(device.assigned_tasks)}


def _own_device(gpu: GpuState) -> Device | None:
    """A GPU of this machine; None where it does not say what the shape cannot leave out."""
    reading = gpu.reading
    if reading is None or reading.utilization_ratio is None:
        return None
    maximum, memory = reading.power_limit_max_watts, reading.memory_total_bytes
    draw = reading.power_watts
    if maximum is None or memory is None or draw is None:
        return None
    name = reading.identity.name.lower()
    peaks = [peak.tensor_teraflops_per_second for key, peak in PEAKS.items() if key in name]
    if not peaks:
        return None
    return Device(
        id=gpu.uuid,
        kind="gpu",
        peak_flops_tflops=peaks[0],
        mem_gb=memory / 1e9,
        power_watts_idle=min(draw, reading.power_limit_min_watts or maximum),
        power_watts_max=maximum,
        current_load=min(1.0, max(0.0, reading.utilization_ratio)),
        temperature_celsius=reading.temperature_celsius,
        real_power_watts=draw,
    )


def with_tasks(devices: Sequence[Device], held: Mapping[str, str]) -> tuple[Device, ...]:
    """Devices with the jobs that have them."""
    return tuple(
        replace(one, assigned_tasks=(held[one.id],)) if one.id in held else one for one in devices
    )


def _id(body: Mapping[str, Any]) -> str:
    value = body.get("id")
    if not isinstance(value, str) or not value or len(value) > 200:
        raise TaskRefused("id: a text is needed")
    return value


_NEEDED = object()


def _number(body: Mapping[str, Any], name: str, default: Any = _NEEDED) -> Any:
    value = body.get(name)
    if value is None:
        if default is _NEEDED:
            raise TaskRefused(f"{name}: a number is needed")
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise TaskRefused(f"{name}: {value!r} is no number")
    return float(value)
