"""Virtual time: a heap of what is to be done, and a digest of what was.

Its own file because everything else in a simulation is an event, and because a run can only be
repeated if nothing but this decides what comes next. Things of the same instant happen in the
order in which they were asked for. It must not know what the events are about.
"""

import hashlib
import heapq
import random
from collections.abc import Callable

_Event = tuple[float, int, Callable[..., None], tuple[object, ...]]


class World:
    """The time of one run, and its chance: one stream a concern."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now = 0.0
        self._heap: list[_Event] = []
        self._events_total = 0
        self._trace = hashlib.blake2b(digest_size=16)

    @property
    def trace_digest(self) -> str:
        """Of all that was sent and decided: equal for two runs that are the same."""
        return self._trace.hexdigest()

    def chance(self, concern: str) -> random.Random:
        """Randomness for one concern, so that a new draw in one does not shift the others."""
        return random.Random(f"{concern} {self.seed}")

    def at(self, when: float, action: Callable[..., None], *given: object) -> None:
        """Do something then; at once where then is past."""
        self._events_total += 1
        heapq.heappush(self._heap, (max(when, self.now), self._events_total, action, given))

    def after(self, seconds: float, action: Callable[..., None], *given: object) -> None:
        """Do something so much later."""
        self.at(self.now + seconds, action, *given)

    def run_until(self, when: float, until: Callable[[], bool] | None = None) -> bool:
        """Let time pass; whether the condition held before it was over."""
        heap = self._heap
        while heap and heap[0][0] <= when:
            self.now, _, action, given = heapq.heappop(heap)
            action(*given)
            if until is not None and until():
                return True
        self.now = when
        return until is not None and until()

    def trace(self, data: bytes) -> None:
        """Something was sent."""
        self._trace.update(data)

    def note(self, *words: object) -> None:
        """Something was decided."""
        self._trace.update(repr((round(self.now, 9), *words)).encode())
