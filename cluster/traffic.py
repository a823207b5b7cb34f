"""What goes over the wire, counted by what it is for.

Its own file because a driver that moves bytes must not know their meaning, and gossip does not know
when they are moved. A datagram is counted as what its first message is: news only fills the room
that is left. What comes in is counted before it is judged, so anybody can write anything there: the
classes are a fixed list. It must not know sockets.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

OTHER: Final = "other"
"""Of a later version, or nothing of ours."""

_TAG_OFFSET = 54
"""Envelope (49), payload head (2), length of the message (2), head of its array (1).
Layout: `docs/protocol.md`."""
_STATEMENT_TAG = 11
_BYTES_LENGTHS = {0xC4: 1, 0xC5: 2}
"""How many bytes of length a byte string has. Source: the msgpack specification, bin 8, bin 16."""

_BY_TAG = {
    1: "probe",
    2: "probe",
    3: "probe",
    4: "probe",
    5: "probe",
    6: "reconciliation",
    7: "reconciliation",
    8: "reconciliation",
    9: "operator",
    10: "application",
}
_BY_KIND = {1: "member", 2: "state", 3: "summary", 4: "claim", 5: "claim", 6: "member"}

CLASSES: Final = tuple(sorted({*_BY_TAG.values(), *_BY_KIND.values(), OTHER}))


def class_of(datagram: bytes) -> str:
    """What a datagram of ours is for, by its first message."""
    if len(datagram) <= _TAG_OFFSET:
        return OTHER
    tag = datagram[_TAG_OFFSET]
    if tag != _STATEMENT_TAG:
        return _BY_TAG.get(tag, OTHER)
    length = _BYTES_LENGTHS.get(int.from_bytes(datagram[_TAG_OFFSET + 1 : _TAG_OFFSET + 2]))
    if length is None:
        return OTHER
    begin = _TAG_OFFSET + 2 + length
    return _BY_KIND.get(int.from_bytes(datagram[begin : begin + 1]), OTHER)


@dataclass(slots=True)
class Direction:
    """Datagrams one way since the start, without the headers of IP and UDP."""

    datagrams_total: Counter[str] = field(default_factory=Counter)
    bytes_total: Counter[str] = field(default_factory=Counter)

    def count(self, datagram: bytes) -> None:
        """One more."""
        kind = class_of(datagram)
        self.datagrams_total[kind] += 1
        self.bytes_total[kind] += len(datagram)
