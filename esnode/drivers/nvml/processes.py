"""Which processes hold a context on a device.

Its own file because it merges two lists and knows process names, which no other value does. The
names come from a reader that is handed in; NVML's own would need the process's namespace.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pynvml

from esnode.drivers.nvml.fields import Fields
from esnode.readings.gpu import GpuProcess, GpuReading

ReadName = Callable[[int], str | None]
"""Gives a process's name, or ``None`` for one that is gone or not visible."""


def add_processes(reading: GpuReading, fields: Fields, read_name: ReadName) -> GpuReading:
    """Add the processes.

    Raises:
        DeviceGone: as `Fields.take`.
    """
    return replace(reading, processes=_take_processes(fields, read_name, reading))


def _take_processes(
    fields: Fields, read_name: ReadName, reading: GpuReading
) -> tuple[GpuProcess, ...] | None:
    """List the processes, ascending by id; one that computes and draws is a compute process.

    ``None`` without the list of those that compute: those that draw alone would pass for all.
    """
    compute = fields.take(
        "processes.compute", pynvml.nvmlDeviceGetComputeRunningProcesses_v3, fields.handle
    )
    graphics = fields.take(
        "processes.graphics", pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3, fields.handle
    )
    if compute is None:
        return None
    computing = _sum_by_pid(compute, reading.memory_total_bytes)
    drawing = _sum_by_pid(graphics or (), reading.memory_total_bytes)
    return tuple(
        GpuProcess(
            pid=pid,
            kind="compute" if pid in computing else "graphics",
            name=read_name(pid),
            memory_used_bytes=_larger(computing.get(pid), drawing.get(pid)),
        )
        for pid in sorted({*computing, *drawing})
    )


def _sum_by_pid(
    entries: Iterable[pynvml.nvmlFriendlyObject], memory_total_bytes: int | None
) -> dict[int, int | None]:
    """Add up a process's entries: it has one for each MIG instance that it uses."""
    used_of: dict[int, int | None] = {}
    for entry in entries:
        used = entry.usedGpuMemory
        if used is not None and memory_total_bytes is not None and used > memory_total_bytes:
            # More than the device has: the driver's struct is not the one we asked for.
            used = None
        if entry.pid in used_of:
            known = used_of[entry.pid]
            used = None if used is None or known is None else used + known
        used_of[entry.pid] = used
    return used_of


def _larger(one: int | None, other: int | None) -> int | None:
    """Both lists name the whole memory of the process, so they are not added up."""
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)
