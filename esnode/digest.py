"""What this node tells its rack each second: a snapshot in a few hundred bytes.

Its own file because it is the line between what an agent knows and what its peers are told. Pure. A
value that is too old to be shown is not told either. It must not know how it travels.
"""

from cluster.rack.model import GPUS_MAX, GpuDigest, NodeState
from esnode.readings.gpu import HARMFUL_THROTTLE_REASONS
from esnode.snapshot import GpuState, Snapshot

BUSY_RATIO = 0.05
"""A GPU that works less than this is idle."""


def digest(snapshot: Snapshot, *, agent_version: str, loop_lag_seconds: float | None) -> NodeState:
    """How the node of this snapshot is."""
    power = snapshot.power.node
    gpus = tuple(_gpu(state) for state in snapshot.gpus)
    is_told = snapshot.gpu_inventory is not None
    memory = snapshot.memory
    temperatures = [gpu.temperature_celsius for gpu in gpus if gpu.temperature_celsius is not None]
    return NodeState(
        agent_version=agent_version,
        power_draw_watts=None if power is None else power.power_watts,
        power_draw_source="" if power is None else power.source,
        is_power_draw_estimated=power is not None and power.is_estimated,
        power_draw_age_seconds=None if power is None else power.age_seconds,
        gpu_draw_watts=_sum(tuple(gpu.power_draw_watts for gpu in gpus)),
        gpu_cap_watts=_sum(tuple(gpu.power_cap_watts for gpu in gpus)),
        gpu_limit_watts=_sum(tuple(_limit(state) for state in snapshot.gpus)),
        gpu_count=_gpu_count(snapshot),
        gpu_healthy_count=sum(gpu.is_up for gpu in gpus) if is_told else None,
        gpu_busy_count=sum(_is_busy(gpu) for gpu in gpus) if is_told else None,
        gpus=gpus[:GPUS_MAX],
        cpu_utilization_ratio=snapshot.cpu_usage.utilization_ratio,
        memory_used_ratio=_memory_ratio(memory.total_bytes, memory.available_bytes)
        if memory
        else None,
        temperature_max_celsius=max(temperatures, default=None),
        degradation_score=snapshot.health.score,
        flags=_flags(snapshot),
        loop_lag_seconds=loop_lag_seconds,
    )


def _gpu(state: GpuState) -> GpuDigest:
    reading = state.reading
    if reading is None:
        return GpuDigest(index=state.index or 0, is_up=state.is_up)
    reasons = reading.throttle_reasons
    return GpuDigest(
        index=state.index or 0,
        is_up=state.is_up,
        power_draw_watts=reading.power_watts,
        power_cap_watts=reading.power_limit_enforced_watts,
        utilization_ratio=reading.utilization_ratio,
        memory_used_ratio=_ratio(reading.memory_used_bytes, reading.memory_total_bytes),
        temperature_celsius=reading.temperature_celsius,
        is_throttled=None
        if reasons is None
        else any(reason in HARMFUL_THROTTLE_REASONS for reason in reasons),
    )


def _gpu_count(snapshot: Snapshot) -> int | None:
    inventory = snapshot.gpu_inventory
    return None if inventory is None else max(inventory.found_count, len(snapshot.gpus))


def _is_busy(gpu: GpuDigest) -> bool:
    return gpu.utilization_ratio is not None and gpu.utilization_ratio >= BUSY_RATIO


def _limit(state: GpuState) -> float | None:
    return None if state.reading is None else state.reading.power_limit_max_watts


def _sum(values: tuple[float | None, ...]) -> float | None:
    """Of all or of none: a part would look like the whole."""
    known = [value for value in values if value is not None]
    return sum(known) if values and len(known) == len(values) else None


def _ratio(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else part / whole


def _memory_ratio(total: int | None, available: int | None) -> float | None:
    return None if available is None or not total else 1.0 - available / total


def _flags(snapshot: Snapshot) -> tuple[str, ...]:
    kinds = [flag.kind for flag in snapshot.health.flags]
    if snapshot.power.is_envelope_exceeded:
        kinds.append("over_envelope")
    if any(status.state == "stalled" for status in snapshot.sources):
        kinds.append("stalled_source")
    return tuple(dict.fromkeys(kinds))
