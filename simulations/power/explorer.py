"""Every order in which three ledgers can be interrupted: all interleavings, up to a bound.

Its own file because it asks another question than a storm: not what chance finds, but what there
is. What is found is a state in which a promise is broken, and the events that lead to it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cluster.ids import NodeId
from cluster.rack.ledger.ledger import Ledger
from cluster.rack.units import FIRST_EPOCH, SHARES_TOTAL
from simulations.power.checker import Account
from simulations.power.desk import Desk
from simulations.power.small_state import SmallState, fingerprint
from simulations.power.small_world import (
    DYNAMIC_WATTS,
    FLOORS_WATTS,
    Event,
    Gift,
    MakeLedger,
    Plan,
    SmallWorld,
)

STATES_MAX = 300_000
VIOLATIONS_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """What was seen."""

    plan: str
    states_total: int
    events_total: int
    is_complete: bool
    """Whether there is nothing more to see within the bounds of the plan."""
    deepest: int
    violations: tuple[tuple[str, tuple[Event, ...]], ...]
    """What was broken, and by which events from the beginning."""
    violations_total: int


class Explorer:
    """Walks through one plan, depth first."""

    def __init__(self, plan: Plan, *, make: MakeLedger = Ledger) -> None:
        self._plan = plan
        self._world = SmallWorld(plan, make=make)

    def explore(self, states_max: int = STATES_MAX) -> Explored:
        """All states that can be reached, or as many as are allowed."""
        first = self._world.first()
        seen = {fingerprint(first)}
        trail: list[tuple[SmallState, Iterator[Event]]] = [(first, self._world.events(first))]
        path: list[Event] = []
        violations: list[tuple[str, tuple[Event, ...]]] = []
        found = events_total = deepest = 0
        is_complete = True
        while trail:
            state, events = trail[-1]
            event = next(events, None)
            if event is None:
                trail.pop()
                if path:
                    path.pop()
                continue
            events_total += 1
            after = self._world.happen(state, event)
            print_ = fingerprint(after)
            if print_ in seen:
                continue
            if len(seen) >= states_max:
                is_complete = False
                break
            seen.add(print_)
            path.append(event)
            broken = self._broken(after)
            if broken:
                found += 1
                if len(violations) < VIOLATIONS_MAX:
                    violations.append((broken, tuple(path)))
                path.pop()
                continue  # what follows from a broken promise says nothing
            trail.append((after, self._world.events(after)))
            deepest = max(deepest, len(trail))
        return Explored(
            plan=self._plan.name,
            states_total=len(seen),
            events_total=events_total,
            is_complete=is_complete,
            deepest=deepest,
            violations=tuple(violations),
            violations_total=found,
        )

    # -- what must hold ---------------------------------------------------------------------------

    def _broken(self, state: SmallState) -> str:
        accounts = [node.account for node in state.nodes]
        begun = {
            node.account.epoch
            for node in state.nodes
            if not node.is_off and node.account.epoch is not None and node.account.epoch.number > 1
        }
        if len(begun) > 1:
            return "one epoch has ended in two ways"
        if any(node.book.quarantine for node in state.nodes):
            return "a node believes that its disk has lost something"
        for node in state.nodes:
            if node.bound_watts > node.account.worth_watts:
                return f"{node.bound_watts} W in force, {node.account.worth_watts:.1f} W owned"
        budgets = {one.sequence: one.watts for one in self._world.charters[-1].budgets}
        behind = min(
            min(node.account.complied_sequence, node.account.version_sequence)
            for node in state.nodes
            if not node.is_off
        )
        allowed = max(watts for sequence, watts in budgets.items() if sequence >= behind)
        bound = sum(node.bound_watts for node in state.nodes)
        if bound > allowed:
            return f"{bound} W in force, {allowed} W allowed"
        return self._count_shares(accounts)

    def _count_shares(self, accounts: list[Account]) -> str:
        epochs = [one.epoch for one in accounts if one.epoch is not None]
        newest = max(epochs)
        retired = self._world.charters[-1].retired
        gone = {
            node_id
            for record in retired
            if (record.epoch.number + 1, record.rank) == newest
            for node_id in record.out
        }
        total = 0
        for place, account in enumerate(accounts):
            if self._world.ids[place] in gone:
                continue
            total += account.own_shares
            for to, (sequence, shares) in account.outbox.items():
                if to not in gone and not _has_arrived(
                    accounts[self._world.places[to]], account, self._world.ids[place], sequence
                ):
                    total += shares
        if total > SHARES_TOTAL:
            return f"{total - SHARES_TOTAL} shares too many"
        if total < SHARES_TOTAL and len(set(epochs)) == 1 and not gone:
            return f"{SHARES_TOTAL - total} shares are nowhere"
        return ""


def _has_arrived(taker: Account, giver: Account, giver_id: NodeId, sequence: int) -> bool:
    if taker.epoch is None or giver.epoch is None or taker.epoch < giver.epoch:
        return False
    if taker.epoch > giver.epoch:
        return taker.closed_last_in.get(giver.epoch, {}).get(giver_id, 0) >= sequence
    return taker.last_in.get(giver_id, 0) >= sequence


def _cut_in_half(desk: Desk, ids: Sequence[NodeId]) -> None:
    desk.set_budget(FLOORS_WATTS + DYNAMIC_WATTS // 2)


def _retire_one(desk: Desk, ids: Sequence[NodeId]) -> None:
    desk.retire(FIRST_EPOCH, ids[2], None)


def _retire_two(desk: Desk, ids: Sequence[NodeId]) -> None:
    desk.retire(FIRST_EPOCH, ids[2], None)
    desk.retire(FIRST_EPOCH, ids[1], None)


PLANS: Mapping[str, Plan] = {
    one.name: one
    for one in (
        Plan(
            name="transfer",
            summary="a transfer and one that passes part of it on; one death, perhaps a reboot",
            gifts=(Gift(giver=0, to=1, shares=10**8), Gift(giver=1, to=2, shares=2 * 10**8)),
            crashes=1,
            reboots=1,
        ),
        Plan(
            name="transfer-twice",
            summary="two transfers between the same two nodes; two deaths, hardware may refuse",
            gifts=(Gift(giver=0, to=1, shares=10**8), Gift(giver=0, to=1, shares=10**8)),
            crashes=2,
            refusals=1,
        ),
        Plan(
            name="budget",
            summary="a transfer while the budget is cut in half; one death",
            gifts=(Gift(giver=0, to=1, shares=10**8),),
            crashes=1,
            decrees=_cut_in_half,
        ),
        Plan(
            name="retire",
            summary="one of three is retired amid transfers to and from it; one more death",
            gifts=(Gift(giver=0, to=2, shares=10**8), Gift(giver=2, to=1, shares=10**8)),
            crashes=1,
            decrees=_retire_one,
            off={2: 2},
        ),
        Plan(
            name="retire-two",
            summary="a second is retired before the first is done: two ranks; one more death",
            gifts=(Gift(giver=0, to=1, shares=10**8),),
            crashes=1,
            decrees=_retire_two,
            off={2: 2, 1: 3},
        ),
    )
}
