"""How figures and tables look on a terminal. Unknown is ``-``, never 0."""

from collections.abc import Sequence

UNKNOWN = "-"


def number(value: object, unit: str = "", digits: int = 0) -> str:
    """A figure with its unit."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return UNKNOWN
    return f"{value:,.{digits}f}{unit}"


def size(value: object) -> str:
    """Bytes in the largest binary unit that leaves a figure above 1."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return UNKNOWN
    amount = float(value)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(amount) < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"


def duration(value: object) -> str:
    """Seconds as people say them."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return UNKNOWN
    seconds = int(value)
    days, rest = divmod(seconds, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, seconds = divmod(rest, 60)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Aligned columns; those in `right` are aligned to the right."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = []
    for row in (header, *rows):
        cells = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
