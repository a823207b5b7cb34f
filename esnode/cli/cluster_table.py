"""How rows become a table that fits the terminal.

Its own file because fitting is a rule by itself: columns that say nothing go first, then those that
matter least; a flexible one is cut; the name is cut last. Which ones were left out is told, so that
nobody takes a missing column for a missing value. It must not know what the columns mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from esnode.cli.cluster_columns import ALWAYS, Column, Row
from esnode.cli.cluster_text import Painter, Units, cut, plain
from esnode.cli.text import UNKNOWN

_GAP = 2
_FLEXIBLE_CHARACTERS_MIN = 8
_NAME_CHARACTERS_MIN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How tables look here."""

    width: int | None = None
    """Columns of the terminal; None where nobody counts."""
    units: Units = Units.AUTO
    has_header: bool = True
    paint: Painter = plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table as text, and what it leaves out."""

    text: str
    left_out: tuple[str, ...] = ()


def choose_columns(
    columns: Sequence[Column], names: Sequence[Column] | None, *, is_wide: bool
) -> list[Column]:
    """Those asked for, else the usual ones, else all."""
    if names is not None:
        return list(names)
    return [column for column in columns if is_wide or not column.is_wide]


def lay_out(
    rows: Sequence[Row], columns: Sequence[Column], look: Look, *, is_fixed: bool = False
) -> Table:
    """The table; `is_fixed` where somebody asked for exactly these columns."""
    cells = {column.name: [column.write(row, look.units) for row in rows] for column in columns}
    natural = {name: max(map(len, (name, *texts))) for name, texts in cells.items()}
    kept = list(columns)
    if look.width is not None and not is_fixed:
        kept = _fitting(kept, cells, natural, look.width)
    widths = _widths(kept, natural, look.width)
    lines = []
    if look.has_header:
        lines.append(_line(kept, widths, [column.name for column in kept]))
    for i in range(len(rows)):
        texts = [cut(cells[column.name][i], widths[column.name]) for column in kept]
        lines.append(_line(kept, widths, texts, look.paint))
    left_out = tuple(column.name for column in columns if column not in kept)
    return Table(text="\n".join(lines), left_out=left_out)


def _fitting(
    columns: list[Column], cells: dict[str, list[str]], natural: dict[str, int], width: int
) -> list[Column]:
    kept = list(columns)
    said_nothing = {name for name, texts in cells.items() if all(one == UNKNOWN for one in texts)}
    while _least_total(kept, natural) > width:
        may_go = [column for column in kept if column.keeps < ALWAYS]
        if not may_go:
            break  # the name is cut then
        kept.remove(min(may_go, key=lambda one: (one.name not in said_nothing, one.keeps)))
    return kept


def _least_total(columns: Sequence[Column], natural: dict[str, int]) -> int:
    return sum(_least(column, natural) for column in columns) + _GAP * (len(columns) - 1)


def _least(column: Column, natural: dict[str, int]) -> int:
    width = natural[column.name]
    return min(width, _FLEXIBLE_CHARACTERS_MIN) if column.is_flexible else width


def _widths(
    columns: Sequence[Column], natural: dict[str, int], width: int | None
) -> dict[str, int]:
    widths = {column.name: natural[column.name] for column in columns}
    if width is None:
        return widths
    for column, least in (
        *((column, _FLEXIBLE_CHARACTERS_MIN) for column in columns if column.is_flexible),
        *((column, _NAME_CHARACTERS_MIN) for column in columns[:1]),
    ):
        excess = sum(widths.values()) + _GAP * (len(columns) - 1) - width
        if excess > 0:
            own = widths[column.name]
            widths[column.name] = max(min(own, least), own - excess)
    return widths


def _line(
    columns: Sequence[Column],
    widths: dict[str, int],
    texts: Sequence[str],
    paint: Painter = plain,
) -> str:
    parts = []
    for column, text in zip(columns, texts, strict=True):
        width = widths[column.name]
        padded = text.rjust(width) if column.is_right else text.ljust(width)
        is_last = column is columns[-1]
        shown = padded.rstrip() if is_last else padded
        parts.append(paint(shown, text) if column.name.lower() == "state" else shown)
    return (" " * _GAP).join(parts).rstrip()
