"""One node at one instant: what was read, and what follows from it. Everything is served from here.

A part is ``None`` when it was never read, failed, or is too old; a value inside it is ``None`` when
it is unknown. Totals never go backwards while the agent runs.
"""

from dataclasses import dataclass, field

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
from esnode.readings.power import IpmiReading, PowerReading
from esnode.readings.sample import SourceStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuUsage:
    """Utilisation between the last two samples; time in idle and iowait is not use."""

    utilization_ratio: float | None = None
    core_utilization_ratios: tuple[tuple[int, float], ...] = ()
    node_utilization_ratios: tuple[tuple[int, float], ...] = ()
    """(NUMA node, ratio); nodes without CPUs are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUsage:
    """One block device between the last two samples."""

    device: str
    busy_ratio: float | None = None
    latency_seconds: float | None = None
    """Mean time of the requests that ended in the interval; ``None`` when none did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfaceUsage:
    """One interface between the last two samples."""

    interface: str
    receive_bytes_per_second: float | None = None
    transmit_bytes_per_second: float | None = None
    drops_per_second: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RatesState:
    """Rates of the host between the last two samples."""

    disks: tuple[DiskUsage, ...] = ()
    interfaces: tuple[InterfaceUsage, ...] = ()
    tcp_retransmission_ratio: float | None = None
    """Segments sent again per segment sent; ``None`` when too few were sent to tell."""
    swap_pages_per_second: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RaplZoneState:
    """One RAPL zone with its wraps undone."""

    path: str
    zone: str
    socket: int | None
    power_watts: float | None
    energy_joules_total: float
    """Since the agent first read the zone: the hardware's own counter wraps within minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePower:
    """The draw of the whole machine, by the best meter that answered."""

    power_watts: float
    source: str
    """``dcmi``, ``psu``, ``hwmon``, ``simulated`` or ``model``."""
    is_estimated: bool
    """Whether it is the documented model and not a meter."""
    age_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerState:
    """Power of the node and of its processors."""

    node: NodePower | None = None
    node_energy_joules_total: float | None = None
    """Integral of the node's power since the agent started; gaps are left out, not filled."""
    zones: tuple[RaplZoneState, ...] = ()
    energy_cost_total: float | None = None
    """In the configured currency; ``None`` without a tariff."""
    energy_cost_currency: str = ""
    carbon_grams_total: float | None = None
    envelope_watts: float | None = None
    is_envelope_exceeded: bool | None = None
    """``None`` when there is no envelope or no power to compare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuState:
    """One GPU: its reading, and what the agent has counted of it."""

    uuid: str
    is_up: bool
    """Whether it answered recently. When not, `reading` is ``None``."""
    reason: str = ""
    """Why it is not up."""
    index: int | None = None
    reading: GpuReading | None = None
    age_seconds: float | None = None
    throttle_seconds_total: tuple[tuple[str, float], ...] = ()
    """(reason, seconds active) since the agent started."""
    energy_joules_total: float | None = None
    energy_source: str = ""
    """``counter`` (the device's own) or ``integrated`` (power over time)."""
    has_new_ecc_errors: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AppState:
    """The work of all application endpoints together, over one window."""

    endpoints: tuple[AppReading, ...] = ()
    tokens_per_second: float | None = None
    tokens_per_joule: float | None = None
    """Tokens over the node's energy in the same window; ``None`` when either is unknown."""
    cost_per_million_tokens: float | None = None
    carbon_grams_per_token: float | None = None
    window_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One sign that the node does less than it could."""

    kind: str
    """One of `esnode.diagnose.KINDS`."""
    subject: str
    """The device, interface or GPU; empty for the whole node."""
    detail: str
    """One line with the figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthState:
    """What is wrong with the node's performance now."""

    flags: tuple[Flag, ...] = ()
    score: int = 0
    """How many kinds of flag are raised; 0 is healthy."""

    def has(self, kind: str, subject: str = "") -> bool:
        """Whether a flag of this kind is raised, for one subject or for the node."""
        return any(
            flag.kind == kind and (not subject or flag.subject == subject) for flag in self.flags
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The whole node."""

    taken_at_seconds: float
    """Monotonic time of the tick."""
    sequence: int
    """Number of the tick."""
    sources: tuple[SourceStatus, ...] = ()
    disabled: tuple[str, ...] = ()
    cpu: CpuReading | None = None
    cpu_usage: CpuUsage = field(default_factory=CpuUsage)
    memory: MemoryReading | None = None
    disk: DiskReading | None = None
    filesystems: tuple[FilesystemReading, ...] = ()
    network: NetworkReading | None = None
    rates: RatesState = field(default_factory=RatesState)
    numa: NumaReading | None = None
    power_reading: PowerReading | None = None
    ipmi: IpmiReading | None = None
    power: PowerState = field(default_factory=PowerState)
    gpu_inventory: GpuInventory | None = None
    gpus: tuple[GpuState, ...] = ()
    app: AppState = field(default_factory=AppState)
    health: HealthState = field(default_factory=HealthState)
    tags: tuple[tuple[str, str], ...] = ()
