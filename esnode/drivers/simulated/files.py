"""The five things that the store does to files: look, open, lock, append, replace.

Their own file because each is a promise about a crash, to be read apart from what is written.
They raise the plain `OSError`; `store` says what it means.
"""

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

LOCK_ATTEMPTS = 500
LOCK_PAUSE_SECONDS = 0.01
"""A change takes milliseconds; a writer that waits 5 s is waiting for a stopped process."""


class LockedTooLong(Exception):
    """Another process holds the lock and does not let go."""


def fingerprint(path: Path) -> tuple[int, int, int]:
    """What changes when the file does; zeros where there is no file."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return (0, 0, 0)
    return (status.st_mtime_ns, status.st_size, status.st_ino)


def open_to_read(path: Path) -> BinaryIO:
    """Open a regular file; a pipe in its place would keep the caller until somebody writes.

    Raises:
        OSError: it cannot be opened, or is something else.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        raise OSError(errno.EINVAL, "Not a regular file")
    return os.fdopen(descriptor, "rb")


@contextlib.contextmanager
def exclusive_lock(path: Path, *, attempts: int = LOCK_ATTEMPTS) -> Iterator[None]:
    """Hold a lock file. The kernel lets it go when the process ends, however it ends.

    Whoever waits holds a turnstile, through which the holder must pass before it can have the lock
    again: a writer that changes the machine without a pause would else keep all others out.

    Raises:
        LockedTooLong: nobody let go.
    """
    turn = path.with_name(path.name + ".turn")
    with _locked_file(turn, attempts) as turnstile, _locked_file(path, attempts):
        os.close(turnstile.pop())
        yield


@contextlib.contextmanager
def _locked_file(path: Path, attempts: int) -> Iterator[list[int]]:
    """Hold one file's lock; the descriptor is the caller's to close when it takes it out."""
    held = [os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)]
    try:
        for _ in range(attempts):
            try:
                fcntl.flock(held[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(LOCK_PAUSE_SECONDS)
            else:
                break
        else:
            raise LockedTooLong(f"for {attempts * LOCK_PAUSE_SECONDS:g} s")
        yield held
    finally:
        for descriptor in held:
            os.close(descriptor)


def append_durably(path: Path, text: bytes, *, at: int) -> None:
    """Write at the end of the complete lines, cutting what follows them; on disk when it returns.

    On failure the file is as it was, but for the cut.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(descriptor, at)
        try:
            written = 0
            while written < len(text):
                written += os.pwrite(descriptor, text[written:], at + written)
            os.fdatasync(descriptor)
        except OSError:
            os.ftruncate(descriptor, at)
            raise
    finally:
        os.close(descriptor)


def replace_whole(path: Path, text: bytes) -> None:
    """Replace a file in one step. Not forced to disk: the history can make it again."""
    temporary = path.with_name(path.name + ".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
    os.replace(temporary, path)
