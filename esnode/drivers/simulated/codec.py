"""The simulated machine's values as JSON, and back with every type checked.

Its own file because `store` is about files and locks. It follows the dataclasses' own annotations,
so that a field added to `machine` is written and read without a second list of fields. It must not
know where the text lies.
"""

import json
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import TypeVar, Union, cast, get_args, get_origin, get_type_hints

from esnode.drivers.simulated.machine import EVENT_NAMES, Event, Machine

FORMAT_VERSION = 1
"""Of the state and of the history. A reader refuses what it does not know."""

Value = TypeVar("Value")


class Undecodable(ValueError):
    """The text is not what was written. One line: where, and what is wrong."""


class UnknownFormat(Undecodable):
    """The text was written by another version of this program: not corrupt, and not ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedState:
    """The state file: a machine, and which part of the history it includes."""

    sequence: int
    history_bytes: int
    machine: Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLine:
    """One change, as the history keeps it."""

    sequence: int
    at_seconds: float
    """On the host's clock since its boot."""
    wall_seconds: float
    """Unix time, for people: nothing is computed from it."""
    cause: str
    actor_pid: int
    event: Event
    remaining: int = 0
    """How many lines of the same change follow: a change counts once its last line is there."""


def encode_state(state: SavedState) -> bytes:
    """The whole state file."""
    document = {"format_version": FORMAT_VERSION, "state": _plain(state)}
    return json.dumps(document, allow_nan=False).encode() + b"\n"


def decode_state(text: bytes) -> SavedState:
    """Read a whole state file.

    Raises:
        UnknownFormat: another version wrote it.
        Undecodable: it is damaged.
    """
    document = _parse(text)
    _check_version(document)
    return _decode(SavedState, document.get("state"), "state")


def encode_line(line: HistoryLine) -> bytes:
    """One line of the history, with its end."""
    names = {kind: name for name, kind in EVENT_NAMES.items()}
    document = {
        "format_version": FORMAT_VERSION,
        "sequence": line.sequence,
        "at_seconds": line.at_seconds,
        "wall_seconds": line.wall_seconds,
        "cause": line.cause,
        "actor_pid": line.actor_pid,
        "remaining": line.remaining,
        "change": names[type(line.event)],
        "event": _plain(line.event),
    }
    return json.dumps(document, allow_nan=False).encode() + b"\n"


def decode_line(text: bytes) -> HistoryLine:
    """Read one line of the history.

    Raises:
        UnknownFormat: another version wrote it.
        Undecodable: it is damaged.
    """
    document = _parse(text)
    _check_version(document)
    name = document.get("change")
    kind = EVENT_NAMES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise Undecodable(f"unknown change {name!r}")
    return HistoryLine(
        sequence=_decode(int, document.get("sequence"), "sequence"),
        at_seconds=_decode(float, document.get("at_seconds"), "at_seconds"),
        wall_seconds=_decode(float, document.get("wall_seconds"), "wall_seconds"),
        cause=_decode(str, document.get("cause"), "cause"),
        actor_pid=_decode(int, document.get("actor_pid"), "actor_pid"),
        event=_decode(kind, document.get("event"), "event"),
        remaining=_decode(int, document.get("remaining"), "remaining"),
    )


def describe_event(event: Event) -> dict[str, object]:
    """An event's own fields, for a listing."""
    return cast("dict[str, object]", _plain(event))


def _parse(text: bytes) -> Mapping[str, object]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Undecodable(f"not JSON ({error})") from None
    if not isinstance(document, dict):
        raise Undecodable("not a JSON object")
    return document


def _check_version(document: Mapping[str, object]) -> None:
    version = document.get("format_version")
    if version != FORMAT_VERSION:
        raise UnknownFormat(f"format version {version!r} instead of {FORMAT_VERSION}")


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


@lru_cache(maxsize=64)
def _hints(kind: type) -> Mapping[str, object]:
    return get_type_hints(kind)


def _decode(kind: type[Value], value: object, where: str) -> Value:
    return cast("Value", _checked(kind, value, where))


def _checked(kind: object, value: object, where: str) -> object:
    """The value as the annotation wants it, or `Undecodable`."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        present = [option for option in get_args(kind) if option is not type(None)]
        return None if value is None else _checked(present[0], value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise Undecodable(f"{where} is not a list")
        item_kind = get_args(kind)[0]
        return tuple(_checked(item_kind, item, f"{where}[{i}]") for i, item in enumerate(value))
    if isinstance(kind, type) and is_dataclass(kind):
        return _checked_record(kind, value, where)
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise Undecodable(f"{where} is not finite")
        return float(value)
    if isinstance(kind, type) and type(value) is kind:
        return value
    raise Undecodable(f"{where} is {value!r}"[:120])


def _checked_record(kind: type, value: object, where: str) -> object:
    if not isinstance(value, dict):
        raise Undecodable(f"{where} is not an object")
    hints = _hints(kind)
    names = {field.name for field in fields(kind)}
    missing = sorted(names - value.keys())
    unknown = sorted(str(name) for name in value.keys() - names)
    if missing or unknown:
        raise Undecodable(f"{where} lacks {missing} and has unknown {unknown}"[:200])
    build = cast("Callable[..., object]", kind)
    return build(**{name: _checked(hints[name], value[name], f"{where}.{name}") for name in names})
