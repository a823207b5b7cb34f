"""The journal of jobs on disk: written before anything is done that it says, read at each start.

Its own file because of the promise: `add` returns when the record is on disk, or raises and nothing
has happened. One write at a time. A torn end is cut and told; a journal that contradicts itself, or
that a later version wrote, is left alone, and no job is started then. It must not know what follows
from a record.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path

import trio

from cluster.durable import DurableFailed, RecordLog
from esnode.workloads.book import Book, Contradicted
from esnode.workloads.records import AnyRecord, BadRecord, decode_record, encode_record

FOLDER = "jobs"
"""In the state folder."""
NAME = "journal.log"
KIND = "jobs"
COMPACT_RECORDS = 5000


class JournalUnusable(Exception):
    """There is a journal that is not to be believed, or cannot be read; one line."""


class JobJournal:
    """The journal of one node, and the book that it makes."""

    def __init__(self, state_folder: Path, unix_clock: Callable[[], float]) -> None:
        self.folder = state_folder / FOLDER
        self.path = self.folder / NAME
        self.book = Book()
        """As on disk."""
        self._unix_clock = unix_clock
        self._file = RecordLog(self.path, KIND)
        self._records_count = 0
        self._turn = trio.Lock()

    def load(self) -> str:
        """Read it; a line about what was damaged, or none. Blocks.

        Raises:
            JournalUnusable: nothing may be started.
        """
        try:
            self.folder.mkdir(mode=0o711, exist_ok=True)
            self._file = RecordLog(self.path, KIND)
            kept = self._file.load()
            records = [decode_record(data) for data in kept.records if data]
            self.book = Book(records)
        except OSError as error:
            raise JournalUnusable(f"{self.folder}: {error.strerror}") from None
        except DurableFailed as error:
            raise JournalUnusable(str(error)) from None
        except (BadRecord, Contradicted) as error:
            raise JournalUnusable(
                f"{self.path}: contradicts itself ({error}): no job is started; put back the file "
                "as it was, or move it away, which forgets its jobs"
            ) from None
        self._records_count = len(records)
        if not kept.cut_bytes:
            return ""
        return f"{self.path}: cut a damaged end of {kept.cut_bytes} bytes, kept as .cut"

    async def add(self, *records: AnyRecord) -> None:
        """Write records together, and then take them in. Not cancelled half-way.

        Raises:
            Contradicted: they do not follow; nothing was written.
            DurableFailed: the disk refuses; nothing has happened.
        """
        async with self._turn:
            for record in records:
                self.book.check(record)
            with trio.CancelScope(shield=True):
                data = list(map(encode_record, records))
                await trio.to_thread.run_sync(self._file.append, data)
            for record in records:
                self.book.apply(record)
            self._records_count += len(records)
            if self._records_count > COMPACT_RECORDS + 2 * len(self.book):
                await self._compact()

    async def _compact(self) -> None:
        """A full disk leaves the records as they are."""
        summed = self.book.sum_up(self._unix_clock())
        data = list(map(encode_record, summed))
        with contextlib.suppress(DurableFailed), trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(self._file.replace, data)
            self._records_count = len(summed)
