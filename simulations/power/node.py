"""One agent's power in a simulated rack: the real `RackPower` with disk, machine and network.

Its own file because it is the driver that an agent has in `esnode`: it carries out effects and
hands back what came of them, in one virtual thread. It must not decide anything.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from cluster.ids import NodeId
from cluster.rack.actuator import Actuator, GateClosed, GateOpened, HardwareRefused
from cluster.rack.ledger.book import (
    Book,
    BudgetTaken,
    Credited,
    Debited,
    Entry,
    Froze,
    Switched,
)
from cluster.rack.ledger.messages import Message
from cluster.rack.power import RackPower
from cluster.rack.power_effects import (
    Effect,
    EmergencyChanged,
    EntryKept,
    KeepEntry,
    PowerAlarm,
    SendMessage,
    SetCap,
)
from cluster.rack.rows import Row, Wants
from cluster.rack.units import CurrencyId
from cluster.signatures import Signer, Verifier
from simulations.power.desk import CURRENCY, Desk
from simulations.power.disk import Disk, Write
from simulations.power.machine import Machine
from simulations.world import World

GOSSIP_SECONDS = 1.0
FANOUT = 3
SETTLE_SECONDS = 0.6
COPY_SECONDS = 0.01
OPERATOR_LOG_SECONDS = (0.001, 0.05)
"""Until an operator's record is on disk; what it leads to in the ledger may be there first."""
VAIN_WAKES_MAX = 100
"""At one instant."""
PRIORITIES = {1: 3, 2: 2, 4: 1, 8: 0}
"""Which class has which weight."""


@dataclass(frozen=True, slots=True)
class News:
    """Gossip: the newest rows, and how much of the operators' log the sender has heard."""

    rows: tuple[tuple[CurrencyId, Row], ...]
    records_count: int


Datagram = News | tuple[CurrencyId, Message]


class Network(Protocol):
    """What carries datagrams."""

    def send(self, sender: NodeId, to: NodeId, datagram: Datagram) -> None:
        """Send one; it may be lost, late or doubled."""
        ...


class PowerNode:
    """One identity in one slot."""

    def __init__(
        self,
        *,
        name: str,
        slot: str,
        signer: Signer,
        verifier: Verifier,
        world: World,
        network: Network,
        machine: Machine,
        desk: Desk,
        chance: random.Random,
        on_disk: Callable[["PowerNode", CurrencyId, Entry], None],
        public_key_of: Callable[[NodeId], bytes | None],
        make: Callable[..., RackPower] = RackPower,
        step_crash_ratio: float = 0.0,
        crash: Callable[["PowerNode"], None] | None = None,
    ) -> None:
        self.name, self.slot = name, slot
        self.node_id = NodeId.of_public_key(signer.public_key)
        self.machine = machine
        self.is_up = False
        self.is_dead = False
        """For ever; the machine keeps its last cap."""
        self.is_retired = False
        self.weight = 1
        self.gang = ""
        """Nodes with the same text do one synchronous job."""
        self.power: RackPower | None = None
        self.records_count = 0
        self.records_kept_count = 0
        """Of the operators' log, how much is on disk: that is a file of its own, written beside."""
        self.unheard_record: int | None = None
        """The place of an operator's record that does not come here: another branch of the log."""
        self.rows: dict[tuple[CurrencyId, NodeId], Row] = {}
        self.peers: Callable[[], list[NodeId]] = list
        self._signer, self._verifier = signer, verifier
        self._world, self._network, self._desk, self._chance = world, network, desk, chance
        self._public_key_of = public_key_of
        self._make = make
        self.step_crash_ratio = step_crash_ratio
        self._crash = crash
        self.disk = Disk(
            world, chance, on_disk=lambda currency, entry: on_disk(self, currency, entry)
        )
        self._life = 0
        self._rate = 1.0
        self._wake_at: float | None = None
        self._vain = (0.0, 0)
        """At which instant, and how often at it, this node was woken."""
        self.alarms: list[str] = []
        self.sent_total = 0
        self.credited_total = 0
        self.refused_total = 0
        self.cuts_total = 0

    # -- life -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin a life with what is on disk."""
        self._life += 1
        self.is_up = True
        self.rows = {}
        self._wake_at = None
        self._rate = 1.0 + self._chance.uniform(-0.01, 0.01)
        self._offset = self._chance.uniform(0.0, 1e5)
        books = self.disk.read(self._empty)
        actuator = Actuator(
            maximum_watts=self.machine.maximum_watts,
            is_gate_open=self.machine.is_gate_open,
            now=self.now,
            settle_seconds=SETTLE_SECONDS,
        )
        self.power = self._make(
            own=self.node_id,
            rack_currency=CURRENCY,
            books=books,
            may_found=True,
            actuator=actuator,
            signer=self._signer,
            verifier=self._verifier,
            public_key_of=self._public_key_of,
            rng=random.Random(self._chance.getrandbits(64)),
        )
        self._carry_out(self.power.start(self.now))
        self._carry_out(self.power.observed(self.machine.limit_watts, self.now))
        self.records_count = self.records_kept_count
        self.hear_records(self.records_count, is_new=True)
        self.push_wants()
        self._later(self._chance.uniform(0, GOSSIP_SECONDS), self._gossip)

    def stop(self) -> None:
        """The process dies; the hardware keeps its limit."""
        self._life += 1
        self.is_up = False
        self.power = None
        self.disk.crash()

    def _empty(self, currency: CurrencyId) -> Book:
        return Book(node_id=self.node_id, currency=currency)

    @property
    def now(self) -> float:
        """By this machine's own clock, which drifts."""
        return self._offset + self._world.now * self._rate

    def _later(self, seconds: float, action: Callable[..., None], *given: object) -> None:
        life = self._life

        def act() -> None:
            if life == self._life and self.is_up:
                action(*given)

        self._world.after(seconds / self._rate, act)

    # -- inputs -----------------------------------------------------------------------------------

    def push_wants(self) -> None:
        """Tell what the machine's work would draw."""
        if self.power is not None:
            wants = Wants(
                demand_watts=self.machine.demand_watts,
                maximum_watts=self.machine.maximum_watts,
                priority=PRIORITIES[self.weight],
                gang=self.gang,
            )
            self._carry_out(self.power.want(wants, self.now))

    def read_meter(self, rack_watts: float, age_seconds: float) -> None:
        """The rack's meter has answered: floors included."""
        if self.power is not None:
            effects = self.power.measured(CURRENCY, rack_watts, age_seconds, self.now)
            self._carry_out(effects)

    def hear_records(self, count: int, *, is_new: bool = False) -> None:
        """Operators' records have come, up to this one."""
        if self.power is None or (count <= self.records_count and not is_new):
            return
        self.records_count = max(count, self.records_count)
        self._obey(self.records_count)
        self._later(self._chance.uniform(*OPERATOR_LOG_SECONDS), self._keep_records)
        if not is_new:
            for peer in self._some_peers(4):
                self._send(peer, News((), self.records_count))

    def hear_all_branches(self) -> None:
        """The record that did not come has come."""
        self.unheard_record = None
        self._obey(self.records_count)

    def _obey(self, count: int) -> None:
        if self.power is not None:
            charters = self._desk.charters(count, self.unheard_record)
            is_kept = count <= self.records_kept_count
            self._carry_out(self.power.hear_charters(charters, self.now, are_kept=is_kept))

    def _keep_records(self) -> None:
        """The operators' log has come to disk."""
        if self.records_kept_count < self.records_count:
            self.records_kept_count = self.records_count
            self._obey(self.records_count)

    def receive(self, sender: NodeId, datagram: Datagram) -> None:
        """A datagram has come."""
        if self.power is None:
            return
        if isinstance(datagram, News):
            self.hear_records(datagram.records_count)
            if self.power is not None:
                rows = [one for one in datagram.rows if self._is_newer(*one)]
                self._carry_out(self.power.hear_rows(rows, self.now))
            return
        currency, message = datagram
        row = getattr(message, "row", None)
        if isinstance(row, Row):
            self._is_newer(currency, row)
        self._carry_out(self.power.receive(sender, currency, message, self.now))

    def _is_newer(self, currency: CurrencyId, row: Row) -> bool:
        known = self.rows.get((currency, row.node_id))
        if row.node_id == self.node_id or (known is not None and known.stamp >= row.stamp):
            return False
        self.rows[currency, row.node_id] = row
        return True

    def _look(self) -> None:
        """What the hardware says; an agent looks several times a second."""
        if self.power is not None:
            now = self.now + 1e-9
            self._carry_out(self.power.observed(self.machine.limit_watts, now))

    def _gossip(self) -> None:
        self._look()
        if self.power is not None:
            heard = [(currency, row) for (currency, _), row in self.rows.items()]
            news = News((*self.power.rows(self.now), *heard), self.records_count)
            for peer in self._some_peers(FANOUT):
                self._send(peer, news)
        self._later(GOSSIP_SECONDS, self._gossip)

    @property
    def is_quarantined(self) -> bool:
        """Whether this node does not believe its own book."""
        return self.power is not None and any(
            one.quarantine for one in self.power.view(self.now).ledgers
        )

    def _some_peers(self, count: int) -> list[NodeId]:
        peers = self.peers()
        return self._chance.sample(peers, min(count, len(peers)))

    def _send(self, to: NodeId, datagram: Datagram) -> None:
        self.sent_total += 1
        self._network.send(self.node_id, to, datagram)

    # -- effects ----------------------------------------------------------------------------------

    def _carry_out(self, effects: list[Effect]) -> None:
        life = self._life
        for effect in effects:
            self._do(effect)
            if life != self._life:
                return  # it died between two steps
        self._wake_later()

    def _do(self, effect: Effect) -> None:
        match effect:
            case KeepEntry():
                write = Write(currency=effect.currency, number=effect.number, entry=effect.entry)
                self.disk.append(write, self._kept)
                self._may_die(effect.entry)
            case SendMessage(to=receivers, currency=currency, message=message, copies=copies):
                for to in receivers:
                    for copy in range(copies):
                        datagram = (currency, message)
                        if copy == 0:
                            self._send(to, datagram)
                        else:
                            self._later(COPY_SECONDS * copy, self._send, to, datagram)
            case SetCap(watts=watts):
                life = self._life

                def written(limit_watts: int) -> None:
                    if life == self._life and self.power is not None:
                        self._carry_out(self.power.written(limit_watts, self.now))

                self.machine.set_limit(watts, written)
            case GateOpened():
                self.machine.is_gate_open = True
                self.machine.refresh()
            case GateClosed():
                pass  # what runs goes on; nothing new is begun, and nothing here begins anew
            case HardwareRefused():
                self.refused_total += 1
            case EmergencyChanged():
                self.cuts_total += 1
            case EntryKept(entry=entry):
                self._count(entry)
            case PowerAlarm(line=line):
                self.alarms.append(line)

    def _count(self, entry: Entry) -> None:
        self.credited_total += isinstance(entry, Credited)
        self._may_die(entry)

    def _may_die(self, entry: Entry) -> None:
        """Between two steps of the protocol: while an entry is written, and just after it was."""
        is_step = isinstance(entry, Debited | Credited | Froze | Switched | BudgetTaken)
        if self._crash is not None and is_step and self._chance.random() < self.step_crash_ratio:
            self._crash(self)

    def _kept(self, currency: CurrencyId, number: int) -> None:
        if self.power is None:
            return
        self._carry_out(self.power.kept(currency, number, self.now))

    def _count_vain_wakes(self) -> None:
        """A deadline that stays in the past would keep a real agent busy for nothing."""
        at, count = self._vain
        self._vain = (self._world.now, count + 1 if at == self._world.now else 1)
        if count >= VAIN_WAKES_MAX:
            raise RuntimeError(f"{self.name} wakes again and again, and nothing comes of it")

    def _wake_later(self) -> None:
        """Ask to be woken at the deadline; an earlier wish that is outdated wakes in vain."""
        if self.power is None:
            return
        due = self.power.deadline()
        if due is None or (self._wake_at is not None and self._wake_at <= due):
            return
        self._wake_at = due
        life = self._life

        def wake() -> None:
            if life != self._life:
                return
            if self._wake_at == due:
                self._wake_at = None
            if self.power is not None:
                self._count_vain_wakes()
                self._look()
            if self.power is not None:
                self._carry_out(self.power.advance(self.now + 1e-9))

        self._world.after(max(0.0, (due - self.now) / self._rate), wake)
