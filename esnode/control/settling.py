"""How long draws take to fall after a limit was lowered, by what was seen on this machine.

Pure; `now` is handed in. Its own file because the configured settle time is a claim about hardware,
and this is the evidence: whoever waits too short gives watts away that are still drawn. A draw is
read now and then, so what is seen is a pair: it was still above for at least so long, and below
after at most so long. A device that drew less than its new limit anyway proves nothing. It must not
know what follows from the figures.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

SEEN_MAX = 256
"""Lowerings that are remembered."""
ERROR_RATIO = 0.05
"""By so much a draw may be read above a limit that is kept. Source: NVIDIA gives +-5 % for the
readings of its boards (nvmlDeviceGetPowerUsage)."""
WATCH_SECONDS = 60.0
"""Whoever draws above a limit for longer does not keep it, and that is not a matter of settling."""
PERCENTILE = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleSeen:
    """What lowerings have shown; 99 of 100 were not slower."""

    at_least_seconds: float
    """Draws were still above the new limit for so long."""
    at_most_seconds: float
    """They were below it after so long."""
    lowerings_count: int


@dataclass(slots=True, kw_only=True)
class _Open:
    watts: int
    since_seconds: float
    above_seconds: float | None = None
    """When the draw was last seen above, after that."""


class Settling:
    """The lowerings of one machine."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}
        self._seen: deque[tuple[float, float]] = deque(maxlen=SEEN_MAX)

    def limited(self, device: str, watts: int, *, is_lowering: bool, now: float) -> None:
        """A device has taken a limit."""
        if is_lowering:
            self._open[device] = _Open(watts=watts, since_seconds=now)
        else:
            self._open.pop(device, None)

    def drew(self, draws: Mapping[str, tuple[float, float]], now: float) -> None:
        """What devices draw, each with the age of its reading."""
        for device, (watts, age_seconds) in draws.items():
            lowered, at = self._open.get(device), now - age_seconds
            if lowered is None or at <= lowered.since_seconds:
                continue
            if watts > lowered.watts * (1.0 + ERROR_RATIO):
                lowered.above_seconds = at
                if at - lowered.since_seconds <= WATCH_SECONDS:
                    continue
            if lowered.above_seconds is not None:
                since = lowered.since_seconds
                self._seen.append((lowered.above_seconds - since, at - since))
            del self._open[device]

    @property
    def seen(self) -> SettleSeen | None:
        """What is known by now; None before any lowering that showed."""
        if not self._seen:
            return None
        place = ceil(PERCENTILE * len(self._seen)) - 1
        least, most = (sorted(values)[place] for values in zip(*self._seen, strict=True))
        return SettleSeen(
            at_least_seconds=least, at_most_seconds=most, lowerings_count=len(self._seen)
        )
