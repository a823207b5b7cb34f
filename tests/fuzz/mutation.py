"""Ways to spoil bytes that were good."""

import random
from collections.abc import Sequence


class Mutator:
    """Spoils bytes, the same way for the same seed."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._ways = (
            self._flip,
            self._set,
            self._cut,
            self._cut_out,
            self._insert,
            self._repeat,
            self._lengthen,
        )

    def spoil(self, data: bytes) -> bytes:
        """One to three changes."""
        for _ in range(self._chance.choice((1, 1, 1, 2, 3))):
            data = self._chance.choice(self._ways)(data)
        return data

    def join(self, one: bytes, other: bytes) -> bytes:
        """The begin of one and the end of another."""
        return one[: self._place(one)] + other[self._place(other) :]

    def noise(self, bytes_max: int) -> bytes:
        """Bytes without any sense."""
        return self._chance.randbytes(self._chance.randint(0, bytes_max))

    def pick(self, some: Sequence[bytes]) -> bytes:
        return self._chance.choice(some)

    def _place(self, data: bytes) -> int:
        return self._chance.randint(0, len(data))

    def _flip(self, data: bytes) -> bytes:
        spoiled = bytearray(data)
        for _ in range(self._chance.randint(1, 8) if data else 0):
            spoiled[self._chance.randrange(len(data))] ^= 1 << self._chance.randrange(8)
        return bytes(spoiled)

    def _set(self, data: bytes) -> bytes:
        spoiled = bytearray(data)
        if spoiled:
            value = self._chance.choice((0, 1, 0x7F, 0x80, 0xC4, 0xDC, 0xFF))
            spoiled[self._chance.randrange(len(data))] = value
        return bytes(spoiled)

    def _cut(self, data: bytes) -> bytes:
        return data[: self._place(data)]

    def _cut_out(self, data: bytes) -> bytes:
        at = self._place(data)
        return data[:at] + data[at + self._chance.randint(1, 16) :]

    def _insert(self, data: bytes) -> bytes:
        at = self._place(data)
        return data[:at] + self.noise(16) + data[at:]

    def _repeat(self, data: bytes) -> bytes:
        at = self._place(data)
        part = data[at : at + self._chance.randint(1, 64)]
        return data[:at] + part * self._chance.randint(2, 8) + data[at:]

    def _lengthen(self, data: bytes) -> bytes:
        """A length somewhere says more, or less, than there is."""
        if len(data) < 2:
            return data
        at = self._chance.randrange(len(data) - 1)
        return data[:at] + self._chance.randbytes(2) + data[at + 2 :]
