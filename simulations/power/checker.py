"""The promise, asked of the hardware and of the disks, never of the code under test.

Its own file because a checker that trusted the ledger's own sums would prove nothing: it reads the
entries by itself, in a few lines, and asks each machine what may be in force. Watts are checked
after every event, shares after every durable write.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from cluster.ids import NodeId
from cluster.rack.ledger.book import (
    BudgetTaken,
    Complied,
    Credited,
    Debited,
    Entry,
    Opened,
    Settled,
    Summed,
    Switched,
)
from cluster.rack.ledger.charter import Charter
from cluster.rack.units import FIRST_EPOCH, SHARES_TOTAL, CurrencyId, Epoch
from simulations.power.desk import CURRENCY, Desk
from simulations.power.machine import Machine
from simulations.power.node import PowerNode

KEPT_VIOLATIONS_MAX = 20


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken."""

    at_seconds: float
    promise: str
    """``caps``, ``node``, ``minted`` or ``lost``."""
    detail: str


@dataclass(slots=True)
class Account:
    """What the entries on one disk come to."""

    epoch: Epoch | None = None
    own_shares: int = 0
    outbox: dict[NodeId, tuple[int, int]] = field(default_factory=dict)
    last_in: dict[NodeId, int] = field(default_factory=dict)
    budgets: dict[int, int] = field(default_factory=dict)
    """By their number, all that were in force here since the hardware last complied with one."""
    version_sequence: int = 0
    complied_sequence: int = 0
    closed_last_in: dict[Epoch, dict[NodeId, int]] = field(default_factory=dict)
    """What had been credited when an epoch ended."""

    def read(self, entry: Entry) -> None:
        """One more entry is on disk."""
        match entry:
            case Opened():
                self.epoch, self.own_shares = entry.epoch, entry.own_shares
                self._take(entry.version.sequence, entry.version.watts)
            case Debited(to=to, sequence=sequence, shares=shares):
                self.own_shares -= shares
                self.outbox[to] = (sequence, shares)
            case Credited(giver=giver, sequence=sequence, shares=shares):
                self.own_shares += shares
                self.last_in[giver] = sequence
            case Settled(to=to):
                self.outbox.pop(to, None)
            case BudgetTaken(version=version):
                self._take(version.sequence, version.watts)
            case Complied(version=version):
                self.complied_sequence = version.sequence
                self.budgets = {
                    number: watts
                    for number, watts in self.budgets.items()
                    if number > version.sequence
                }
                self.budgets[version.sequence] = version.watts
            case Switched(epoch=epoch, own_shares=shares):
                if self.epoch is not None:
                    self.closed_last_in[self.epoch] = self.last_in
                self.epoch, self.own_shares = epoch, shares
                self.outbox, self.last_in = {}, {}
            case Summed(book=book):
                self.epoch, self.own_shares = book.epoch, book.own_shares
                self.outbox = {to: (debt.sequence, debt.shares) for to, debt in book.outbox.items()}
                self._take(book.version.sequence, book.version.watts)
            case _:
                pass

    def _take(self, sequence: int, watts: int) -> None:
        self.version_sequence = sequence
        # Of two budgets with one number, on two branches, the hardware may be on either.
        self.budgets[sequence] = max(watts, self.budgets.get(sequence, 0))

    @property
    def worth_watts(self) -> float:
        """The most that the hardware of this node may draw: until it complied with the newest
        budget, its cap may still be worth what any one since the last gave it.
        """
        return self.own_shares * max(self.budgets.values(), default=0) / SHARES_TOTAL


class Checker:
    """Watches one constraint of a rack."""

    def __init__(
        self, desk: Desk, clock: Callable[[], float], currency: CurrencyId = CURRENCY
    ) -> None:
        self._desk = desk
        self._currency = currency
        self._clock = clock
        self.nodes: dict[NodeId, PowerNode] = {}
        self.accounts: dict[NodeId, Account] = {}
        self.bound_watts = 0
        self.max_bound_watts = 0
        self._bounds: dict[int, int] = {}
        self._dirty: dict[int, Machine] = {}
        self._owners: dict[int, PowerNode] = {}
        self.events_total = 0
        self.writes_total = 0
        self.violations: list[Violation] = []
        self._promises: dict[str, None] = {}
        self.violations_total = 0
        self.worst_excess_watts = 0.0
        self._least_watts = 0
        self.checks_nodes = True

    @property
    def _charter(self) -> Charter:
        return self._desk.charter_of(self._currency)

    def add(self, node: PowerNode) -> None:
        """Watch one more identity."""
        self.nodes[node.node_id] = node
        self.accounts[node.node_id] = Account()
        self._owners[id(node.machine)] = node

    def machine_changed(self, machine: Machine) -> None:
        """A bound has changed, or a limit."""
        before = self._bounds.get(id(machine), 0)
        self._bounds[id(machine)] = machine.bound_watts
        self.bound_watts += machine.bound_watts - before
        self._dirty[id(machine)] = machine

    def budgets_changed(self) -> None:
        """Operators have signed another budget."""
        self._least_watts = min(one.watts for one in self._charter.budgets)

    def allowed_watts(self) -> int:
        """The largest budget that some powered member may not have left yet."""
        behind = min(
            (
                min(account.complied_sequence, account.version_sequence)
                for node_id, account in self.accounts.items()
                if account.epoch is not None
                and self.nodes[node_id].machine.is_on
                and not self.nodes[node_id].is_retired
            ),
            default=0,
        )
        newest = self._charter.version
        budgets = [one.watts for one in self._charter.budgets if one.sequence >= behind]
        return max([newest.watts, *budgets])

    def after_event(self) -> None:
        """The promise, now."""
        self.events_total += 1
        self.max_bound_watts = max(self.max_bound_watts, self.bound_watts)
        if self.bound_watts > self._least_watts:
            allowed = self.allowed_watts()
            if self.bound_watts > allowed:
                self.worst_excess_watts = max(self.worst_excess_watts, self.bound_watts - allowed)
                self.accuse("caps", f"{self.bound_watts} W in force, {allowed} W allowed")
        if self._dirty:
            for key, machine in self._dirty.items():
                self._check_machine(machine, self._owners.get(key))
            self._dirty.clear()

    def _check_machine(self, machine: Machine, owner: PowerNode | None) -> None:
        if owner is None or owner.is_retired or not self.checks_nodes:
            return
        worth = self.accounts[owner.node_id].worth_watts
        if machine.bound_watts > worth:
            self.accuse(
                "node", f"{owner.name}: {machine.bound_watts} W in force, {worth:.0f} W owned"
            )

    def on_disk(self, node: PowerNode, entry: Entry) -> None:
        """An entry has come to a disk: shares neither grow nor vanish."""
        self.accounts[node.node_id].read(entry)
        self._dirty[id(node.machine)] = node.machine
        self.writes_total += 1
        if isinstance(entry, Debited | Credited | Settled | Switched | Opened | Summed):
            self.check_shares()

    def check_shares(self) -> None:
        """All that is owned or on its way, of those whom the newest epoch has not replaced."""
        accounts = {node_id: one for node_id, one in self.accounts.items() if one.epoch is not None}
        newest = max((one.epoch for one in accounts.values() if one.epoch), default=FIRST_EPOCH)
        total, is_switching = 0, False
        for node_id, account in accounts.items():
            if account.epoch is None:
                continue
            is_behind = account.epoch < newest
            if is_behind and self.nodes[node_id].is_retired:
                continue  # the close has given its shares to others
            is_switching = is_switching or is_behind
            total += account.own_shares
            total += sum(
                shares
                for to, (sequence, shares) in account.outbox.items()
                if not self._has_arrived(node_id, account.epoch, to, sequence, newest)
            )
        if total > SHARES_TOTAL:
            self.accuse("minted", f"{total - SHARES_TOTAL} shares too many")
        is_founded = len(accounts) >= self._founders_count()
        is_whole = (
            is_founded
            and not is_switching
            and not any(one.is_retired or one.is_dead for one in self.nodes.values())
        )
        if is_whole and total != SHARES_TOTAL:
            self.accuse("lost", f"{SHARES_TOTAL - total} shares are nowhere")

    def _founders_count(self) -> int:
        return len(self._charter.founded.shares)

    def _has_arrived(
        self, giver: NodeId, epoch: Epoch, to: NodeId, sequence: int, newest: Epoch
    ) -> bool:
        taker = self.accounts.get(to)
        if self.nodes[to].is_retired and epoch < newest:
            return True  # never refunded: part of what the close has given to others
        if taker is None or taker.epoch is None or taker.epoch < epoch:
            return False
        if taker.epoch > epoch:
            return taker.closed_last_in.get(epoch, {}).get(giver, 0) >= sequence
        return taker.last_in.get(giver, 0) >= sequence

    def accuse(self, promise: str, detail: str) -> None:
        """A promise is broken."""
        self.violations_total += 1
        self._promises[promise] = None
        if len(self.violations) < KEPT_VIOLATIONS_MAX:
            self.violations.append(Violation(round(self._clock(), 4), promise, detail))

    def kinds(self) -> Iterable[str]:
        """Which promises were broken."""
        return sorted(self._promises)
