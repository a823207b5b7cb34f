"""How an epoch ends: an operator's retirement and the last word of everybody who stays.

Its own file because it is the one place where shares of the dead are given out again, and a
mistake here mints watts. The outcome is a pure function of the record and of all its signers'
statements; with one missing there is none. The rules (power-safety, "Retiring a node"):

1. Whoever states finishes what is under way, starts nothing, takes nothing, and puts its last word
   on disk before anybody hears it.
2. A survivor owns what it stated, and what it had sent to another signer who did not have it.
   What was sent to a retired node is never refunded: it may have been credited and passed on.
3. What is left of the whole goes to the newcomers, or to the first survivor; less than nothing is
   an alarm, and no new epoch.
4. Whoever has finished one rank never states another. So where a signer is seen in the next epoch
   by a lower rank, the higher rank can never be completed, and the lower one is finished by all.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cluster.errors import Malformed
from cluster.ids import NodeId
from cluster.rack.ledger.account import Account
from cluster.rack.ledger.book import Froze, Frozen, Switched
from cluster.rack.ledger.charter import Charter
from cluster.rack.ledger.decrees import Retired
from cluster.rack.ledger.messages import (
    SignedStatement,
    Stated,
    Statement,
    decode_signed_statement,
    encode_statement,
    statement_currency,
)
from cluster.rack.units import SHARES_TOTAL, Epoch
from cluster.signatures import Purpose, Signer, Verifier

RELAY_COUNT = 4
RESTATE_SECONDS = 1.0
STATEMENTS_MAX = 16
"""Of one node: it makes one for each rank."""

PublicKeyOf = Callable[[NodeId], bytes | None]
"""The key of a member; None for one whose certificate is not known here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Who owns what in the next epoch."""

    epoch: Epoch
    own_shares: Mapping[NodeId, int]

    @property
    def members(self) -> tuple[NodeId, ...]:
        """In the order of the operator's record."""
        return tuple(self.own_shares)


def settle_epoch(record: Retired, statements: Mapping[NodeId, Statement]) -> Outcome:
    """What follows from all statements.

    Raises:
        Malformed: they contain more shares than there are; nothing may be given out.
    """
    places = {node_id: place for place, node_id in enumerate(record.members)}
    own: dict[NodeId, int] = {}
    for node_id in record.survivors:
        stated = statements[node_id]
        own[node_id] = stated.own_shares
        for to_place, sequence, shares in stated.outbox:
            to = record.members[to_place]
            if to in record.out:
                continue
            if statements[to].last_in[places[node_id]] < sequence:
                own[node_id] += shares
    left = SHARES_TOTAL - sum(own.values())
    if left < 0:
        raise Malformed(f"the statements hold {-left} shares more than there are")
    newcomers = [node_id for node_id, _ in record.added if node_id not in record.out]
    if newcomers:
        each, rest = divmod(left, len(newcomers))
        own.update({one: each + (rest if at == 0 else 0) for at, one in enumerate(newcomers)})
    else:
        own[record.survivors[0]] += left
    return Outcome(epoch=Epoch(record.epoch.number + 1, record.rank), own_shares=own)


class Closings:
    """The end of this node's epoch, once operators ask for it."""

    def __init__(
        self,
        account: Account,
        *,
        signer: Signer,
        verifier: Verifier,
        public_key_of: PublicKeyOf,
        rng: random.Random,
    ) -> None:
        self._account = account
        self._signer = signer
        self._verifier = verifier
        self._public_key_of = public_key_of
        self._rng = rng
        self._records: tuple[Retired, ...] = ()
        self._statements: dict[tuple[Epoch, int, bytes, NodeId], SignedStatement] = {}
        self._epochs: dict[NodeId, Epoch] = {}
        """Of each peer, by its newest row."""
        self._restate_seconds: float | None = None
        self._helped_seconds: dict[NodeId, float] = {}
        if account.book.last_statement is not None:
            self._remember(decode_signed_statement(account.book.last_statement))

    @property
    def is_open(self) -> bool:
        """Whether operators have asked for the end of this epoch: nothing new is begun."""
        return bool(self._records)

    @property
    def absent(self) -> tuple[NodeId, ...]:
        """Whose statement is missing."""
        if not self._records:
            return ()
        record = self._records[-1]
        return tuple(
            one
            for one in record.signers
            if (record.epoch, record.rank, record.digest, one) not in self._statements
        )

    @property
    def deadline(self) -> float | None:
        """When the last word is to be repeated."""
        return self._restate_seconds

    def obey(self, charter: Charter) -> None:
        """What operators say about the present epoch."""
        book = self._account.book
        self._records = () if book.epoch is None else charter.closings_of(book.epoch)
        if self._records:
            self._account.reserved.clear()  # what is not written down yet is not begun

    # -- hearing ----------------------------------------------------------------------------------

    def hear_epoch(self, node_id: NodeId, epoch: Epoch, now: float) -> None:
        """A peer's row says in which epoch it is; one who was left behind is helped."""
        self._epochs[node_id] = epoch
        own = self._account.book.epoch
        if own is None or epoch >= own or now < self._helped_seconds.get(node_id, now):
            return
        self._helped_seconds[node_id] = now + RESTATE_SECONDS
        for signed in self._statements.values():
            if signed.statement.epoch == epoch:
                self._account.say((node_id,), Stated(signed=signed))

    def hear(self, signed: SignedStatement) -> None:
        """Somebody's last word, from whomever; passed on once."""
        stated = signed.statement
        key = (stated.epoch, stated.rank, stated.digest, stated.node_id)
        epochs = self._account.book.epoch, self._account.ahead.epoch
        if key in self._statements or stated.epoch not in epochs:
            return  # a newcomer listens as soon as its account is on its way to disk
        if sum(node_id == stated.node_id for *_, node_id in self._statements) >= STATEMENTS_MAX:
            return
        public_key = self._public_key_of(stated.node_id)
        message = Purpose.POWER_STATEMENT.wrap(signed.payload)
        if (
            statement_currency(signed) != self._account.book.currency
            or public_key is None
            or NodeId.of_public_key(public_key) != stated.node_id
            or not self._verifier.verify(
                public_key=public_key, signature=signed.signature, message=message
            )
        ):
            return
        self._remember(signed)
        self._pass_on(signed)

    def _remember(self, signed: SignedStatement) -> None:
        stated = signed.statement
        self._statements[stated.epoch, stated.rank, stated.digest, stated.node_id] = signed

    def _pass_on(self, signed: SignedStatement) -> None:
        if not self._records:
            return
        others = [one for one in self._records[-1].signers if one != self._account.book.node_id]
        chosen = self._rng.sample(others, min(RELAY_COUNT, len(others)))
        self._account.say(chosen, Stated(signed=signed))

    # -- going on ---------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Do whatever can be done by now."""
        account = self._account
        book = account.book
        restate_seconds, self._restate_seconds = self._restate_seconds, None
        if not self._records or book.epoch is None or account.ahead.quarantine:
            return
        if account.ahead.epoch != book.epoch:
            return  # the switch is on its way to disk
        record = self._records[-1]
        if book.node_id in record.out:
            account.quarantine("an operator has retired this node")
            return
        finished = self._finished_by_others(record)
        if finished is not None:
            self._restate(finished, restate_seconds, now)
            self._finish(finished)
            return
        if book.node_id not in record.signers:
            account.alarm(f"retirement {record.rank} of epoch {record.epoch.number} forgets a node")
            return
        if len(self._records) > 1 and self._records[-2].rank == record.rank:
            account.alarm(
                f"two retirements of rank {record.rank} contradict each other: neither is signed; "
                "an operator has to sign the next rank"
            )
            return
        self._state(record, restate_seconds, now)
        self._finish(record)

    def _finished_by_others(self, record: Retired) -> Retired | None:
        """The lower rank that some signer has finished already (rule 4)."""
        for node_id in record.signers:
            epoch = self._epochs.get(node_id)
            if epoch is not None and epoch.number == record.epoch.number + 1:
                for one in self._records:
                    if one.rank == epoch.rank and one.rank < record.rank:
                        return one
        return None

    def _state(self, record: Retired, restate_seconds: float | None, now: float) -> None:
        """Say the last word, once nothing is under way."""
        account = self._account
        frozen = Frozen(rank=record.rank, digest=record.digest)
        if account.ahead.frozen != frozen:
            strangers = [one for one in account.book.members if one not in record.members]
            if strangers:
                account.alarm(
                    f"retirement {record.rank} of epoch {record.epoch.number} does not name the "
                    f"member {strangers[0].short}: it is not signed"
                )
            elif account.is_idle:
                account.keep(Froze(frozen=frozen))
        elif account.book.frozen == frozen:
            self._restate(record, restate_seconds, now)

    def _restate(self, record: Retired, due_seconds: float | None, now: float) -> None:
        """Say it, and say it again each second; `due_seconds` is when that was to be.

        From the first freeze on the book does not change, so that the words for a lower rank can be
        found again after a restart.
        """
        account = self._account
        if account.book.frozen is None or account.book.node_id not in record.signers:
            return
        key = (record.epoch, record.rank, record.digest, account.book.node_id)
        if key not in self._statements:
            self._remember(self._own_statement(record))
            due_seconds = now
        self._restate_seconds = now if due_seconds is None else due_seconds
        if now >= self._restate_seconds:
            self._restate_seconds = now + RESTATE_SECONDS
            others = (one for one in record.signers if one != account.book.node_id)
            account.say(others, Stated(signed=self._statements[key]))

    def _own_statement(self, record: Retired) -> SignedStatement:
        book = self._account.book
        places = {node_id: place for place, node_id in enumerate(record.members)}
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
        return SignedStatement(statement=statement, payload=payload, signature=signature)

    def _finish(self, record: Retired) -> None:
        """Begin the next epoch, if every signer has stated."""
        account = self._account
        if account.book.node_id not in record.signers or not account.is_idle:
            return
        statements: dict[NodeId, Statement] = {}
        for node_id in record.signers:
            signed = self._statements.get((record.epoch, record.rank, record.digest, node_id))
            if signed is None or len(signed.statement.last_in) != len(record.members):
                return
            if any(place >= len(record.members) for place, _, _ in signed.statement.outbox):
                return
            statements[node_id] = signed.statement
        try:
            outcome = settle_epoch(record, statements)
        except Malformed as error:
            account.alarm(f"epoch {record.epoch.number} cannot be closed: {error}")
            return
        own = self._statements[record.epoch, record.rank, record.digest, account.book.node_id]
        account.keep(
            Switched(
                epoch=outcome.epoch,
                members=outcome.members,
                own_shares=outcome.own_shares[account.book.node_id],
                statement=own.encoded,
            )
        )

    def kept_switch(self) -> None:
        """The next epoch is on disk: what was said in the one before is kept for who is behind."""
        epoch = self._account.book.epoch
        self._records = ()
        self._restate_seconds = None
        if epoch is not None:
            self._statements = {
                key: signed
                for key, signed in self._statements.items()
                if key[0].number == epoch.number - 1
            }
