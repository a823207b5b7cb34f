"""The columns of the cluster's tables: what stands in each, and which go first when it is tight.

Its own file because the same columns are shown, sorted by and filtered by. It must not know widths
or colours; it makes text and sort keys out of parts of the status document.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from esnode.cli.cluster_text import (
    Units,
    celsius,
    count,
    figure,
    find,
    of_total,
    percent,
    printable,
    quantity,
    short_duration,
    watts,
)
from esnode.cli.text import UNKNOWN

Row: TypeAlias = Mapping[str, Any]
"""One node or rack of the document."""
Key: TypeAlias = float | str | None
"""What a column is sorted and filtered by; None is unknown."""

ALWAYS = 99
"""How much a column matters that is never left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table."""

    name: str
    write: Callable[[Row, Units], str]
    read: Callable[[Row], Key]
    is_right: bool = False
    is_wide: bool = False
    """Only with --wide, or when asked for by name."""
    keeps: int = 9
    """How much it matters: those with the lowest go first when the table does not fit."""
    is_flexible: bool = False
    """May be cut short."""


def _text(name: str, *path: str, **options: Any) -> Column:
    def read(row: Row) -> Key:
        value = find(row, *path)
        return None if value is None or value == "" else str(value)

    return Column(name=name, write=lambda row, _: printable(find(row, *path)), read=read, **options)


def _number(name: str, write: Callable[[object], str], *path: str, **options: Any) -> Column:
    return Column(
        name=name,
        write=lambda row, _: write(find(row, *path)),
        read=lambda row: figure(find(row, *path)),
        is_right=True,
        **options,
    )


def _quantity(
    name: str, write: Callable[[float], str], *path: str, scale: float = 1.0, **options: Any
) -> Column:
    """`scale` makes the sort key what the screen shows, e.g. a percentage of a ratio."""

    def read(row: Row) -> Key:
        value = figure(find(row, *path, "value"))
        return None if value is None else scale * value

    return Column(
        name=name,
        write=lambda row, _: quantity(find(row, *path), write, is_last_known=_is_silent(row)),
        read=read,
        is_right=True,
        **options,
    )


def _watts(name: str, *path: str, **options: Any) -> Column:
    def write(row: Row, units: Units) -> str:
        return quantity(
            find(row, *path), lambda value: watts(value, units), is_last_known=_is_silent(row)
        )

    return Column(
        name=name,
        write=write,
        read=lambda row: figure(find(row, *path, "value")),
        is_right=True,
        **options,
    )


def _is_silent(row: Row) -> bool:
    """Whether what a node said is only the last that is known of it; racks count by age alone."""
    return row.get("state") in ("suspect", "failed", "left", "removed")


def _seen(row: Row) -> str:
    """How long ago the node was heard; the agent that answers hears itself."""
    return "self" if row.get("is_asked") is True else short_duration(row.get("last_heard_seconds"))


def _points(value: object) -> str:
    """A score: at most two decimals, without the zero before them."""
    number = figure(value)
    if number is None:
        return UNKNOWN
    return f"{number:.2f}".removeprefix("0") if number % 1 else f"{number:.0f}"


def _milliseconds(value: object) -> str:
    seconds = figure(value)
    return UNKNOWN if seconds is None else f"{seconds * 1000:.1f}ms"


def _flags(row: Row) -> list[str]:
    validity = find(row, "certificate", "validity")
    ended = [f"certificate-{validity}"] if validity in ("ending", "ended", "not-yet") else []
    accusers = row.get("accusers") or []
    accused = [f"accused-by-{len(accusers)}"] if accusers else []
    return [printable(flag) for flag in row.get("flags") or []] + accused + ended


def _share(row: Row) -> float | None:
    draw = figure(find(row, "power", "draw_watts", "value"))
    cap = figure(find(row, "power", "cap_watts", "value"))
    return None if draw is None or not cap else draw / cap


_BELONGING = ("alive", "degraded", "suspect", "failed")


def _present(row: Row) -> float | None:
    parts = [figure(find(row, "nodes", state)) for state in ("alive", "degraded")]
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def _expected(row: Row) -> float | None:
    """All but those that have left in good order or were removed."""
    parts = [figure(find(row, "nodes", state)) for state in _BELONGING]
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def _healthy(row: Row) -> float | None:
    total = figure(find(row, "gpus", "total"))
    unhealthy = figure(find(row, "gpus", "unhealthy"))
    return None if total is None or unhealthy is None else total - unhealthy


def _source(row: Row) -> str:
    source = row.get("source")
    if source in (None, "none"):
        return UNKNOWN
    age = short_duration(row.get("age_seconds"))
    return f"{printable(source)} {age}" if age != UNKNOWN else printable(source)


NODE_COLUMNS: tuple[Column, ...] = (
    _text("NODE", "name", keeps=ALWAYS),
    _text("RACK", "rack", keeps=12),
    _text("STATE", "state", keeps=ALWAYS),
    Column(
        name="SEEN",
        write=lambda row, _: _seen(row),
        read=lambda row: figure(row.get("last_heard_seconds")),
        is_right=True,
        keeps=14,
    ),
    _text("VER", "version", keeps=4),
    _watts("DRAW", "power", "draw_watts", keeps=16),
    _watts("GPUCAP", "gpus", "cap_watts", keeps=8),
    Column(
        name="GPU",
        write=lambda row, _: of_total(find(row, "gpus", "healthy"), find(row, "gpus", "total")),
        read=lambda row: figure(find(row, "gpus", "healthy")),
        is_right=True,
        keeps=13,
    ),
    _quantity("UTIL", percent, "gpus", "utilization_ratio", scale=100.0, keeps=10),
    _quantity("VRAM", percent, "gpus", "memory_used_ratio", scale=100.0, keeps=7),
    _quantity("TMAX", celsius, "gpus", "temperature_max_celsius", keeps=11),
    _number("JOBS", count, "jobs", "running", keeps=6),
    _number("SCORE", _points, "score", keeps=5),
    Column(
        name="FLAGS",
        write=lambda row, _: ",".join(_flags(row)) or UNKNOWN,
        read=lambda row: ",".join(_flags(row)) or None,
        keeps=15,
        is_flexible=True,
    ),
    _watts("CAP", "power", "cap_watts", is_wide=True, keeps=3),
    _watts("LIMIT", "power", "limit_watts", is_wide=True, keeps=1),
    _text("ADDRESS", "address", is_wide=True, keeps=3),
    Column(
        name="ID",
        write=lambda row, _: str(row.get("id"))[:8],
        read=lambda row: str(row.get("id")),
        is_wide=True,
        keeps=3,
    ),
    _number("EPOCH", count, "epoch", is_wide=True, keeps=1),
    _number("SEQ", count, "sequence", is_wide=True, keeps=1),
    _number("RTT", _milliseconds, "round_trip_seconds", is_wide=True, keeps=2),
    _number("FLAPS", _points, "flaps_ratio", is_wide=True, keeps=2),
    _number("SINCE", short_duration, "state_seconds", is_wide=True, keeps=2),
    _text("SOURCE", "power", "draw_watts", "source", is_wide=True, keeps=2),
    Column(
        name="ENDS",
        write=lambda row, _: printable(find(row, "certificate", "ends_at"))[:10],
        read=lambda row: find(row, "certificate", "ends_at"),
        is_wide=True,
        keeps=2,
    ),
)

RACK_COLUMNS: tuple[Column, ...] = (
    _text("RACK", "id", keeps=ALWAYS),
    Column(
        name="NODES",
        write=lambda row, _: of_total(_present(row), _expected(row)),
        read=_present,
        is_right=True,
        keeps=15,
    ),
    _watts("DRAW", "power", "draw_watts", keeps=16),
    _watts("CAP", "power", "cap_watts", keeps=12),
    Column(
        name="%",
        write=lambda row, _: UNKNOWN if (share := _share(row)) is None else percent(share),
        read=lambda row: None if (share := _share(row)) is None else 100 * share,
        is_right=True,
        keeps=6,
    ),
    _watts("HEADROOM", "power", "headroom_watts", keeps=7),
    _text("STATE", "state", keeps=ALWAYS),
    Column(
        name="GPUS",
        write=lambda row, _: of_total(_healthy(row), find(row, "gpus", "total")),
        read=_healthy,
        is_right=True,
        keeps=11,
    ),
    _quantity("TMAX", celsius, "temperature_max_celsius", keeps=10),
    Column(
        name="SOURCE",
        write=lambda row, _: _source(row),
        read=lambda row: row.get("source"),
        keeps=5,
        is_flexible=True,
    ),
    _watts("BUDGET", "power", "budget_watts", is_wide=True, keeps=4),
    _watts("STRANDED", "power", "stranded_watts", is_wide=True, keeps=3),
    _text("SPEAKER", "speaker", is_wide=True, keeps=2),
)

MEMBER_COLUMNS: tuple[Column, ...] = (
    _text("Node", "name", keeps=ALWAYS),
    _text("Address", "address", keeps=12),
    _text("State", "state", keeps=ALWAYS),
    _text("Rack", "rack", keeps=10),
    _text("Version", "version", keeps=5),
    Column(
        name="Id",
        write=lambda row, _: str(row.get("id"))[:8],
        read=lambda row: str(row.get("id")),
        keeps=11,
    ),
    Column(
        name="Heard",
        write=lambda row, _: _seen(row),
        read=lambda row: figure(row.get("last_heard_seconds")),
        is_right=True,
        keeps=6,
    ),
)
