"""What a node should give now, by the rows that it has heard.

Its own file because it is advice only: it may be forgotten at any time and be wrong without harm;
the ledger decides what is safe. One `Market` for each currency. It must not know how a give is
carried out, nor who is a member: the operators' log says that.

A row counts while it goes on advancing. Shares on their way count for whom they are meant, once:
a promise says its sequence, and whoever has credited that sequence has the shares in its own row.
Counting them twice made the first version oscillate.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from cluster.ids import NodeId
from cluster.rack.matching import pair
from cluster.rack.rows import Row, Wants
from cluster.rack.share import target
from cluster.rack.units import SHARES_TOTAL, BudgetVersion, shares_of, watts_of

ROW_ALIVE_SECONDS = 8.0
"""Nobody trades with a node whose row did not advance for so long."""
DEADBAND_RATIO = 0.01
"""Of a node's range: what is not worth a transfer although somebody could use it."""
DEADBAND_WATTS_MIN = 40
BURST_DEADBAND_RATIO = 0.05
"""The same where only burst room would move."""
TRANSFER_WATTS_MIN = 15
MINIMUM_PARTS_MAX = 4
"""What one node is guaranteed before all others: at most so many equal parts of the budget. Else
one row could ask for all of it in the first class, and every other node would be parked."""
GRACE_SECONDS = 3.0
"""For a node that was alive a moment ago to confirm a new budget."""

Aim = Callable[[int, Mapping[NodeId, Wants], int], Mapping[NodeId, int]]
"""Total shares, wants, watts of the budget: what each should own. The same rule on every node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gift:
    """Shares that this node should begin to give."""

    to: NodeId
    shares: int


class Market:
    """The newest row of every node of one currency, and what follows from them."""

    def __init__(self, aim: Aim = target) -> None:
        self._aim = aim
        self._rows: dict[NodeId, Row] = {}
        self._heard_at: dict[NodeId, float] = {}

    def hear(self, row: Row, now: float) -> bool:
        """Keep a row if it is newer than what is known of its node; whether it was."""
        known = self._rows.get(row.node_id)
        if known is not None and known.stamp >= row.stamp:
            return False
        self._rows[row.node_id] = row
        self._heard_at[row.node_id] = now
        return True

    def forget(self, node_id: NodeId) -> None:
        """Drop all that is known of a node, when it is retired."""
        self._rows.pop(node_id, None)
        self._heard_at.pop(node_id, None)

    def row(self, node_id: NodeId) -> Row | None:
        """The newest row of a node, however old it is."""
        return self._rows.get(node_id)

    def age_seconds(self, node_id: NodeId, now: float) -> float | None:
        """Since its row advanced; None for a node that was never heard."""
        heard_at = self._heard_at.get(node_id)
        return None if heard_at is None else now - heard_at

    def is_alive(self, node_id: NodeId, now: float) -> bool:
        """Whether its row advanced lately."""
        heard_at = self._heard_at.get(node_id)
        return heard_at is not None and now - heard_at <= ROW_ALIVE_SECONDS

    def silent(self, members: Sequence[NodeId], now: float) -> tuple[NodeId, ...]:
        """Of these, whose rows did not advance lately. The asking node hears no row of its own."""
        return tuple(node_id for node_id in members if not self.is_alive(node_id, now))

    def gives(
        self,
        own_row: Row,
        members: Sequence[NodeId],
        budget_watts: int,
        now: float,
        *,
        last_in: Mapping[NodeId, int],
    ) -> tuple[Gift, ...]:
        """What this node should begin to give now; never more than its row says it has to spend.

        `last_in` is the sequence of the last transfer that it credited from each giver. Whether a
        node whose hardware refuses should ask at all is the caller's to decide: it probes now and
        then. Whoever has a transfer of ours under way already gets no second one.
        """
        me = own_row.node_id
        if own_row.is_frozen or budget_watts <= 0 or me not in members:
            return ()
        rows = self._partners(own_row, members, now)
        if len(rows) < 2:
            return ()
        held = holdings(rows, me, last_in)
        wants = {
            node: bounded_wants(row.wants, budget_watts, len(members)) for node, row in rows.items()
        }
        aims = self._aim(sum(held.values()), wants, budget_watts)
        donors, takers = _sides(rows, held, aims, budget_watts)
        if me not in donors or not takers:
            return ()
        busy = {promise.to: None for promise in own_row.promises}
        least = shares_of(TRANSFER_WATTS_MIN, budget_watts)
        spendable = own_row.shares
        gifts: list[Gift] = []
        for giver, to, wished in pair(donors, takers):
            shares = min(wished, spendable)
            if giver == me and to not in busy and shares >= least:
                spendable -= shares
                gifts.append(Gift(to=to, shares=shares))
        return tuple(gifts)

    def short_watts(
        self,
        own_row: Row,
        members: Sequence[NodeId],
        budget_watts: int,
        now: float,
        *,
        last_in: Mapping[NodeId, int],
    ) -> dict[NodeId, int]:
        """How much each live node lacks of its demand, whether or not there is any to be had.

        Nodes that lack less than half a deadband are left out.
        """
        rows = self._partners(own_row, members, now)
        held = holdings(rows, own_row.node_id, last_in)
        short: dict[NodeId, int] = {}
        for node_id, row in rows.items():
            wants = row.wants
            lacking = min(wants.demand_watts, wants.maximum_watts) - watts_of(
                held[node_id], budget_watts
            )
            if 2 * lacking > deadband_watts(wants):
                short[node_id] = lacking
        return short

    def coverage(
        self,
        own_row: Row,
        members: Sequence[NodeId],
        versions: Sequence[BudgetVersion],
        known_for_seconds: float,
        now: float,
        *,
        last_in: Mapping[NodeId, int],
    ) -> int:
        """Watts by which this node lowers itself, for those who may still run on a larger budget.

        Until a node confirms the newest of `versions` (all that this node knows), it may draw what
        its shares were worth under any version since the one it last confirmed. Those who have
        confirmed make up for it by what they hold. A live node has some seconds of grace, counted
        from when this node learnt of the newest version.
        """
        newest = _newest(versions)
        if newest is None:
            return 0
        waits = known_for_seconds < GRACE_SECONDS
        confirmed = {own_row.node_id: own_row}
        at_worst = newest.watts
        for node_id in members:
            if node_id == own_row.node_id:
                continue
            row = self._rows.get(node_id)
            has_grace = waits and self.is_alive(node_id, now)
            if (
                row is not None
                and row.epoch == own_row.epoch
                and (has_grace or not newest.replaces(row.version))
            ):
                confirmed[node_id] = row
            else:
                at_worst = max(at_worst, _largest_since(row, versions))
        held = holdings(confirmed, own_row.node_id, last_in)
        all_held = sum(held.values())
        if at_worst <= newest.watts or all_held <= 0:
            return 0
        # Rounded up: the excess of the silent, by our part of what the confirmed hold.
        lacking = SHARES_TOTAL - all_held
        part = max(0, lacking) * (at_worst - newest.watts) * held[own_row.node_id]
        return -(-part // (SHARES_TOTAL * all_held))

    def _partners(self, own_row: Row, members: Sequence[NodeId], now: float) -> dict[NodeId, Row]:
        """Whose shares can move: this node and the live ones of its epoch that can give."""
        rows: dict[NodeId, Row] = {}
        for node_id in members:
            if node_id == own_row.node_id:
                rows[node_id] = own_row
                continue
            row = self._rows.get(node_id)
            if row is None or row.epoch != own_row.epoch or row.is_refusing or row.is_frozen:
                continue
            if self.is_alive(node_id, now):
                rows[node_id] = row
        return rows


def holdings(
    rows: Mapping[NodeId, Row], me: NodeId, last_in: Mapping[NodeId, int]
) -> dict[NodeId, int]:
    """What each of these has or is about to get from another of them."""
    held = {node_id: row.shares for node_id, row in rows.items()}
    for giver, row in rows.items():
        for promise in row.promises:
            taker = rows.get(promise.to)
            if taker is None:
                continue
            if promise.to == me:
                arrived = last_in.get(giver, 0)
            else:
                arrived = next(
                    (credit.sequence for credit in taker.credits if credit.giver == giver), 0
                )
            if promise.sequence > arrived:
                held[promise.to] += promise.shares
    return held


def bounded_wants(wants: Wants, budget_watts: int, members_count: int) -> Wants:
    """Wants as they may count: nobody wants more than there is, or most of it before all others."""
    maximum = min(wants.maximum_watts, budget_watts)
    guaranteed = MINIMUM_PARTS_MAX * budget_watts // max(1, members_count)
    bounded = (
        min(wants.demand_watts, budget_watts),
        min(wants.minimum_watts, maximum, guaranteed),
        maximum,
    )
    if bounded == (wants.demand_watts, wants.minimum_watts, wants.maximum_watts):
        return wants
    demand, minimum, maximum = bounded
    return replace(wants, demand_watts=demand, minimum_watts=minimum, maximum_watts=maximum)


def deadband_watts(wants: Wants) -> int:
    """How far a node may be from its target without anybody moving a watt."""
    return max(DEADBAND_WATTS_MIN, round(wants.maximum_watts * DEADBAND_RATIO))


def burst_deadband_watts(wants: Wants) -> int:
    """The same while nobody lacks anything; never so small that it is the narrower one."""
    return max(2 * DEADBAND_WATTS_MIN, round(wants.maximum_watts * BURST_DEADBAND_RATIO))


def _sides(
    rows: Mapping[NodeId, Row],
    held: Mapping[NodeId, int],
    aims: Mapping[NodeId, int],
    budget_watts: int,
) -> tuple[dict[NodeId, int], dict[NodeId, int]]:
    """Who has too much and who too little, and by how much.

    While somebody is short of what it would use, that alone counts. Takers have half the deadband
    of donors: else two nodes could both be just inside of it for ever.
    """
    takers: dict[NodeId, int] = {}
    for node_id, row in rows.items():
        demand = shares_of(row.wants.demand_watts, budget_watts)
        lacking = min(aims[node_id], demand) - held[node_id]
        if 2 * lacking > shares_of(deadband_watts(row.wants), budget_watts):
            takers[node_id] = lacking
    bands = {node_id: deadband_watts(row.wants) for node_id, row in rows.items()}
    if not takers:
        for node_id, row in rows.items():
            wide = burst_deadband_watts(row.wants)
            bands[node_id] = wide // 2
            if aims[node_id] - held[node_id] > shares_of(wide, budget_watts):
                takers[node_id] = aims[node_id] - held[node_id]
    donors = {
        node_id: held[node_id] - aims[node_id]
        for node_id, band in bands.items()
        if held[node_id] - aims[node_id] > shares_of(band, budget_watts)
    }
    return donors, takers


def _newest(versions: Sequence[BudgetVersion]) -> BudgetVersion | None:
    newest: BudgetVersion | None = None
    for version in versions:
        if newest is None or version.replaces(newest):
            newest = version
    return newest


def _largest_since(row: Row | None, versions: Sequence[BudgetVersion]) -> int:
    """The most that a node's budget may have been since its row was true.

    Of those that operators have decreed: what a row says besides is nobody's budget, and whoever
    says it may be on any.
    """
    if row is None or row.version not in versions:
        return max(version.watts for version in versions)
    return max(version.watts for version in versions if not row.version.replaces(version))
