"""Reading what a job has written: the newest part, and on from there, across rotated files.

Its own file because it must say what is missing: whoever reads on after the files have gone round
is told, not given a seam without a mark. It must not know who writes.
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

NAME = "output.log"
PIECE_BYTES_MAX = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One piece."""

    text: str
    cursor: str
    """Where the next piece begins; empty where nothing was ever written."""
    is_more: bool
    """There is more now."""
    has_gap: bool = False
    """What came after the cursor given is gone."""


def read_output(folder: Path, cursor: str = "", *, tail_bytes: int = PIECE_BYTES_MAX) -> Output:
    """The last `tail_bytes`, or what comes after a cursor. Blocks.

    Raises:
        OSError: it cannot be read.
    """
    files = _files(folder)
    if not files:
        return Output(text="", cursor="", is_more=False)
    place = _place(files, cursor)
    if place is None:
        place = _tail(files, tail_bytes if not cursor else PIECE_BYTES_MAX)
    number, offset = place
    data = b""
    while True:
        with files[number].open("rb") as file:
            file.seek(offset)
            piece = file.read(PIECE_BYTES_MAX - len(data))
        data, offset = data + piece, offset + len(piece)
        is_last = number + 1 == len(files)
        if len(data) >= PIECE_BYTES_MAX or is_last:
            break
        number, offset = number + 1, 0
    inode = files[number].stat().st_ino
    is_more = not is_last or offset < files[number].stat().st_size
    has_gap = bool(cursor) and _place(files, cursor) is None
    text = data.decode(errors="replace")
    return Output(text=text, cursor=f"{inode}:{offset}", is_more=is_more, has_gap=has_gap)


def output_size(folder: Path) -> int:
    """How much is kept now, in bytes."""
    total = 0
    for path in _files(folder):
        with contextlib.suppress(OSError):
            total += path.stat().st_size
    return total


def _files(folder: Path) -> list[Path]:
    """Oldest first."""
    found = []
    for path in folder.glob(f"{NAME}*"):
        suffix = path.name[len(NAME) :].removeprefix(".")
        if path.name == NAME or suffix.isdecimal():
            found.append((int(suffix or 0), path))
    return [path for _, path in sorted(found, reverse=True)]


def _place(files: list[Path], cursor: str) -> tuple[int, int] | None:
    inode, _, offset = cursor.partition(":")
    if not (inode.isdecimal() and offset.isdecimal()):
        return None
    for number, path in enumerate(files):
        status = path.stat()
        if status.st_ino == int(inode) and int(offset) <= status.st_size:
            return number, int(offset)
    return None


def _tail(files: list[Path], wanted: int) -> tuple[int, int]:
    for number in range(len(files) - 1, -1, -1):
        size = os.stat(files[number]).st_size
        if size >= wanted or number == 0:
            return number, max(0, size - wanted)
        wanted -= size
    return 0, 0
