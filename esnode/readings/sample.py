"""One round of all sources: the latest value of each, when it was taken, how the source is doing.

Made by `esnode.collect` and by simulations; folded by `esnode.agent`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from esnode.readings.app import AppReading
from esnode.readings.gpu import GpuInventory, GpuReading
from esnode.readings.host import (
    CpuReading,
    DiskReading,
    FilesystemReading,
    MemoryReading,
    NetworkReading,
    NumaReading,
)
from esnode.readings.power import ChassisPowerReading, IpmiReading, PowerReading

T = TypeVar("T")

SourceState = Literal["pending", "ok", "failed", "stalled", "unavailable"]
"""``pending``: not asked yet. ``failed``: the last read went wrong. ``stalled``: a read has passed
its deadline and has not come back. ``unavailable``: this machine does not have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample(Generic[T]):
    """One value, and when it was taken."""

    value: T
    taken_at_seconds: float
    """Monotonic seconds at the start of the read."""
    stale_after_seconds: float
    """Age from which the value is no longer shown."""

    def fresh(self, now: float) -> T | None:
        """The value, unless it is too old to be shown."""
        return self.value if now - self.taken_at_seconds <= self.stale_after_seconds else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """How one source is doing: a collector, or one target of a fan-out collector."""

    collector: str
    target: str = ""
    """The mount point, GPU or endpoint; empty for a collector's own read."""
    state: SourceState = "pending"
    reason: str = ""
    """Why the state is not ``ok``: one line."""
    duration_seconds: float | None = None
    """Of the last finished read."""
    last_success_at_seconds: float | None = None
    """Monotonic time at which the last good read began."""
    last_error_at_seconds: float | None = None
    """Monotonic time at which the last read that failed, or passed its deadline, began."""
    stalled_since_seconds: float | None = None
    """Monotonic time at which the read that has not come back began."""
    interval_seconds: float = 0.0
    errors_total: int = 0
    stalls_total: int = 0
    """Reads that passed their deadline."""

    @property
    def name(self) -> str:
        """``cpu``, ``filesystem:/data``."""
        return f"{self.collector}:{self.target}" if self.target else self.collector


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The latest of everything. A missing entry has never been read."""

    sources: tuple[SourceStatus, ...] = ()
    disabled: tuple[str, ...] = ()
    """Collectors that the configuration turns off."""
    cpu: Sample[CpuReading] | None = None
    memory: Sample[MemoryReading] | None = None
    disk: Sample[DiskReading] | None = None
    network: Sample[NetworkReading] | None = None
    numa: Sample[NumaReading] | None = None
    power: Sample[PowerReading] | None = None
    ipmi: Sample[IpmiReading] | None = None
    chassis: Sample[ChassisPowerReading] | None = None
    gpu: Sample[GpuInventory] | None = None
    filesystems: Mapping[str, Sample[FilesystemReading]] = field(default_factory=dict)
    gpus: Mapping[str, Sample[GpuReading]] = field(default_factory=dict)
    apps: Mapping[str, Sample[AppReading]] = field(default_factory=dict)
