"""Writing the audit: a line is whole, chained and on disk when `add` returns, or it is refused.

Its own file because an action rests on it: what cannot be written down is not done. A line that a
crash tore is cut off at the next start; a note says so, holds what was cut, and is chained to the
last whole line. Files are 0600; a full one is followed by the next, with the chain going on, and
the oldest are taken away. One process writes: the agent, which holds the state folder. It must not
know what actions are.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

from cluster.identity.files import sync_folder, write_whole
from esnode.audit.chain import FIRST, NAMES, hash_of, lines_of, make_line, read_line
from esnode.audit.files import file_of, files_in
from esnode.status.times import utc_text

BYTES_MAX = 8 << 20
FILES_MAX = 16
_CUT_SHOWN_BYTES = 400
_MODE = 0o600
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class AuditFailed(Exception):
    """The audit cannot be written; one line."""


class AuditJournal:
    """The audit of one node, for its one writer. Blocking: to be called in a thread."""

    def __init__(
        self,
        folder: Path,
        unix_clock: Callable[[], float],
        *,
        bytes_max: int = BYTES_MAX,
        files_max: int = FILES_MAX,
    ) -> None:
        self.folder = folder
        self._unix_clock = unix_clock
        self._bytes_max = bytes_max
        self._files_max = files_max
        self._file_number = 0
        """0: the end of the chain is not known yet."""
        self._number = 0
        self._previous = FIRST

    def add(self, fields: Mapping[str, object]) -> str:
        """Write one line; returns its hash.

        Raises:
            AuditFailed: it is not on disk, and nothing may be done on the strength of it.
        """
        taken = [name for name in (*NAMES, "at") if name in fields]
        assert not taken, f"{taken}: are the chain's own"
        try:
            if not self._file_number:
                self._find_end()
            return self._add(fields)
        except OSError as error:
            self._file_number = 0  # what is on disk is looked at anew before the next line
            where = f"{self.folder}: the audit cannot be written"
            raise AuditFailed(f"{where}: {error.strerror or error}") from None

    def _add(self, fields: Mapping[str, object]) -> str:
        whole = {"at": utc_text(self._unix_clock()), **fields}
        number = self._number + 1
        line = make_line(whole, number=number, previous=self._previous)
        self._make_room(len(line) + 1)
        self._append(file_of(self.folder, self._file_number), line + b"\n")
        self._number, self._previous = number, hash_of(line)
        return self._previous

    def _make_room(self, more: int) -> None:
        path = file_of(self.folder, self._file_number)
        try:
            size = path.lstat().st_size
        except FileNotFoundError:
            return
        if not size or size + more <= self._bytes_max:
            return
        self._file_number += 1
        for _, old in files_in(self.folder)[: -self._files_max + 1]:
            old.unlink()

    def _append(self, path: Path, data: bytes) -> None:
        descriptor = _open(path)
        try:
            size = os.fstat(descriptor).st_size
            try:
                write_whole(descriptor, data)
                os.fsync(descriptor)
                if not size:
                    sync_folder(self.folder)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, size)
                raise
        finally:
            os.close(descriptor)

    # -- where it ends ----------------------------------------------------------------------------

    def _find_end(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = files_in(self.folder)
        self._number, self._previous = 0, FIRST
        if not found:
            self._file_number = 1
            return
        torn = _cut_torn(found[-1][1])
        is_readable = True
        for _, path in reversed(found):
            lines = lines_of(path.read_bytes())
            if lines:
                last = read_line(lines[-1])
                is_readable = last is not None
                self._number = _number_of(last)
                self._previous = hash_of(lines[-1])
                break
        self._file_number = found[-1][0]
        if torn:
            self._add(
                {
                    "phase": "note",
                    "line": f"a torn line of {len(torn)} bytes was cut off here",
                    "cut": torn[:_CUT_SHOWN_BYTES].decode("ascii", "backslashreplace"),
                }
            )
        if not is_readable:
            self._add({"phase": "note", "line": "the line before this one cannot be read"})


def _number_of(last: Mapping[str, object] | None) -> int:
    number = None if last is None else last["number"]
    return number if isinstance(number, int) else 0


def _open(path: Path) -> int:
    descriptor = os.open(path, _FLAGS, _MODE)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, f"{path.name} is not a file")
    return descriptor


def _cut_torn(path: Path) -> bytes:
    """Cut off what follows the last whole line, and return it."""
    descriptor = _open(path)
    try:
        data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.ftruncate(descriptor, whole)
            os.fsync(descriptor)
        return data[whole:]
    finally:
        os.close(descriptor)
