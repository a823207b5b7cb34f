"""The target: what each node of one currency should own, were the rows that one sees all true.

Its own file because it is the one rule that every node computes for itself: equal rows give equal
targets, whoever asks and in whatever order the rows came. It is advice; nothing here can break a
bound. It must not know who trades, when, or how a row got here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from cluster.ids import NodeId
from cluster.rack.rows import PRIORITY_WEIGHTS, Wants
from cluster.rack.units import shares_of

WEIGHT_SCALE = 1000
"""Weights are counted in thousandths, so that every sum is one of integers."""
LEVEL_SCALE = 1 << 64
"""Tells two levels apart wherever they differ: weights of a rack are far below 2**32."""


class Claim(NamedTuple):
    """What one claimant may get of something that is shared out."""

    weight: int
    """Above 0."""
    low: int
    high: int
    """Not below `low`."""


class Room(NamedTuple):
    """How far up the members of a claimant go, each by itself; all in shares."""

    minimum: int
    demand: int
    maximum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimant:
    """A node, or all the nodes of one gang: they get more or less together."""

    members: tuple[NodeId, ...]
    """In the order of their ids."""
    rooms: tuple[Room, ...]
    weight: int
    priority: int

    def bounds(self) -> tuple[list[int], list[int]]:
        """Minimum and demand of each member."""
        return [room.minimum for room in self.rooms], [room.demand for room in self.rooms]

    def claim(self, low: Sequence[int], high: Sequence[int]) -> Claim:
        """Its claim, given the bounds of its members."""
        return Claim(self.weight, sum(low), sum(high))


def water_fill(total: int, claims: Sequence[Claim]) -> tuple[int, ...]:
    """Weighted max-min: everybody at one common level times the own weight, within the own bounds.

    The parts come to exactly `total`, or to all of `high` where that is less. Nobody is below
    `low` unless there is not enough for that: then `low` is what everybody reaches for.
    """
    lows = sum(claim.low for claim in claims)
    if lows > total:
        return water_fill(total, [Claim(claim.weight, 0, claim.low) for claim in claims])
    if sum(claim.high for claim in claims) <= total:
        return tuple(claim.high for claim in claims)
    parts = [claim.low for claim in claims]
    fixed, slope, rising = lows, 0, dict[int, None]()
    for level, weight, index, is_end in _turning_points(claims):
        if fixed * weight + slope * level >= total * weight:
            break
        claim = claims[index]
        if is_end:
            parts[index] = claim.high
            fixed, slope = fixed + claim.high, slope - claim.weight
            del rising[index]
        else:
            fixed, slope = fixed - claim.low, slope + claim.weight
            rising[index] = None
    among = sorted(rising)
    for index, part in zip(
        among, split(total - fixed, [claims[i].weight for i in among]), strict=True
    ):
        parts[index] = part
    return tuple(parts)


def _turning_points(claims: Sequence[Claim]) -> list[tuple[int, int, int, bool]]:
    """Where a claimant begins or ends to rise with the level `amount / weight`, lowest first."""
    points = []
    for index, (weight, low, high) in enumerate(claims):
        if high > low:
            points.append((low * LEVEL_SCALE // weight, low, weight, index, False))
            points.append((high * LEVEL_SCALE // weight, high, weight, index, True))
    points.sort()
    return [point[1:] for point in points]


def split(total: int, weights: Sequence[int]) -> tuple[int, ...]:
    """`total` in proportion to weights, exactly.

    What is lost by rounding goes to the largest fractions, the first of equal ones first.
    """
    whole = sum(weights)
    if whole <= 0:
        return tuple(0 for _ in weights)
    parts = [total * weight // whole for weight in weights]
    left = total - sum(parts)
    if left:
        by_fraction = sorted(range(len(weights)), key=lambda i: (-(total * weights[i] % whole), i))
        for index in by_fraction[:left]:
            parts[index] += 1
    return tuple(parts)


def target(
    total_shares: int, wants: Mapping[NodeId, Wants], budget_watts: int
) -> dict[NodeId, int]:
    """What each should own of so many shares; the parts come to exactly that many.

    First the minima of those who run: whoever is `parked` is left out here and gets no more than a
    part of what nobody else can use. Then weighted max-min up to demand, then up to what the
    hardware can draw (burst room), and what is still left goes to all alike.

    A gang (one text, several nodes) is one claimant with the weights of all its ranks. Its ranks
    get equal satisfaction: each the same ratio of the way from its minimum to its demand, and then
    the same ratio of its burst room. So none is faster than its slowest sibling can use.
    """
    claimants = claimants_of(wants, budget_watts)
    stopped = parked_of(total_shares, claimants)
    running = [one for one in claimants if one.members[0] not in stopped]
    owned = dict.fromkeys((node for one in claimants for node in one.members), 0)
    filled = water_fill(total_shares, [one.claim(*one.bounds()) for one in running])
    for one, part in zip(running, filled, strict=True):
        hand_out(one, part, *one.bounds(), owned)
    add_what_is_left(total_shares, running, owned)
    return owned


def claimants_of(wants: Mapping[NodeId, Wants], budget_watts: int) -> tuple[Claimant, ...]:
    """Who claims: nodes and gangs, by their lowest id."""
    gangs: dict[tuple[str, bytes], list[NodeId]] = {}
    for node_id in sorted(wants):
        gang = wants[node_id].gang
        gangs.setdefault((gang, b"" if gang else node_id), []).append(node_id)
    claimants = []
    for members in gangs.values():
        alone = [_alone(wants[node_id], budget_watts) for node_id in members]
        claimants.append(
            Claimant(
                members=tuple(members),
                rooms=tuple(one.room for one in alone),
                weight=sum(one.weight for one in alone),
                priority=min(one.priority for one in alone),
            )
        )
    return tuple(claimants)


def parked(
    total_shares: int, wants: Mapping[NodeId, Wants], budget_watts: int
) -> tuple[NodeId, ...]:
    """Who must not run work, since the minima of all who do are worth more than there is.

    The lowest class first, inside a class by node id (a gang by its most important rank and its
    lowest id, and as a whole), until the minima of the rest fit. A parked node goes on telling what
    it would need: were it to fall silent about it, it would be let in again at once.
    """
    stopped = parked_of(total_shares, claimants_of(wants, budget_watts))
    return tuple(sorted(stopped))


def parked_of(total_shares: int, claimants: Iterable[Claimant]) -> dict[NodeId, None]:
    """The same of claimants; all members of a gang, or none."""
    runs = [one for one in claimants if any(room.minimum for room in one.rooms)]
    needed = sum(room.minimum for one in runs for room in one.rooms)
    stopped: dict[NodeId, None] = {}
    for one in sorted(runs, key=lambda one: (-one.priority, one.members[0])):
        if needed <= total_shares:
            break
        needed -= sum(room.minimum for room in one.rooms)
        stopped.update(dict.fromkeys(one.members))
    return stopped


def add_what_is_left(
    total_shares: int, running: Sequence[Claimant], owned: dict[NodeId, int]
) -> None:
    """Give out what nobody needs: as burst room first, then to everybody alike."""
    left = total_shares - sum(owned.values())
    if left <= 0:
        return
    rooms = [
        [room.maximum - owned[node] for node, room in zip(one.members, one.rooms, strict=True)]
        for one in running
    ]
    none = [[0] * len(room) for room in rooms]
    filled = water_fill(
        left, [one.claim(*bounds) for one, *bounds in zip(running, none, rooms, strict=True)]
    )
    for one, part, low, high in zip(running, filled, none, rooms, strict=True):
        hand_out(one, part, low, high, owned)
    left -= sum(filled)
    if left > 0:
        for node, part in zip(owned, split(left, [1] * len(owned)), strict=True):
            owned[node] += part


def hand_out(
    one: Claimant,
    part: int,
    low: Sequence[int],
    high: Sequence[int],
    owned: dict[NodeId, int],
) -> None:
    """A claimant's part to its members: all the same ratio of the way from low to high."""
    if len(one.members) == 1:
        owned[one.members[0]] += part
        return
    ways = [to - since for since, to in zip(low, high, strict=True)]
    for node, since, more in zip(one.members, low, split(part - sum(low), ways), strict=True):
        owned[node] += since + more


class _Alone(NamedTuple):
    """What one node claims by itself."""

    room: Room
    weight: int
    priority: int


@lru_cache(maxsize=4096)  # most nodes want what they wanted a second ago
def _alone(wants: Wants, budget_watts: int) -> _Alone:
    maximum = max(0, wants.maximum_watts)
    minimum = min(max(0, wants.minimum_watts), maximum)
    demand = min(max(minimum, wants.demand_watts), maximum)
    return _Alone(
        room=Room(*(_shares(watts, budget_watts) for watts in (minimum, demand, maximum))),
        weight=max(1, round(wants.weight * WEIGHT_SCALE)),
        priority=min(max(wants.priority, 0), len(PRIORITY_WEIGHTS) - 1),
    )


def _shares(watts: int, budget_watts: int) -> int:
    return shares_of(watts, budget_watts) if watts else 0
