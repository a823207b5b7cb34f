"""Last words: what the signers of a retirement have stated, and which of them have gone on.

Its own file because these words outlive their speakers and are passed on by anybody, so each has a
signature of its own and is judged here, once: it counts only from whom the record asks, or from a
member where the record is not known yet, and it takes a bounded room. Two different statements of
one node for one record are kept both, and shown to all: whoever computes with one of them could
come to another end than its neighbour, so nobody does. It must not know what follows from words.
"""

from collections.abc import Callable, Iterator

from cluster.ids import NodeId
from cluster.rack.ledger.account import Account
from cluster.rack.ledger.decrees import Retired
from cluster.rack.ledger.messages import (
    HasSwitched,
    SignedStatement,
    SignedSwitch,
    Stated,
    Statement,
    Switch,
    encode_statement,
    encode_switch,
)
from cluster.rack.units import CurrencyId, Epoch
from cluster.signatures import Purpose, Signer, Verifier

UNNAMED_MAX = 16
"""Words of one member for records that are not known here."""

PublicKeyOf = Callable[[NodeId], bytes | None]
"""The key of a member; None for one whose certificate is not known here."""

_Key = tuple[Epoch, int, bytes, NodeId]


class Words:
    """All that was said at the end of this epoch, and of the one before."""

    def __init__(
        self, account: Account, *, signer: Signer, verifier: Verifier, public_key_of: PublicKeyOf
    ) -> None:
        self._account = account
        self._signer = signer
        self._verifier = verifier
        self._public_key_of = public_key_of
        self.named: tuple[Retired, ...] = ()
        """All retirements that operators have signed."""
        self._statements: dict[_Key, SignedStatement] = {}
        self._seconds: dict[_Key, SignedStatement] = {}
        """What contradicts the first."""
        self._switches: dict[_Key, SignedSwitch] = {}

    # -- hearing ----------------------------------------------------------------------------------

    def hear_stated(self, signed: SignedStatement) -> bool:
        """Somebody's statement, from whomever; whether it is new and counts."""
        stated = signed.statement
        key = (stated.epoch, stated.rank, stated.digest, stated.node_id)
        known = self._statements.get(key)
        if known is not None and (known.payload == signed.payload or key in self._seconds):
            return False
        if not self._may_speak(key) or not self._is_signed(
            stated.node_id, signed.currency, signed.payload, signed.signature
        ):
            return False
        if known is None:
            self._statements[key] = signed
        else:
            self._seconds[key] = signed
            self._account.alarm(
                f"{stated.node_id.short} has stated two different things at the end of epoch "
                f"{stated.epoch.number}: nobody computes with either; retire it as well"
            )
        return True

    def hear_switched(self, signed: SignedSwitch) -> bool:
        """Somebody says that it is in the next epoch; whether it is new and counts."""
        switch = signed.switch
        key = (switch.epoch, switch.rank, switch.digest, switch.node_id)
        if key in self._switches or self._record_of(key) is None or not self._may_speak(key):
            return False
        if not self._is_signed(switch.node_id, signed.currency, signed.payload, signed.signature):
            return False
        self._switches[key] = signed
        if sum(self._is_same_end(key, other) for other in self._switches) > 1:
            self._account.alarm(
                f"{switch.node_id.short} says that it has ended epoch {switch.epoch.number} in two "
                "ways: it is not followed; retire it"
            )
        return True

    def _may_speak(self, key: _Key) -> bool:
        """Whether a word under this key is asked for; then it is of this epoch, or of the next."""
        account = self._account
        epoch, *_, node_id = key
        if epoch not in (account.book.epoch, account.ahead.epoch):
            return False  # a newcomer listens as soon as its account is on its way to disk
        record = self._record_of(key)
        if record is not None:
            return node_id in record.signers
        if node_id not in (*account.book.members, *account.ahead.members):
            return False
        unnamed = (one for one in self._statements if self._record_of(one) is None)
        return sum(one[3] == node_id for one in unnamed) < UNNAMED_MAX

    def _record_of(self, key: _Key) -> Retired | None:
        epoch, rank, digest, _ = key
        return next(
            (
                one
                for one in self.named
                if (one.epoch, one.rank, one.digest) == (epoch, rank, digest)
            ),
            None,
        )

    def _is_signed(
        self, node_id: NodeId, currency: CurrencyId, payload: bytes, signature: bytes
    ) -> bool:
        public_key = self._public_key_of(node_id)
        if public_key is None or NodeId.of_public_key(public_key) != node_id:
            return False
        message = Purpose.POWER_STATEMENT.wrap(payload)
        return currency == self._account.book.currency and self._verifier.verify(
            public_key=public_key, signature=signature, message=message
        )

    @staticmethod
    def _is_same_end(one: _Key, other: _Key) -> bool:
        return (one[0], one[3]) == (other[0], other[3])

    # -- saying -----------------------------------------------------------------------------------

    def remember(self, signed: SignedStatement) -> None:
        """A statement of our own, or one that was kept."""
        stated = signed.statement
        key = (stated.epoch, stated.rank, stated.digest, stated.node_id)
        self._statements.setdefault(key, signed)

    def state(self, record: Retired) -> SignedStatement | None:
        """What this node has to say; None if the record forgets somebody whom it would name."""
        book = self._account.book
        places = {node_id: place for place, node_id in enumerate(record.members)}
        if any(to not in places for to in book.outbox):
            return None
        statement = Statement(
            node_id=book.node_id,
            epoch=record.epoch,
            rank=record.rank,
            digest=record.digest,
            own_shares=book.own_shares,
            outbox=tuple(
                (places[to], debt.sequence, debt.shares) for to, debt in sorted(book.outbox.items())
            ),
            last_in=tuple(book.last_in.get(one, 0) for one in record.members),
        )
        payload = encode_statement(book.currency, statement)
        signature = self._signer.sign(Purpose.POWER_STATEMENT.wrap(payload))
        return SignedStatement(
            currency=book.currency, statement=statement, payload=payload, signature=signature
        )

    def switch(self, ended: Statement) -> SignedSwitch:
        """That this node has gone on by the record of this last word of its own."""
        book = self._account.book
        switch = Switch(
            node_id=book.node_id, epoch=ended.epoch, rank=ended.rank, digest=ended.digest
        )
        payload = encode_switch(book.currency, switch)
        signature = self._signer.sign(Purpose.POWER_STATEMENT.wrap(payload))
        return SignedSwitch(
            currency=book.currency, switch=switch, payload=payload, signature=signature
        )

    # -- what is known ----------------------------------------------------------------------------

    def statement_of(self, record: Retired, node_id: NodeId) -> SignedStatement | None:
        """The statement of a signer, if it is known."""
        return self._statements.get((record.epoch, record.rank, record.digest, node_id))

    def is_contradicted(self, record: Retired) -> bool:
        """Whether some signer has stated two things for this record."""
        end = (record.epoch, record.rank, record.digest)
        return any(key[:3] == end for key in self._seconds)

    def finishers(self, record: Retired) -> tuple[NodeId, ...]:
        """Who has ended the epoch by this record, and in no other way."""
        end = (record.epoch, record.rank, record.digest)
        return tuple(
            key[3]
            for key in self._switches
            if key[:3] == end
            and sum(self._is_same_end(key, other) for other in self._switches) == 1
        )

    def of(self, epoch: Epoch) -> Iterator[Stated | HasSwitched]:
        """All that was said at the end of an epoch, to be said again."""
        for words in (self._statements, self._seconds):
            for key, signed in words.items():
                if key[0] == epoch:
                    yield Stated(signed=signed)
        for key, switch in self._switches.items():
            if key[0] == epoch:
                yield HasSwitched(signed=switch)

    def forget_before(self, number: int) -> None:
        """Drop what was said at the end of epochs before this one."""
        for words in (self._statements, self._seconds, self._switches):
            for key in [one for one in words if one[0].number < number]:
                del words[key]
