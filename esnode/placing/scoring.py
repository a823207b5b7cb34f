"""Which of the machines that may take a job should.

Its own file because a score is advice, and one wants to see how it came about. Each term is brought
to 0..1 over the candidates, so that no unit outweighs another by accident; a term that is not known
for a candidate is the worst there is for it, and printed as ``-``. Ties go to the lowest node id.
It must not know why a machine is no candidate (`fitting`).
Source: the specification of rack power, section 6.2; of local control, section 3.2, scoring.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from esnode.placing.curves import CURVES, peak_work
from esnode.placing.fitting import Fit
from esnode.placing.machine import GpuPlace, MachinePlace
from esnode.placing.need import Need


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One thing that speaks for a machine."""

    unit: str
    weight: float
    least_span: float
    """Differences below this are worth less than a whole point: noise is not blown up."""
    is_relative: bool = False
    """Whether that span is a ratio of the best value instead."""
    is_less_better: bool = False


TERMS: dict[str, Term] = {
    "work per watt": Term(unit="H100/kW", weight=1.0, least_span=0.5, is_relative=True),
    "speed": Term(unit="H100", weight=0.3, least_span=0.5, is_relative=True),
    "free watts": Term(unit="W", weight=0.3, least_span=1000.0),
    "thermal margin": Term(unit="C", weight=0.2, least_span=20.0),
    "data here": Term(unit="GiB", weight=0.4, least_span=1.0),
    "stranded": Term(unit="GPUs", weight=0.3, least_span=4.0, is_less_better=True),
    "to be moved": Term(unit="GiB", weight=0.5, least_span=1.0, is_less_better=True),
    "flaps": Term(unit="", weight=0.5, least_span=1.0, is_less_better=True),
}
"""The weights and spans. Source: the order of the terms is the specification's; the figures are
ours, tried out with the benchmark of placement (`tests/benchmarks/placement`) so that work per watt
decides among machines that are alike in the rest."""

SPEED_WEIGHTS = {"low": 0.1, "medium": 0.3, "high": 1.0}
"""Of ``speed``, by how much it matters to the job that it ends soon. Source: the ratio of highest
to lowest is ours; the predecessor weighs time by 1.0, 0.7 and 0.4."""

GIB = 1024**3
Raw = tuple[float | None, ...]
"""One value for each of `TERMS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A machine that may take the job, and what speaks for it."""

    machine: MachinePlace
    fitted: Fit
    raw: Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class TermRow:
    """One term of one candidate, to be printed."""

    node: str
    term: str
    raw: float | None
    unit: str
    normalised_ratio: float
    weight: float

    @property
    def contribution(self) -> float:
        """What it adds to the score."""
        return self.weight * self.normalised_ratio

    def cells(self) -> tuple[str, ...]:
        """As texts; an unknown value is a dash."""
        raw = "-" if self.raw is None else f"{self.raw:.3g} {self.unit}".rstrip()
        figures = (self.normalised_ratio, self.weight, self.contribution)
        return (self.node, self.term, raw, *(f"{one:.2f}" for one in figures))


def candidate(need: Need, machine: MachinePlace, fitted: Fit) -> Candidate:
    """What speaks for a machine on which the job has a place."""
    assert fitted.packing is not None
    gpus = fitted.packing.gpus
    free = _free_watts(machine, fitted)
    work, watts = _work_and_watts(need, machine, fitted, free)
    margins = [gpu.margin_celsius for gpu in gpus if gpu.margin_celsius is not None]
    return Candidate(
        machine=machine,
        fitted=fitted,
        raw=(
            None if work is None or not watts else 1000.0 * work / watts,
            work,
            free,
            min(margins) if gpus and len(margins) == len(gpus) else None,
            _resident_gib(need, machine),
            float(fitted.packing.stranded_change_count),
            _moved_gib(need, machine),
            machine.flap_score,
        ),
    )


def scores(need: Need, candidates: Sequence[Candidate]) -> list[float]:
    """The score of each, in their order."""
    totals = [0.0] * len(candidates)
    for number, (name, term) in enumerate(TERMS.items()):
        weight = _weight(need, name, term)
        for place, ratio in enumerate(_normalised([one.raw[number] for one in candidates], term)):
            totals[place] += weight * ratio
    return totals


def best(need: Need, candidates: Sequence[Candidate]) -> int:
    """Which of them: the highest score, and of equal ones the lowest node id."""
    totals = scores(need, candidates)
    places = range(len(candidates))
    return min(places, key=lambda place: (-totals[place], candidates[place].machine.node))


def explain(need: Need, candidates: Sequence[Candidate]) -> tuple[TermRow, ...]:
    """Every term of every candidate, the best candidate first."""
    totals = scores(need, candidates)
    columns = [
        _normalised([one.raw[number] for one in candidates], term)
        for number, term in enumerate(TERMS.values())
    ]
    order = sorted(
        range(len(candidates)), key=lambda at: (-totals[at], candidates[at].machine.node)
    )
    return tuple(
        TermRow(
            node=candidates[place].machine.node,
            term=name,
            raw=candidates[place].raw[number],
            unit=term.unit,
            normalised_ratio=columns[number][place],
            weight=_weight(need, name, term),
        )
        for place in order
        for number, (name, term) in enumerate(TERMS.items())
    )


def _weight(need: Need, name: str, term: Term) -> float:
    return SPEED_WEIGHTS.get(need.latency, term.weight) if name == "speed" else term.weight


def _normalised(values: Sequence[float | None], term: Term) -> list[float]:
    """1 for the best, 0 for the worst and for the unknown; nearer together if they hardly differ.

    Where none is known, nothing speaks for any of them.
    """
    sign = -1.0 if term.is_less_better else 1.0
    known = [sign * value for value in values if value is not None]
    if not known:
        return [0.0] * len(values)
    highest = max(known)
    least = term.least_span * abs(highest) if term.is_relative else term.least_span
    span = max(highest - min(known), least)
    if span <= 0:
        return [0.0 if value is None else 1.0 for value in values]
    return [
        0.0 if value is None else min(1.0, max(0.0, 1.0 - (highest - sign * value) / span))
        for value in values
    ]


def _work_and_watts(
    need: Need, machine: MachinePlace, fitted: Fit, free_watts: float | None
) -> tuple[float | None, float | None]:
    """What the job would get done a second with the watts on offer, and what it adds to the draw.

    A job on several GPUs goes at the pace of the slowest.
    """
    assert fitted.packing is not None
    gpus = fitted.packing.gpus
    extra = _extra_watts(machine, len(gpus), free_watts)
    slowest: float | None = None
    added = 0.0
    for gpu in gpus:
        peak, highest = peak_work(gpu.model, need.load), gpu.highest_watts
        wanted = _wanted_watts(need, gpu)
        if peak is None or not highest or wanted is None:
            return None, None
        offered = min(wanted, fitted.minimum_watts[gpu.uuid] + extra)
        ratio = CURVES[need.load].work_ratio(offered / highest)
        slowest = peak * ratio if slowest is None else min(slowest, peak * ratio)
        rest = gpu.idle_watts if gpu.idle_watts is not None else gpu.draw_watts
        added += max(0.0, offered - (rest or 0.0))
    if slowest is None:
        return None, None
    return slowest * len(gpus), added / machine.power.supply_efficiency_ratio


def _free_watts(machine: MachinePlace, fitted: Fit) -> float | None:
    """What nobody would use, at the inlet, once the job has its least; below 0 others give way."""
    bound, committed, spare = (
        machine.power.bound_watts,
        machine.committed_watts,
        machine.power.spare_watts,
    )
    if bound is None or committed is None:
        return None
    return (bound - committed if spare is None else spare) - fitted.added_watts


def _extra_watts(machine: MachinePlace, gpu_count: int, free_watts: float | None) -> float:
    """What each of the job's GPUs could have beyond the promise; without a bound, anything."""
    if free_watts is None:
        return float("inf")
    each = max(0.0, free_watts) / max(1, gpu_count)
    return each * machine.power.supply_efficiency_ratio


def _wanted_watts(need: Need, gpu: GpuPlace) -> float | None:
    """What the job would draw on it, unhindered."""
    highest = gpu.highest_watts
    knee = None if highest is None else CURVES[need.load].knee_ratio * highest
    told = need.expected_watts if need.expected_watts is not None else gpu.expected_watts
    wanted = knee if told is None else told
    if wanted is None or highest is None:
        return wanted
    return min(wanted, highest)


def _resident_gib(need: Need, machine: MachinePlace) -> float | None:
    if machine.resident is None:
        return None
    return sum(machine.resident.get(path, 0) for path in need.data) / GIB


def _moved_gib(need: Need, machine: MachinePlace) -> float:
    return 0.0 if need.state_node == machine.node else need.state_bytes / GIB
