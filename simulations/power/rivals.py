"""Two rules without a ledger: the same formula on every node, and a leader with leases.

Its own file because they are alternatives and not mistakes in ours: simple versions, written to see
whether the checker finds what is wrong with each of them, and not tuned. A node goes on keeping its
book, and does not obey it.
"""

from dataclasses import dataclass

from cluster.ids import NodeId
from cluster.rack.ledger.book import Book
from cluster.rack.ledger.ledger import Ledger
from cluster.rack.ledger.messages import Message, Told
from cluster.rack.part import Part
from cluster.rack.power import RackPower
from cluster.rack.power_effects import Effect, SendMessage
from cluster.rack.rows import Row
from cluster.rack.share import target
from cluster.rack.units import SHARES_TOTAL, CurrencyId, watts_of
from simulations.power.machine import MAXIMUM_WATTS

LEASE_SECONDS = 10.0
LEASE_MARGIN_SECONDS = 3.0
SETTLED_SECONDS = 0.7


class FormulaPower(RackPower):
    """Applies its own part of the target of the whole rack, as its own view gives it."""

    def __init__(self, **given: object) -> None:
        super().__init__(**given)  # type: ignore[arg-type]  # passed on as they come
        self._goal_watts: int | None = None

    def _trade(self, now: float) -> None:
        for part in self._parts.values():
            rows = rows_of(part, now)
            book = part.ledger.book
            if self._own not in rows or len(rows) < len(book.members):
                return  # not before everybody was heard once
            wants = {node_id: row.wants for node_id, row in rows.items()}
            aims = target(SHARES_TOTAL, wants, book.version.watts)
            watts = watts_of(aims[self._own], book.version.watts)
            self._goal_watts = min(MAXIMUM_WATTS, watts)

    def _wanted(self, now: float) -> int | None:
        return super()._wanted(now) if self._goal_watts is None else self._goal_watts


def rows_of(part: Part, now: float) -> dict[NodeId, Row]:
    """All that this node has ever heard of the members, and its own."""
    rows: dict[NodeId, Row] = {}
    for node_id in part.ledger.book.members:
        is_own = node_id == part.ledger.book.node_id
        row = part.ledger.row(now) if is_own else part.market.row(node_id)
        if row is not None:
            rows[node_id] = row
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease(Told):
    """The leader lets the receiver have so much, for `LEASE_SECONDS` from when it hears of it."""

    cap_watts: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseKept(Told):
    """The hardware of the sender is this low."""

    cap_watts: int


class LeasePower(RackPower):
    """The live node of the lowest id assigns caps while it sees a majority.

    Lower caps are acknowledged before others are raised. What a silent node had is given to others
    when its lease has surely ended; but only its agent could have ended it.
    """

    def __init__(self, **given: object) -> None:
        super().__init__(**given)  # type: ignore[arg-type]  # passed on as they come
        self._now = 0.0
        self._cap_watts = 0
        self._until_seconds = 0.0
        self._last_count = -1
        self._assigned: dict[NodeId, tuple[int, float]] = {}
        self._leading_since: float | None = None
        self._reports: list[tuple[float, NodeId, int]] = []
        self._is_first = False

    def _open_ledger(self, book: Book) -> Ledger:
        self._is_first = book.incarnation == 0
        return super()._open_ledger(book)

    def _settle(self, now: float) -> list[Effect]:
        self._now = now
        part = next(iter(self._parts.values()), None)
        if self._is_first and part is not None and part.ledger.book.own_shares:
            self._is_first = False  # a rack begins with equal caps, and a lease for them
            book = part.ledger.book
            self._cap_watts = watts_of(book.own_shares, book.version.watts)
            self._until_seconds = now + LEASE_SECONDS
        return super()._settle(now)

    def _wanted(self, now: float) -> int | None:
        return self._cap_watts if self._now < self._until_seconds else 0

    def _trade(self, now: float) -> None:
        for due, leader, cap in [one for one in self._reports if one[0] <= now]:
            self._reports.remove((due, leader, cap))
            self._report(leader, cap, now)
        for currency, part in self._parts.items():
            members = part.ledger.book.members
            live = [one for one in members if one == self._own or part.market.is_alive(one, now)]
            if len(live) * 2 <= len(members) or min(live) != self._own:
                self._assigned, self._leading_since = {}, None
                continue
            if self._leading_since is None:
                self._leading_since = now
            if now - self._leading_since >= LEASE_SECONDS + LEASE_MARGIN_SECONDS:
                self._assign(currency, part, live, now)

    def _assign(self, currency: CurrencyId, part: Part, live: list[NodeId], now: float) -> None:
        budget = part.ledger.book.version.watts
        rows = {node_id: row for node_id, row in rows_of(part, now).items() if node_id in live}
        aims = target(SHARES_TOTAL, {one: row.wants for one, row in rows.items()}, budget)
        for node_id, (_, since) in list(self._assigned.items()):
            if node_id not in live and now - since > LEASE_SECONDS * 1.05 + LEASE_MARGIN_SECONDS:
                del self._assigned[node_id]  # its lease has ended, so the leader believes
        for node_id in rows:
            goal = min(MAXIMUM_WATTS, watts_of(aims[node_id], budget))
            before = self._assigned.get(node_id, (0, 0.0))[0]
            others = sum(cap for one, (cap, _) in self._assigned.items() if one != node_id)
            if goal > before:
                goal = max(before, min(goal, budget - others))
            self._assigned[node_id] = max(goal, before), now
            self._lease(currency, part, node_id, goal, now)

    def _lease(self, currency: CurrencyId, part: Part, to: NodeId, cap: int, now: float) -> None:
        row = part.ledger.row(now)
        assert row is not None
        lease = Lease(row=row, cap_watts=cap, count=row.stamp)
        if to == self._own:
            self._take_lease(self._own, lease, now)
        else:
            self._effects.append(SendMessage(to=(to,), currency=currency, message=lease))

    def receive(
        self, sender: NodeId, currency: CurrencyId, message: Message, now: float
    ) -> list[Effect]:
        """Leases, and what came of them; the rest is for the book."""
        if isinstance(message, Lease):
            self._take_lease(sender, message, now)
        elif isinstance(message, LeaseKept) and sender in self._assigned:
            assigned, since = self._assigned[sender]
            self._assigned[sender] = min(assigned, message.cap_watts), since
        return super().receive(sender, currency, message, now)

    def _take_lease(self, leader: NodeId, lease: Lease, now: float) -> None:
        self._cap_watts, self._until_seconds = lease.cap_watts, now + LEASE_SECONDS
        self._reports.append((now + SETTLED_SECONDS, leader, lease.cap_watts))

    def _report(self, leader: NodeId, cap: int, now: float) -> None:
        bound = self._actuator.bound_watts(now)
        if bound is None or bound > cap:
            return
        if leader == self._own:
            if leader in self._assigned:
                assigned, since = self._assigned[leader]
                self._assigned[leader] = min(assigned, cap), since
            return
        for currency, part in self._parts.items():
            row = part.ledger.row(now)
            if row is not None:
                kept = LeaseKept(row=row, cap_watts=cap)
                self._effects.append(SendMessage(to=(leader,), currency=currency, message=kept))
