"""From a node's cap to the limits of its devices, and from the limits to what the node can draw.

Pure. A cap is whole watts at the machine's inlet; what a machine can draw is the limits in force of
all parts that obey one, the maximum of all that do not, and everything else (fans, network cards,
memory, drives), through the power supply.

A split is weighted max-min in whole watts: every part first gets the lowest limit that it can hold,
then all rise together until each has what it needs, then together again to their maximum, as room
for bursts. It never comes to more than the cap, as long as the cap is not below `floor_watts`; the
last rule is that of the small change: a limit that would move by less than `DEADBAND_RATIO` of its
range stays, unless the cap needs it lower.
Source: the power ledger's specification, section 4.5 (water level) and 2.3 (node cap).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from esnode.control.supply import Efficiency, round_up
from esnode.readings.limits import Limit, LimitRange

DEADBAND_RATIO = 0.03
"""Of a part's range: 15 W for a GPU of 200 to 700 W. Demand moves by a watt or two each second, and
writing eight limits takes 160 ms in which nothing else can be asked of the driver."""

_LEVELS_PER_WATT = 1000
"""How finely the common level is searched; what is left goes out watt by watt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chassis:
    """What a machine has besides the parts whose limits are known."""

    rest_watts: int
    """The most that everything else draws, see `esnode.control.rest`."""
    efficiency: Efficiency


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePart:
    """One device as the split sees it."""

    range: LimitRange
    demand_watts: float | None
    """What it would draw unhindered; ``None`` for unknown, which is taken as its maximum."""
    is_settable: bool
    """Whether it takes limits from us. If not, it counts at its range's maximum."""
    enforced_watts: int | None
    """In force now; ``None`` for unknown."""
    weight: int = 1
    """Its share of what is short, relative to the others."""


def bound_watts(parts: Sequence[NodePart], chassis: Chassis) -> int | None:
    """The most that the machine draws at its inlet with the limits now in force.

    ``None`` when the limit of a settable part is unknown: there is no bound then.
    """
    load = chassis.rest_watts
    for part in parts:
        if not part.is_settable:
            load += part.range.maximum_watts
        elif part.enforced_watts is None:
            return None
        else:
            load += part.enforced_watts
    return round_up(chassis.efficiency.wall_watts(load))


def floor_watts(parts: Sequence[NodePart], chassis: Chassis) -> int:
    """The lowest cap that this machine can keep: every settable part at its minimum."""
    load = chassis.rest_watts + sum(_lowest(part) for part in parts)
    return round_up(chassis.efficiency.wall_watts(load))


def maximum_watts(parts: Sequence[NodePart], chassis: Chassis) -> int:
    """The cap above which more watts are of no use to this machine."""
    load = chassis.rest_watts + sum(part.range.maximum_watts for part in parts)
    return round_up(chassis.efficiency.wall_watts(load))


def apply_limits(parts: Sequence[NodePart], limits: Iterable[Limit]) -> tuple[NodePart, ...]:
    """The parts as they are once these limits are in force."""
    watts = {limit.device: limit.watts for limit in limits}
    return tuple(
        replace(part, enforced_watts=watts[part.range.device])
        if part.range.device in watts
        else part
        for part in parts
    )


def split(cap_watts: int, parts: Sequence[NodePart], chassis: Chassis) -> tuple[Limit, ...]:
    """A limit for every settable part, in the order of the parts, so that the cap holds.

    A cap below `floor_watts` cannot be held: then each part gets its minimum, and it is for the
    caller to see that the cap is not kept.
    """
    settable = [part for part in parts if part.is_settable]
    static = sum(part.range.maximum_watts for part in parts if not part.is_settable)
    load = chassis.efficiency.load_watts(cap_watts)
    available = load - chassis.rest_watts - static
    lowest = [_lowest(part) for part in settable]
    weights = [part.weight for part in settable]
    needed = _fill(available, lowest, [_needed(part) for part in settable], weights)
    wanted = _fill(available, needed, [part.range.maximum_watts for part in settable], weights)
    watts = _calm(available, settable, wanted)
    return tuple(
        Limit(device=part.range.device, watts=one)
        for part, one in zip(settable, watts, strict=True)
    )


def _lowest(part: NodePart) -> int:
    return part.range.minimum_watts if part.is_settable else part.range.maximum_watts


def _needed(part: NodePart) -> int:
    if part.demand_watts is None:
        return part.range.maximum_watts
    demand = round_up(part.demand_watts)
    return min(max(demand, part.range.minimum_watts), part.range.maximum_watts)


def _fill(
    available: int, lowest: Sequence[int], highest: Sequence[int], weights: Sequence[int]
) -> list[int]:
    """Raise a common level until all are at their highest or nothing is available any more."""

    def at(level: int) -> list[int]:
        return [
            min(max(level * weight // _LEVELS_PER_WATT, low), high)
            for weight, low, high in zip(weights, lowest, highest, strict=True)
        ]

    low, high = 0, _LEVELS_PER_WATT * max(highest, default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(at(middle)) <= available:
            low = middle
        else:
            high = middle - 1
    filled = at(low)
    left = available - sum(filled)
    for place, most in enumerate(highest):
        if left > 0 and filled[place] < most and at(low + 1)[place] > filled[place]:
            filled[place] += 1
            left -= 1
    return filled


def _calm(available: int, parts: Sequence[NodePart], wanted: Sequence[int]) -> list[int]:
    """Leave limits that would hardly move where they are, as far as the cap allows it."""
    watts = [
        target if (kept := _keepable(part, target)) is None else kept
        for part, target in zip(parts, wanted, strict=True)
    ]
    excess = sum(watts) - available
    by_gain = sorted(range(len(parts)), key=lambda place: (wanted[place] - watts[place], place))
    for place in by_gain:
        if excess <= 0 or watts[place] <= wanted[place]:
            break
        excess -= watts[place] - wanted[place]
        watts[place] = wanted[place]
    return watts


def _keepable(part: NodePart, target: int) -> int | None:
    """The limit in force, if it is one that we could have set and is near the target."""
    enforced, limits = part.enforced_watts, part.range
    if enforced is None or not limits.minimum_watts <= enforced <= limits.maximum_watts:
        return None
    deadband = DEADBAND_RATIO * (limits.maximum_watts - limits.minimum_watts)
    return enforced if abs(target - enforced) < deadband else None
