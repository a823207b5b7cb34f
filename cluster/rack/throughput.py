"""The other target: the split that gets the most work done, instead of the fairest one.

Its own file because it is an option that needs a fitted curve of every node; the target of `share`
needs none. Minima, parking, gangs and what becomes of the rest are as there. It must not know who
fitted the curves.

Each node's work is a concave function of its watts, so the sum is largest where one more watt is
worth the same everywhere. That common worth (the multiplier) is found by bisection.
Powers are not rounded alike by every library, so two nodes may differ by a share or two: far below
what is worth a transfer.
Source: S. Boyd and L. Vandenberghe, Convex Optimization, section 5.5.3 (the KKT conditions).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cluster.ids import NodeId
from cluster.rack.rows import Wants
from cluster.rack.share import (
    Claim,
    Claimant,
    add_what_is_left,
    claimants_of,
    hand_out,
    parked_of,
    water_fill,
)

BISECTIONS = 96
"""Halvings of the multiplier's logarithm: enough to tell two shares of 10**9 apart."""
WORTH_LOG_MAX = 64.0
"""As a power of two: above the worth of any first share, below the worth of any last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """How much work a node does at so many watts, beside what it does at its maximum.

    ``((p - start) / (1 - start)) ** exponent``, with p as a ratio of the maximum; nothing below
    `start_ratio`, and no more above `knee_ratio` than at it.
    """

    start_ratio: float = 0.0
    """Watts that are gone before any work is done; below 1."""
    exponent: float = 1.0
    """Above 0, and at most 1: then it is concave."""
    knee_ratio: float = 1.0
    """Where more watts begin to be of no use; above `start_ratio`."""


STRAIGHT = Curve()
"""Of a node without a fitted one: each watt is worth the same."""


@dataclass(frozen=True, slots=True)
class _Slope:
    """One claimant's curve in shares."""

    claim: Claim
    """From its minimum to where more is of no use to it."""
    start: float
    span: float
    """From the start to the maximum."""
    exponent: float

    def part_at(self, worth: float) -> int:
        """The most shares of which each is still worth so much."""
        weight, low, high = self.claim
        if self.span <= 0:
            return low
        first = weight * self.exponent / self.span
        if self.exponent >= 1.0:
            return high if first >= worth else low
        # w a / span * ((x - start) / span) ** (a - 1) = worth, solved for x; the power is kept
        # below 1, where it cannot overflow: beyond the maximum nothing is wanted.
        ratio = min(1.0, first / worth) ** (1.0 / (1.0 - self.exponent))
        return min(high, max(low, int(self.start + self.span * ratio)))


def throughput_target(
    total_shares: int,
    wants: Mapping[NodeId, Wants],
    budget_watts: int,
    curves: Mapping[NodeId, Curve],
) -> dict[NodeId, int]:
    """What each should own for the most work in sum, weighted; exactly `total_shares`.

    A gang is judged by the curve of its lowest id: its ranks do the same work.
    """
    claimants = claimants_of(wants, budget_watts)
    stopped = parked_of(total_shares, claimants)
    running = [one for one in claimants if one.members[0] not in stopped]
    slopes = [_slope(one, curves.get(one.members[0], STRAIGHT)) for one in running]
    owned = dict.fromkeys((node for one in claimants for node in one.members), 0)
    for one, part in zip(running, _parts(total_shares, slopes), strict=True):
        hand_out(one, part, *one.bounds(), owned)
    add_what_is_left(total_shares, running, owned)
    return owned


def _slope(one: Claimant, curve: Curve) -> _Slope:
    low = sum(room.minimum for room in one.rooms)
    demand = sum(room.demand for room in one.rooms)
    maximum = sum(room.maximum for room in one.rooms)
    high = max(low, min(demand, round(curve.knee_ratio * maximum)))
    start = curve.start_ratio * maximum
    return _Slope(
        Claim(one.weight, low, high),
        start=start,
        span=maximum - start,
        exponent=curve.exponent,
    )


def _parts(total: int, slopes: Sequence[_Slope]) -> tuple[int, ...]:
    """What each gets where one more share is worth the same to all who are between their bounds."""
    fewest = [slope.claim.low for slope in slopes]
    most = [slope.claim.high for slope in slopes]
    if sum(fewest) <= total < sum(most):
        cheap, dear = -WORTH_LOG_MAX, WORTH_LOG_MAX
        for _ in range(BISECTIONS):
            middle = (cheap + dear) / 2
            parts = [slope.part_at(2.0**middle) for slope in slopes]
            if sum(parts) > total:
                cheap, most = middle, parts
            else:
                dear, fewest = middle, parts
    # What is between the two is worth the same, as on straight curves: shared out by weight.
    return water_fill(
        total,
        [
            Claim(slope.claim.weight, low, max(low, high))
            for slope, low, high in zip(slopes, fewest, most, strict=True)
        ],
    )
