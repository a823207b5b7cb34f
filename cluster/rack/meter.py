"""What a whole rack draws, how sure that is, and who can tell.

Its own file because the ledger never asks: it bounds what may be drawn, and a meter is the second
line, for machines that lie and loads that were counted too low. The first meter is the sum of what
nodes say; power strips and shelves answer to the same protocol. It must not know how any of them
is asked.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

METERED_ACCURACY_RATIO = 0.03
"""Of rack power strips. Source: makers' sheets, +-3 % and one digit."""
ESTIMATED_ACCURACY_RATIO = 0.15
"""Of a node's own model of its power (`esnode.fold.power`)."""
AGE_SECONDS_MAX = 5.0
"""An older reading says nothing of now."""
PLAUSIBLE_RATIO_MAX = 1.5
"""Of what all slots together can draw: above it the meter is wrong, not the rack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDraw:
    """What one slot draws, as far as anybody knows."""

    watts: float | None
    age_seconds: float | None
    is_estimated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterReading:
    """What a rack draws at one instant."""

    watts: float | None
    """None where it is not known, and never 0 for that."""
    age_seconds: float
    """Of its oldest part."""
    accuracy_ratio: float
    """How far it may be off, as a part of itself."""
    source: str
    """``sum of nodes``, or the meter's name."""
    missing_count: int = 0
    """Slots that did not tell: what they draw is not in it."""
    note: str = ""
    """Why it should not be believed; empty where it may."""

    @property
    def is_usable(self) -> bool:
        """Whether something may be decided by it; with slots missing it is a lower bound."""
        return self.watts is not None and self.age_seconds <= AGE_SECONDS_MAX and not self.note


class Meter(Protocol):
    """Something that measures a whole rack."""

    @property
    def name(self) -> str:
        """What it is called in views."""
        ...

    async def read(self) -> MeterReading:
        """Ask it once; never raises, never takes longer than its own deadline."""
        ...


def sum_of_nodes(draws: Iterable[NodeDraw], static_watts: int) -> MeterReading:
    """The rack by the word of its nodes, and by what was decreed for loads without an agent.

    A node that did not tell is missing from the sum: it is then a lower bound, and says so.
    """
    known: list[NodeDraw] = []
    missing_count = 0
    for draw in draws:
        is_fresh = draw.age_seconds is not None and draw.age_seconds <= AGE_SECONDS_MAX
        if draw.watts is None or not is_fresh:
            missing_count += 1
        else:
            known.append(draw)
    total = sum(draw.watts or 0.0 for draw in known)
    off = sum(
        (draw.watts or 0.0)
        * (ESTIMATED_ACCURACY_RATIO if draw.is_estimated else METERED_ACCURACY_RATIO)
        for draw in known
    )
    return MeterReading(
        watts=total + static_watts if known else None,
        age_seconds=max((draw.age_seconds or 0.0 for draw in known), default=0.0),
        accuracy_ratio=off / total if total > 0 else METERED_ACCURACY_RATIO,
        source="sum of nodes",
        missing_count=missing_count,
    )


def check_plausible(reading: MeterReading, *, most_watts: int) -> MeterReading:
    """The same reading, with a note where no rack of these slots could draw that.

    `most_watts` is what all slots together can draw. Below zero, and far above that, the meter is
    wrong: nothing is lowered for it, and operators are told.
    """
    watts = reading.watts
    if watts is None:
        return reading
    if watts < 0:
        note = f"{reading.source} says {watts:.0f} W"
    elif most_watts > 0 and watts > PLAUSIBLE_RATIO_MAX * most_watts:
        note = f"{reading.source} says {watts:.0f} W, and all slots can draw {most_watts} W"
    else:
        return reading
    return MeterReading(
        watts=watts,
        age_seconds=reading.age_seconds,
        accuracy_ratio=reading.accuracy_ratio,
        source=reading.source,
        missing_count=reading.missing_count,
        note=note,
    )
