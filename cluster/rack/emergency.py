"""What is done when the meter says that the rack draws too much, whatever the ledger says.

Its own file because it is the second line: it holds when a node lies, a cap does not bind or a load
was counted too low. It only ever lowers, so a false alarm costs work and never safety. It must not
know meters, shares, or how a message travels.

A *cut* is a part of all the dynamic watts of the rack. Whoever reads too much says how large the
cut should be from now on, in total: what it sees in force, and the excess with something on top. So
a message may be lost, doubled or late, and two witnesses of one excess do not cut twice. From the
cut each node takes its own part, the lowest classes more than the others. The cut is held for a
minute or more and then let go by degrees, at times that every node draws for itself, so that the
rack does not rise at once.
Source: S. Li et al., Thunderbolt, OSDI 2020 (multiplicative decrease, random release).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from random import Random

from cluster.ids import NodeId

MILLION = 1_000_000
MEASURED_RATIO_MAX = 0.995
"""Of the budget: above it is too much."""
EXCESS_FACTOR = 1.15
MEASUREMENT_AGE_SECONDS_MAX = 5.0
"""An older one says nothing of now."""
REPEAT_SECONDS = 0.5
"""A measurement so soon after a raise may not show it yet."""
CUT_ALONE_PARTS_MAX = 500_000
"""No single witness gets more than half of the watts off."""
WITNESS_SECONDS = 5.0
"""Two witnesses agree if both spoke within this."""
HOLD_SECONDS_MIN, HOLD_SECONDS_MAX = 60.0, 80.0
RELEASE_SECONDS_MIN, RELEASE_SECONDS_MAX = 5.0, 10.0
RELEASE_FACTOR = 0.7
CUT_PARTS_MIN = 10_000
"""A smaller cut is let go as a whole."""
CLASS_FACTORS = (1, 2, 4, 8)
"""By priority class: how much harder a class is cut than the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmergencyMessage:
    """What one witness wants to be cut from now on."""

    witness: NodeId
    stamp: int
    """The witness's incarnation in the upper bits, then a count: the higher is the newer."""
    cut_parts_per_million: int
    """In total, of the rack's dynamic watts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proclaim:
    """To be sent to every node of the rack, in several copies."""

    message: EmergencyMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class CutChanged:
    """The node's cap has to follow: down at once, up when it may."""

    cut_parts_per_million: int
    reason: str


Effect = Proclaim | CutChanged


@dataclass(frozen=True, slots=True, kw_only=True)
class EmergencyView:
    """What holds now."""

    cut_parts_per_million: int
    witnesses: tuple[NodeId, ...]
    """Who said lately that too much is drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Word:
    """The last that was heard of one witness."""

    stamp: int
    cut_parts: int
    heard_at: float


class Emergency:
    """One node's part in it; it may be a witness itself."""

    def __init__(self, own_id: NodeId, *, first_stamp: int, rng: Random) -> None:
        self._own_id = own_id
        self._stamp = first_stamp
        self._rng = rng
        self._words: dict[NodeId, _Word] = {}
        self._cut_parts = 0
        self._raised_at: float | None = None
        self._release_at: float | None = None

    def measured(
        self,
        watts: float | None,
        age_seconds: float,
        budget_total_watts: int,
        now: float,
        *,
        budget_watts: int,
    ) -> list[Effect]:
        """Take note of the rack's meter; `budget_watts` is the dynamic part of the whole budget.

        What cannot be read is not too much: another witness may see it.
        """
        if watts is None or age_seconds > MEASUREMENT_AGE_SECONDS_MAX:
            return []
        excess = watts - MEASURED_RATIO_MAX * budget_total_watts
        if excess <= 0:
            return []
        if self._raised_at is not None and now - age_seconds < self._raised_at + REPEAT_SECONDS:
            return []
        more = MILLION
        if budget_watts > 0:
            more = min(MILLION, ceil(EXCESS_FACTOR * excess / budget_watts * MILLION))
        self._stamp += 1
        message = EmergencyMessage(
            witness=self._own_id,
            stamp=self._stamp,
            cut_parts_per_million=min(MILLION, self._cut_parts + more),
        )
        reason = f"the rack draws {watts:.0f} W of {budget_total_watts} W"
        return [Proclaim(message=message), *self._follow(message, reason, now)]

    def receive(self, message: EmergencyMessage, now: float) -> list[Effect]:
        """Take note of what another witness says; an old or a repeated message changes nothing."""
        if message.witness == self._own_id:
            return []
        return self._follow(message, f"{message.witness.short} measured too much power", now)

    def advance(self, now: float) -> list[Effect]:
        """Let go of a part of the cut when its time has come."""
        if self._release_at is None or now < self._release_at:
            return []
        if self._cut_parts < CUT_PARTS_MIN:
            self._cut_parts = 0
            self._release_at = None
        else:
            self._cut_parts = int(self._cut_parts * RELEASE_FACTOR)
            self._release_at = now + self._between(RELEASE_SECONDS_MIN, RELEASE_SECONDS_MAX)
        return [self._changed("too much power was not measured again")]

    def deadline(self) -> float | None:
        """When `advance` is wanted next."""
        return self._release_at

    def throttle_watts(
        self, cap_watts: int, priority: int, watts_by_class: Sequence[int] = ()
    ) -> int:
        """What is to be taken off a cap that this node would have without an emergency.

        `watts_by_class` are the dynamic watts that the nodes of each class hold in this rack; where
        nothing is known of them, every class is cut alike.
        """
        if self._cut_parts <= 0 or cap_watts <= 0:
            return 0
        ratio = class_cut_ratio(self._cut_parts / MILLION, priority, watts_by_class)
        return min(cap_watts, ceil(cap_watts * ratio))

    def view(self, now: float) -> EmergencyView:
        """What holds now, and by whose word."""
        return EmergencyView(
            cut_parts_per_million=self._cut_parts,
            witnesses=tuple(sorted(self._recent(now))),
        )

    def _follow(self, message: EmergencyMessage, reason: str, now: float) -> list[Effect]:
        known = self._words.get(message.witness)
        cut_parts = min(MILLION, message.cut_parts_per_million)
        if cut_parts <= 0 or (known is not None and known.stamp >= message.stamp):
            return []
        self._words[message.witness] = _Word(stamp=message.stamp, cut_parts=cut_parts, heard_at=now)
        self._release_at = now + self._between(HOLD_SECONDS_MIN, HOLD_SECONDS_MAX)
        agreed = self._agreed(now)
        if agreed <= self._cut_parts:
            return []
        self._cut_parts, self._raised_at = agreed, now
        return [self._changed(reason)]

    def _agreed(self, now: float) -> int:
        """The largest cut that one witness may ask for alone, or two together."""
        cuts = sorted((word.cut_parts for word in self._recent(now).values()), reverse=True)
        second = cuts[1] if len(cuts) > 1 else 0
        return max(min(cuts[0], CUT_ALONE_PARTS_MAX), second)

    def _recent(self, now: float) -> dict[NodeId, _Word]:
        return {
            witness: word
            for witness, word in self._words.items()
            if now - word.heard_at <= WITNESS_SECONDS
        }

    def _between(self, least: float, most: float) -> float:
        return least + (most - least) * self._rng.random()

    def _changed(self, reason: str) -> CutChanged:
        return CutChanged(cut_parts_per_million=self._cut_parts, reason=reason)


def class_cut_ratio(cut_ratio: float, priority: int, watts_by_class: Sequence[int] = ()) -> float:
    """Which part of its watts a node of this class gives up, so that all together give the cut.

    Each class gives `CLASS_FACTORS` times one common ratio, and none more than all it has; what the
    low classes cannot give then falls to the others.
    """
    own = min(max(priority, 0), len(CLASS_FACTORS) - 1)
    if sum(watts_by_class) <= 0 or len(watts_by_class) > len(CLASS_FACTORS):
        return min(1.0, cut_ratio)
    wanted = cut_ratio * sum(watts_by_class)
    common = 1.0
    for first_emptied in range(len(watts_by_class), 0, -1):
        giving = sum(
            watts * CLASS_FACTORS[index]
            for index, watts in enumerate(watts_by_class[:first_emptied])
        )
        emptied = sum(watts_by_class[first_emptied:])
        if giving <= 0:
            continue
        common = max(0.0, wanted - emptied) / giving
        if common * CLASS_FACTORS[first_emptied - 1] <= 1.0:
            break
    return min(1.0, common * CLASS_FACTORS[own])
