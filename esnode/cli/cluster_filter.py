"""`--filter 'rack=r01 and draw>3k'` and `--sort -draw`: which rows, in which order.

Its own file because it is a small language. Conditions are joined by ``and`` and ``or`` (``and``
binds tighter) and may begin with ``not``. What is unknown is neither large nor small: it is met by
``draw=-`` alone. It must not know what a row is about; the columns read it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from esnode.cli.cluster_columns import Column, Row
from esnode.cli.text import UNKNOWN

Condition = Callable[[Row], bool]

_WORD = re.compile(
    r"\s*(?:(?P<joint>and|or|not)(?=\s|$)"
    r"|(?P<name>[A-Za-z%]+)\s*(?P<sign>!=|<=|>=|=|<|>|~)\s*(?P<value>\"[^\"]*\"|'[^']*'|[^\s]+))",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)\s*(kW|MW|[kMW%smhd])?")
_SIZES = {
    "": 1.0, "%": 1.0, "W": 1.0, "k": 1e3, "kW": 1e3, "M": 1e6, "MW": 1e6,
    "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0,
}  # fmt: skip


class BadExpression(Exception):
    """What was written is no filter, sort order or column; one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """By which column rows are sorted."""

    column: Column
    is_descending: bool


def find_column(name: str, columns: Sequence[Column]) -> Column:
    """The column of this name, in any case of letters.

    Raises:
        BadExpression: there is none.
    """
    for column in columns:
        if column.name.lower() == name.strip().lower():
            return column
    known = ", ".join(column.name.lower() for column in columns)
    raise BadExpression(f"no column {name.strip()!r}; there are {known}")


def parse_order(text: str, columns: Sequence[Column]) -> Order:
    """A column, with ``-`` before it from the largest down.

    Raises:
        BadExpression: there is no such column.
    """
    written = text.strip()
    return Order(
        column=find_column(written.removeprefix("-"), columns),
        is_descending=written.startswith("-"),
    )


def sort_rows(rows: Sequence[Row], order: Order | None) -> list[Row]:
    """Rows in this order; those whose value is unknown last either way."""
    if order is None:
        return list(rows)
    read = order.column.read
    known = [row for row in rows if read(row) is not None]
    unknown = [row for row in rows if read(row) is None]

    def key(row: Row) -> tuple[float, str]:
        value = read(row)
        return (0.0, value) if isinstance(value, str) else (value or 0.0, "")

    return sorted(known, key=key, reverse=order.is_descending) + unknown


def parse_filter(text: str, columns: Sequence[Column]) -> Condition:
    """What an expression asks of a row.

    Raises:
        BadExpression: it is none; says where.
    """
    alternatives: list[list[Condition]] = [[]]
    is_negated, wants_condition = False, True
    at = 0
    while text[at:].strip():
        word = _WORD.match(text, at)
        if word is None:
            raise BadExpression(_misread(text, at))
        joint = (word["joint"] or "").lower()
        if joint == "not" and wants_condition:
            is_negated = not is_negated
        elif joint in ("and", "or") and not wants_condition:
            if joint == "or":
                alternatives.append([])
            wants_condition = True
        elif not joint and wants_condition:
            column = find_column(word["name"], columns)
            condition = _condition(column, word["sign"], word["value"].strip("\"'"))
            alternatives[-1].append(_negated(condition) if is_negated else condition)
            is_negated, wants_condition = False, False
        else:
            raise BadExpression(_misread(text, at))
        at = word.end()
    if wants_condition:
        raise BadExpression(_misread(text, at))
    return lambda row: any(all(one(row) for one in all_of) for all_of in alternatives)


def _negated(condition: Condition) -> Condition:
    return lambda row: not condition(row)


def _misread(text: str, at: int) -> str:
    where = text[at:].strip()[:30]
    before = f"at {where!r}" if where else "at its end"
    return f"--filter {before}: write e.g. 'rack=r01 and state!=alive', 'draw>3k or flags~stale'"


def _condition(column: Column, sign: str, wanted: str) -> Condition:
    if wanted == UNKNOWN:
        if sign not in ("=", "!="):
            raise BadExpression(f"--filter: {column.name.lower()}{sign}- : unknown has no size")
        return lambda row: (column.read(row) is None) is (sign == "=")
    number = _number(wanted)

    def holds(row: Row) -> bool:
        value = column.read(row)
        if isinstance(value, float):
            if number is None:
                return sign == "!="
            return _compared(value, sign, number)
        if value is None and (column.is_right or sign != "!="):
            return False
        return _text_holds(str(value or ""), sign, wanted)

    return holds


def _compared(value: float, sign: str, wanted: float) -> bool:
    match sign:
        case "=":
            return value == wanted
        case "!=":
            return value != wanted
        case "<":
            return value < wanted
        case "<=":
            return value <= wanted
        case ">":
            return value > wanted
        case ">=":
            return value >= wanted
        case _:
            return False


def _text_holds(value: str, sign: str, wanted: str) -> bool:
    value, wanted = value.lower(), wanted.lower()
    match sign:
        case "=":
            return value == wanted
        case "!=":
            return value != wanted
        case "~":
            return wanted in value
        case "<" | "<=":
            return value < wanted or (sign == "<=" and value == wanted)
        case _:
            return value > wanted or (sign == ">=" and value == wanted)


def _number(text: str) -> float | None:
    match = _NUMBER.fullmatch(text)
    return None if match is None else float(match[1]) * _SIZES[match[2] or ""]
