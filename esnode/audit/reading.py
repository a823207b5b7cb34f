"""Reading the audit: its lines, which of them are about something, and whether the chain holds.

Its own file because it works on the files alone, with the agent down. It must not write.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from esnode.audit.chain import FIRST, hash_of, lines_of, read_line
from esnode.audit.files import files_in

SHORT_MIN = 4
"""Fewer letters of an id name too many things."""
KINDS = ("gpu", "job", "pid", "unit", "started", "boot")
"""Words of a target that name nothing by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the audit."""

    file: str
    line_number: int
    fields: Mapping[str, object]

    def text(self, name: str) -> str:
        """One of its texts; empty where it has none of that name."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What `verify` found."""

    line_count: int
    file_count: int
    first_number: int | None
    """Of the oldest line that is still there; those before it were rotated away."""
    head: str
    """The hash of the last line: note it elsewhere, and nobody can take lines off the end."""
    broken: str
    """The first broken place and what is wrong there; empty where the chain holds."""


def read_entries(folder: Path) -> Iterator[Entry]:
    """All lines that can be read, the oldest first; a torn or foreign line is passed over.

    Raises:
        OSError: a file cannot be read.
    """
    for _, path in files_in(folder):
        for line_number, line in enumerate(lines_of(path.read_bytes()), 1):
            fields = read_line(line)
            if fields is not None:
                yield Entry(file=path.name, line_number=line_number, fields=fields)


def verify(folder: Path) -> Verified:
    """Follow the whole chain; stops at the first place where it does not hold.

    Raises:
        OSError: a file cannot be read.
    """
    files = files_in(folder)
    count, number, first, broken = 0, 0, None, ""
    previous: str | None = None
    for file_number, path in files:
        data = path.read_bytes()
        lines = lines_of(data)
        for line_number, line in enumerate(lines, 1):
            where = f"{path.name}:{line_number}"
            fields = read_line(line)
            if fields is None:
                is_torn = line_number == len(lines) and not data.endswith(b"\n")
                broken = f"{where}: {'is torn' if is_torn else 'is no line of an audit'}"
                break
            if previous is None and file_number == 1:
                previous = FIRST
            broken = _wrong(fields, previous=previous, number=number, where=where)
            if broken:
                break
            number = _whole(fields["number"])
            first = number if first is None else first
            previous = hash_of(line)
            count += 1
        if broken:
            break
    return Verified(
        line_count=count,
        file_count=len(files),
        first_number=first,
        head=previous or FIRST,
        broken=broken,
    )


def _wrong(fields: Mapping[str, object], *, previous: str | None, number: int, where: str) -> str:
    """What is wrong with a line, by the one before it (None: that one was rotated away)."""
    if previous is None:
        return ""
    if fields["previous"] != previous:
        return f"{where}: does not follow the line before it: one of them was changed or taken out"
    if fields["number"] != number + 1:
        return f"{where}: is number {fields['number']}, and {number + 1} is due"
    return ""


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def is_about(entry: Entry, what: str) -> bool:
    """Whether a line is about a job, a GPU, a pid, a unit, a feature or a ticket."""
    wanted = what.lower()
    return any(_is_named(word.lower(), wanted) for word in _words(entry.fields))


def _words(fields: Mapping[str, object]) -> Iterator[str]:
    for name in ("id", "feature", "rule", "target"):
        value = fields.get(name)
        if isinstance(value, str):
            yield from (word for word in (value, *value.split()) if word not in KINDS)
    about = fields.get("about")
    if isinstance(about, Iterable) and not isinstance(about, str):
        yield from (word for word in about if isinstance(word, str))


def _is_named(word: str, wanted: str) -> bool:
    if word == wanted:
        return True
    bare = word.removeprefix("gpu-")
    return len(wanted) >= SHORT_MIN and (
        word.startswith(wanted) or bare.startswith(wanted) or word.endswith(wanted)
    )
