"""Devices that do not take a raise: for how long they count at what they have.

Pure; `now` is handed in. Its own file because a refusal is a word about one write, and only its
repetition is one about the device: the setter, too, turns raises down while something settles.
Watts that are kept free for a device that refuses them would be lost to all others, so such a
device gets no more than it has, and is tried again now and then with one watt. It must not know how
watts are divided, nor lowerings: a device that is not lowered still bounds what the node can draw.
"""

from dataclasses import dataclass

REFUSALS_MIN = 3
REFUSING_SECONDS = 5.0
"""Longer than a device takes to settle, for which the setter turns raises down."""
TRY_SECONDS = 30.0
TRY_SECONDS_MAX = 600.0
TRY_WATTS = 1
"""So little is missed by nobody, and its success says as much as that of a whole raise."""


@dataclass(slots=True, eq=False)
class _Watch:
    first_seconds: float
    refusals_count: int = 0
    is_refusing: bool = False
    try_seconds: float = 0.0
    """When it is tried again."""
    pause_seconds: float = TRY_SECONDS


class RefusedRaises:
    """What is known of the devices' refusals to be raised."""

    def __init__(self) -> None:
        self._watches: dict[str, _Watch] = {}

    def refused(self, device: str, now: float) -> None:
        """It did not take a raise."""
        watch = self._watches.setdefault(device, _Watch(first_seconds=now))
        watch.refusals_count += 1
        if watch.is_refusing:
            watch.pause_seconds = min(TRY_SECONDS_MAX, 2 * watch.pause_seconds)
            watch.try_seconds = now + watch.pause_seconds
        elif watch.refusals_count >= REFUSALS_MIN and now - watch.first_seconds >= REFUSING_SECONDS:
            watch.is_refusing = True
            watch.try_seconds = now + watch.pause_seconds

    def took(self, device: str) -> None:
        """It took a raise."""
        self._watches.pop(device, None)

    def is_refusing(self, device: str) -> bool:
        """Whether it is to count at what it has."""
        watch = self._watches.get(device)
        return watch is not None and watch.is_refusing

    def is_resting(self, device: str, now: float) -> bool:
        """Whether it is not yet time to try again whether it takes a little more."""
        watch = self._watches.get(device)
        return watch is not None and watch.is_refusing and now < watch.try_seconds
