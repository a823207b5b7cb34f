"""Where each tick is posted once and read by many: scrapers, /status, /events.

A slow reader never holds up the agent or another reader: it is handed the latest tick when it asks
for the next, and the ones between are skipped.
"""

import json
from collections import deque
from collections.abc import Callable

import trio

from esnode.metrics import Exposition
from esnode.snapshot import Snapshot

KEPT_EVENTS = 30
"""Events that a client can resume after a break: two and a half minutes at the default interval."""


class Posted:
    """One tick as it is served. Bodies are made when first asked for."""

    def __init__(
        self,
        *,
        number: int,
        snapshot: Snapshot,
        unix_seconds: float,
        expose: Callable[[], Exposition],
        describe: Callable[[], dict[str, object]],
    ) -> None:
        self.number = number
        """Counts events; ticks in which nothing new was read share the number before."""
        self.snapshot = snapshot
        self.unix_seconds = unix_seconds
        self._expose = expose
        self._describe = describe
        self._exposition: Exposition | None = None
        self._status: bytes | None = None

    @property
    def exposition(self) -> Exposition:
        """The metrics of this tick."""
        if self._exposition is None:
            self._exposition = self._expose()
        return self._exposition

    @property
    def status(self) -> bytes:
        """The status document of this tick, as JSON."""
        if self._status is None:
            document = self._describe()
            self._status = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
        return self._status


class Board:
    """The latest tick, and the last few events."""

    def __init__(self, *, run_id: str) -> None:
        self.run_id = run_id
        """Tells this run's event ids from those of a run before."""
        self.latest: Posted | None = None
        self.posted_at_seconds: float | None = None
        """When the latest tick was posted, by trio's clock."""
        self.is_closed = False
        self.event_clients = 0
        self._events: deque[Posted] = deque(maxlen=KEPT_EVENTS)
        self._changed = trio.Event()

    def post(self, posted: Posted) -> None:
        """Make this the latest tick."""
        if not self._events or posted.number != self._events[-1].number:
            self._events.append(posted)
        self.latest = posted
        self.posted_at_seconds = trio.current_time()
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    def close(self) -> None:
        """End all waiting: the agent is going."""
        self.is_closed = True
        self._changed.set()

    async def first(self) -> Posted | None:
        """The latest tick, waiting for the first; ``None`` when the agent is going."""
        while self.latest is None and not self.is_closed:
            await self._changed.wait()
        return self.latest

    async def newer(self, number: int) -> Posted | None:
        """The latest event after `number`, waiting for it; ``None`` when the agent is going."""
        while not self.is_closed:
            if self._events and self._events[-1].number > number:
                return self._events[-1]
            await self._changed.wait()
        return None

    def event_id(self, posted: Posted) -> str:
        """The id that a client sends back as `Last-Event-ID`."""
        return f"{self.run_id}-{posted.number}"

    def number_of(self, event_id: str) -> int | None:
        """The number of an event by the id that a client sent; ``None`` when it is of another run.

        An event that this run has not had yet is none of its own either.
        """
        run_id, _, text = event_id.rpartition("-")
        if run_id != self.run_id or not (text.isascii() and text.isdigit() and len(text) < 20):
            return None
        number = int(text)
        return number if self._events and number <= self._events[-1].number else None

    def after(self, number: int) -> tuple[Posted, ...]:
        """Kept events after one of this run."""
        return tuple(event for event in self._events if event.number > number)
