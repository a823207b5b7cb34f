"""The ledger of one currency at one node: a state machine without a clock, a disk or a socket.

The promise: the sum of the caps in force above the floors, over all nodes of the currency, never
exceeds its budget. Why it holds (`power-safety` has the long form):

* I1, conservation. Shares are made once, by the operators' genesis. A debit takes from a giver
  what its outbox then holds, and a credit adds what a grant of that outbox carries; the number of
  the transfer is kept with the credit, so it is added once. Hence, at every instant and after
  every crash: all that is owned, and all in outboxes that was not credited, is the whole. An epoch
  ends by all signers' statements, after which none of them changes its account in it; the outcome
  is a function of these, and gives out only what they do not hold.
* I2, local. `allowance_watts` falls at the moment when a gift is set aside or a lower budget is
  heard, and rises only after a credit or a higher budget is on disk. A debit is written only when
  `bounded` has told that no cap that may still show in the draw is above the allowance. So what
  the hardware can draw is at all times worth at most what the book on disk owns, in the budget
  that this node last complied with.
* I3, the sum. By I1 and I2 the sum of what the hardware of all can draw is at most the largest
  budget that some powered node may not have left yet.
* A node that is silent keeps what it owns, for ever, until operators prove it off (`closing`).
* No clock takes part: time decides when to send again, and nothing else.

It must not know hardware, nor who should have how much: `trading` advises, the actuator obeys.
"""

import random
from dataclasses import dataclass, replace
from functools import partial

from cluster.ids import NodeId
from cluster.rack.ledger.account import Account, Effect
from cluster.rack.ledger.book import (
    Book,
    BudgetTaken,
    Complied,
    Debt,
    Entry,
    MemberAdded,
    Opened,
    Started,
    Switched,
)
from cluster.rack.ledger.charter import Charter
from cluster.rack.ledger.closing import Closings, PublicKeyOf
from cluster.rack.ledger.messages import Grant, Message, Receipt, Stated, Told
from cluster.rack.ledger.transfers import Transfers
from cluster.rack.rows import NOTHING_WANTED, Row, Wants
from cluster.rack.units import FIRST_EPOCH, BudgetVersion, CurrencyId, Epoch, watts_of
from cluster.signatures import Signer, Verifier

_STAMP_BITS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerView:
    """The account of this node at one instant."""

    currency: CurrencyId
    epoch: Epoch | None
    members: tuple[NodeId, ...]
    own_shares: int
    reserved_shares: int
    sent: tuple[tuple[NodeId, Debt], ...]
    allowance_watts: int
    own_watts: int
    version: BudgetVersion
    complied: BudgetVersion
    bound_watts: int | None
    """The highest cap above the floor that may show in the draw; None while it is not known."""
    is_refusing: bool
    is_closing: bool
    absent: tuple[NodeId, ...]
    """Whose last word an open retirement waits for."""
    quarantine: str
    alarms: tuple[str, ...]


class Ledger:
    """The account of this node, and what it says and does about it."""

    def __init__(
        self,
        *,
        book: Book,
        signer: Signer,
        verifier: Verifier,
        public_key_of: PublicKeyOf,
        rng: random.Random,
        may_found: bool = True,
    ) -> None:
        """Begin with what the log says; `may_found` is False where a log should be and is not."""
        self._account = Account(book)
        self._transfers = Transfers(self._account)
        self._closings = Closings(
            self._account,
            signer=signer,
            verifier=verifier,
            public_key_of=public_key_of,
            rng=rng,
        )
        self._may_found = may_found
        self._charter: Charter | None = None
        self._bound_watts: int | None = None
        self._is_known_low = False
        """Whether the hardware was seen to obey in this life. Before, no grant of an earlier life
        is sent again: a reboot may have lost the cap that it was given under."""
        self._wants: Wants = NOTHING_WANTED
        self._count = 0

    # -- the five verbs ---------------------------------------------------------------------------

    def start(self, now: float) -> list[Effect]:
        """Begin a life; it is written down before anything is said."""
        self._account.keep(Started(incarnation=self._account.book.incarnation + 1))
        self._transfers.start(now)
        return self._account.drain()

    def receive(self, sender: NodeId, message: Message, now: float) -> list[Effect]:
        """A message that this sender signed."""
        match message:
            case Told(row=row) if row.node_id == sender:
                self.hear_row(row, now)
            case Grant(row=row) if row.node_id == sender:
                self.hear_row(row, now)
                is_closing = self._closings.is_open
                self._transfers.hear_grant(sender, message, self._row(now), is_closing=is_closing)
            case Receipt(row=row) if row.node_id == sender:
                self.hear_row(row, now)
                self._transfers.hear_receipt(sender, message)
            case Stated(signed=signed):
                self._closings.hear(signed)
            case _:
                pass
        return self._go_on(now)

    def advance(self, now: float) -> list[Effect]:
        """Time has passed."""
        return self._go_on(now)

    def deadline(self) -> float | None:
        """When `advance` is wanted; None while nothing waits."""
        resend = self._transfers.deadline if self._is_known_low else None
        wanted = (resend, self._closings.deadline)
        return min((one for one in wanted if one is not None), default=None)

    def view(self) -> LedgerView:
        """The account now."""
        account, book = self._account, self._account.book
        return LedgerView(
            currency=book.currency,
            epoch=book.epoch,
            members=book.members,
            own_shares=book.own_shares,
            reserved_shares=sum(account.reserved.values()),
            sent=tuple(book.outbox.items()),
            allowance_watts=account.allowance_watts,
            own_watts=watts_of(book.own_shares, account.budget_watts),
            version=book.version,
            complied=book.complied,
            bound_watts=self._bound_watts,
            is_refusing=self._transfers.is_refusing,
            is_closing=self._closings.is_open,
            absent=self._closings.absent,
            quarantine=book.quarantine,
            alarms=account.alarms,
        )

    # -- requests ---------------------------------------------------------------------------------

    @property
    def book(self) -> Book:
        """What is on disk."""
        return self._account.book

    @property
    def allowance_watts(self) -> int:
        """No cap above the floor may be higher than this, now."""
        return self._account.allowance_watts

    @property
    def may_trade(self) -> bool:
        """Whether gifts can be begun: a member, in an epoch that nobody closes."""
        book = self._account.ahead
        return (
            book.is_open and book.frozen is None and not (self._closings.is_open or book.quarantine)
        )

    def want(self, wants: Wants) -> None:
        """What the row says from now on."""
        self._wants = wants

    def row(self, now: float) -> Row | None:
        """The account as others may hear it; None while there is none."""
        return None if self._account.book.epoch is None else self._row(now)

    def give(self, to: NodeId, shares: int, now: float) -> tuple[bool, list[Effect]]:
        """Set shares aside for somebody; whether that was possible.

        The allowance has fallen by the time this returns: lower the hardware, and tell `bounded`.
        """
        is_begun = self.may_trade and self._transfers.give(to, shares)
        return is_begun, self._go_on(now)

    def bounded(self, bound_watts: int | None, now: float) -> list[Effect]:
        """The highest cap above the floor that may show in the draw, now; None for unknown."""
        self._bound_watts = bound_watts
        return self._go_on(now)

    def refused(self, now: float) -> list[Effect]:
        """The hardware would not be lowered: gifts that wait for it are given up."""
        self._transfers.abort()
        return self._go_on(now)

    def nothing_asked(self) -> None:
        """Nothing is wanted of the hardware: whoever is planned around for ever would starve."""
        self._transfers.is_refusing = False

    def hear_row(self, row: Row, now: float) -> None:
        """A peer's row, from gossip or in a message: it may tell what our own disk has lost."""
        book = self._account.book
        if row.node_id == book.node_id:
            return
        self._closings.hear_epoch(row.node_id, row.epoch, now)
        if row.epoch == book.epoch:
            for credit in row.credits:
                if credit.giver == book.node_id:
                    self._transfers.hear_of_credit(row.node_id, credit.sequence)

    def hear_charter(self, charter: Charter, now: float) -> list[Effect]:
        """What operators have decreed, by all records that are known now."""
        self._charter = charter
        self._obey()
        return self._go_on(now)

    def kept(self, number: int, now: float) -> tuple[Entry, list[Effect]]:
        """An entry is on disk: which one, and what may follow now."""
        entry = self._account.kept(number)
        self._transfers.kept(entry, self._row(now), now)
        match entry:
            case Switched():
                self._transfers.forget()
                self._closings.kept_switch()
                self._obey()
            case Opened() | MemberAdded():
                self._obey()
            case _:
                pass
        return entry, self._go_on(now)

    # -- machinery --------------------------------------------------------------------------------

    def _go_on(self, now: float) -> list[Effect]:
        """Whatever can be done by now, in the order of safety."""
        account = self._account
        self._closings.advance(now)
        is_low = self._bound_watts is not None and self._bound_watts <= account.allowance_watts
        if is_low and account.book.is_open:
            if account.reserved and account.ahead.frozen is None:
                self._transfers.debit()
            version = account.book.version
            if account.ahead.complied != version and account.decreed == version:
                account.keep(Complied(version=version))
        self._is_known_low = self._is_known_low or is_low
        if self._is_known_low and account.book.epoch is not None:
            self._transfers.send_due(partial(self._row, now), now)
        return account.drain()

    def _obey(self) -> None:
        """Take over what operators decree: membership, budget, the end of the epoch."""
        charter, account = self._charter, self._account
        if charter is None:
            return
        if account.ahead.is_blank:
            self._open(charter)
        if not account.ahead.is_open:
            return
        if charter.version.replaces(account.decreed):
            account.decreed = charter.version
        if charter.version.replaces(account.ahead.version):
            account.keep(BudgetTaken(version=charter.version))
        self._closings.obey(charter)
        if account.ahead.frozen is None and not self._closings.is_open:
            for joined in charter.joined:
                is_due = joined.epoch == account.ahead.epoch
                if is_due and joined.node_id not in account.ahead.members:
                    account.keep(MemberAdded(node_id=joined.node_id))

    def _open(self, charter: Charter) -> None:
        """Become a member by the newest record that names this node."""
        account = self._account
        own = account.book.node_id
        found = _opening(charter, own)
        if found is None or (
            account.ahead.epoch is not None and found.epoch <= account.ahead.epoch
        ):
            return
        if found.own_shares and not self._may_found:
            account.quarantine(
                "the operators' log gives this node shares, and its book is missing: what it has "
                "given away since is not known"
            )
            return
        account.decreed = charter.version
        account.keep(found)

    def _row(self, now: float) -> Row:
        account, book = self._account, self._account.book
        self._count += 1
        return Row(
            node_id=book.node_id,
            stamp=book.incarnation << _STAMP_BITS | self._count,
            epoch=book.epoch or FIRST_EPOCH,
            shares=account.spendable_shares,
            version=book.complied,
            wants=self._wants,
            is_refusing=self._transfers.is_refusing,
            is_frozen=account.ahead.frozen is not None or bool(account.ahead.quarantine),
            promises=self._transfers.promises(),
            credits=self._transfers.credits(now),
        )


def _opening(charter: Charter, own: NodeId) -> Opened | None:
    """How the operators' records make this node a member; None where they do not."""
    openings: list[Opened] = []
    if own in (gone for record in charter.retired for gone in record.out):
        return None
    for node_id, shares in charter.founded.shares:
        if node_id == own:
            openings.append(_opened(charter, FIRST_EPOCH, shares))
    openings += [
        _opened(charter, joined.epoch, 0) for joined in charter.joined if joined.node_id == own
    ]
    closing = charter.closing_of_newcomer(own)
    if closing is not None:
        opened = _opened(charter, closing.epoch, 0)
        openings.append(replace(opened, members=closing.members))
    return max(openings, key=lambda one: one.epoch, default=None)


def _opened(charter: Charter, epoch: Epoch, shares: int) -> Opened:
    return Opened(
        epoch=epoch,
        members=charter.members_of(epoch),
        own_shares=shares,
        version=charter.version,
    )
