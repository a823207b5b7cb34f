"""The ledger of one currency at one node: a state machine without a clock, a disk or a socket.

The promise: the sum of the caps in force above the floors, over all nodes of the currency, never
exceeds its budget. Why it holds (`power-safety` has the long form):

* I1, conservation. Shares are made once, by the operators' genesis. A debit takes from a giver
  what its outbox then holds, and a credit adds what a grant of that outbox carries; the number of
  the transfer is kept with the credit, so it is added once. Hence, at every instant and after
  every crash: all that is owned, and all in outboxes that was not credited, is the whole. An epoch
  ends by all signers' statements, after which none of them changes its account in it; the outcome
  is a function of these, and gives out only what they do not hold. A rank that was stated is on
  disk with its record's digest, and no lower one is stated after it; so one epoch has one end.
* I2, local. `allowance_watts` falls at the moment when a gift is set aside or a lower budget is
  heard, and rises only after a credit or a higher budget is on disk. A debit is written only when
  `bounded` has told that no cap that may still show in the draw is above the allowance. So what
  the hardware can draw is at all times worth at most what the book on disk owns, in the budget
  that this node last complied with.
* I3, the sum. By I1 and I2 the sum of what the hardware of all can draw is at most the largest
  budget that some powered node may not have left yet.
* A node that is silent keeps what it owns, for ever, until operators prove it off (`closing`).
* A disk that was set back breaks what I1 rests on, and cannot tell. Others can: a life with a book
  of a life before raises nothing and gives nothing until those that are alive have said what they
  remember (`recollections`). This is no proof: who remembers may be away just then.
* A member that lies can do what it likes with its own machine. What it can make others do is
  bounded: its grants must stand in its own row, and leave room for the taker's shares; of its two
  last words none counts; its row lowers nobody who has confirmed it in this life.
* No clock takes part but in that question: else time decides when to send again, and nothing else.

It must not know hardware, nor who should have how much: `trading` advises, the actuator obeys.
"""

import random
from dataclasses import dataclass
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
from cluster.rack.ledger.closing import Closings
from cluster.rack.ledger.messages import (
    Asked,
    Grant,
    HasSwitched,
    Message,
    Recalled,
    Receipt,
    Stated,
    Told,
)
from cluster.rack.ledger.opening import opening_of
from cluster.rack.ledger.recollections import Recollections
from cluster.rack.ledger.transfers import Transfers
from cluster.rack.ledger.words import PublicKeyOf
from cluster.rack.rows import NOTHING_WANTED, STAMP_BITS, Row, Wants
from cluster.rack.units import FIRST_EPOCH, BudgetVersion, CurrencyId, Epoch, watts_of
from cluster.signatures import Signer, Verifier

_GENESIS = "genesis"


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
        self._recollections = Recollections(self._account)
        self._transfers = Transfers(self._account, self._recollections)
        self._closings = Closings(
            self._account,
            signer=signer,
            verifier=verifier,
            public_key_of=public_key_of,
            rng=rng,
        )
        self._may_found = may_found
        self._charter: Charter | None = None
        self._is_charter_kept = False
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
        self._recollections.start(now)
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
            case Asked(row=row) if row.node_id == sender:
                self._recollections.hear_asked(sender, message, self._row(now))
                self.hear_row(row, now)
            case Recalled(row=row) if row.node_id == sender:
                self._recollections.hear_recalled(sender, message)
                self.hear_row(row, now)
            case Stated(signed=signed):
                self._closings.hear(signed)
            case HasSwitched(signed=switched):
                self._closings.hear_switched(switched)
            case _:
                pass
        return self._go_on(now)

    def advance(self, now: float) -> list[Effect]:
        """Time has passed."""
        return self._go_on(now)

    def deadline(self) -> float | None:
        """When `advance` is wanted; None while nothing waits."""
        resend = self._transfers.deadline if self._is_known_low else None
        closing = None if self._is_doubtful else self._closings.deadline
        wanted = (resend, closing, self._recollections.deadline)
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
        account, book = self._account, self._account.ahead
        is_busy = self._closings.is_open or self._recollections.is_asking
        return book.is_open and book.frozen is None and account.is_believed and not is_busy

    @property
    def is_asking(self) -> bool:
        """Whether it is not known yet if this book is the newest: no cap is to be raised."""
        return self._recollections.is_asking

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
        self._recollections.hear_row(row)

    def doubt(self, now: float) -> list[Effect]:
        """Memory and disk may have been set back together: ask what others remember."""
        if self._account.book.is_open:
            self._recollections.doubt(now)
        return self._go_on(now)

    def hear_charter(self, charter: Charter, now: float, *, is_kept: bool = True) -> list[Effect]:
        """What operators have decreed, by all records that are known now.

        `is_kept` is whether all of them are on disk here: before, no retirement is signed, since
        after a crash this node would not know what it had signed.
        """
        self._charter, self._is_charter_kept = charter, is_kept
        self._obey()
        return self._go_on(now)

    def kept(self, number: int, now: float) -> tuple[Entry, list[Effect]]:
        """An entry is on disk: which one, and what may follow now."""
        entry = self._account.kept(number)
        self._transfers.kept(entry, self._row(now), now)
        match entry:
            case Switched():
                self._transfers.forget()
                self._recollections.switched(now)
                self._closings.kept_switch()
                self._obey()
            case Opened():
                self._recollections.opened(now)
                self._obey()
            case MemberAdded():
                self._obey()
            case _:
                pass
        return entry, self._go_on(now)

    # -- machinery --------------------------------------------------------------------------------

    @property
    def _is_doubtful(self) -> bool:
        """Whether this book may be an old copy: no last word is said by it."""
        return self._recollections.is_asking or bool(self._account.held)

    def _go_on(self, now: float) -> list[Effect]:
        """Whatever can be done by now, in the order of safety."""
        account = self._account
        self._recollections.advance(partial(self._row, now), now)
        if not self._is_doubtful:
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
        if account.ahead.is_blank and not charter.is_contested:
            self._open(charter)
        if not account.ahead.is_open:
            return
        self._judge_genesis(charter)
        account.has_slot = charter.has_slot(account.book.node_id)
        if charter.version.replaces(account.decreed):
            account.decreed = charter.version
        if charter.version.replaces(account.ahead.version):
            account.keep(BudgetTaken(version=charter.version))
        self._recollections.retire(gone for one in charter.retired for gone in one.out)
        self._closings.obey(charter, is_kept=self._is_charter_kept)
        if account.ahead.frozen is None and not self._closings.is_open:
            for joined in charter.joined:
                is_due = joined.epoch == account.ahead.epoch
                if is_due and joined.node_id not in account.ahead.members:
                    account.keep(MemberAdded(node_id=joined.node_id))

    def _judge_genesis(self, charter: Charter) -> None:
        """Shares of another genesis than the one that counts are none."""
        account = self._account
        opened_by = account.ahead.founded
        if opened_by and opened_by != charter.founded.digest:
            account.hold(
                _GENESIS,
                "this account was opened by another genesis than the one that counts now: its "
                "shares are none; retire this node",
            )
        else:
            account.release(_GENESIS)

    def _open(self, charter: Charter) -> None:
        """Become a member by the newest record that names this node."""
        account = self._account
        own = account.book.node_id
        found = opening_of(charter, own)
        if found is None or (
            account.ahead.epoch is not None and found.epoch <= account.ahead.epoch
        ):
            return
        if not self._may_found:
            account.quarantine(
                "the operators' log makes this node a member, and its book is missing: what it has "
                "given and taken since is not known"
            )
            return
        account.decreed = charter.version
        account.keep(found)

    def _row(self, now: float) -> Row:
        account, book = self._account, self._account.book
        self._count += 1
        return Row(
            node_id=book.node_id,
            stamp=book.incarnation << STAMP_BITS | self._count,
            epoch=book.epoch or FIRST_EPOCH,
            shares=account.spendable_shares,
            version=book.complied,
            wants=self._wants,
            is_refusing=self._transfers.is_refusing,
            is_frozen=account.ahead.frozen is not None or not account.is_believed,
            promises=self._transfers.promises(),
            credits=self._transfers.credits(now),
        )
