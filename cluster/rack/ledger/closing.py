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
4. A rank that was stated is on disk, and no lower one, and no other record of that rank, is stated
   afterwards: not after a restart that has lost the operators' record, nor when it was revoked.
5. Whoever has finished one rank never states another, and signs that it has. A lower rank is
   finished for no other reason than such a word, and only if its speaker is asked by every higher
   record that this node may have stated: then none of those can be completed.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from cluster.errors import Malformed
from cluster.ids import NodeId
from cluster.rack.ledger.account import Account
from cluster.rack.ledger.book import Froze, Frozen, Switched
from cluster.rack.ledger.charter import Charter
from cluster.rack.ledger.decrees import Retired
from cluster.rack.ledger.messages import (
    HasSwitched,
    SignedStatement,
    SignedSwitch,
    Stated,
    Statement,
    decode_signed_statement,
)
from cluster.rack.ledger.words import PublicKeyOf, Words
from cluster.rack.units import SHARES_TOTAL, Epoch
from cluster.signatures import Signer, Verifier

RELAY_COUNT = 4
RESTATE_SECONDS = 1.0


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
        self._rng = rng
        self._words = Words(account, signer=signer, verifier=verifier, public_key_of=public_key_of)
        self._records: tuple[Retired, ...] = ()
        self._is_kept = False
        """Whether these records are on disk: none is signed before."""
        self._restate_seconds: float | None = None
        self._helped_seconds: dict[NodeId, float] = {}
        self._stated: dict[bytes, None] = {}
        """Digests of the records for which this life has made its own words."""
        self._last: SignedStatement | None = None
        """Our last word of the epoch before."""
        if account.book.last_statement is not None:
            self._last = decode_signed_statement(account.book.last_statement)
            self._words.remember(self._last)

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
        return tuple(one for one in record.signers if self._words.statement_of(record, one) is None)

    @property
    def deadline(self) -> float | None:
        """When the last word is to be repeated."""
        return self._restate_seconds

    def obey(self, charter: Charter, *, is_kept: bool) -> None:
        """What operators say about the present epoch; nothing is signed while it is not kept."""
        book = self._account.book
        self._words.named = charter.retired
        self._records = () if book.epoch is None else charter.closings_of(book.epoch)
        self._is_kept = is_kept
        if self._records:
            self._account.reserved.clear()  # what is not written down yet is not begun

    # -- hearing ----------------------------------------------------------------------------------

    def hear_epoch(self, node_id: NodeId, epoch: Epoch, now: float) -> None:
        """A peer's row says in which epoch it is; one who was left behind is helped."""
        book = self._account.book
        if book.epoch is None or epoch >= book.epoch:
            return
        if now < self._helped_seconds.get(node_id, now) or node_id in self._gone_from(epoch):
            return
        self._helped_seconds[node_id] = now + RESTATE_SECONDS
        for words in self._words.of(epoch):
            self._account.say((node_id,), words)
        if self._last is not None and self._last.statement.epoch == epoch:
            switch = self._words.switch(self._last.statement)
            self._account.say((node_id,), HasSwitched(signed=switch))

    def _gone_from(self, epoch: Epoch) -> tuple[NodeId, ...]:
        ended = self._last
        return tuple(
            gone
            for one in self._words.named
            if ended is not None and (one.epoch, one.digest) == (epoch, ended.statement.digest)
            for gone in one.out
        )

    def hear(self, signed: SignedStatement) -> None:
        """Somebody's last word, from whomever; passed on once."""
        if self._words.hear_stated(signed):
            self._pass_on(Stated(signed=signed))

    def hear_switched(self, signed: SignedSwitch) -> None:
        """Somebody's word that it has gone on, from whomever; passed on once."""
        if self._words.hear_switched(signed):
            self._pass_on(HasSwitched(signed=signed))

    def _pass_on(self, message: Stated | HasSwitched) -> None:
        if not self._records:
            return
        others = [one for one in self._records[-1].signers if one != self._account.book.node_id]
        chosen = self._rng.sample(others, min(RELAY_COUNT, len(others)))
        self._account.say(chosen, message)

    # -- going on ---------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Do whatever can be done by now."""
        account = self._account
        book = account.book
        restate_seconds, self._restate_seconds = self._restate_seconds, None
        if not self._records or book.epoch is None or not account.is_believed:
            return
        if account.ahead.epoch != book.epoch:
            return  # the switch is on its way to disk
        record = self._records[-1]
        if book.node_id in record.out:
            account.quarantine("an operator has retired this node")
            return
        finished = self._finished_by_others()
        if finished is not None:
            self._restate(finished, restate_seconds, now)
            self._finish(finished)
        elif self._may_sign(record):
            self._state(record, restate_seconds, now)
            self._finish(record)

    def _may_sign(self, record: Retired) -> bool:
        """Whether this node may say its last word for the record of the highest rank."""
        account = self._account
        where = f"retirement {record.rank} of epoch {record.epoch.number}"
        frozen = account.ahead.frozen
        if account.book.node_id not in record.signers:
            account.alarm(f"{where} forgets a node")
        elif len(self._records) > 1 and self._records[-2].rank == record.rank:
            account.alarm(
                f"two retirements of rank {record.rank} contradict each other: neither is signed; "
                "an operator has to sign the next rank"
            )
        elif frozen is not None and not _may_follow(frozen, record):
            account.alarm(
                f"{where} comes after this node has signed another record of rank {frozen.rank}, "
                "which is not known here now: it is not signed; if an operator has withdrawn that "
                f"one, rank {frozen.rank + 1} has to be signed"
            )
        else:
            return True
        return False

    def _finished_by_others(self) -> Retired | None:
        """The record by which some signer has finished, where that is not the one to be signed.

        Its speaker must be asked by all records of higher ranks, of which this node may have stated
        any: it never answers them, so none of them is ever completed.
        """
        frozen = self._account.ahead.frozen
        if frozen is None:
            return None  # nobody can have finished without this node's word
        is_known = any(_is_of(frozen, one) for one in self._records)
        for one in self._records:
            is_lower = one.rank < frozen.rank and is_known
            if not (is_lower or _is_of(frozen, one)):
                continue
            higher = [other for other in self._records if other.rank > one.rank]
            for speaker in self._words.finishers(one):
                if all(speaker in other.signers for other in higher):
                    return one
        return None

    def _state(self, record: Retired, restate_seconds: float | None, now: float) -> None:
        """Say the last word, once nothing is under way and the record is on disk."""
        account = self._account
        frozen = Frozen(rank=record.rank, digest=record.digest)
        if account.ahead.frozen != frozen:
            strangers = [one for one in account.book.members if one not in record.members]
            if strangers:
                account.alarm(
                    f"retirement {record.rank} of epoch {record.epoch.number} does not name the "
                    f"member {strangers[0].short}: it is not signed"
                )
            elif account.is_idle and self._is_kept:
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
        if record.digest not in self._stated:
            if not self._make_word(record):
                return
            due_seconds = now
        self._restate_seconds = now if due_seconds is None else due_seconds
        word = self._words.statement_of(record, account.book.node_id)
        if word is not None and now >= self._restate_seconds:
            self._restate_seconds = now + RESTATE_SECONDS
            others = (one for one in record.signers if one != account.book.node_id)
            account.say(others, Stated(signed=word))

    def _make_word(self, record: Retired) -> bool:
        """Our word for this record; a different one under our own signature proves an old copy."""
        account = self._account
        word = self._words.state(record)
        if word is None:
            account.alarm(f"retirement {record.rank} of epoch {record.epoch.number} forgets a node")
            return False
        known = self._words.statement_of(record, account.book.node_id)
        if known is not None and known.payload != word.payload:
            account.quarantine(
                "others hold another last word of this node: its book is an old copy"
            )
            return False
        self._words.remember(word)
        self._stated[record.digest] = None
        return True

    def _finish(self, record: Retired) -> None:
        """Begin the next epoch, if every signer has stated, and none of them two things."""
        account = self._account
        own_id = account.book.node_id
        is_mine = account.book.frozen is not None and own_id in record.signers
        if not (is_mine and account.is_idle) or self._words.is_contradicted(record):
            return
        statements: dict[NodeId, Statement] = {}
        for node_id in record.signers:
            signed = self._words.statement_of(record, node_id)
            if signed is None or not _fits(record, signed.statement):
                return
            statements[node_id] = signed.statement
        try:
            outcome = settle_epoch(record, statements)
        except Malformed as error:
            account.alarm(f"epoch {record.epoch.number} cannot be closed: {error}")
            return
        own = self._words.statement_of(record, own_id)
        if own is not None:
            account.keep(
                Switched(
                    epoch=outcome.epoch,
                    members=outcome.members,
                    own_shares=outcome.own_shares[own_id],
                    statement=own.encoded,
                )
            )

    def kept_switch(self) -> None:
        """The next epoch is on disk: all signers are told, and what was said is kept."""
        book = self._account.book
        records, self._records = self._records, ()
        self._restate_seconds = None
        self._stated.clear()
        if book.epoch is None or book.last_statement is None:
            return
        self._words.forget_before(book.epoch.number - 1)
        self._last = decode_signed_statement(book.last_statement)
        switch = self._words.switch(self._last.statement)
        signers = dict.fromkeys(signer for one in records for signer in one.signers)
        others = [one for one in signers if one != book.node_id]
        self._account.say(others, HasSwitched(signed=switch))


def _is_of(frozen: Frozen, record: Retired) -> bool:
    """Whether this is the record that was signed last."""
    return (frozen.rank, frozen.digest) == (record.rank, record.digest)


def _may_follow(frozen: Frozen, record: Retired) -> bool:
    """Whether a record may be signed after that one, or again."""
    return record.rank > frozen.rank or _is_of(frozen, record)


def _fits(record: Retired, statement: Statement) -> bool:
    """Whether a statement has a number for each member, and names no place that is none."""
    count = len(record.members)
    return len(statement.last_in) == count and all(place < count for place, *_ in statement.outbox)
