"""What one can say to the setter, what it answers, and the bytes of both.

Its own file because these verbs are the whole of what a privileged process does for the agent:
whoever reviews it reads this list. There is none that raises a default, restores or resets.
A message is a document: version, tag, fields in order. Fields are only ever added at the end, and
those that are not known here are ignored. Bytes that are no message raise `Malformed` and nothing
else. It must not know what the verbs do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from cluster.codec import Document, Value, decode_document, encode_document
from cluster.errors import Malformed
from esnode.readings.host import Absence
from esnode.readings.limits import (
    EnforcedLimit,
    Kind,
    Limit,
    LimitOutcome,
    LimitRange,
    LimitRefused,
    LimitWritten,
)

VERSION = 1
DEVICES_MAX = 128
"""More than any node has; a bound on what one message makes the setter do."""
TEXT_MAX = 300
NAME_MAX = 64
"""Bytes of a reason and of a name. Longer ones are cut, so that the longest message still fits into
what a document may have."""
WATTS_MAX = 1 << 48
"""More than any kernel file holds: what was read is passed on, however odd. What may be set is for
the device's range to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRanges:
    """Look for devices anew, and say between what their limits can be set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """Say what is in force on every device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLimits:
    """Set these limits: first those that go down, then those that go up."""

    limits: tuple[Limit, ...]
    reason: str
    """One line for the journal: why."""
    source: str
    """Which claim binds: ``rack``, ``thermal``, ``profile``, ``operator`` ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangesListed:
    """The answer to `ListRanges`: within the setter's own hard limits."""

    ranges: tuple[LimitRange, ...]
    absent: tuple[Absence, ...] = ()
    """Devices without a range, and why: they count at what is known of them otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsRead:
    """The answer to `ReadLimits`: one entry for every device that was ever found."""

    limits: tuple[EnforcedLimit, ...]
    absent: tuple[Absence, ...] = ()
    """Why an entry is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsSet:
    """The answer to `SetLimits`: one outcome for each limit, in the order asked."""

    outcomes: tuple[LimitOutcome, ...]
    journal_fault: str | None = None
    """Why the journal does not hold this order, or not its outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The setter did nothing."""

    reason: str


Request = ListRanges | ReadLimits | SetLimits
Reply = RangesListed | LimitsRead | LimitsSet | Refused

_LIST, _READ, _SET = 1, 2, 3
_LISTED, _LIMITS, _OUTCOMES, _REFUSED = 101, 102, 103, 104
_WRITTEN, _NOT_WRITTEN = 1, 2


def encode_request(request: Request) -> bytes:
    """The bytes of a request."""
    match request:
        case ListRanges():
            return encode_document((VERSION, _LIST))
        case ReadLimits():
            return encode_document((VERSION, _READ))
        case SetLimits():
            limits = tuple((limit.device, limit.watts) for limit in request.limits)
            reason, source = _cut(request.reason), _cut(request.source, NAME_MAX)
            return encode_document((VERSION, _SET, limits, reason, source))


def decode_request(data: bytes) -> Request:
    """The request that these bytes are.

    Raises:
        Malformed: they are none of this version.
    """
    tag, fields = _open(data)
    if tag == _LIST:
        return ListRanges()
    if tag == _READ:
        return ReadLimits()
    if tag == _SET:
        return SetLimits(
            limits=tuple(
                Limit(device=_text(item, 0, NAME_MAX), watts=_watts(item, 1))
                for item in _items(fields, 0)
            ),
            reason=_text(fields, 1, TEXT_MAX),
            source=_text(fields, 2, NAME_MAX),
        )
    raise Malformed(f"no request has the tag {tag}")


def encode_reply(reply: Reply) -> bytes:
    """The bytes of a reply."""
    match reply:
        case RangesListed():
            ranges = tuple(
                (one.device, one.kind, one.minimum_watts, one.maximum_watts, one.default_watts)
                for one in reply.ranges
            )
            return encode_document((VERSION, _LISTED, ranges, _absences(reply.absent)))
        case LimitsRead():
            limits = tuple(
                (one.device, one.enforced_watts, one.requested_watts) for one in reply.limits
            )
            return encode_document((VERSION, _LIMITS, limits, _absences(reply.absent)))
        case LimitsSet():
            outcomes = tuple(_outcome(one) for one in reply.outcomes)
            fault = None if reply.journal_fault is None else _cut(reply.journal_fault)
            return encode_document((VERSION, _OUTCOMES, outcomes, fault))
        case Refused():
            return encode_document((VERSION, _REFUSED, _cut(reply.reason)))


def decode_reply(data: bytes) -> Reply:
    """The reply that these bytes are.

    Raises:
        Malformed: they are none of this version.
    """
    tag, fields = _open(data)
    if tag == _LISTED:
        ranges = tuple(_read_range(item) for item in _items(fields, 0))
        return RangesListed(ranges=ranges, absent=_read_absences(fields, 1))
    if tag == _LIMITS:
        limits = tuple(
            EnforcedLimit(
                device=_text(item, 0, NAME_MAX),
                enforced_watts=_optional_watts(item, 1),
                requested_watts=_optional_watts(item, 2),
            )
            for item in _items(fields, 0)
        )
        return LimitsRead(limits=limits, absent=_read_absences(fields, 1))
    if tag == _OUTCOMES:
        outcomes = tuple(_read_outcome(item) for item in _items(fields, 0))
        fault = None if _field(fields, 1) is None else _text(fields, 1, TEXT_MAX)
        return LimitsSet(outcomes=outcomes, journal_fault=fault)
    if tag == _REFUSED:
        return Refused(reason=_text(fields, 0, TEXT_MAX))
    raise Malformed(f"no reply has the tag {tag}")


def _absences(absent: Sequence[Absence]) -> Document:
    return tuple((_cut(entry.what, NAME_MAX), _cut(entry.reason)) for entry in absent[:DEVICES_MAX])


def _outcome(outcome: LimitOutcome) -> Document:
    match outcome:
        case LimitWritten():
            return (
                _WRITTEN,
                outcome.device,
                outcome.asked_watts,
                outcome.before_watts,
                outcome.enforced_watts,
            )
        case LimitRefused():
            return (
                _NOT_WRITTEN,
                outcome.device,
                outcome.asked_watts,
                outcome.enforced_watts,
                _cut(outcome.reason),
            )


def _read_outcome(item: Document) -> LimitOutcome:
    kind, device, asked = _field(item, 0), _text(item, 1, NAME_MAX), _watts(item, 2)
    if kind == _WRITTEN:
        return LimitWritten(
            device=device,
            asked_watts=asked,
            before_watts=_optional_watts(item, 3),
            enforced_watts=_optional_watts(item, 4),
        )
    if kind == _NOT_WRITTEN:
        return LimitRefused(
            device=device,
            asked_watts=asked,
            enforced_watts=_optional_watts(item, 3),
            reason=_text(item, 4, TEXT_MAX),
        )
    raise Malformed("an outcome of no known kind")


def _read_range(item: Document) -> LimitRange:
    kinds: dict[str, Kind] = {"gpu": "gpu", "cpu": "cpu"}
    kind = kinds.get(_text(item, 1, NAME_MAX))
    if kind is None:
        raise Malformed("a device of no known kind")
    return LimitRange(
        device=_text(item, 0, NAME_MAX),
        kind=kind,
        minimum_watts=_watts(item, 2),
        maximum_watts=_watts(item, 3),
        default_watts=_optional_watts(item, 4),
    )


def _read_absences(fields: Document, place: int) -> tuple[Absence, ...]:
    return tuple(
        Absence(what=_text(item, 0, NAME_MAX), reason=_text(item, 1, TEXT_MAX))
        for item in _items(fields, place)
    )


def _open(data: bytes) -> tuple[int, Document]:
    document = decode_document(data)
    if _typed(_field(document, 0), int) != VERSION:
        raise Malformed("a message of another version of the setter")
    return _typed(_field(document, 1), int), document[2:]


def _field(fields: Document, place: int) -> Value:
    if place >= len(fields):
        raise Malformed("a message that ends too soon")
    return fields[place]


_Plain = TypeVar("_Plain", int, str)


def _typed(value: Value, kind: type[_Plain]) -> _Plain:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Malformed(f"a {type(value).__name__} where a {kind.__name__} belongs")
    return value


def _items(fields: Document, place: int) -> tuple[Document, ...]:
    items = _field(fields, place)
    if not isinstance(items, tuple) or len(items) > DEVICES_MAX:
        raise Malformed(f"no list of at most {DEVICES_MAX} entries")
    rows: list[Document] = []
    for item in items:
        if not isinstance(item, tuple):
            raise Malformed("an entry that is not an array")
        rows.append(item)
    return tuple(rows)


def _text(fields: Document, place: int, most: int) -> str:
    text = _typed(_field(fields, place), str)
    if len(text) > most:
        raise Malformed(f"a text of {len(text)} characters; at most {most} are read")
    return text


def _watts(fields: Document, place: int) -> int:
    watts = _typed(_field(fields, place), int)
    if not 0 <= watts <= WATTS_MAX:
        raise Malformed(f"{watts} W are no limit")
    return watts


def _optional_watts(fields: Document, place: int) -> int | None:
    return None if _field(fields, place) is None else _watts(fields, place)


def _cut(text: str, most: int = TEXT_MAX) -> str:
    """The text, or as much of it as so many bytes of UTF-8 hold."""
    data = text.encode("utf-8", "replace")
    return (data if len(data) <= most else data[: most - 3] + b"...").decode("utf-8", "ignore")
