"""One constraint as one node has it: the ledger, and the advice around it.

Its own file because a node is fed by several constraints, each with its own ledger, market, cover
and emergency. It must not know hardware, nor the other constraints.
"""

import random
from collections import Counter
from collections.abc import Iterable

from cluster.ids import NodeId
from cluster.rack.emergency import CutChanged, Emergency, EmergencyMessage, Proclaim
from cluster.rack.emergency import Effect as EmergencyEffect
from cluster.rack.ledger.account import Effect as LedgerEffect
from cluster.rack.ledger.account import Keep, LedgerAlarm, Say
from cluster.rack.ledger.charter import Charter
from cluster.rack.ledger.ledger import Ledger
from cluster.rack.ledger.messages import Excess, Told
from cluster.rack.power_effects import (
    Effect,
    EmergencyChanged,
    KeepEntry,
    PowerAlarm,
    SendMessage,
)
from cluster.rack.rows import PRIORITY_WEIGHTS, Row, Wants
from cluster.rack.trading import Market
from cluster.rack.units import CurrencyId, watts_of

ANNOUNCE_SECONDS = 0.5
"""At most so often a row is sent for less than a change of demand."""
URGENT_COPIES = 2
EMERGENCY_COPIES = 3
WITNESSES = 2
PROBE_RATIO = 0.05
"""How often a node whose hardware refuses tries all the same."""
COVER_WATTS_MIN = 5
"""A change of less is not worth a write."""


class Part:
    """One currency at one node."""

    def __init__(
        self,
        currency: CurrencyId,
        ledger: Ledger,
        *,
        effects: list[Effect],
        rng: random.Random,
        now: float,
    ) -> None:
        """Begin; what is to be done is added to `effects`, in order."""
        self.currency = currency
        self.ledger = ledger
        self.market = Market()
        self.charter: Charter | None = None
        self.cover_watts = 0
        self.is_short = False
        own = ledger.book
        self.emergency = Emergency(own.node_id, first_stamp=own.incarnation + 1 << 32, rng=rng)
        self._effects = effects
        self._rng = rng
        self._version_seconds = now
        """When the newest budget was heard of."""
        self._announced_seconds = now - ANNOUNCE_SECONDS
        self._announce_due_seconds: float | None = None
        self._alarmed: dict[str, None] = {}

    # -- effects ----------------------------------------------------------------------------------

    def take(self, effects: Iterable[LedgerEffect]) -> bool:
        """What the ledger wants done; whether it was anything."""
        is_any = False
        for effect in effects:
            is_any = True
            match effect:
                case Keep(number=number, entry=entry):
                    keep = KeepEntry(currency=self.currency, number=number, entry=entry)
                    self._effects.append(keep)
                case Say(to=to, message=message, copies=copies):
                    self._effects.append(
                        SendMessage(to=to, currency=self.currency, message=message, copies=copies)
                    )
                case LedgerAlarm(line=line):
                    self._effects.append(PowerAlarm(line=line))
        return is_any

    def _take_emergency(self, effects: Iterable[EmergencyEffect]) -> None:
        for effect in effects:
            match effect:
                case Proclaim(message=message):
                    excess = Excess(stamp=message.stamp, cut_ppm=message.cut_parts_per_million)
                    self._send(excess, EMERGENCY_COPIES)
                case CutChanged(cut_parts_per_million=cut_ppm, reason=reason):
                    self._effects.append(
                        EmergencyChanged(currency=self.currency, cut_ppm=cut_ppm, reason=reason)
                    )

    def _send(self, message: Told | Excess, copies: int) -> None:
        book = self.ledger.book
        others = tuple(one for one in book.members if one != book.node_id)
        if others:
            self._effects.append(
                SendMessage(to=others, currency=self.currency, message=message, copies=copies)
            )

    # -- time -------------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Whatever is due by now."""
        if self._announce_due_seconds is not None and now >= self._announce_due_seconds:
            self.announce(now)
        due = self.ledger.deadline()
        if due is not None and now >= due:
            self.take(self.ledger.advance(now))
        self._take_emergency(self.emergency.advance(now))

    def deadlines(self) -> tuple[float | None, ...]:
        """When something is due."""
        return self._announce_due_seconds, self.ledger.deadline(), self.emergency.deadline()

    # -- hearing ----------------------------------------------------------------------------------

    def hear_charter(self, charter: Charter, now: float, *, is_kept: bool = True) -> None:
        """What operators have decreed."""
        if self.charter is None or charter.version != self.charter.version:
            self._version_seconds = now
        self.charter = charter
        self.take(self.ledger.hear_charter(charter, now, is_kept=is_kept))
        for line in charter.alarms:
            if line not in self._alarmed:
                self._alarmed[line] = None
                self._effects.append(PowerAlarm(line=f"{self.currency}: {line}"))

    def hear_excess(self, witness: NodeId, excess: Excess, now: float) -> None:
        """A member has measured too much."""
        if witness in self.ledger.book.members:
            message = EmergencyMessage(
                witness=witness, stamp=excess.stamp, cut_parts_per_million=excess.cut_ppm
            )
            self._take_emergency(self.emergency.receive(message, now))

    def is_witness(self, now: float) -> bool:
        """Whether this node is to read the rack's meter: the first members that are alive do.

        Two, so that one of them may die or lie; more would only ask a slow meter more often.
        """
        book = self.ledger.book
        live = [
            node_id
            for node_id in sorted(book.members)
            if node_id == book.node_id or self.market.is_alive(node_id, now)
        ]
        return book.node_id in live[:WITNESSES]

    def measured(self, watts: float | None, age_seconds: float, now: float) -> None:
        """The rack's own meter says so much."""
        if self.charter is not None:
            self._take_emergency(
                self.emergency.measured(
                    watts,
                    age_seconds,
                    self.charter.budget_watts,
                    now,
                    budget_watts=self.charter.version.watts,
                )
            )

    # -- deciding ---------------------------------------------------------------------------------

    def ceiling_watts(self, wants: Wants) -> int:
        """What the cap may be at most by this constraint, above the floor."""
        allowed = self.ledger.allowance_watts
        return max(0, allowed - self.cover_watts - self.throttle_watts(wants))

    def throttle_watts(self, wants: Wants) -> int:
        """What an emergency takes off the cap."""
        if self.emergency.deadline() is None:
            return 0
        return self.emergency.throttle_watts(
            self.ledger.allowance_watts, wants.priority, self._watts_by_class(wants)
        )

    def _watts_by_class(self, wants: Wants) -> tuple[int, ...]:
        book = self.ledger.book
        held: Counter[int] = Counter({wants.priority: self.ledger.allowance_watts})
        for node_id in book.members:
            row = self.market.row(node_id)
            if row is not None and row.epoch == book.epoch:
                held[row.wants.priority] += watts_of(row.shares, book.version.watts)
        return tuple(held[priority] for priority in range(len(PRIORITY_WEIGHTS)))

    def trade(self, now: float) -> None:
        """Begin what the market advises."""
        ledger, book = self.ledger, self.ledger.book
        row = ledger.row(now)
        if row is None or not ledger.may_trade:
            return
        budget = book.version.watts
        short = self.market.short_watts(row, book.members, budget, now, last_in=book.last_in)
        self.is_short = bool(short)
        if row.is_refusing and self._rng.random() > PROBE_RATIO:
            return
        gifts = self.market.gives(row, book.members, budget, now, last_in=book.last_in)
        if row.is_refusing and not gifts:
            ledger.nothing_asked()
        for gift in gifts:
            is_begun, effects = ledger.give(gift.to, gift.shares, now)
            self.take(effects)
            if is_begun:
                self.announce_soon(now)

    def cover(self, now: float) -> None:
        """Lower this node for those who have not confirmed a lower budget."""
        row = self.ledger.row(now)
        if self.charter is None or row is None:
            return
        book = self.ledger.book
        watts = self.market.coverage(
            row,
            book.members,
            self.charter.budgets,
            now - self._version_seconds,
            now,
            last_in=book.last_in,
        )
        if watts == 0 or abs(watts - self.cover_watts) > COVER_WATTS_MIN:
            self.cover_watts = watts

    # -- telling ----------------------------------------------------------------------------------

    def announce_soon(self, now: float) -> None:
        """The account has changed: tell the members before long."""
        if self._announce_due_seconds is None:
            self._announce_due_seconds = max(now, self._announced_seconds + ANNOUNCE_SECONDS)

    def announce(self, now: float, *, is_urgent: bool = False) -> None:
        """Tell the members how the account is."""
        self._announce_due_seconds = None
        self._announced_seconds = now
        row = self.ledger.row(now)
        if row is not None:
            told = Told(row=row, is_urgent=is_urgent)
            self._send(told, URGENT_COPIES if is_urgent else 1)


def row_of(message: object) -> Row | None:
    """The row that a message carries, if it carries one."""
    row = getattr(message, "row", None)
    return row if isinstance(row, Row) else None
