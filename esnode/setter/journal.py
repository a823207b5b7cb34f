"""The setter's own journal: what was asked, before it is done, and what came of it.

Its own file because it has to be honest about a full or broken disk: a line is whole and on disk,
or `JournalFailed` says why not. JSON lines, so that `tail` and `jq` will do; mode 0600; at 1 MiB it
is renamed to `.1`, in place of the one before. It must not know devices.
"""

import contextlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from cluster.identity.files import sync_folder, write_whole

NAME = "power-setter.log"
BYTES_MAX = 1 << 20
_MODE = 0o600


class JournalFailed(Exception):
    """The journal cannot be written; one line."""


class Journal:
    """One setter's journal, in a folder that is there already."""

    def __init__(self, folder: Path, *, bytes_max: int = BYTES_MAX) -> None:
        self.path = folder / NAME
        self._bytes_max = bytes_max

    def append(self, entry: Mapping[str, object]) -> None:
        """Add one line; it is on disk when this returns.

        Raises:
            JournalFailed: it is not.
        """
        line = json.dumps(entry, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        try:
            self._make_room(len(line))
            self._write(line)
        except OSError as error:
            raise JournalFailed(f"{self.path}: {error.strerror or 'cannot be written'}") from None

    def _make_room(self, more: int) -> None:
        try:
            status = self.path.lstat()
        except FileNotFoundError:
            return
        is_full = status.st_size > 0 and status.st_size + more > self._bytes_max
        if is_full and stat.S_ISREG(status.st_mode):
            self.path.replace(self.path.with_name(f"{NAME}.1"))

    def _write(self, line: bytes) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(self.path, flags, _MODE)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(0, "is not a file")
            size = status.st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                line = b"\n" + line  # what a crash tore stays a line of its own
            try:
                write_whole(descriptor, line)
                os.fsync(descriptor)
                if not size:
                    sync_folder(self.path.parent)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, size)
                raise
        finally:
            os.close(descriptor)
