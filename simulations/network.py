"""What becomes of a datagram between two addresses: delayed, lost, doubled, overtaken, cut off.

Its own file because every fault of a network is here and none of a machine. A way from one address
to another is looked up as: the pair of addresses, else the pair of sides that they are on, else the
default. Ways have a direction. It must not know what the datagrams say.
"""

import random
from dataclasses import dataclass, replace

from cluster.gossip.messages import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How it is in one direction."""

    delay_min_seconds: float = 0.0002
    delay_max_seconds: float = 0.002
    loss_ratio: float = 0.0
    duplicate_ratio: float = 0.0
    overtaken_ratio: float = 0.0
    """So many arrive late, after others that were sent later."""
    overtaken_seconds: float = 0.05
    """At most so late."""

    @property
    def is_cut(self) -> bool:
        """Whether nothing passes, not even a stream."""
        return self.loss_ratio >= 1.0


CUT = Way(loss_ratio=1.0)
HOME = 0
"""The side of whoever was put on no other."""


class Network:
    """All ways between addresses."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._default = Way()
        self._sides: dict[Address, int] = {}
        self._between_sides: dict[tuple[int, int], Way] = {}
        self._between: dict[tuple[Address, Address], Way] = {}

    def change(
        self,
        *,
        loss_ratio: float | None = None,
        duplicate_ratio: float | None = None,
        overtaken_ratio: float | None = None,
        delay_seconds: tuple[float, float] | None = None,
    ) -> None:
        """All ways that nothing else is said of are like this from now on."""
        way = self._default
        shortest, longest = delay_seconds or (way.delay_min_seconds, way.delay_max_seconds)
        self._default = replace(
            way,
            delay_min_seconds=shortest,
            delay_max_seconds=longest,
            loss_ratio=way.loss_ratio if loss_ratio is None else loss_ratio,
            duplicate_ratio=way.duplicate_ratio if duplicate_ratio is None else duplicate_ratio,
            overtaken_ratio=way.overtaken_ratio if overtaken_ratio is None else overtaken_ratio,
        )

    def put(self, address: Address, side: int) -> None:
        """An address is on this side from now on."""
        self._sides[address] = side

    def side(self, address: Address) -> int:
        """Where an address is."""
        return self._sides.get(address, HOME)

    def lead(self, sender: int, receiver: int, way: Way) -> None:
        """From one side to another it is like this from now on."""
        self._between_sides[sender, receiver] = way

    def cut(self, one: int, other: int) -> None:
        """Nothing passes between two sides, either way."""
        self.lead(one, other, CUT)
        self.lead(other, one, CUT)

    def link(self, sender: Address, receiver: Address, way: Way) -> None:
        """From one address to another it is like this from now on."""
        self._between[sender, receiver] = way

    def heal(self) -> None:
        """No sides, no special ways; the default stays."""
        self._sides.clear()
        self._between_sides.clear()
        self._between.clear()

    def way(self, sender: Address, receiver: Address) -> Way:
        """How it is from here to there."""
        if self._between:
            special = self._between.get((sender, receiver))
            if special is not None:
                return special
        if self._between_sides:
            sides = (self.side(sender), self.side(receiver))
            return self._between_sides.get(sides, self._default)
        return self._default

    def is_open(self, one: Address, other: Address) -> bool:
        """Whether a stream between the two is possible, which needs both directions."""
        return not self.way(one, other).is_cut and not self.way(other, one).is_cut

    def delays(self, sender: Address, receiver: Address) -> list[float]:
        """After how long each copy of a datagram arrives; none where it is lost."""
        chance, way = self._chance, self.way(sender, receiver)
        copies = 2 if way.duplicate_ratio and chance.random() < way.duplicate_ratio else 1
        delays = []
        for _ in range(copies):
            if way.loss_ratio and chance.random() < way.loss_ratio:
                continue
            span = way.delay_max_seconds - way.delay_min_seconds
            delay = way.delay_min_seconds + span * chance.random()
            if way.overtaken_ratio and chance.random() < way.overtaken_ratio:
                delay += way.overtaken_seconds * chance.random()
            delays.append(delay)
        return delays
