"""Readings for tests of the folds: a value, when it was taken, and sources that say so."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from esnode.readings.gpu import GpuInventory, GpuReading
from esnode.readings.host import CpuReading
from esnode.readings.power import PowerReading, RaplZoneReading
from esnode.readings.sample import Reading, Sample, SourceState, SourceStatus
from tests.snapshots import gpu_identity, gpu_uuid

T = TypeVar("T")

STALE_SECONDS = 17.0
"""Three intervals of 5 s and a deadline of 2 s, as the agent's defaults make it."""


def sample(value: T, at: float, *, stale: float = STALE_SECONDS) -> Sample[T]:
    return Sample(value=value, taken_at_seconds=at, stale_after_seconds=stale)


def source(name: str, state: SourceState = "ok", reason: str = "") -> SourceStatus:
    collector, _, target = name.partition(":")
    return SourceStatus(collector=collector, target=target, state=state, reason=reason)


def cpu_at(at: float, user: float, idle: float, *, cpus: int = 1) -> Sample[CpuReading]:
    """A processor whose time so far went to user and idle."""
    times = (user, 0.0, 0.0, idle, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    each = tuple((cpu, times) for cpu in range(cpus))
    return sample(CpuReading(mode_seconds=times, cpu_mode_seconds=each), at)


def zone(
    microjoules: int,
    *,
    path: str = "intel-rapl:0",
    name: str = "package",
    socket: int | None = 0,
    span: int | None = 262_143_328_850,
) -> RaplZoneReading:
    return RaplZoneReading(
        path=path,
        zone=name,
        socket=socket,
        energy_microjoules=microjoules,
        energy_range_microjoules=span,
    )


def zones_at(at: float, *zones: RaplZoneReading) -> Sample[PowerReading]:
    return sample(PowerReading(zones=zones), at)


def bare_gpu(index: int = 0, **fields: object) -> GpuReading:
    """A GPU that tells nothing but the fields given."""
    return replace(GpuReading(identity=gpu_identity(index)), **fields)  # type: ignore[arg-type]


def gpus_at(
    at: float,
    gpus: Mapping[int, GpuReading],
    *,
    states: Mapping[int, SourceStatus] | None = None,
    stale: float = STALE_SECONDS,
    found: int | None = None,
) -> Reading:
    """A round in which these GPUs (by index) were listed and read, of `found` that there are."""
    statuses = {index: source(f"gpu:{gpu_uuid(index)}") for index in gpus}
    statuses |= dict(states or {})
    inventory = GpuInventory(
        driver="nvml",
        gpus=tuple(gpu_identity(index) for index in sorted(statuses)),
        found_count=len(statuses) if found is None else found,
    )
    return Reading(
        sources=(source("gpu"), *statuses.values()),
        gpu=sample(inventory, at),
        gpus={gpu_uuid(index): sample(value, at, stale=stale) for index, value in gpus.items()},
    )
