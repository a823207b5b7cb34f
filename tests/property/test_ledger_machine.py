"""Three ledgers on the worst network and disks there can be: the promise holds after every step.

Messages may arrive at any later time, any number of times, or never; a node may die at every
durable write, with any first part of what was to be kept on disk; hardware lags behind; operators
change the budget, and retire a node that is off. The invariants are worked out here from what is on
the disks and in the hardware, never asked of the ledgers.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from cluster.ids import NodeId
from cluster.rack.ledger.decrees import Retired
from cluster.rack.ledger.messages import Grant, Told
from cluster.rack.rows import Credit, Wants
from cluster.rack.units import FIRST_EPOCH, SHARES_TOTAL, BudgetVersion
from simulations.power.checker import Account
from tests.ledger_bench import (
    CURRENCY,
    NOW,
    A,
    B,
    C,
    budget,
    founded_log,
    opened,
)

if TYPE_CHECKING:
    from cluster.rack.ledger.messages import Message

_BUDGETS_MAX = 4
_NODES = st.sampled_from([A, B, C])


class LedgerMachine(RuleBasedStateMachine):
    """What can happen, and what may never be."""

    @initialize()
    def found(self) -> None:
        self.log = founded_log()
        self.nodes = {one: opened(one, self.log) for one in (A, B, C)}
        self.caps = {one: node.ledger.allowance_watts for one, node in self.nodes.items()}
        self.accounts = {one: Account() for one in self.nodes}
        self.read = dict.fromkeys(self.nodes, 0)
        self.wire: list[tuple[NodeId, NodeId, Message]] = []
        self.off: NodeId | None = None
        self.records_kept = dict.fromkeys(self.nodes, 1)
        """How much of the operators' log is on each node's disk: a file of its own."""
        self._note()

    def _note(self) -> None:
        """Take over what is said and what has come to the disks."""
        for one, node in self.nodes.items():
            self.wire += [(one, to, message) for to, message in node.drain()]
            for entry in node.disk[self.read[one] :]:
                self.accounts[one].read(entry)
            self.read[one] = len(node.disk)

    def _is_running(self, one: NodeId) -> bool:
        return one != self.off

    @rule(giver=_NODES, taker=_NODES, watts=st.integers(1, 600))
    def give(self, giver: NodeId, taker: NodeId, watts: int) -> None:
        if self._is_running(giver):
            self.nodes[giver].give(taker, watts)
            self._note()

    @rule(one=_NODES)
    def move_the_hardware(self, one: NodeId) -> None:
        """To where the ledger allows it: up or down, and then it tells."""
        if self._is_running(one):
            self.caps[one] = self.nodes[one].ledger.allowance_watts
            self.nodes[one].bound(self.caps[one])
            self._note()

    @rule(one=_NODES)
    def look_at_the_hardware(self, one: NodeId) -> None:
        if self._is_running(one):
            self.nodes[one].bound(self.caps[one])
            self._note()

    @rule(one=_NODES)
    def keep(self, one: NodeId) -> None:
        if self._is_running(one) and self.nodes[one].waiting:
            self.nodes[one].keep_one()
            self._note()

    @rule(giver=_NODES, taker=_NODES, watts=st.integers(50, 200))
    def give_and_send(self, giver: NodeId, taker: NodeId, watts: int) -> None:
        """As it goes when nothing goes wrong: up to the grant."""
        self.give(giver, taker, watts)
        self.get_on(giver)

    @rule(one=_NODES)
    def get_on(self, one: NodeId) -> None:
        """The hardware obeys, and the disk keeps all that waits."""
        self.move_the_hardware(one)
        while self._is_running(one) and self.nodes[one].waiting:
            self.keep(one)

    @rule(back=st.integers(0, 3), is_kept=st.booleans())
    def arrive_again(self, back: int, is_kept: bool) -> None:
        """One of the newest messages comes, and may come again later."""
        if len(self.wire) > back:
            sender, to, message = self.wire[-1 - back]
            if self._is_running(to):
                self.nodes[to].hear(sender, message)
                self._note()
                if is_kept:
                    self.get_on(to)

    @rule(one=_NODES, made_it=st.integers(0, 5))
    def die_and_come_back(self, one: NodeId, made_it: int) -> None:
        """Of what was to be kept, a first part is on disk; the hardware keeps its cap."""
        if not self._is_running(one):
            return
        node = self.nodes[one]
        node.disk += [keep.entry for keep in node.waiting[:made_it]]
        self._note()
        again = node.restart()
        again.obey(self.log, count=self.records_kept[one])
        self.nodes[one] = again
        self._note()

    @rule(data=st.data(), is_again=st.booleans())
    def arrive(self, data: st.DataObject, is_again: bool) -> None:
        if not self.wire:
            return
        place = data.draw(st.integers(0, len(self.wire) - 1))
        sender, to, message = self.wire[place] if is_again else self.wire.pop(place)
        if to in self.nodes and self._is_running(to):
            self.nodes[to].hear(sender, message)
            self._note()

    @rule(one=_NODES, seconds=st.sampled_from([0.2, 3.0]))
    def wait(self, one: NodeId, seconds: float) -> None:
        if self._is_running(one):
            self.nodes[one].take(self.nodes[one].ledger.advance(NOW + seconds))
            self._note()

    @rule(watts=st.integers(0, 2000))
    def decree(self, watts: int) -> None:
        if len(self.log.records) <= _BUDGETS_MAX:
            self.log.sign(budget(watts))

    @rule(one=_NODES, is_kept=st.booleans())
    def hear_operators(self, one: NodeId, is_kept: bool) -> None:
        if self._is_running(one):
            if is_kept:
                self.records_kept[one] = len(self.log.records)
            self.nodes[one].obey(self.log, is_kept=is_kept)
            self._note()
            if is_kept:
                self.get_on(one)

    @rule(liar=_NODES, to=_NODES, number=st.sampled_from([1, 2, 10**9]), data=st.data())
    def lie(self, liar: NodeId, to: NodeId, number: int, data: st.DataObject) -> None:
        """A member says of its own account whatever it likes."""
        row = self.nodes[liar].ledger.row(NOW)
        if liar == to or row is None or not self._is_running(to):
            return
        row = replace(
            row,
            version=BudgetVersion(sequence=data.draw(st.integers(0, 9)), watts=2**60),
            wants=Wants(demand_watts=2**62, minimum_watts=2**62, maximum_watts=2**62),
            credits=(Credit(giver=to, sequence=number),),
        )
        grant = Grant(epoch=row.epoch, sequence=number, shares=SHARES_TOTAL, row=row)
        self.nodes[to].hear(liar, data.draw(st.sampled_from([Told(row=row), grant])))
        self._note()

    @rule(one=_NODES, chance=st.integers(0, 3))
    def retire(self, one: NodeId, chance: int) -> None:
        """A machine is powered off, and an operator signs it; later rather than sooner."""
        if self.off is None and chance == 0 and any(two.last_in for two in self.accounts.values()):
            self.off = one
            self.caps[one] = 0
            self.log.sign(
                Retired(
                    currency=CURRENCY,
                    epoch=FIRST_EPOCH,
                    rank=0,
                    members=(A, B, C),
                    out=(one,),
                    evidence="off",
                )
            )

    @invariant()
    def no_shares_are_made(self) -> None:
        if not hasattr(self, "nodes"):
            return
        newest = max(one.epoch for one in self.accounts.values() if one.epoch)
        total = 0
        for one, account in self.accounts.items():
            is_replaced = one == self.off and newest != FIRST_EPOCH
            if is_replaced or account.epoch is None:
                continue
            total += account.own_shares
            for to, (number, shares) in account.outbox.items():
                total += 0 if self._has_arrived(one, to, number, newest) else shares
        assert total <= SHARES_TOTAL
        if newest == FIRST_EPOCH:
            assert total == SHARES_TOTAL, "shares are lost"

    def _has_arrived(self, giver: NodeId, to: NodeId, number: int, newest: object) -> bool:
        taker, own = self.accounts[to], self.accounts[giver]
        if to == self.off and newest != FIRST_EPOCH:
            return True
        if own.epoch is not None and taker.epoch is not None and taker.epoch > own.epoch:
            return taker.closed_last_in[own.epoch].get(giver, 0) >= number
        return taker.last_in.get(giver, 0) >= number

    @invariant()
    def no_hardware_has_more_than_its_book(self) -> None:
        if hasattr(self, "nodes"):
            for one, cap in self.caps.items():
                assert one == self.off or cap <= self.accounts[one].worth_watts

    @invariant()
    def the_caps_never_exceed_a_budget_that_somebody_may_be_on(self) -> None:
        if hasattr(self, "nodes"):
            behind = min(
                account.complied_sequence
                for one, account in self.accounts.items()
                if one != self.off
            )
            budgets = [one.watts for one in self.log.charter.budgets if one.sequence >= behind]
            assert sum(self.caps.values()) <= max(budgets)


LedgerMachine.TestCase.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)
TestLedgers = LedgerMachine.TestCase
