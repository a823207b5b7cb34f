"""What must outlive the process: an append-only log of records, and a number that only grows.

Its own file because each promise is about a crash. A record is on disk when `append` returns; a
torn or damaged tail is cut at the next start, kept aside, and reported. The epoch is written in
place, in two slots of which at least one is whole at any time, in blocks that exist from the first
start on, so that a full disk does not keep a node from restarting. A file of a later format is
refused in one line and left alone. It must not know what a record says.
"""

import contextlib
import errno
import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cluster.identity.files import sync_folder

FILE_MODE = 0o600
RECORD_BYTES_MAX = 1 << 20
_FORMAT = 1
_HEAD = struct.Struct(">II")
"""Length of the record, CRC-32 of it."""
_SLOT_BYTES = 64
_SLOTS = 2
_EPOCH_MAGIC = b"esnode epoch 1\n"
_EPOCH = struct.Struct(">15sQI")


class DurableFailed(Exception):
    """The disk or the file refuses; one line: what, where, what to do."""


class DamagedWithin(DurableFailed):
    """Records that had been on disk are gone; one line: which file, and where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a log held at its start."""

    records: tuple[bytes, ...]
    cut_bytes: int
    """How much of a damaged tail was cut off; 0 for a whole log."""


class RecordLog:
    """One append-only file."""

    def __init__(self, path: Path, kind: str) -> None:
        """Open or make the log of a kind; read it with `load` before the first `append`."""
        self.path = path
        self._header = f"esnode {kind} {_FORMAT}\n".encode()
        self._end_bytes = 0
        self._is_named = True
        """Whether the name of the file is known to be on disk."""

    def load(self, *, may_lose_records: bool = True) -> Kept:
        """All whole records; a damaged tail is cut, and kept beside the log.

        A write that was torn leaves nothing whole behind it. Where whole records follow the damage
        they had been on disk: `may_lose_records` says whether the log can do without them.

        Raises:
            DamagedWithin: it may lose nothing, and has; the file is left as it is.
            DurableFailed: the file cannot be read, is not ours, or is of a later version.
        """
        with _lines_for(self.path):
            content = self.path.read_bytes() if self.path.exists() else b""
            if not content:
                return Kept(records=(), cut_bytes=0)
            self._check_header(content)
            records, end = _split(content, len(self._header))
            if not may_lose_records and _holds_record(content, end + 1):
                raise DamagedWithin(
                    f"{self.path}: is damaged at byte {end}, and whole records follow"
                )
            self._end_bytes = end
            if end < len(content):
                self._cut(content[end:])
            return Kept(records=records, cut_bytes=len(content) - end)

    def append(self, records: Iterable[bytes]) -> None:
        """Add records; they are on disk when this returns, or none of them is.

        Raises:
            DurableFailed: the disk refuses.
        """
        data = b"".join(_HEAD.pack(len(one), zlib.crc32(one)) + one for one in records)
        if not data:
            return
        with _lines_for(self.path):
            is_new = self._end_bytes == 0
            data = self._header + data if is_new else data
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
            try:
                _write_at(descriptor, data, self._end_bytes)
            finally:
                os.close(descriptor)
            if is_new or not self._is_named:
                sync_folder(self.path.parent)
                self._is_named = True
            self._end_bytes += len(data)

    def replace(self, records: Iterable[bytes]) -> None:
        """Put these in the place of all records; after a crash it is one or the other.

        Raises:
            DurableFailed: the disk refuses.
        """
        aside = self.path.with_name(f".{self.path.name}.new")
        with _lines_for(self.path):
            with contextlib.suppress(FileNotFoundError):
                aside.unlink()  # of a run that was killed
            fresh = RecordLog(aside, "")
            fresh._header = self._header
            fresh.append([*records, b""])
            aside.replace(self.path)
            # The new file is the log from here on; appended records count once its name is on disk.
            self._end_bytes, self._is_named = fresh._end_bytes, False
            sync_folder(self.path.parent)
            self._is_named = True

    def _check_header(self, content: bytes) -> None:
        if content.startswith(self._header):
            return
        stem = self._header[: self._header.rindex(b" ") + 1]
        if content.startswith(stem) and b"\n" in content[: len(stem) + 8]:
            raise DurableFailed(
                f"{self.path}: was written by a later version; run that one, or move the file away"
            )
        if self._header.startswith(content[: len(self._header)]):
            return  # torn in its first line: nothing was kept yet
        raise DurableFailed(f"{self.path}: is not a log of this kind; move it away")

    def _cut(self, tail: bytes) -> None:
        aside = self.path.with_name(f"{self.path.name}.cut")
        with contextlib.suppress(OSError):  # a full disk: the tail was no whole record anyway
            aside.write_bytes(tail)
            aside.chmod(FILE_MODE)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.ftruncate(descriptor, self._end_bytes)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class EpochFile:
    """How often this node has started: raised and on disk before anything is sent."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> int:
        """The highest number that was written whole; 0 where none was.

        Raises:
            DurableFailed: the file cannot be read.
        """
        with _lines_for(self.path):
            content = self.path.read_bytes() if self.path.exists() else b""
        return max((_read_slot(content, slot) for slot in range(_SLOTS)), default=0)

    def is_damaged(self) -> bool:
        """Whether there is a file, and no whole number in it."""
        return self.path.exists() and self.read() == 0

    def write(self, epoch: int) -> None:
        """Put this number on disk.

        Raises:
            DurableFailed: the disk refuses; the number before still stands.
        """
        with _lines_for(self.path):
            is_new = not self.path.exists()
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            descriptor = os.open(self.path, flags, FILE_MODE)
            try:
                content = os.pread(descriptor, _SLOTS * _SLOT_BYTES, 0)
                if len(content) < _SLOTS * _SLOT_BYTES:
                    content = content.ljust(_SLOTS * _SLOT_BYTES, b"\0")
                    os.pwrite(descriptor, content, 0)
                older = min(range(_SLOTS), key=lambda slot: _read_slot(content, slot))
                _write_at(descriptor, _slot(epoch), older * _SLOT_BYTES)
            finally:
                os.close(descriptor)
            if is_new:
                sync_folder(self.path.parent)


def _slot(epoch: int) -> bytes:
    body = _EPOCH.pack(_EPOCH_MAGIC, epoch, 0)[:-4]
    return (body + struct.pack(">I", zlib.crc32(body))).ljust(_SLOT_BYTES, b"\0")


def _read_slot(content: bytes, slot: int) -> int:
    part = content[slot * _SLOT_BYTES : (slot + 1) * _SLOT_BYTES]
    if len(part) < _EPOCH.size:
        return 0
    magic, epoch, check = _EPOCH.unpack_from(part)
    is_whole = magic == _EPOCH_MAGIC and zlib.crc32(part[: _EPOCH.size - 4]) == check
    return int(epoch) if is_whole else 0


def _split(content: bytes, begin: int) -> tuple[tuple[bytes, ...], int]:
    """Whole records from here on, and where they end.

    Zeros read as records of no length: one may stand (`replace` ends with one), and two in a row
    are a hole that no write has filled.
    """
    records: list[bytes] = []
    if len(content) < begin:
        return (), 0
    while True:
        body = begin + _HEAD.size
        if body > len(content):
            return tuple(records), begin
        length, check = _HEAD.unpack_from(content, begin)
        record = content[body : body + length]
        if length > RECORD_BYTES_MAX or len(record) < length or zlib.crc32(record) != check:
            return tuple(records), begin
        if not record and records and not records[-1]:
            return tuple(records), begin
        records.append(record)
        begin = body + length


def _holds_record(content: bytes, begin: int) -> bool:
    """Whether a whole record begins somewhere from here on."""
    for at in range(begin, len(content) - _HEAD.size):
        length, check = _HEAD.unpack_from(content, at)
        body = at + _HEAD.size
        if not 0 < length <= min(RECORD_BYTES_MAX, len(content) - body):
            continue
        if zlib.crc32(content[body : body + length]) == check:
            return True
    return False


def _write_at(descriptor: int, data: bytes, offset: int) -> None:
    """Write and sync; whatever fails, the file ends where it ended before."""
    size = os.fstat(descriptor).st_size
    if size < offset:
        raise OSError(errno.EIO, "is shorter than what was written; start the agent again")
    try:
        view = memoryview(data)
        at = offset
        while view:
            written = os.pwrite(descriptor, view, at)
            view, at = view[written:], at + written
        os.fsync(descriptor)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, size)
        raise


@contextlib.contextmanager
def _lines_for(path: Path) -> Iterator[None]:
    """Whatever the system says about this path, in one line."""
    try:
        yield
    except OSError as error:
        raise DurableFailed(f"{path}: {error.strerror or 'cannot be used'}") from None
