"""How one configured value is written by people and read by us: durations, addresses, lists.

Each parser takes what a flag, an environment variable (text) or a TOML file (text, number,
boolean, list, table) holds, and returns our value or raises `BadValue` with the half of a sentence
that says what would have been right. Nothing here knows which key it is parsing for.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

MINIMUM_INTERVAL_SECONDS = 0.1
"""Shorter intervals are mistakes more often than wishes (an exporter read ``3`` as 3 ms and used
131 % of a core: NVIDIA/dcgm-exporter#311)."""
MAXIMUM_INTERVAL_SECONDS = 3600.0
"""Rarer reads leave out what happened between them, and most counters wrap before."""

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*", re.ASCII)
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
MASK = "********"
"""Shown in place of a secret."""

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


class BadValue(Exception):
    """The value is not of the key's kind; the text completes "KEY: 'VALUE' ..."."""


class Address(NamedTuple):
    """Where to listen: a host (name, IPv4 or IPv6 without brackets) and a TCP port."""

    host: str
    port: int

    def __str__(self) -> str:
        """As written in the configuration: ``0.0.0.0:9100``, ``[::1]:9100``."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_text(value: object) -> str:
    """A non-empty text that could also be the name of a file."""
    if not isinstance(value, str):
        raise BadValue(f"is {_kind_of(value)}, not text")
    if not value.strip():
        raise BadValue("is empty")
    if "\0" in value:
        raise BadValue("holds a NUL character, which no name may")
    return value.strip()


def parse_boolean(value: object) -> bool:
    """true/false, and the usual spellings in flags and the environment."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower() if isinstance(value, str | int) else ""
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise BadValue("is not a boolean; write true or false")


def parse_duration_seconds(value: object) -> float:
    """A time span with its unit; a bare number is refused because 3 means 3 ms to some tools."""
    if isinstance(value, bool) or not isinstance(value, str):
        raise BadValue('has no unit; write it as text with one, e.g. "5s", "250ms", "2m"')
    match = _DURATION.fullmatch(value)
    if match is None:
        if re.fullmatch(r"\s*\d+(\.\d+)?\s*", value):
            raise BadValue("has no unit; write e.g. 5s, 250ms, 2m, 1h")
        raise BadValue("is not a duration; write e.g. 5s, 250ms, 2m, 1h")
    seconds = float(match.group(1)) * _UNIT_SECONDS[match.group(2)]
    if not math.isfinite(seconds):
        raise BadValue("is longer than any clock runs")
    return seconds


def parse_interval_seconds(value: object) -> float:
    """A duration between repeated actions, with a floor."""
    return _within_limits(parse_duration_seconds(value))


def _within_limits(seconds: float) -> float:
    if seconds < MINIMUM_INTERVAL_SECONDS:
        raise BadValue("is below the floor of 100ms")
    if seconds > MAXIMUM_INTERVAL_SECONDS:
        raise BadValue("is above the limit of 1h")
    return seconds


def parse_plain_seconds(value: object) -> float:
    """The predecessor's ``scrape_interval_seconds``: a number of seconds, or a duration."""
    if isinstance(value, str) and _DURATION.fullmatch(value):
        return parse_interval_seconds(value)
    return _within_limits(parse_number(value))


def parse_number(value: object) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadValue(f"is {_kind_of(value)}, not a number")
    try:
        number = float(value)
    except ValueError:
        raise BadValue("is not a number") from None
    except OverflowError:  # an integer of more than 308 digits
        raise BadValue("is not a finite number") from None
    if not math.isfinite(number):
        raise BadValue("is not a finite number")
    return number


def parse_positive(value: object) -> float:
    """A number above zero."""
    number = parse_number(value)
    if number <= 0:
        raise BadValue("must be above 0")
    return number


def parse_not_negative(value: object) -> float:
    """A number of zero or more."""
    number = parse_number(value)
    if number < 0:
        raise BadValue("must not be below 0")
    return number


def parse_ratio(value: object) -> float:
    """A share from 0 to 1."""
    number = parse_number(value)
    if not 0 <= number <= 1:
        raise BadValue("must lie between 0 and 1 (0.8 is 80 %)")
    return number


def parse_count(value: object) -> int:
    """A whole number of zero or more."""
    number = parse_not_negative(value)
    if number != int(number):
        raise BadValue("must be a whole number")
    return int(number)


def parse_address(value: object) -> Address:
    """``HOST:PORT``, ``[IPv6]:PORT`` or ``:PORT`` (all interfaces)."""
    text = parse_text(value)
    host, colon, port_text = text.rpartition(":")
    if not colon or not port_text.isascii() or not port_text.isdigit():
        raise BadValue("is not an address; write HOST:PORT, e.g. 127.0.0.1:9100 or [::1]:9100")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise BadValue("is an IPv6 address without brackets; write [::1]:9100")
    if not re.fullmatch(r"[A-Za-z0-9._:%-]*", host):
        raise BadValue("has a host with characters that no host has; write e.g. 127.0.0.1:9100")
    port_digits = port_text.lstrip("0") or "0"
    if len(port_digits) > 5 or int(port_digits) > 65535:
        raise BadValue("has a port above 65535")
    return Address(host or "0.0.0.0", int(port_digits))


def parse_url(value: object) -> str:
    """One http or https URL."""
    text = parse_text(value)
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if host is None or parts.scheme not in ("http", "https"):
        raise BadValue("is not an http or https URL, e.g. http://127.0.0.1:8000/metrics")
    return text


def list_of(parse_item: Callable[[object], str]) -> Callable[[object], tuple[str, ...]]:
    """A TOML list, or text with commas."""

    def parse(value: object) -> tuple[str, ...]:
        if isinstance(value, str):
            items: list[object] = [item for item in value.split(",") if item.strip()]
        elif isinstance(value, list | tuple):
            items = list(value)
        else:
            raise BadValue(f'is {_kind_of(value)}, not a list; write e.g. ["a", "b"] or a,b')
        return tuple(_parse_one_of_many(parse_item, item, len(items)) for item in items)

    return parse


def _parse_one_of_many(parse_item: Callable[[object], str], item: object, count: int) -> str:
    try:
        return parse_item(item)
    except BadValue as bad:
        if count == 1 and isinstance(item, str):
            raise
        shown = without_credentials(item) if isinstance(item, str) else item
        raise BadValue(f"holds {shown!r}, which {bad}") from None


def without_credentials(text: str) -> str:
    """The text with the user and password of every URL in it masked."""
    return re.sub(r"(://)[^\s,'\"]*@", rf"\1{MASK}@", text)


def one_of(*words: str) -> Callable[[object], str]:
    """One of a few words, in any case."""

    def parse(value: object) -> str:
        word = parse_text(value).lower()
        if word not in words:
            raise BadValue(f"is not one of {', '.join(words)}")
        return word

    return parse


def whole_number_to(highest: int) -> Callable[[object], int]:
    """A whole number from 0 to this one."""

    def parse(value: object) -> int:
        number = parse_count(value)
        if number > highest:
            raise BadValue(f"must be a whole number from 0 to {highest}")
        return number

    return parse


def parse_pairs(value: object) -> tuple[tuple[str, str], ...]:
    """A TOML table of texts, or ``key=value,key=value``, in the order of the names."""
    if isinstance(value, str):
        pairs = {}
        for item in value.split(","):
            name, equals, text = item.partition("=")
            if item.strip() and (not equals or not name.strip()):
                raise BadValue("is not a list of pairs; write e.g. env=prod,row=7")
            if item.strip():
                pairs[name.strip()] = text.strip()
        return tuple(sorted(pairs.items()))
    if not isinstance(value, Mapping):
        raise BadValue(f'is {_kind_of(value)}, not a table; write e.g. {{ env = "prod" }}')
    for name, text in value.items():
        if not isinstance(text, str):
            raise BadValue(f"has {_kind_of(text)} under {name!r}; tags are texts")
    return tuple(sorted((str(name), str(text)) for name, text in value.items()))


def parse_tables(value: object) -> tuple[Mapping[str, object], ...]:
    """A TOML array of tables."""
    if not isinstance(value, list | tuple) or not all(isinstance(v, Mapping) for v in value):
        raise BadValue("is not an array of tables; write [[drivers]] sections")
    return tuple(dict(table) for table in value)


def _kind_of(value: object) -> str:
    match value:
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "a table"
        case _:
            return f"a {type(value).__name__}"  # TOML's dates and times
