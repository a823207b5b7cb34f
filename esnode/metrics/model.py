"""What a metric family is, and the small words with which the tables are written.

A family reads its samples from a `View`; a value of ``None`` is not served. There are no global
gauges, so a device that leaves takes its series with it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from esnode.readings.gpu import GpuReading
from esnode.readings.sample import SourceStatus
from esnode.snapshot import GpuState, Snapshot

Value = float | int | bool | None
Labels = tuple[str, ...]
Sample = tuple[Labels, Value]
Kind = Literal["gauge", "counter", "info"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStats:
    """What the agent says of itself: counted at the edges, so not part of a snapshot."""

    version: str = ""
    python_version: str = ""
    start_time_seconds: float | None = None
    """Unix time."""
    resident_memory_bytes: int | None = None
    cpu_seconds_total: float | None = None
    tick_lateness_seconds: float | None = None
    ticks_skipped_total: int = 0
    config_reloads_total: int = 0
    config_reload_failures_total: int = 0
    config_last_reload_successful: bool | None = None
    event_clients: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStats:
    """What the agent says of its cluster: counted at the edges, as far as it is in one."""

    identity: Labels
    """Cluster, its id, node, its id, rack."""
    members: tuple[Sample, ...] = ()
    """By state."""
    is_isolated: bool | None = None
    epoch: int | None = None
    health_score: int | None = None
    suspicions_total: int = 0
    refutations_total: int = 0
    failures_total: int = 0
    pauses_total: int = 0
    round_trip_median_seconds: float | None = None
    round_trip_max_seconds: float | None = None
    loop_lag_seconds: float | None = None
    signature_checks_total: int = 0
    operator_records: int = 0
    certificate_end_time_seconds: float | None = None
    """Unix time."""
    view_comparisons_total: tuple[Sample, ...] = ()
    state_ages_seconds: tuple[Sample, ...] = ()
    datagrams_total: tuple[Sample, ...] = ()
    datagram_bytes_total: tuple[Sample, ...] = ()
    datagram_errors_total: tuple[Sample, ...] = ()
    rejected_total: tuple[Sample, ...] = ()
    stream_requests_total: tuple[Sample, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStats:
    """The jobs of this node; None stands for what is not known."""

    states: tuple[Sample, ...] = ()
    """How many are in each state."""
    turns_total: tuple[Sample, ...] = ()
    """By turn."""
    energy_joules_total: float | None = None
    """Of the GPUs of jobs, while the agent ran."""
    has_trouble: bool | None = None
    """The journal cannot be read or written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RackPowerStats:
    """Rack power at this node and in its rack; None stands for what is not known."""

    state: str = ""
    cap_wanted_watts: int | None = None
    cap_watts: int | None = None
    bound_watts: int | None = None
    floor_watts: int | None = None
    demand_watts: int | None = None
    shares_watts: tuple[Sample, ...] = ()
    """By currency."""
    is_gate_open: bool | None = None
    is_refusing: bool | None = None
    throttle_watts: int | None = None
    has_disk_trouble: bool | None = None
    counts: tuple[tuple[str, int], ...] = ()
    budgets_watts: tuple[Sample, ...] = ()
    """By currency, as are those that follow."""
    floors_watts: tuple[Sample, ...] = ()
    grades: tuple[Sample, ...] = ()
    """By currency and grade: 1 for the one that holds."""
    stranded_watts: tuple[Sample, ...] = ()
    epochs: tuple[Sample, ...] = ()
    slots: tuple[Sample, ...] = ()
    """By currency and state."""

    def count(self, name: str) -> int:
        """How often something happened."""
        return dict(self.counts).get(name, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlStats:
    """What this node does by itself, in figures."""

    modes: tuple[Sample, ...] = ()
    """By feature and mode: 1 for the one that holds."""
    is_paused: tuple[Sample, ...] = ()
    """By feature."""
    actions_total: tuple[Sample, ...] = ()
    """By feature, mode and result."""
    skipped_total: tuple[Sample, ...] = ()
    """By feature and reason."""
    budgets_remaining: tuple[Sample, ...] = ()
    """By feature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All that a family may read."""

    snapshot: Snapshot
    agent: AgentStats = field(default_factory=AgentStats)
    cluster: ClusterStats | None = None
    """None where there is no cluster."""
    rack_power: RackPowerStats | None = None
    """None where no rack power is governed."""
    jobs: JobStats | None = None
    """None where this agent runs none."""
    control: ControlStats | None = None
    """None where this agent does nothing by itself."""
    hostname: str = ""
    is_per_core: bool = False
    is_per_process: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One family."""

    name: str
    kind: Kind
    help: str
    group: str
    """The collector it comes from: what `collect[]` selects."""
    read: Callable[[View], Iterable[Sample]]
    labels: Labels = ()
    is_basic: bool = False
    """Whether it belongs to the small set of `esnode metrics basic`."""

    @property
    def family(self) -> str:
        """The OpenMetrics family name, which leaves out the sample suffix."""
        if self.kind == "counter":
            return self.name.removesuffix("_total")
        return self.name.removesuffix("_info") if self.kind == "info" else self.name


Row = tuple[str, Kind, str, Callable[[View], Iterable[Sample]]]
"""(name without prefix, kind, help, read): one line of a table."""


def families(
    group: str, labels: Labels, *rows: Row, basic: frozenset[str] = frozenset()
) -> tuple[Metric, ...]:
    """The families of some rows that share their collector and labels."""
    return tuple(
        Metric(
            name=f"esnode_{name}",
            kind=kind,
            help=text,
            group=group,
            labels=labels,
            read=read,
            is_basic=name in basic,
        )
        for name, kind, text, read in rows
    )


def one(get: Callable[[Snapshot], Value]) -> Callable[[View], Iterable[Sample]]:
    """A family of one series without labels."""

    def read(view: View) -> Iterable[Sample]:
        return (((), get(view.snapshot)),)

    return read


def agent(get: Callable[[AgentStats], Value]) -> Callable[[View], Iterable[Sample]]:
    """A family of one series about the agent itself."""

    def read(view: View) -> Iterable[Sample]:
        return (((), get(view.agent)),)

    return read


def gpu(get: Callable[[GpuReading], Value]) -> Callable[[View], Iterable[Sample]]:
    """One series for each GPU that answers, labelled by UUID."""

    def read(view: View) -> Iterator[Sample]:
        for state in view.snapshot.gpus:
            if state.reading is not None:
                yield (state.uuid,), get(state.reading)

    return read


def gpu_state(get: Callable[[GpuState], Value]) -> Callable[[View], Iterable[Sample]]:
    """One series for each GPU, answering or not, labelled by UUID."""

    def read(view: View) -> Iterator[Sample]:
        for state in view.snapshot.gpus:
            yield (state.uuid,), get(state)

    return read


def gpu_each(
    expand: Callable[[GpuReading], Iterable[tuple[Labels, Value]]],
) -> Callable[[View], Iterable[Sample]]:
    """Several series for each GPU: UUID, then the labels that `expand` gives."""

    def read(view: View) -> Iterator[Sample]:
        for state in view.snapshot.gpus:
            if state.reading is not None:
                for labels, value in expand(state.reading):
                    yield (state.uuid, *labels), value

    return read


def each(expand: Callable[[Snapshot], Iterable[Sample]]) -> Callable[[View], Iterable[Sample]]:
    """Several series, as `expand` gives them."""

    def read(view: View) -> Iterable[Sample]:
        return expand(view.snapshot)

    return read


def source(
    get: Callable[[SourceStatus, float], Value],
) -> Callable[[View], Iterable[Sample]]:
    """One series for each source, by collector and target; `get` is also given the time."""

    def expand(snapshot: Snapshot) -> Iterator[Sample]:
        for status in snapshot.sources:
            yield (status.collector, status.target), get(status, snapshot.taken_at_seconds)

    return each(expand)


def as_text(value: object) -> str:
    """A label's text; unknown is the empty label."""
    return "" if value is None else str(value)
