"""Giving and taking shares: reserve, lower, settle, debit, send, credit, acknowledge, forget.

Its own file because this order is the whole of safety between two nodes: a giver's hardware is
lower before the debit is on disk, the debit is on disk before the grant is sent, and a taker's
credit is on disk before its hardware may be raised. One transfer at a time goes from one node to
another, so one number per pair tells duplicates apart. It must not know who should give to whom.

Source: the demarcation protocol (Barbara and Garcia-Molina, VLDB Journal 3, 1994), and escrow
(O'Neil, ACM TODS 11, 1986), with settling hardware in the place of the lower limit.
"""

from collections.abc import Callable

from cluster.ids import NodeId
from cluster.rack.ledger.account import Account
from cluster.rack.ledger.book import Credited, Debited, Entry, Settled
from cluster.rack.ledger.messages import Grant, Receipt
from cluster.rack.rows import Credit, Promise, Row
from cluster.rack.units import SHARES_TOTAL

RESEND_FIRST_SECONDS = 0.15
RESEND_GROWTH_RATIO = 1.6
RESEND_SECONDS_MAX = 2.0
RESEND_AFTER_START_SECONDS = 0.3
CREDIT_TOLD_SECONDS = 5.0
"""So that peers do not count a promise twice that has arrived."""
GRANT_COPIES = 2
"""Idempotent: a spare copy costs a datagram, and a lost one half a second."""


class Transfers:
    """All transfers of this node in one currency."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._resends: dict[NodeId, tuple[float, float]] = {}
        """When to send again, and how long to wait after that."""
        self._credited_seconds: dict[NodeId, float] = {}
        self.is_refusing = False
        """The hardware would not be lowered the last time that something was to be given."""

    def start(self, now: float) -> None:
        """Grants of the life before are sent again."""
        for to in self._account.book.outbox:
            self._resends[to] = (now + RESEND_AFTER_START_SECONDS, RESEND_FIRST_SECONDS)

    # -- giving -----------------------------------------------------------------------------------

    def give(self, to: NodeId, shares: int) -> bool:
        """Set shares aside for somebody; the hardware has to follow before anything is debited."""
        account = self._account
        can_give = (
            account.book.is_open
            and to in account.book.members
            and to != account.book.node_id
            and to not in account.reserved
            and to not in account.ahead.outbox
            and 0 < shares <= account.spendable_shares
        )
        if can_give:
            account.reserved[to] = shares
        return can_give

    def debit(self) -> None:
        """The hardware is as low as all reservations ask: write the debits down."""
        account = self._account
        for to, shares in tuple(account.reserved.items()):
            sequence = account.ahead.out_sequences.get(to, 0) + 1
            account.keep(Debited(to=to, sequence=sequence, shares=shares))
            del account.reserved[to]
            self.is_refusing = False

    def abort(self) -> None:
        """The hardware refuses to be lowered: nothing was promised, nothing is given."""
        self._account.reserved.clear()
        self.is_refusing = True

    def send_due(self, row: Callable[[], Row], now: float) -> None:
        """Send again what has no receipt yet; for ever."""
        for to, (due, wait_seconds) in tuple(self._resends.items()):
            if now < due:
                continue
            if self._send(to, row(), copies=1):
                wait_seconds = min(RESEND_SECONDS_MAX, wait_seconds * RESEND_GROWTH_RATIO)
                self._resends[to] = (now + wait_seconds, wait_seconds)

    def _send(self, to: NodeId, row: Row, *, copies: int) -> bool:
        book = self._account.book
        debt = book.outbox.get(to)
        if debt is None or book.epoch is None:
            self._resends.pop(to, None)
            return False
        grant = Grant(epoch=book.epoch, sequence=debt.sequence, shares=debt.shares, row=row)
        self._account.say((to,), grant, copies=copies)
        return True

    @property
    def deadline(self) -> float | None:
        """When something is to be sent again."""
        return min((due for due, _ in self._resends.values()), default=None)

    # -- taking -----------------------------------------------------------------------------------

    def hear_grant(self, giver: NodeId, grant: Grant, row: Row, *, is_closing: bool) -> None:
        """Somebody gives; what is on disk already is acknowledged again."""
        account = self._account
        book = account.book
        if grant.epoch != book.epoch or giver not in book.members:
            return
        if grant.sequence <= book.last_in.get(giver, 0):
            self._acknowledge(giver, grant.sequence, row)
            return
        last = account.ahead.last_in.get(giver, 0)
        is_deaf = is_closing or account.is_deaf or account.ahead.quarantine
        if grant.sequence <= last or is_deaf or grant.shares <= 0:
            return
        if grant.sequence != last + 1:
            account.quarantine(
                f"{giver.short} has had receipts of this node up to {grant.sequence - 1}, and the "
                f"book here ends at {last}: it is an old copy"
            )
            return
        if account.ahead.own_shares + grant.shares > SHARES_TOTAL:
            account.alarm(f"{giver.short} gives more shares than there are: it is not believed")
            return
        account.keep(Credited(giver=giver, sequence=grant.sequence, shares=grant.shares))

    def _acknowledge(self, giver: NodeId, sequence: int, row: Row) -> None:
        epoch = self._account.book.epoch
        if epoch is not None:
            self._account.say((giver,), Receipt(epoch=epoch, sequence=sequence, row=row))

    def hear_receipt(self, taker: NodeId, receipt: Receipt) -> None:
        """The taker has it: the debt can be forgotten."""
        account = self._account
        if receipt.epoch != account.book.epoch or account.is_deaf:
            return
        if receipt.sequence > account.ahead.out_sequences.get(taker, 0):
            self.hear_of_credit(taker, receipt.sequence)
            return
        debt = account.ahead.outbox.get(taker)
        is_on_disk = account.book.outbox.get(taker) == debt
        if debt is not None and is_on_disk and debt.sequence == receipt.sequence:
            account.keep(Settled(to=taker, sequence=receipt.sequence))

    def hear_of_credit(self, taker: NodeId, sequence: int) -> None:
        """Somebody says what it has had from us last; more than we know of means a lost book."""
        account = self._account
        known = account.ahead.out_sequences.get(taker, 0)
        if sequence > known and taker in account.book.members and not account.is_deaf:
            account.quarantine(
                f"{taker.short} has had transfer {sequence} of this node, and the book here ends "
                f"at {known}: it is an old copy"
            )

    # -- after the disk ---------------------------------------------------------------------------

    def kept(self, entry: Entry, row: Row, now: float) -> None:
        """What follows once an entry is on disk."""
        match entry:
            case Debited(to=to):
                self._send(to, row, copies=GRANT_COPIES)
                self._resends[to] = (now + RESEND_FIRST_SECONDS, RESEND_FIRST_SECONDS)
            case Credited(giver=giver, sequence=sequence):
                self._credited_seconds[giver] = now
                self._acknowledge(giver, sequence, row)
            case Settled(to=to):
                self._resends.pop(to, None)
            case _:
                pass

    def forget(self) -> None:
        """A new epoch has begun: what was under way in the old one is settled by its close."""
        self._resends.clear()
        self._credited_seconds.clear()

    # -- what the row says ------------------------------------------------------------------------

    def promises(self) -> tuple[Promise, ...]:
        """Shares on their way out, prepared or sent."""
        ahead = self._account.ahead
        prepared = (
            Promise(to=to, sequence=ahead.out_sequences.get(to, 0) + 1, shares=shares)
            for to, shares in self._account.reserved.items()
        )
        sent = (
            Promise(to=to, sequence=debt.sequence, shares=debt.shares)
            for to, debt in ahead.outbox.items()
        )
        return (*prepared, *sent)

    def credits(self, now: float) -> tuple[Credit, ...]:
        """What has come in the last seconds, by giver."""
        last_in = self._account.book.last_in
        return tuple(
            Credit(giver=giver, sequence=last_in[giver])
            for giver, at in self._credited_seconds.items()
            if now - at < CREDIT_TOLD_SECONDS and giver in last_in
        )
