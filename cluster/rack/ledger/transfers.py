"""Giving and taking shares: reserve, lower, settle, debit, send, credit, acknowledge, forget.

Its own file because this order is the whole of safety between two nodes: a giver's hardware is
lower before the debit is on disk, the debit is on disk before the grant is sent, and a taker's
credit is on disk before its hardware may be raised. One transfer at a time goes from one node to
another, so one number per pair tells duplicates apart. It must not know who should give to whom.

Source: the demarcation protocol (Barbara and Garcia-Molina, VLDB Journal 3, 1994), and escrow
(O'Neil, ACM TODS 11, 1986), with settling hardware in the place of the lower limit.
"""

from collections.abc import Callable
from dataclasses import replace

from cluster.ids import NodeId
from cluster.rack.ledger.account import Account
from cluster.rack.ledger.book import Credited, Debited, Entry, Settled
from cluster.rack.ledger.messages import Grant, Receipt
from cluster.rack.ledger.recollections import Recollections
from cluster.rack.rows import Credit, Promise, Row
from cluster.rack.units import SHARES_TOTAL

RESEND_FIRST_SECONDS = 0.15
RESEND_GROWTH_RATIO = 1.6
RESEND_SECONDS_MAX = 2.0
RESEND_AFTER_START_SECONDS = 0.3
CREDIT_TOLD_SECONDS = 5.0
"""So that peers do not count a promise twice that has arrived."""
OUTBOX_MAX = 24
"""As many as a row tells, and as a last word holds beside the numbers of a whole rack."""
GRANT_COPIES = 2
"""Idempotent: a spare copy costs a datagram, and a lost one half a second."""


class Transfers:
    """All transfers of this node in one currency."""

    def __init__(self, account: Account, recollections: Recollections) -> None:
        self._account = account
        self._recollections = recollections
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
            and len(account.reserved) + len(account.ahead.outbox) < OUTBOX_MAX
            and self._recollections.trusts(to)
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
        """Send again what has no receipt yet; for ever, but for a book that is not believed."""
        if not self._account.is_believed:
            return
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
        first = sorted(row.promises, key=lambda one: one.to != to)  # what is cut off is the rest
        row = replace(row, promises=tuple(first))
        grant = Grant(epoch=book.epoch, sequence=debt.sequence, shares=debt.shares, row=row)
        self._account.say((to,), grant, copies=copies)
        return True

    @property
    def deadline(self) -> float | None:
        """When something is to be sent again."""
        if not self._account.is_believed:
            return None
        return min((due for due, _ in self._resends.values()), default=None)

    # -- taking -----------------------------------------------------------------------------------

    def hear_grant(self, giver: NodeId, grant: Grant, row: Row, *, is_closing: bool) -> None:
        """Somebody gives; what is on disk already is acknowledged again."""
        account = self._account
        book = account.book
        if grant.epoch != book.epoch or giver not in book.members:
            return
        if grant.sequence <= book.last_in.get(giver, 0):
            self._acknowledge(giver, row)
            return
        last = account.ahead.last_in.get(giver, 0)
        is_deaf = is_closing or account.is_deaf or not account.is_believed
        if grant.sequence <= last or is_deaf or grant.shares <= 0:
            return
        if not self._recollections.trusts(giver):
            return
        if grant.sequence != last + 1:
            self._recollections.hear_gap(giver, grant.sequence)
            return
        if self._is_covered(giver, grant):
            account.keep(Credited(giver=giver, sequence=grant.sequence, shares=grant.shares))

    def _is_covered(self, giver: NodeId, grant: Grant) -> bool:
        """Whether the giver's own account, under the same signature, covers what it gives.

        So nobody gives more than is left of the whole beside our own, and what it gives stands in
        its row, where all can add up. A row that came late may count twice what was passed on
        since: such a grant waits for the next copy.
        """
        account, own = self._account, self._account.ahead.own_shares
        to, row = account.book.node_id, grant.row
        promise = Promise(to=to, sequence=grant.sequence, shares=grant.shares)
        if promise not in row.promises or grant.shares + own > SHARES_TOTAL:
            account.alarm(
                f"{giver.short} gives more shares than its own account holds, or than there are: "
                "it is not believed"
            )
            return False
        return row.shares + sum(one.shares for one in row.promises) + own <= SHARES_TOTAL

    def _acknowledge(self, giver: NodeId, row: Row) -> None:
        """Say what has come last: a giver that begins again at a lower number has lost its book."""
        book = self._account.book
        last = book.last_in.get(giver, 0)
        if book.epoch is not None and last:
            self._account.say((giver,), Receipt(epoch=book.epoch, sequence=last, row=row))

    def hear_receipt(self, taker: NodeId, receipt: Receipt) -> None:
        """The taker has it: the debt can be forgotten."""
        account = self._account
        if receipt.epoch != account.book.epoch or account.is_deaf:
            return
        if receipt.sequence > account.ahead.out_sequences.get(taker, 0):
            self._recollections.hear_credit(taker, receipt.sequence)
            return
        debt = account.ahead.outbox.get(taker)
        is_on_disk = account.book.outbox.get(taker) == debt
        if debt is not None and is_on_disk and debt.sequence == receipt.sequence:
            account.keep(Settled(to=taker, sequence=receipt.sequence))

    # -- after the disk ---------------------------------------------------------------------------

    def kept(self, entry: Entry, row: Row, now: float) -> None:
        """What follows once an entry is on disk."""
        match entry:
            case Debited(to=to):
                self._send(to, row, copies=GRANT_COPIES)
                self._resends[to] = (now + RESEND_FIRST_SECONDS, RESEND_FIRST_SECONDS)
            case Credited(giver=giver):
                self._credited_seconds[giver] = now
                self._acknowledge(giver, row)
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
