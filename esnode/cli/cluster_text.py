"""How a cluster's figures look on a screen. Unknown is ``-``, never 0.

Its own file because tables, details and events share it. Marks: ``~`` an estimate, ``?`` the last
known value of a node that may have another by now. Texts come from other machines, so nothing in
them may steer the terminal. It must not know which table a figure stands in.
"""

import datetime
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import click

from esnode.cli.text import UNKNOWN

STALE_AFTER_SECONDS = 20.0
"""Three rounds of collecting at the default 5 s, and the time that gossip takes."""
WORD_COLORS = {
    "alive": "green", "healthy": "green", "ok": "green",
    "degraded": "yellow", "suspect": "yellow", "dark": "red", "failed": "red", "isolated": "red",
    "critical": "red", "warning": "yellow",
}  # fmt: skip
"""Each word is printed as well: colour is never the only sign."""

Painter = Callable[[str, str], str]
"""Gives a text the colour of a word, or leaves it alone."""


class Units(StrEnum):
    """How watts are written."""

    AUTO = "auto"
    WATTS = "w"
    KILOWATTS = "kw"


def plain(text: str, _word: str) -> str:
    """No colours."""
    return text


def colored(text: str, word: str) -> str:
    """The colour of the word, if it has one."""
    color = WORD_COLORS.get(word)
    return click.style(text, fg=color) if color else text


def printable(value: object) -> str:
    """A text of another machine on one line, without anything that steers a terminal."""
    if value is None or value == "":
        return UNKNOWN
    return "".join(c if c.isprintable() else "?" for c in str(value))


def find(document: object, *path: str) -> Any:
    """A value deep in a document; None where an older agent does not have it."""
    for name in path:
        if not isinstance(document, Mapping):
            return None
        document = document.get(name)
    return document


def figure(value: object) -> float | None:
    """A number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def quantity(given: object, write: Callable[[float], str], *, is_last_known: bool = False) -> str:
    """A value of the document with its marks."""
    value = figure(find(given, "value"))
    if value is None:
        return UNKNOWN
    age = figure(find(given, "age_seconds"))
    is_stale = is_last_known or (age is not None and age > STALE_AFTER_SECONDS)
    mark = "~" if find(given, "estimated") is True else ""
    return f"{mark}{write(value)}{'?' if is_stale else ''}"


def watts(value: float, units: Units = Units.AUTO) -> str:
    """Watts in three figures, thousands as ``k``; or all in one unit."""
    match units:
        case Units.WATTS:
            return f"{value:,.0f}"
        case Units.KILOWATTS:
            return f"{value / 1000:,.2f}"
        case Units.AUTO:
            return _three_figures(value)


def long_watts(value: float, units: Units = Units.AUTO) -> str:
    """Watts with their unit, for a sentence."""
    if units is Units.WATTS or (units is Units.AUTO and abs(value) < 1000):
        return f"{value:,.0f} W"
    if units is Units.KILOWATTS:
        return f"{value / 1000:,.2f} kW"
    figures = _three_figures(value)
    return f"{figures[:-1]} {figures[-1]}W"


def _three_figures(value: float) -> str:
    for divisor, letter in ((1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")):
        scaled = value / divisor
        if abs(scaled) < 999.5 or letter == "G":
            break
    if not letter:
        return f"{scaled:.0f}"
    digits = 0 if abs(scaled) >= 99.95 else 1 if abs(scaled) >= 9.995 else 2
    return f"{scaled:.{digits}f}{letter}"


def percent(ratio: float) -> str:
    """A ratio as a whole percentage, without its sign."""
    return f"{100 * ratio:.0f}"


def celsius(value: float) -> str:
    """Whole degrees."""
    return f"{value:.0f}"


def short_duration(value: object) -> str:
    """Seconds in the largest unit that fits: 1s, 14s, 6m, 3h, 2d."""
    seconds = figure(value)
    if seconds is None:
        return UNKNOWN
    for size, letter, limit in ((1, "s", 100), (60, "m", 100), (3600, "h", 48)):
        if seconds < size * limit:
            return f"{max(0, int(seconds // size))}{letter}"
    return f"{int(seconds // 86400)}d"


def count(value: object) -> str:
    """A whole number."""
    number = figure(value)
    return UNKNOWN if number is None else f"{number:.0f}"


def of_total(part: object, total: object) -> str:
    """Healthy ones of all: 7/8, -/8, or ``-`` where even the total is unknown."""
    if figure(total) is None:
        return UNKNOWN
    return f"{count(part)}/{count(total)}"


def utc_time(unix_seconds: int) -> str:
    """A time as documents write it."""
    moment = datetime.datetime.fromtimestamp(unix_seconds, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def cut(text: str, width: int) -> str:
    """A text in so many columns, its loss marked."""
    if len(text) <= width:
        return text
    return text[: max(0, width - 1)] + "…" if width > 0 else ""
