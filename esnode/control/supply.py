"""From the watts of a machine's parts to the watts at its inlet, and back, on the safe side.

Its own file because the power supply's curve is a subject of its own: between two points of it the
efficiency is linear; below the first the machine is taken to draw what it draws there; beyond the
last a falling efficiency goes on falling. So the inlet never draws more than is said here, and more
load never means less draw. It must not know devices or limits.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass

_LOAD_WATTS_MAX = 1 << 24
"""Beyond any machine; keeps the search for a load finite."""


class BadCurve(ValueError):
    """An efficiency curve that no power supply has. The text is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """Efficiency of a machine's power supplies against the load that its parts put on them."""

    points: tuple[tuple[int, float], ...]
    """(load in watts, ratio of load to draw at the inlet), by rising load; the worst that the
    supplies have at that load, with whatever share of them may have failed."""

    def __post_init__(self) -> None:
        if not self.points:
            raise BadCurve("an efficiency curve needs a point")
        for load, ratio in self.points:
            if load < 0 or not 0.0 < ratio <= 1.0:
                raise BadCurve(f"an efficiency of {ratio:g} at {load} W is impossible")
        for (load, ratio), (next_load, next_ratio) in zip(
            self.points, self.points[1:], strict=False
        ):
            if next_load <= load:
                raise BadCurve(f"{next_load} W does not come after {load} W")
            if next_ratio * load > ratio * next_load:
                raise BadCurve(f"by this curve {next_load} W draw less at the inlet than {load} W")

    def wall_watts(self, load_watts: float) -> float:
        """The most that the machine draws at its inlet under this load."""
        load_watts = max(load_watts, float(self.points[0][0]))
        return load_watts / self._ratio(load_watts)

    def load_watts(self, wall_watts: float) -> int:
        """The largest load, in whole watts, under which the inlet draws at most this; -1: none."""
        if self.wall_watts(0) > wall_watts:
            return -1
        low, high = 0, _LOAD_WATTS_MAX
        while low < high:
            middle = (low + high + 1) // 2
            if self.wall_watts(middle) <= wall_watts:
                low = middle
            else:
                high = middle - 1
        return low

    def _ratio(self, load_watts: float) -> float:
        place = bisect_right(self.points, load_watts, key=lambda point: point[0])
        if place < len(self.points):
            return _between(self.points[place - 1], self.points[place], load_watts)
        load, ratio = self.points[-1]
        if len(self.points) == 1:
            return ratio
        lowest = min(ratio for _, ratio in self.points)
        beyond = _between(self.points[-2], (load, ratio), load_watts)
        return max(lowest, min(ratio, beyond))


def _between(one: tuple[int, float], other: tuple[int, float], load_watts: float) -> float:
    share = (load_watts - one[0]) / (other[0] - one[0])
    return one[1] + share * (other[1] - one[1])


def round_up(watts: float) -> int:
    """Whole watts that are not less."""
    return math.ceil(watts)
