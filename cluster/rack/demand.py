"""What a node could use, from what it draws and what holds it.

Its own file because nobody measures demand: a node below its cap shows it, a node at its cap shows
only that it wants more. It must not know what anybody owns or what becomes of the answer.

Demand rises with the draw at once. At the cap it is asked for by steps, and it falls only after
some seconds, so that a pause of a job does not send its watts round the rack; unless somebody lacks
them.
"""

from dataclasses import dataclass
from math import ceil, exp

HEAD_ROOM_RATIO = 0.05
AT_CAP_RATIO = 0.95
STEP_FACTOR = 1.25
STEP_WATTS_MIN = 40
"""A node that owns next to nothing would else rise by next to nothing."""
RISE_RATIO_PER_SECOND = 0.2
"""Of the range: how fast a node may ask for what it has not drawn yet."""
HOLD_SECONDS = 10.0
FALL_SECONDS = 3.0
"""In which the distance to the measured demand shrinks by a factor of e, after the hold."""
FALLEN_WATTS = 1.0
"""So near, it is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is known of a node at one instant."""

    draw_watts: float | None
    """Of the whole machine; None where nobody could say."""
    cap_watts: float | None
    """On the whole machine; None where nothing holds it."""
    is_capped: bool | None
    """Whether the hardware says that power holds back its clocks; None where it says nothing."""
    floor_watts: int
    """Of its slot: what is below is nobody's to trade."""
    maximum_watts: int
    """What it can draw at most, above the floor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What the node could use, above the floor of its slot."""

    demand_watts: int
    is_estimated: bool
    """Not measured: the draw is not known, so this is all that the hardware could draw."""


class Demand:
    """One node's demand over time."""

    def __init__(self) -> None:
        self._demand_watts = 0.0
        self._read_at: float | None = None
        self._reached_at = 0.0

    def read(self, load: Load, now: float, *, is_any_short: bool) -> Estimate:
        """The demand by what is known now; `is_any_short` while another live node lacks watts."""
        maximum = float(max(0, load.maximum_watts))
        if load.draw_watts is None:
            return Estimate(demand_watts=ceil(maximum), is_estimated=True)
        measured = max(0.0, load.draw_watts - load.floor_watts) * (1.0 + HEAD_ROOM_RATIO)
        wished = measured
        if is_at_cap(load):
            wished = max(wished, self._next_step(measured, maximum, now))
        wished = min(wished, maximum)
        if wished >= self._demand_watts:
            self._demand_watts, self._reached_at = wished, now
        elif is_any_short:
            self._demand_watts = wished
        elif now - self._reached_at > HOLD_SECONDS:
            self._fall_towards(wished, now)
        # The hardware may have become smaller.
        self._demand_watts = min(self._demand_watts, maximum)
        self._read_at = now
        return Estimate(demand_watts=ceil(self._demand_watts), is_estimated=False)

    def _next_step(self, measured: float, maximum: float, now: float) -> float:
        """What a node at its cap asks for: more than it is known to use, at a limited rate."""
        known = max(self._demand_watts, measured)
        asked = max(known * STEP_FACTOR, known + STEP_WATTS_MIN)
        if self._read_at is None:
            return asked
        rise = maximum * RISE_RATIO_PER_SECOND * (now - self._read_at)
        return min(asked, self._demand_watts + rise)

    def _fall_towards(self, wished: float, now: float) -> None:
        since = now if self._read_at is None else self._read_at
        kept = exp(-(now - since) / FALL_SECONDS)
        self._demand_watts = wished + (self._demand_watts - wished) * kept
        if self._demand_watts - wished < FALLEN_WATTS:
            self._demand_watts = wished


def is_at_cap(load: Load) -> bool:
    """Whether the cap, and not the work, decides what the node draws.

    Compared above the floor, where the draw is above it: a node that idles near a large floor is
    not at its cap. Where the hardware says nothing, a draw near the whole cap is enough: a node
    whose cap is the floor draws no more than that.
    """
    if load.is_capped:
        return True
    if load.draw_watts is None or load.cap_watts is None:
        return False
    draw, cap = load.draw_watts - load.floor_watts, load.cap_watts - load.floor_watts
    if draw > 0 and draw >= AT_CAP_RATIO * cap:
        return True
    return load.is_capped is None and load.draw_watts >= AT_CAP_RATIO * load.cap_watts
