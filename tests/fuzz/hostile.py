"""What a network sends to one node that does not like it: real datagrams spoiled, and a member that
has gone bad, whose signatures hold.
"""

import itertools
import random
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence

from cluster.codec import Value, encode_document
from cluster.enrolment import NodeKeys
from cluster.errors import Misuse
from cluster.gossip.envelope import PAYLOAD_BYTES_MAX, Envelope, Reason, look, seal
from cluster.gossip.messages import Ack, Address, Kind, Ping, Version
from cluster.gossip.statements import sign_statement
from cluster.gossip.wire import decode_payload, encode_message, join_messages
from cluster.ids import ClusterId, NodeId
from cluster.signatures import Signer
from tests.fuzz.mutation import Mutator

_KIND_WEIGHTS = (20, 20, 20, 20, 19, 1)
"""Of the kinds of statements: whoever has left is not listened to, until its next life."""
_U64 = (0, 1, 2, 77, 2**32, 2**64 - 1)
_KEPT = 512


class Hostile:
    """Makes datagrams; the same ones for the same seed and the same traffic overheard."""

    def __init__(
        self,
        *,
        rogue: NodeKeys,
        rogue_address: Address,
        ids: Sequence[NodeId],
        addresses: Sequence[Address],
        chance: random.Random,
    ) -> None:
        self._chance = chance
        self._spoil = Mutator(chance)
        self._rogue_id = rogue.identity.node_id
        self._rogue_address = rogue_address
        self._signer: Signer = rogue.signer
        self._cluster: ClusterId = rogue.identity.cluster_id
        self._ids = ids
        self._addresses = addresses
        self._numbers = itertools.count(1_000)
        self._epoch = 1
        self._said: dict[Kind, Version] = {}
        self._overheard: deque[bytes] = deque(maxlen=_KEPT)
        self._asked: deque[Envelope] = deque(maxlen=_KEPT)
        self.made: Counter[str] = Counter()
        self._ways: tuple[tuple[str, int, Callable[[], bytes]], ...] = (
            ("spoiled", 30, lambda: self._spoil.spoil(self._real())),
            ("joined", 8, lambda: self._spoil.join(self._real(), self._real())),
            ("replayed", 10, self._real),
            ("other-head", 12, self._with_other_head),
            ("false-signature", 10, lambda: self._real()[:-64] + chance.randbytes(64)),
            ("noise", 5, lambda: self._spoil.noise(1500)),
            ("odd-statements", 10, self._bare_statements),
            ("signed-odd", 15, self._signed_odd),
        )
        self._weights = [weight for _, weight, _ in self._ways]

    def overhear(self, data: bytes, to: Address) -> None:
        """Real traffic, to be spoiled or repeated; questions to the bad member, to be answered."""
        self._overheard.append(data)
        if to == self._rogue_address:
            seen = look(data, self._cluster)
            if not isinstance(seen, Reason):
                self._asked.append(seen)

    def answers(self) -> Iterator[tuple[NodeId, bytes]]:
        """The bad member says that it is there, so that its word counts: to whom, and what."""
        while self._asked:
            asked = self._asked.popleft()
            for message in decode_payload(asked.payload):
                if isinstance(message, Ping):
                    self.made["answer"] += 1
                    ack = encode_message(Ack(nonce=message.nonce, view_digest=self._number()))
                    version = Version(epoch=self._epoch, sequence=next(self._numbers))
                    yield asked.sender, self._seal(join_messages([ack]), version, self._signer)

    def next(self) -> tuple[bytes, Address]:
        """One datagram, and where it seems to come from."""
        name, _, make = self._chance.choices(self._ways, self._weights)[0]
        self.made[name] += 1
        return make(), self._source()

    def _source(self) -> Address:
        if self._chance.random() < 0.3:
            return self._chance.choice(self._addresses)
        # A few that come again, and some that never do.
        last = self._chance.choice((self._chance.randint(1, 9), self._chance.getrandbits(16)))
        return Address(f"192.0.2.1:{last % 65_535 + 1}")

    def _real(self) -> bytes:
        return self._chance.choice(self._overheard)

    def _with_other_head(self) -> bytes:
        """Another cluster, another sender, another number."""
        data = self._real()
        id_ = bytes(self._chance.choice(self._ids))
        number = self._chance.choice(_U64).to_bytes(8, "big")
        match self._chance.randrange(4):
            case 0:
                return data[:1] + self._chance.randbytes(16) + data[17:]
            case 1:
                return data[:17] + id_ + data[33:]
            case 2:
                return data[:33] + number + data[41:]
            case _:
                return data[:17] + self._chance.randbytes(16) + data[33:]

    def _signed_odd(self) -> bytes:
        """Under the signature of a member: messages that no honest one would send."""
        if self._chance.random() < 0.005:
            self._epoch += self._chance.choice((1, 1, 2, 2**32))
        version = Version(epoch=self._epoch, sequence=next(self._numbers))
        return self._seal(self._payload(self._odd_message), version, self._signer)

    def _bare_statements(self) -> bytes:
        version = Version(epoch=self._chance.choice(_U64), sequence=0)
        return self._seal(self._payload(self._odd_statement_message), version, None)

    def _seal(self, payload: bytes, version: Version, signer: Signer | None) -> bytes:
        return seal(
            payload[:PAYLOAD_BYTES_MAX],
            cluster_id=self._cluster,
            sender=self._rogue_id,
            version=version,
            signer=signer,
        )

    def _payload(self, make: Callable[[], bytes]) -> bytes:
        parts = [make() for _ in range(self._chance.choice((0, 1, 1, 1, 2, 3, 20)))]
        payload = bytes((1, len(parts))) + b"".join(
            len(part).to_bytes(2, "big") + part for part in parts
        )
        return self._spoil.spoil(payload) if self._chance.random() < 0.2 else payload

    def _odd_message(self) -> bytes:
        pick = self._chance.random()
        if pick < 0.25:
            return self._odd_statement_message()
        if pick < 0.35:
            return encode_document(tuple(self._odd_value(3) for _ in range(5)))
        fields = self._fields(self._chance.randint(1, 12))
        if self._chance.random() < 0.2:
            place = self._chance.randrange(len(fields))
            fields = (*fields[:place], self._odd_value(2), *fields[place + 1 :])
        return encode_document(fields[: max(1, len(fields) - self._chance.choice((0, 0, 0, 1)))])

    def _fields(self, tag: int) -> tuple[Value, ...]:
        """About as the message of this tag should be."""
        number, id_ = self._number, self._id
        match tag:
            case 1:
                return (1, number(), id_(), number(), self._chance.random() < 0.5)
            case 2:
                return (2, number(), number())
            case 3:
                return (3, number(), id_(), self._address())
            case 5:
                return (5, self._spoil.spoil(self._real())[:1000])
            case 6:
                size = self._chance.choice((512, 512, 511, 8))
                return (6, self._chance.randbytes(size))
            case 7:
                return (7, id_(), id_(), self._entries(), self._chance.random() < 0.5)
            case 8:
                return (8, self._entries())
            case 9:
                return (9, self._spoil.noise(300))
            case 10:
                return (10, number(), number(), self._spoil.noise(300))
            case _:
                return (tag, number())

    def _entries(self) -> tuple[Value, ...]:
        count = self._chance.choice((0, 1, 3, 20))
        return tuple(
            (self._id(), self._number(), self._number(), self._number()) for _ in range(count)
        )

    def _odd_statement_message(self) -> bytes:
        return encode_document((11, self._statement()))

    def _statement(self) -> bytes:
        """A word of the bad member: of any kind, about anybody, in any version."""
        kind = self._chance.choices(list(Kind), _KIND_WEIGHTS)[0]
        version = Version(epoch=self._epoch, sequence=next(self._numbers))
        if kind in self._said and self._chance.random() < 0.1:
            version = self._said[kind]  # another content under a number that it has used
        elif self._chance.random() < 0.1:
            older = max(1, version.sequence - self._chance.randint(1, 50))
            version = Version(epoch=self._epoch, sequence=older)
        self._said[kind] = version
        try:
            made = sign_statement(
                kind, version, self._body(kind), cluster_id=self._cluster, signer=self._signer
            ).encoded
        except Misuse:
            return self._spoil.noise(200)
        pick = self._chance.random()
        if pick < 0.1:
            return self._spoil.spoil(made)
        if pick < 0.2:
            return made[:1] + self._id() + made[17:]  # in the name of another
        return made

    def _body(self, kind: Kind) -> tuple[Value, ...]:
        if self._chance.random() < 0.15:
            return tuple(self._odd_value(2) for _ in range(self._chance.randint(0, 5)))
        match kind:
            case Kind.MEMBER:
                others = (self._address() for _ in range(self._chance.choice((0, 1, 7))))
                addresses = (self._rogue_address, *others)
                if self._chance.random() < 0.05:
                    addresses = addresses[1:]
                return ("n5", self._chance.choice(("r01", "r01", "r02")), addresses, b"hash")
            case Kind.SUSPECT | Kind.FAILED:
                version = self._chance.choice(((1, 1), (1, 2), (1, 3), (self._number(), 1)))
                return (self._id(), *version, self._chance.choice((0, 1, 2)))
            case Kind.SUMMARY:
                return ("r01", self._spoil.noise(200))
            case Kind.STATE:
                return (self._spoil.noise(400),)
            case _:
                return ()

    def _id(self) -> bytes:
        if self._chance.random() < 0.2:
            return self._chance.randbytes(16)
        return bytes(self._chance.choice(self._ids))

    def _number(self) -> int:
        return self._chance.choice((self._chance.getrandbits(64), self._chance.choice(_U64)))

    def _address(self) -> str:
        return self._chance.choice(
            (*self._addresses, "203.0.113.9:1", "", "x" * 300, "no address", "[fd00::1]:65536")
        )

    def _odd_value(self, depth: int) -> Value:
        match self._chance.randrange(7):
            case 0:
                return self._number()
            case 1:
                return -self._chance.getrandbits(60)
            case 2:
                return self._spoil.noise(40)
            case 3:
                return "text\n\x00\u202e"[: self._chance.randint(0, 7)]
            case 4:
                return self._chance.choice((True, False, None))
            case 5 if depth > 0:
                return tuple(self._odd_value(depth - 1) for _ in range(self._chance.randint(0, 4)))
            case _:
                return ()
