"""What a machine draws besides its limited parts: learned upward at once, downward slowly.

Pure; `now` is handed in. Two terms make the estimate. The *learned* one is the worst seen of what
the meter shows beyond the devices' own draw, with a margin; it comes down over minutes. The
*surplus* answers a node that draws more than its cap, whatever the cause (a processor without a
limit, fans, a device that draws over its limit or reports too little): it grows by the excess each
second, so that a split gives the devices as much less, and goes back at a fiftieth of that pace.
It must not know where watts are measured: it is handed the meter's and the devices' of the same
moment, or of equally long averages. A meter that averages over a minute, beside devices that do
not, would show a rest that is not there.
Source: the power ledger's specification, 2.3 and the row "draw > cap" of 4.7.
"""

import math

from esnode.control.supply import Efficiency, round_up

MARGIN_RATIO = 0.05
"""Over the worst seen: fans and drives start between two looks at the meter."""

FALL_SECONDS = 600.0
"""Time constant of the learned term on its way down: longer than a fan's or a job's cycle."""

SURPLUS_FALL_RATIO = 0.02
"""Of the surplus, given back each second while the node keeps its cap."""

_STEP_SECONDS_MAX = 2.0
"""Longer pauses of the meter count as this: an excess that nobody saw is not integrated."""


class Rest:
    """The estimate of one machine."""

    def __init__(self, first_watts: int, *, most_watts: int | None = None) -> None:
        """Begin with the data sheet's figure; `most_watts` bounds what can be learned."""
        self._learned = float(first_watts)
        self._most = most_watts
        self._surplus = 0.0
        self._margin = 0.0
        self._last_seconds: float | None = None

    @property
    def watts(self) -> int:
        """What to count, in whole watts of load."""
        return round_up(self._learned + self._margin) + round_up(self._surplus)

    @property
    def surplus_watts(self) -> int:
        """The part of it that answers an excess over the cap."""
        return round_up(self._surplus)

    def observe(
        self,
        *,
        draw_watts: float,
        devices_watts: float | None,
        cap_watts: int | None,
        efficiency: Efficiency,
        now: float,
    ) -> None:
        """Take in one look at the machine's own meter, at its inlet.

        `devices_watts` is what all limited parts draw; ``None`` when one of them does not say.
        """
        before = self._last_seconds
        elapsed = 0.0 if before is None else min(max(0.0, now - before), _STEP_SECONDS_MAX)
        self._last_seconds = now
        if devices_watts is not None:
            self._learn(efficiency.load_watts(draw_watts) + 1 - devices_watts, elapsed)
        if cap_watts is not None:
            self._integrate(draw_watts - cap_watts, cap_watts, elapsed)

    def _learn(self, seen: float, elapsed: float) -> None:
        seen = max(0.0, seen if self._most is None else min(seen, float(self._most)))
        if seen >= self._learned:
            self._learned = seen
        else:
            self._learned += (seen - self._learned) * -math.expm1(-elapsed / FALL_SECONDS)
        self._margin = MARGIN_RATIO * self._learned

    def _integrate(self, excess: float, cap_watts: int, elapsed: float) -> None:
        if excess > 0:
            self._surplus = min(float(cap_watts), self._surplus + excess * elapsed)
        else:
            self._surplus -= self._surplus * -math.expm1(-SURPLUS_FALL_RATIO * elapsed)
            if self._surplus < 0.5:
                self._surplus = 0.0
