"""What to repeat, how often, within how many bytes.

Its own file because here bytes are shared out: serf lets membership crowd everything else out of
its packets, and then the other way round. Each class of news has a share of what is free in a
datagram; what one leaves over the others take, the most urgent first. Within a class everything
has its turn. A newer item under the same key replaces the older. It must not know what the items
say.
"""

import math
from dataclasses import dataclass, field
from enum import IntEnum

_SLACK_BYTES = 2
"""The length in front of each message."""


class Urgency(IntEnum):
    """Classes of news, the most urgent first."""

    CLAIM = 0
    """Operators' records, claims, refutations, leaves."""
    MEMBER = 1
    SUMMARY = 2


_SHARES = {Urgency.CLAIM: 0.5, Urgency.MEMBER: 0.3, Urgency.SUMMARY: 0.2}


@dataclass(slots=True)
class _Item:
    encoded: bytes = field(repr=False)
    left_count: int


def copies(members_count: int, multiplier: int) -> int:
    """How often each member repeats a piece of news. Source: memberlist, `retransmitLimit`."""
    return multiplier * math.ceil(math.log10(members_count + 1))


class News:
    """What this node is still repeating."""

    def __init__(self) -> None:
        self._classes: dict[Urgency, dict[tuple[object, ...], _Item]] = {u: {} for u in Urgency}

    def __bool__(self) -> bool:
        return any(self._classes.values())

    @property
    def urgent_count(self) -> int:
        """How many pieces of the most urgent class are waiting."""
        return len(self._classes[Urgency.CLAIM])

    def add(
        self, key: tuple[object, ...], encoded: bytes, urgency: Urgency, copies_count: int
    ) -> None:
        """Repeat this so many times, in the place of whatever had the key."""
        self.drop(key)
        self._classes[urgency][key] = _Item(encoded, copies_count)

    def drop(self, key: tuple[object, ...]) -> None:
        """Repeat it no more."""
        for items in self._classes.values():
            items.pop(key, None)

    def fill(self, free_bytes: int) -> list[bytes]:
        """What to put into one datagram with so much room; counts as one copy of each."""
        chosen: list[bytes] = []
        if not self:
            return chosen
        taken: dict[Urgency, int] = dict.fromkeys(Urgency, 0)
        left = free_bytes
        for urgency in Urgency:
            share = min(left, max(int(free_bytes * _SHARES[urgency]), self._first_bytes(urgency)))
            left -= self._take(urgency, share, taken, chosen)
        for urgency in Urgency:
            left -= self._take(urgency, left, taken, chosen)
        return chosen

    def _first_bytes(self, urgency: Urgency) -> int:
        """Of the item whose turn it is: a large one must not wait for ever."""
        first = next(iter(self._classes[urgency].values()), None)
        return 0 if first is None else len(first.encoded) + _SLACK_BYTES

    def _take(
        self, urgency: Urgency, room: int, taken: dict[Urgency, int], chosen: list[bytes]
    ) -> int:
        items = self._classes[urgency]
        used = 0
        for key in list(items)[: max(0, len(items) - taken[urgency])]:
            item = items[key]
            size = len(item.encoded) + _SLACK_BYTES
            if used + size > room:
                continue
            used += size
            taken[urgency] += 1
            chosen.append(item.encoded)
            del items[key]
            item.left_count -= 1
            if item.left_count > 0:
                items[key] = item
            else:
                # It is gone from the end as well, where the turns already taken are counted.
                taken[urgency] -= 1
        return used
