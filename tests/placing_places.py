"""Machines and jobs as placement sees them, for its tests."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from esnode.placing.machine import GpuPlace, MachinePlace, PowerPlace, Running
from esnode.placing.need import Need

GIB = 1024**3
H100 = "NVIDIA H100 80GB HBM3"


def gpu(index: int = 0, **values: Any) -> GpuPlace:
    """A free H100, on the island and NUMA node of its half of the machine."""
    made = GpuPlace(
        uuid=f"g{index}",
        index=index,
        model=H100,
        numa_node=index // 4,
        island=index // 4,
        switch=index // 2,
        memory_total_bytes=80 * GIB,
        memory_used_bytes=GIB // 2,
        memory_baseline_bytes=GIB // 2,
        utilization_ratio=0.0,
        margin_celsius=40.0,
        draw_watts=70.0,
        idle_watts=70.0,
        lowest_watts=200.0,
        highest_watts=700.0,
    )
    return replace(made, **values)


def gpus(count: int = 8, **values: Any) -> tuple[GpuPlace, ...]:
    return tuple(gpu(index, **values) for index in range(count))


def machine(
    node: str = "n1", places: Iterable[GpuPlace] | None = None, **values: Any
) -> MachinePlace:
    """A machine with room for everything."""
    made = MachinePlace(
        node=node,
        rack="r1",
        gpus=gpus() if places is None else tuple(places),
        cpu_count=64,
        memory_total_bytes=1024 * GIB,
        memory_available_bytes=1000 * GIB,
        power=PowerPlace(draw_watts=2000.0, obtainable_watts=9000.0, supply_efficiency_ratio=1.0),
    )
    return replace(made, **values)


def need(job: str = "new", gpu_count: int = 1, **values: Any) -> Need:
    return replace(Need(job=job, gpu_count=gpu_count), **values)


def running(job: str, *indexes: int, **values: Any) -> Running:
    """A preemptible job that saves when asked, on GPUs of these indexes."""
    made = Running(
        job=job,
        gpus=tuple(f"g{index}" for index in indexes),
        priority=2,
        started_priority=2,
        is_preemptible=True,
        has_checkpoint=True,
    )
    return replace(made, **values)


def with_jobs(place: MachinePlace, *jobs: Running) -> MachinePlace:
    """The machine with these jobs on it, each GPU of theirs at 600 W and nearly full."""
    held = {uuid: job.job for job in jobs for uuid in job.gpus}
    places = tuple(
        replace(
            one,
            holders=(*one.holders, held[one.uuid]),
            memory_used_bytes=70 * GIB,
            utilization_ratio=1.0,
            draw_watts=600.0,
        )
        if one.uuid in held
        else one
        for one in place.gpus
    )
    return replace(
        place,
        gpus=places,
        running=(*place.running, *jobs),
        cpu_reserved_count=place.cpu_reserved_count + sum(job.cpu_count for job in jobs),
        memory_reserved_bytes=place.memory_reserved_bytes + sum(job.memory_bytes for job in jobs),
    )
