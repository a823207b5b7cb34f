"""How a node is, as its rack mates hear it each second, and how a rack is, as the others do.

Its own file because these are the nouns of everything that decides about watts and work. A value
that is not known is None, never 0. It must not know how they travel (`wire`).
"""

from dataclasses import dataclass, field

from cluster.ids import RackId
from cluster.rack.rows import Row
from cluster.rack.units import CurrencyId

GPUS_MAX = 16
FLAGS_MAX = 12
TEXT_CHARACTERS_MAX = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuDigest:
    """One GPU in a few bytes."""

    index: int
    is_up: bool
    power_draw_watts: float | None = None
    power_cap_watts: float | None = None
    """The limit that the device enforces now."""
    utilization_ratio: float | None = None
    memory_used_ratio: float | None = None
    temperature_celsius: float | None = None
    is_throttled: bool | None = None
    """Whether it holds its clocks back for a reason that costs work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """How one node is."""

    agent_version: str
    power_draw_watts: float | None = None
    power_draw_source: str = ""
    """Which meter: ``dcmi``, ``psu``, ``hwmon``, ``simulated`` or ``model``."""
    is_power_draw_estimated: bool = False
    power_draw_age_seconds: float | None = None
    """At the moment of sending."""
    power_cap_watts: float | None = None
    """What holds for the whole node; None where nothing does."""
    gpu_draw_watts: float | None = None
    gpu_cap_watts: float | None = None
    """What the GPUs' enforced limits come to; None where one is not known."""
    gpu_limit_watts: float | None = None
    """What their limits could be raised to by the hardware."""
    gpu_count: int | None = None
    """None where no driver answers; 0 where there are none."""
    gpu_healthy_count: int | None = None
    gpu_busy_count: int | None = None
    gpus: tuple[GpuDigest, ...] = ()
    """At most `GPUS_MAX`."""
    cpu_utilization_ratio: float | None = None
    memory_used_ratio: float | None = None
    temperature_max_celsius: float | None = None
    """Of the GPUs."""
    jobs_running_count: int | None = None
    degradation_score: int | None = None
    flags: tuple[str, ...] = ()
    loop_lag_seconds: float | None = None
    """How late this node's own loop was at worst in the last second."""
    power_rows: tuple[tuple[CurrencyId, Row], ...] = ()
    """Its accounts of rack power, with as many of their promises and credits as fit."""
    power_lowest_watts: float | None = None
    """What the whole machine can be held to; None where no device takes a limit."""
    power_highest_watts: float | None = None
    """What it can draw at most."""

    def gpu_mean(self, values: "tuple[float | None, ...]") -> float | None:
        """The mean of one value over the GPUs that have it."""
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if known else None

    @property
    def gpu_utilization_ratio(self) -> float | None:
        """Mean over the GPUs that tell."""
        return self.gpu_mean(tuple(gpu.utilization_ratio for gpu in self.gpus))

    @property
    def gpu_memory_used_ratio(self) -> float | None:
        """Mean over the GPUs that tell."""
        return self.gpu_mean(tuple(gpu.memory_used_ratio for gpu in self.gpus))


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """A sum over nodes, and over how many of them it is."""

    value: float | None = None
    """None where no node told; of those that did, the sum."""
    known_count: int = 0
    is_estimated: bool = False
    age_seconds: float | None = None
    """Of its oldest part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RackState:
    """How one rack is: a claim by its live node of lowest id, at the moment of sending."""

    rack: RackId
    counts: tuple[tuple[str, int], ...] = field(default=())
    """Nodes by state as the speaker sees them, by name of the state."""
    power_draw_watts: Total = field(default_factory=Total)
    power_cap_watts: Total = field(default_factory=Total)
    power_budget_watts: float | None = None
    gpu_count: int | None = None
    gpu_healthy_count: int | None = None
    gpu_busy_count: int | None = None
    temperature_max_celsius: float | None = None
    versions: tuple[tuple[str, int], ...] = ()


def count_of(counts: tuple[tuple[str, int], ...], name: str) -> int:
    """How many of a name; 0 for one that is not in it."""
    return dict(counts).get(name, 0)
