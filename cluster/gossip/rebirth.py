"""How often a node may begin a life above one that it does not know of.

Its own file because two machines with one key would otherwise outdo each other for ever, each with
a higher epoch than the other, and tell everybody each time. Once is a disk that was set back, and
is answered at once; again and again is a clone, and waits longer each time. It must not know what a
life is begun with.
"""

import math

from cluster.gossip.messages import Version

_WAIT_MIN_SECONDS = 1.0
_WAIT_MAX_SECONDS = 60.0
_CALM_SECONDS = 300.0
"""After so long it counts as the first time again."""
_CONTESTED_COUNT = 3


class Rebirth:
    """Holds what was heard of other lives of this node until it may be outlived."""

    def __init__(self) -> None:
        self._seen: Version | None = None
        self._count = 0
        self._last_seconds = -math.inf
        self._earliest_seconds = -math.inf

    @property
    def due_seconds(self) -> float:
        """When there is something to be outlived."""
        return math.inf if self._seen is None else self._earliest_seconds

    @property
    def is_contested(self) -> bool:
        """Whether somebody else goes on with this node's key."""
        return self._count >= _CONTESTED_COUNT

    def hear(self, seen: Version) -> None:
        """A life that this node does not know of has said something."""
        self._seen = seen if self._seen is None else max(seen, self._seen)

    def take(self, now: float) -> Version | None:
        """What is to be outlived now."""
        seen = self._seen
        if seen is None or now < self._earliest_seconds:
            return None
        self._seen = None
        if now - self._last_seconds > _CALM_SECONDS:
            self._count = 0
        self._count += 1
        self._last_seconds = now
        # The second is quick too: what is heard first need not be the newest.
        wait = 0.0 if self._count < 2 else _WAIT_MIN_SECONDS * 2.0 ** min(self._count - 2, 10)
        self._earliest_seconds = now + min(wait, _WAIT_MAX_SECONDS)
        return seen
