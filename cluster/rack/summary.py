"""What the states of a rack's nodes come to.

Its own file because the speaker of a rack, `cluster status` on any of its nodes and the simulations
must add up alike. A node that did not tell is not counted as 0: each sum says over how many nodes
it is. It must not know who asks.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cluster.ids import RackId
from cluster.rack.model import NodeState, RackState, Total


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """One node of the rack as somebody sees it."""

    status: str
    """By membership: ``alive``, ``suspect`` ..."""
    state: NodeState | None
    age_seconds: float | None
    """Since the state came."""


def summarise(
    rack: RackId, nodes: Sequence[Heard], *, budget_watts: float | None = None
) -> RackState:
    """The rack at one instant; nodes that are gone count by state, and with nothing else."""
    here = [one for one in nodes if one.status in ("alive", "degraded", "suspect")]
    states = [one.state for one in here if one.state is not None]
    temperatures = [
        state.temperature_max_celsius
        for state in states
        if state.temperature_max_celsius is not None
    ]
    return RackState(
        rack=rack,
        counts=_counted(one.status for one in nodes),
        power_draw_watts=_total(
            (
                one.state.power_draw_watts,
                one.state.is_power_draw_estimated,
                _age(one.age_seconds, one.state.power_draw_age_seconds),
            )
            for one in here
            if one.state is not None
        ),
        power_cap_watts=_total(
            (one.state.power_cap_watts, False, one.age_seconds)
            for one in here
            if one.state is not None
        ),
        power_budget_watts=budget_watts,
        gpu_count=_sum(state.gpu_count for state in states),
        gpu_healthy_count=_sum(state.gpu_healthy_count for state in states),
        gpu_busy_count=_sum(state.gpu_busy_count for state in states),
        temperature_max_celsius=max(temperatures, default=None),
        versions=_counted(state.agent_version for state in states),
    )


def _counted(names: Iterable[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(Counter(names).items()))


def _age(heard_seconds: float | None, told_seconds: float | None) -> float | None:
    if heard_seconds is None or told_seconds is None:
        return None
    return heard_seconds + told_seconds


def _total(parts: Iterable[tuple[float | None, bool, float | None]]) -> Total:
    known = [(value, guess, age) for value, guess, age in parts if value is not None]
    ages = [age for _, _, age in known if age is not None]
    return Total(
        value=sum(value for value, _, _ in known) if known else None,
        known_count=len(known),
        is_estimated=any(guess for _, guess, _ in known),
        age_seconds=max(ages, default=None),
    )


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
