"""Whether a job may be started on a machine, and if not, why.

Its own file because these are the hard rules: no score outweighs one. What is reserved and what is
observed count alike, whichever is more, so that a process of which nobody told is never started
upon. A value that is not known refuses a job only if the job depends on it. It must not know the
queue, nor any other machine.
Source: the specification of local control, section 3.2; of rack power, sections 6.2 and 6.3.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from esnode.placing.machine import GpuPlace, MachinePlace, Running, occupy
from esnode.placing.need import Need
from esnode.placing.packing import Packing, packings

MARGIN_CELSIUS_MIN = 8.0
"""Nearer to its slowdown a GPU gets no new work. Source: rack power, section 6.3."""
BASELINE_BYTES = 1024**3
"""What counts as the driver's own where no baseline is known: the drivers of the models that we
simulate reserve 479 to 717 MiB, and a context of CUDA alone takes some 300 MiB more."""
BASELINE_SLACK_BYTES = 64 * 1024**2
"""Above a known baseline: it moves with the driver's own bookkeeping (an estimate of ours)."""
BUSY_RATIO = 0.1
"""From here on a GPU is at work for somebody; below it, it may be a monitor's questions."""
GIB = 1024**3
LINES_MAX = 3
"""So many different reasons of GPUs are told in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One rule that forbids it."""

    what: str
    """Which: ``node``, ``rack``, ``gate``, ``cpu``, ``memory``, ``gpu`` or ``watts``."""
    line: str
    """One line for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What a machine says to a job: how it would go there, or why not."""

    packing: Packing | None = None
    """Where it would go; None where it may not."""
    refusals: tuple[Refusal, ...] = ()
    minimum_watts: Mapping[str, float] = field(default_factory=dict)
    """What each of those GPUs would be promised, by UUID; at the board."""
    added_watts: float = 0.0
    """What the machine's commitments grow by, at the inlet."""


def fit(need: Need, machine: MachinePlace) -> Fit:
    """All rules for one job and one machine."""
    refused = _machine_refusals(need, machine)
    reasons = [(gpu, gpu_refusal(need, gpu)) for gpu in machine.gpus] if need.gpu_count else []
    free = [gpu for gpu, reason in reasons if not reason]
    if len(free) < need.gpu_count:
        refused.append(_too_few(need, len(free), [reason for _, reason in reasons if reason]))
    if refused:
        return Fit(refusals=tuple(refused))
    first: Fit | None = None
    for packing in packings(need.gpu_count, free, machine.gpus):
        admitted = _admit(need, machine, packing)
        if admitted.packing is not None:
            return admitted
        first = first or admitted
    assert first is not None  # there was at least one packing, since enough are free
    return first


def free_gpus(need: Need, machine: MachinePlace) -> tuple[GpuPlace, ...]:
    """The GPUs of a machine that this job could be given now."""
    return tuple(gpu for gpu in machine.gpus if not gpu_refusal(need, gpu))


def usable_gpus(need: Need, machine: MachinePlace) -> tuple[GpuPlace, ...]:
    """Those that it could be given if nobody had them."""
    return tuple(gpu for gpu in machine.gpus if not _unsuitable(need, gpu))


def settle(need: Need, machine: MachinePlace, fitted: Fit, now: float) -> MachinePlace:
    """The machine with the job on it, as `fit` found it a place."""
    assert fitted.packing is not None
    return occupy(machine, _started(need, fitted.packing.gpus, now), fitted.minimum_watts)


def set_aside(need: Need, machine: MachinePlace, now: float) -> MachinePlace:
    """The machine with all that is free on it kept for a job that does not fit there yet."""
    gpus = free_gpus(need, machine)[: need.gpu_count]
    minimum = {gpu.uuid: _minimum_watts(need, gpu) or 0.0 for gpu in gpus}
    return occupy(machine, _started(need, gpus, now), minimum)


def gpu_refusal(need: Need, gpu: GpuPlace) -> str:
    """Why this job cannot have this GPU now; empty when it can."""
    return _unsuitable(need, gpu) or _taken(gpu)


def _started(need: Need, gpus: Sequence[GpuPlace], now: float) -> Running:
    return Running(
        job=need.job,
        gpus=tuple(gpu.uuid for gpu in gpus),
        cpu_count=need.cpu_count,
        memory_bytes=need.memory_bytes,
        priority=need.priority,
        started_at_seconds=now,
        ends_at_seconds=None if need.runs_for_seconds is None else now + need.runs_for_seconds,
    )


def _machine_refusals(need: Need, machine: MachinePlace) -> list[Refusal]:
    refused = []
    if need.nodes and machine.node not in need.nodes and machine.name not in need.nodes:
        line = f"{machine.shown} is not one of the nodes wanted: {', '.join(need.nodes)}"
        refused.append(Refusal(what="node", line=line))
    if need.racks and machine.rack not in need.racks:
        line = f"{machine.shown} is not in one of the racks wanted: {', '.join(need.racks)}"
        refused.append(Refusal(what="rack", line=line))
    if machine.is_draining:
        refused.append(Refusal(what="gate", line=f"{machine.shown} is draining"))
    if machine.gate_reason:
        line = f"{machine.shown} starts nothing: {machine.gate_reason}"
        refused.append(Refusal(what="gate", line=line))
    if machine.is_paused:
        refused.append(Refusal(what="gate", line=f"{machine.shown} is paused by its operator"))
    refused += _short("cpu", "CPUs", need.cpu_count, machine.cpu_free_count, machine.shown, 1)
    free = machine.memory_free_bytes
    refused += _short("memory", "GiB of memory", need.memory_bytes, free, machine.shown, GIB)
    return refused


def _short(
    what: str, noun: str, wanted: int, free: float | None, name: str, unit: int
) -> list[Refusal]:
    """A refusal where more is wanted than is free; nothing wanted is always there."""
    if not wanted:
        return []
    if free is None:
        line = f"needs {wanted / unit:g} {noun}; what {name} has is not known"
    elif wanted > free:
        line = f"needs {wanted / unit:.4g} {noun}; {name} has {free / unit:.4g} free"
    else:
        return []
    return [Refusal(what=what, line=line)]


def _unsuitable(need: Need, gpu: GpuPlace) -> str:
    """What would forbid it even if nobody had it."""
    if not gpu.is_up:
        return "does not answer"
    if need.gpu_models and not any(one.lower() in gpu.model.lower() for one in need.gpu_models):
        return f"is a {gpu.model}"
    if need.gpu_memory_bytes:
        if gpu.memory_total_bytes is None:
            return "does not tell how much memory it has"
        kept = gpu.memory_frozen_bytes
        if gpu.memory_total_bytes - kept < need.gpu_memory_bytes:
            frozen = f", {kept / GIB:.3g} of it frozen" if kept else ""
            return f"has {gpu.memory_total_bytes / GIB:.3g} GiB{frozen}"
    least, most = need.minimum_watts, gpu.highest_watts
    if least is not None and most is not None and least > most:
        return f"takes {most:.0f} W at most, less than the job's minimum"
    if not gpu.is_taking_work:
        return f"takes no work: {gpu.away_reason or 'its care says so'}"
    if gpu.margin_celsius is not None and gpu.margin_celsius < MARGIN_CELSIUS_MIN:
        return f"is {gpu.margin_celsius:.0f} C below its slowdown"
    return ""


def _taken(gpu: GpuPlace) -> str:
    """By what it shows to have been reserved, or to be in use."""
    if gpu.holders:
        return f"is held by {', '.join(gpu.holders)}"
    if gpu.foreign:
        return f"is used by {gpu.foreign}"
    used, busy = gpu.memory_used_bytes, gpu.utilization_ratio
    if used is None and busy is None:
        return "does not tell whether it is free"
    if used is not None and used > _empty_bytes_max(gpu):
        return f"has {used / GIB:.3g} GiB in use by nobody that is known"
    if busy is not None and busy >= BUSY_RATIO:
        return f"is {busy:.0%} busy for nobody that is known"
    return ""


def _empty_bytes_max(gpu: GpuPlace) -> int:
    if gpu.memory_baseline_bytes is None:
        return BASELINE_BYTES + gpu.memory_frozen_bytes
    return gpu.memory_baseline_bytes + BASELINE_SLACK_BYTES + gpu.memory_frozen_bytes


def _too_few(need: Need, free_count: int, reasons: Sequence[str]) -> Refusal:
    counts: dict[str, int] = {}
    for reason in reasons:
        counts[reason] = counts.get(reason, 0) + 1
    told = [f"{reason} ({count})" for reason, count in list(counts.items())[:LINES_MAX]]
    if len(counts) > LINES_MAX:
        told.append(f"other reasons ({sum(list(counts.values())[LINES_MAX:])})")
    why = f"; of the others: {', '.join(told)}" if told else ""
    line = f"needs {need.gpu_count} GPUs; {free_count} of {len(reasons) + free_count} are free{why}"
    return Refusal(what="gpu", line=line)


def _minimum_watts(need: Need, gpu: GpuPlace) -> float | None:
    """What it must be able to draw: never below the lowest limit, which nobody can take from it."""
    if need.minimum_watts is None:
        return gpu.lowest_watts
    return max(need.minimum_watts, gpu.lowest_watts or 0.0)


def _admit(need: Need, machine: MachinePlace, packing: Packing) -> Fit:
    """Whether the least that these GPUs must draw can be had beside what runs."""
    bound = machine.power.bound_watts
    minimum: dict[str, float] = {}
    added = 0.0
    for gpu in packing.gpus:
        watts = _minimum_watts(need, gpu)
        if watts is None and bound is not None:
            line = (
                f"the lowest limit of GPU {gpu.index} of {machine.shown} is not known, and the job"
                " states no minimum power: give it one"
            )
            return Fit(refusals=(Refusal(what="watts", line=line),))
        minimum[gpu.uuid] = watts or 0.0
        added += max(0.0, minimum[gpu.uuid] - (gpu.draw_watts or 0.0) - gpu.committed_watts)
    added /= machine.power.supply_efficiency_ratio
    if bound is not None and packing.gpus:
        committed = machine.committed_watts
        if committed is None:
            line = f"the draw of {machine.shown} is not known, so its cap cannot be kept"
            return Fit(refusals=(Refusal(what="watts", line=line),))
        if committed + added > bound:
            line = (
                f"needs {added:.0f} W more; {machine.shown} holds {committed:.0f} W and can have"
                f" {bound:.0f} W"
            )
            return Fit(refusals=(Refusal(what="watts", line=line),))
    return Fit(packing=packing, minimum_watts=minimum, added_watts=added)
