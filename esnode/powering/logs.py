"""The ledgers of this node on disk: one log for each currency, and the one task that writes them.

Its own file because of its promises. What was handed in is written in order, all that waits with
one sync; `kept` is told only of what is on disk; a disk that refuses is tried again for ever, since
an entry is never taken back. A log that contradicts itself, that is damaged anywhere but at its
end, or that a later version wrote, is left alone, and this node then holds nothing. That a log is
missing where one was is noticed by a mark beside the node's key. It must not know what an entry
leads to.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import quote, unquote

import trio

from cluster.durable import DamagedWithin, DurableFailed, RecordLog
from cluster.errors import Malformed
from cluster.identity.files import node_folder, sync_folder
from cluster.ids import NodeId
from cluster.rack.ledger.book import Book, Entry, Started, Summed, replay
from cluster.rack.ledger.book_wire import decode_entry, encode_entry
from cluster.rack.units import CurrencyId
from esnode.gate import FOLDER

KIND = "power-ledger"
MARK = "power-ledger"
"""In the folder of the node's key: a ledger was begun under it."""
COMPACT_ENTRIES = 2000
"""At a start, more entries than this are put together into one."""
COMPACT_RUNNING_ENTRIES = 20_000
"""The same while the agent runs: some hours of busy trading."""
RETRY_SECONDS = 0.5
RETRY_SECONDS_MAX = 10.0
_SUFFIX = ".log"
_PREFIX = "ledger-"
_WHAT_TO_DO = "this node holds nothing; retire it, or put back the file as it was"

Kept = Callable[[CurrencyId, int], None]


class LedgerUnusable(Exception):
    """A log is not to be believed, or cannot be read; one line: which, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledgers:
    """What the life before this one left."""

    books: Mapping[CurrencyId, Book] = field(repr=False)
    is_lost: bool
    """There should be a log of the rack's currency, and there was none."""
    notes: tuple[str, ...] = ()
    """What was found damaged, for people."""


@dataclass(slots=True)
class _Log:
    file: RecordLog
    book: Book
    """As on disk."""
    entries_count: int


class PowerLogs:
    """All ledgers of one node."""

    def __init__(self, state_folder: Path, complain: Callable[[str], None]) -> None:
        """`complain` is told once, in a line, when the disk begins to refuse."""
        self.state_folder = state_folder
        self.folder = state_folder / FOLDER
        self._complain = complain
        self._logs: dict[CurrencyId, _Log] = {}
        self._queues: dict[CurrencyId, deque[tuple[int, Entry]]] = {}
        self._has_work = trio.Event()
        self._in_use = threading.Lock()
        """A write that its task has left behind goes on: whoever reads the logs waits for it."""
        self.trouble: str | None = None
        """Why entries wait, in one line, while that is so."""
        self.written_total = 0
        self._cuts: list[str] = []
        """Told by the next `begin`: whoever reads a log first cuts it."""

    # -- reading ----------------------------------------------------------------------------------

    def begin(
        self, own: NodeId, rack_currency: CurrencyId, named: frozenset[CurrencyId]
    ) -> Ledgers:
        """Read all logs, and begin that of the rack where none ever was. Blocks.

        `named` are the currencies in which operators, by what is on disk, have given shares to this
        node: their logs should be there.

        Raises:
            LedgerUnusable: nothing may be spent.
        """
        with self._in_use:
            self._queues.clear()
            self._logs.clear()
            notes: list[str] = []
            try:
                self.folder.mkdir(mode=0o700, exist_ok=True)
                paths = sorted(self.folder.glob(f"{_PREFIX}*{_SUFFIX}"))
            except OSError as error:
                raise LedgerUnusable(f"{self.folder}: {error.strerror}") from None
            for path in paths:
                self._read(path, own, notes)
            mark = node_folder(self.state_folder) / MARK
            is_lost = any(one not in self._logs for one in named) or (
                mark.exists() and rack_currency not in self._logs
            )
            try:
                if rack_currency not in self._logs and not is_lost:
                    self._found(own, rack_currency)
                _touch(mark)
            except (DurableFailed, OSError) as error:
                raise LedgerUnusable(f"{self.folder}: no ledger can be begun: {error}") from None
            books = {currency: log.book for currency, log in self._logs.items()}
            notes += self._cuts
            self._cuts = []
            return Ledgers(books=books, is_lost=is_lost, notes=tuple(notes))

    def holds_any(self) -> bool:
        """Whether a ledger on disk was ever opened: this machine may hold watts of a rack. Blocks.

        One that cannot be read may be such a one.
        """
        with self._in_use:
            try:
                for path in sorted(self.folder.glob(f"{_PREFIX}*{_SUFFIX}")):
                    kept = RecordLog(path, KIND).load(may_lose_records=False)
                    self._note_cut(path, kept.cut_bytes)
                    entries = (decode_entry(record) for record in kept.records if record)
                    if not all(_says_nothing(entry) for entry in entries):
                        return True
            except (DurableFailed, Malformed, OSError):
                return True
            return False

    def _read(self, path: Path, own: NodeId, notes: list[str]) -> None:
        currency = CurrencyId(unquote(path.name[len(_PREFIX) : -len(_SUFFIX)]))
        file = RecordLog(path, KIND)
        try:
            kept = file.load(may_lose_records=False)
            entries = [decode_entry(record) for record in kept.records if record]
            if not entries:
                return
            first = entries[0]
            if isinstance(first, Summed) and first.book.node_id != own:
                _move_aside(path, first.book.node_id)
                notes.append(f"{path}: is that of another key; kept under its name")
                return
            book = replay(Book(node_id=own, currency=currency), entries)
        except DamagedWithin as error:
            raise LedgerUnusable(f"{error}: {_WHAT_TO_DO}") from None
        except DurableFailed as error:
            raise LedgerUnusable(str(error)) from None
        except Malformed as error:
            raise LedgerUnusable(f"{path}: contradicts itself ({error}): {_WHAT_TO_DO}") from None
        self._note_cut(path, kept.cut_bytes)
        log = _Log(file=file, book=book, entries_count=len(entries))
        self._logs[currency] = log
        if log.entries_count > COMPACT_ENTRIES:
            _compact(log)

    def _note_cut(self, path: Path, cut_bytes: int) -> None:
        if cut_bytes:
            self._cuts.append(f"{path}: cut a damaged end of {cut_bytes} bytes, kept as .cut")

    def _found(self, own: NodeId, currency: CurrencyId) -> None:
        path = self.folder / f"{_PREFIX}{quote(currency, safe=':')}{_SUFFIX}"
        book = Book(node_id=own, currency=currency)
        file = RecordLog(path, KIND)
        file.load()
        file.append([encode_entry(Summed(book=book))])
        self._logs[currency] = _Log(file=file, book=book, entries_count=1)

    # -- writing ----------------------------------------------------------------------------------

    def keep(self, currency: CurrencyId, number: int, entry: Entry) -> None:
        """Write an entry, after those before it."""
        self._queues.setdefault(currency, deque()).append((number, entry))
        self._has_work.set()

    @property
    def waiting_count(self) -> int:
        """Entries that are not on disk yet."""
        return sum(map(len, self._queues.values()))

    async def run(self, own: NodeId, kept: Kept) -> None:
        """Write as it comes, until cancelled; `kept` is told of each entry, in order."""
        wait_seconds = RETRY_SECONDS
        while True:
            await self._has_work.wait()
            self._has_work = trio.Event()
            trouble: str | None = None
            for currency in [one for one, queue in self._queues.items() if queue]:
                trouble = await self._write_queue(own, currency, kept) or trouble
            if trouble is None:
                self.trouble, wait_seconds = None, RETRY_SECONDS
                continue
            if self.trouble is None:
                self._complain(f"{trouble}: the power ledger waits for the disk")
            self.trouble = trouble
            await trio.sleep(wait_seconds)
            wait_seconds = min(RETRY_SECONDS_MAX, 2 * wait_seconds)
            self._has_work.set()

    async def _write_queue(self, own: NodeId, currency: CurrencyId, kept: Kept) -> str | None:
        """Put on disk what waits for one log; why not, if the disk refuses."""
        queue = self._queues[currency]
        batch = list(queue)
        entries = [entry for _, entry in batch]
        write = partial(self._write, own, currency, entries)
        try:
            await trio.to_thread.run_sync(write, abandon_on_cancel=True)
        except (DurableFailed, Malformed) as error:
            return str(error)
        for number, _ in batch:
            queue.popleft()
            self.written_total += 1
            kept(currency, number)
        return None

    def _write(self, own: NodeId, currency: CurrencyId, entries: list[Entry]) -> None:
        """In a thread; all of them come to disk, or none.

        Raises:
            DurableFailed: the disk refuses.
            Malformed: they contradict what is on disk; nothing was written.
        """
        with self._in_use:
            if currency not in self._logs:
                self._found(own, currency)
            log = self._logs[currency]
            book = replay(log.book, entries)
            log.file.append(map(encode_entry, entries))
            log.book = book
            log.entries_count += len(entries)
            if log.entries_count > COMPACT_RUNNING_ENTRIES:
                _compact(log)


def _says_nothing(entry: Entry) -> bool:
    """Whether a book with this entry may still be one that nobody has opened."""
    return isinstance(entry, Started) or (isinstance(entry, Summed) and not entry.book.is_open)


def _compact(log: _Log) -> None:
    """Put the whole book in the place of its entries; a full disk leaves them as they are."""
    with contextlib.suppress(DurableFailed):
        log.file.replace([encode_entry(Summed(book=log.book))])
        log.entries_count = 1


def _touch(mark: Path) -> None:
    if not mark.exists():
        mark.touch(mode=0o600)
        sync_folder(mark.parent)


def _move_aside(path: Path, owner: NodeId) -> None:
    try:
        path.replace(path.with_name(f"{path.name}.{owner.short}"))
    except OSError as error:
        raise LedgerUnusable(f"{path}: {error.strerror}") from None
