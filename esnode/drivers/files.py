"""Bounded reads of kernel files: text, or one line that says why there is none.

It is its own file, below drivers and collectors, because both read `/proc` and `/sys` and must
fail in the same words. It must not know what any file means.
"""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass

MAX_FILE_BYTES = 16 << 20
"""No kernel file that we read is longer; `/proc/1/mountinfo` of a crowded node is about 2 MB."""

_CHUNK_BYTES = 64 << 10
_LARGEST_COUNT = (1 << 64) - 1
"""The kernel's counters are 64 bits wide; a longer number is not one of them."""

_MEANINGS = {
    errno.ENOENT: "does not exist",
    errno.ENOTDIR: "does not exist (part of its path is not a folder)",
    errno.EACCES: "permission denied: needs root or CAP_DAC_READ_SEARCH",
    errno.EPERM: "operation not permitted: needs root",
    errno.EISDIR: "is a folder, not a file",
    errno.EINVAL: "invalid argument: the driver offers no value here",
    errno.EOPNOTSUPP: "not supported by this kernel as it was booted",
    errno.ENODATA: "no data: the device gives no value now",
    errno.EAGAIN: "temporarily unavailable: the device gives no value now",
    errno.EIO: "input/output error: the device did not answer",
    errno.ENXIO: "no such device: it was removed or is not powered",
    errno.ENODEV: "no such device: it was removed or is not powered",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """Why a file or folder gave nothing."""

    reason: str
    """One line that names the path."""
    error_number: int | None = None
    """The errno, where the kernel gave one."""


ReadFile = Callable[[str], str | Unreadable]
"""How a driver reads one file: `read_text`, unless a test hands in another."""


def explain_error(path: str, error: OSError) -> Unreadable:
    """Turn the kernel's refusal into one line for the operator."""
    meaning = _MEANINGS.get(error.errno or 0, error.strerror or type(error).__name__)
    return Unreadable(reason=f"{path} {meaning}", error_number=error.errno)


def read_text(path: str) -> str | Unreadable:
    """Read a whole kernel file; bytes that are not UTF-8 come out as escapes, as in `repr`."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as error:
        return explain_error(path, error)
    except ValueError:  # a NUL byte in the path, which only a foreign name can bring in
        return Unreadable(reason=f"{path!r} is not a possible file name")
    try:
        # A kernel file says its length by ending: a short read is not the last one.
        chunks: list[bytes] = []
        length = 0
        while chunk := os.read(descriptor, _CHUNK_BYTES):
            chunks.append(chunk)
            length += len(chunk)
            if length > MAX_FILE_BYTES:
                return Unreadable(reason=f"{path} is longer than {MAX_FILE_BYTES} bytes")
    except OSError as error:
        return explain_error(path, error)
    finally:
        os.close(descriptor)
    return b"".join(chunks).decode("utf-8", "backslashreplace")


def list_folder(path: str) -> tuple[str, ...] | Unreadable:
    """Name the entries of a folder, sorted."""
    try:
        return tuple(sorted(os.listdir(path)))
    except OSError as error:
        return explain_error(path, error)


def parse_count(text: str) -> int | None:
    """Read a whole number that is not negative and fits the kernel's 64 bits."""
    text = text.strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 20:
        return None
    count = int(text)
    return count if count <= _LARGEST_COUNT else None


def parse_whole(text: str) -> int | None:
    """Read a whole number of either sign."""
    text = text.strip()
    count = parse_count(text.removeprefix("-"))
    return -count if count is not None and text.startswith("-") else count


def read_number(path: str, parse: Callable[[str], int | None], read: ReadFile) -> int | Unreadable:
    """Read a file that holds one number."""
    text = read(path)
    if isinstance(text, Unreadable):
        return text
    number = parse(text)
    if number is None:
        shown = repr(text.strip()[:40]) if text.strip() else "nothing"
        return Unreadable(reason=f"{path} holds {shown} where a number belongs")
    return number
