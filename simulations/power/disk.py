"""The disk of one node's ledger: slow, in order, and torn where a crash hits a write.

Its own file because each durable write is an instant at which a node may die. What lies on it is
bytes, so every restart reads the log as an agent would. It must not know what entries mean.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from cluster.rack.ledger.book import Book, Entry, Started, Summed, replay
from cluster.rack.ledger.book_wire import decode_entry, encode_entry
from cluster.rack.units import CurrencyId
from simulations.world import World

WRITE_SECONDS = (0.0005, 0.008)
ENTRIES_MAX = 200
"""After a start with more than these the log is summed up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One entry on its way."""

    currency: CurrencyId
    number: int
    entry: Entry


class Disk:
    """The logs of one node, by currency."""

    def __init__(
        self,
        world: World,
        chance: random.Random,
        *,
        on_disk: Callable[[CurrencyId, Entry], None],
    ) -> None:
        """`on_disk` is told each entry at the instant from which on it survives."""
        self._world = world
        self._chance = chance
        self._on_disk = on_disk
        self.logs: dict[CurrencyId, list[bytes]] = {}
        self._queue: list[Write] = []
        self._writing: list[Write] = []
        self._life = 0

    def append(self, write: Write, kept: Callable[[CurrencyId, int], None]) -> None:
        """Keep an entry; whatever waits while another write is under way is written with it."""
        self._queue.append(write)
        if not self._writing:
            self._begin(kept)

    def _begin(self, kept: Callable[[CurrencyId, int], None]) -> None:
        self._writing, self._queue = self._queue, []
        life = self._life

        def end() -> None:
            if life != self._life:
                return
            written, self._writing = self._writing, []
            for write in written:
                self._put(write)
            if self._queue:
                self._begin(kept)
            for write in written:
                if life == self._life:
                    kept(write.currency, write.number)

        self._world.after(self._chance.uniform(*WRITE_SECONDS), end)

    def crash(self) -> None:
        """The process dies: of what was being written, a first part may have made it."""
        self._life += 1
        made_it = self._writing[: self._chance.randint(0, len(self._writing))]
        self._writing, self._queue = [], []
        for write in made_it:
            self._put(write)

    def set_back(self, count: int) -> int:
        """Forget the last entries, as a restored backup does; how many, after the account began."""
        forgotten = 0
        for currency, log in self.logs.items():
            first = next(
                (at for at, one in enumerate(log) if not isinstance(decode_entry(one), Started)), 0
            )
            keep = max(first + 1, len(log) - count)
            forgotten += len(log) - keep
            self.logs[currency] = log[:keep]
        return forgotten

    def _put(self, write: Write) -> None:
        self.logs.setdefault(write.currency, []).append(encode_entry(write.entry))
        self._on_disk(write.currency, write.entry)

    def read(self, empty: Callable[[CurrencyId], Book]) -> dict[CurrencyId, Book]:
        """The books that the logs make."""
        books = {}
        for currency, log in self.logs.items():
            book = replay(empty(currency), (decode_entry(one) for one in log))
            books[currency] = book
            if len(log) > ENTRIES_MAX:
                self.logs[currency] = [encode_entry(Summed(book=book))]
        return books
