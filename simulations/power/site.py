"""One rack in virtual time: its machines, nodes, network and operator, and what goes wrong.

Its own file because every scenario is told with these words. A run is repeated exactly by its
seed. It must not know which scenario is played.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence

from cluster.ids import NodeId
from cluster.rack.ledger.book import Entry
from cluster.rack.ledger.messages import Grant
from cluster.rack.power import RackPower
from cluster.rack.units import CurrencyId, Epoch
from cluster.signatures import KeyedHashKeyring, Signer
from simulations.power.checker import Checker
from simulations.power.desk import CURRENCY, FLOOR_WATTS, Desk
from simulations.power.machine import MAXIMUM_WATTS, Machine
from simulations.power.node import Datagram, PowerNode
from simulations.world import World

BUDGET_RATIO = 0.55
"""Of what all machines could draw above their floors."""
LATENCY_SECONDS = (0.0005, 0.005)
LATE_SECONDS = (0.05, 1.5)
LATE_RATIO = 0.05
DOUBLE_RATIO = 0.02
REPLAYED_RATIO = 0.5
"""Of the last messages of the ledger to a node: those that come to its next life as well."""
REPLAYED_MAX = 6
REPLAYED_SECONDS = (0.01, 2.0)
WEIGHTS = (1, 1, 2, 4)
Cut = Callable[[NodeId, NodeId], bool]
MakePower = Callable[..., RackPower]


class Site:
    """One rack."""

    def __init__(
        self,
        count: int,
        seed: int,
        *,
        loss_ratio: float = 0.2,
        step_crash_ratio: float = 0.0,
        empty_slots: int = 0,
        maximum_watts: Sequence[int] = (MAXIMUM_WATTS,),
        static_watts: int = 0,
        feed_ratio: float | None = None,
        make: MakePower = RackPower,
        ignores_gate: bool = False,
    ) -> None:
        """A rack that begins; machines are of the kinds in `maximum_watts`, one after the other.

        With a `feed_ratio` there is a second feed, whose budget is so much of the first one's.
        """
        self.world = World(seed)
        self.chance = self.world.chance("faults")
        self._network_chance = self.world.chance("network")
        self._replay_chance = self.world.chance("replays")
        self._latest: dict[NodeId, deque[tuple[NodeId, Datagram]]] = {}
        """The last messages of the ledger to each node, whether or not they have come."""
        self._loss_ratio = loss_ratio
        self._step_crash_ratio = step_crash_ratio
        self._make = make
        self._ignores_gate = ignores_gate
        self._cut: Cut | None = None
        self._keys = KeyedHashKeyring()
        self._public_keys: dict[NodeId, bytes] = {}
        self.counts: Counter[str] = Counter()
        self.until_seconds = 0.0
        """Until when faults happen by themselves."""
        self.nodes: dict[NodeId, PowerNode] = {}
        signers = [self._keys.new_signer(self.chance.randbytes) for _ in range(count - empty_slots)]
        ids = [NodeId.of_public_key(signer.public_key) for signer in signers]
        slots: dict[str, NodeId | None] = {
            f"u{place:02}": ids[place] if place < len(ids) else None for place in range(count)
        }
        kinds = [maximum_watts[place % len(maximum_watts)] for place in range(count)]
        self.dynamic_watts = int(BUDGET_RATIO * sum(kinds))
        floors = FLOOR_WATTS * count + static_watts
        feed_watts = None if feed_ratio is None else int(feed_ratio * self.dynamic_watts) + floors
        self.desk = Desk(
            self.dynamic_watts + floors, slots, static_watts=static_watts, feed_watts=feed_watts
        )
        self.checkers = {
            currency: Checker(self.desk, lambda: self.world.now, currency)
            for currency in self.desk.charters(self.desk.count)
        }
        self.checker = self.checkers[CURRENCY]
        self._budgets_changed()
        self.machines = [self._make_machine(place, kind) for place, kind in enumerate(kinds)]
        self._fill(signers, slots)
        for node in self.nodes.values():
            node.start()

    def _fill(self, signers: Sequence[Signer], slots: Iterable[str]) -> None:
        """Put the founders into their slots, each with some work."""
        for place, (signer, slot) in enumerate(zip(signers, slots, strict=False)):
            node = self._add(signer, slot, self.machines[place])
            node.weight = self.chance.choice(WEIGHTS)
            ratio = self.chance.uniform(0.1, 1.0)
            node.machine.demand_watts = int(ratio * node.machine.maximum_watts)
            node.records_kept_count = self.desk.count

    def _make_machine(self, place: int, maximum_watts: int) -> Machine:
        chance = self.world.chance(f"machine {place}")
        machine = Machine(self.world, chance, on_change=self._machine_changed)
        machine.become(maximum_watts)
        machine.ignores_gate = self._ignores_gate
        return machine

    def _add(self, signer: Signer, slot: str, machine: Machine) -> PowerNode:
        name = f"n{len(self.nodes):02}"
        node = PowerNode(
            name=name,
            slot=slot,
            signer=signer,
            verifier=self._keys,
            world=self.world,
            network=self,
            machine=machine,
            desk=self.desk,
            chance=self.world.chance(f"node {name}"),
            on_disk=self._on_disk,
            public_key_of=self._public_keys.get,
            make=self._make,
            step_crash_ratio=self._step_crash_ratio,
            crash=self._crash_between_steps,
        )
        self._public_keys[node.node_id] = signer.public_key
        self.nodes[node.node_id] = node
        for checker in self.checkers.values():
            checker.add(node)
        node.peers = lambda: self._others(node)
        return node

    def _others(self, node: PowerNode) -> list[NodeId]:
        return [
            one.node_id for one in self.nodes.values() if one is not node and not one.is_retired
        ]

    def _on_disk(self, node: PowerNode, currency: CurrencyId, entry: Entry) -> None:
        self.checkers[currency].on_disk(node, entry)

    def _machine_changed(self, machine: Machine) -> None:
        for checker in self.checkers.values():
            checker.machine_changed(machine)

    def _budgets_changed(self) -> None:
        for checker in self.checkers.values():
            checker.budgets_changed()

    def run_until(self, when: float) -> None:
        """Let time pass; the promise is checked after every event."""
        self.world.run_until(when, self._checked)

    def run_for(self, seconds: float) -> None:
        """Let so much time pass."""
        self.run_until(self.world.now + seconds)

    def _checked(self) -> bool:
        for checker in self.checkers.values():
            checker.after_event()
        return False

    # -- the network ------------------------------------------------------------------------------

    def send(self, sender: NodeId, to: NodeId, datagram: Datagram) -> None:
        """Send a datagram; it may be lost, late or doubled."""
        self.counts["datagrams"] += 1
        if isinstance(datagram, tuple) and isinstance(datagram[1], Grant):
            self._latest.setdefault(to, deque(maxlen=REPLAYED_MAX)).append((sender, datagram))
        chance = self._network_chance
        if self._cut is not None and self._cut(sender, to):
            self.counts["lost"] += 1
            return
        for _ in range(2 if chance.random() < DOUBLE_RATIO else 1):
            if chance.random() < self._loss_ratio:
                self.counts["lost"] += 1
                continue
            is_late = chance.random() < LATE_RATIO
            wait_seconds = chance.uniform(*(LATE_SECONDS if is_late else LATENCY_SECONDS))
            self.world.after(wait_seconds, self._deliver, sender, to, datagram)

    def _deliver(self, sender: NodeId, to: NodeId, datagram: Datagram) -> None:
        node = self.nodes.get(to)
        if node is not None and node.is_up:
            node.receive(sender, datagram)

    def cut(self, cut: Cut | None) -> None:
        """Nothing passes where this is true; None heals."""
        self._cut = cut

    def partition(self) -> None:
        """A random side is cut off for a while; sometimes in one direction only."""
        self.counts["partitions"] += 1
        ids = list(self.nodes)
        side = dict.fromkeys(self.chance.sample(ids, self.chance.randint(1, len(ids) - 1)))
        if self.chance.random() < 0.3:
            self.cut(lambda a, b: a in side and b not in side)
        else:
            self.cut(lambda a, b: (a in side) != (b in side))
        self.world.after(self.chance.uniform(5, 40), self.cut, None)

    # -- faults of nodes --------------------------------------------------------------------------

    @property
    def living(self) -> list[PowerNode]:
        """Nodes that are neither dead nor retired; their agents may be down."""
        return [one for one in self.nodes.values() if not (one.is_dead or one.is_retired)]

    def crash(self, node: PowerNode, down_seconds: float | None = None) -> None:
        """The agent dies and comes back; the machine goes on."""
        if not node.is_up:
            return
        self.counts["crashes"] += 1
        node.stop()
        wait = self.chance.uniform(2, 30) if down_seconds is None else down_seconds
        self.world.after(wait, self._restart, node)

    def _crash_between_steps(self, node: PowerNode) -> None:
        if self.world.now < self.until_seconds:
            self.counts["step crashes"] += 1
            self.crash(node)

    def _restart(self, node: PowerNode) -> None:
        if node.is_up or node.is_dead or node.is_retired:
            return
        node.start()
        if self.world.now >= self.until_seconds:
            return
        for sender, datagram in self._latest.get(node.node_id, ()):
            if self._replay_chance.random() < REPLAYED_RATIO:
                self.counts["replays"] += 1
                wait_seconds = self._replay_chance.uniform(*REPLAYED_SECONDS)
                self.world.after(wait_seconds, self._deliver, sender, node.node_id, datagram)

    def reboot(self, node: PowerNode) -> None:
        """The machine comes up with its limits lost."""
        if node.is_dead or node.is_retired:
            return
        self.counts["reboots"] += 1
        if node.is_up:
            node.stop()
        node.machine.reboot()
        self.world.after(self.chance.uniform(20, 60), self._restart, node)

    def kill(self, node: PowerNode) -> None:
        """The agent dies for ever; the hardware keeps its cap, and work goes on."""
        if node.is_retired or node.is_dead:
            return
        self.counts["deaths"] += 1
        if node.is_up:
            node.stop()
        node.is_dead = True

    # -- operators --------------------------------------------------------------------------------

    def _tell(self, nodes: list[PowerNode]) -> None:
        up = [one for one in nodes if one.is_up]
        for node in self.chance.sample(up, min(2, len(up))):
            node.hear_records(self.desk.count)

    def set_budget(self, dynamic_watts: float, currency: CurrencyId = CURRENCY) -> None:
        """Sign another budget, and hand it to two nodes."""
        self.desk.set_budget(int(dynamic_watts) + self.desk.floors_watts, currency)
        self._budgets_changed()
        self._tell(list(self.nodes.values()))

    def epoch(self) -> Epoch | None:
        """Of all living nodes; None while they do not agree."""
        epochs = {self.checker.accounts[one.node_id].epoch for one in self.living}
        return epochs.pop() if len(epochs) == 1 else None

    def replace(self, node: PowerNode) -> None:
        """Power a machine off, put another in its slot, and sign that the old one is retired."""
        node.machine.power_off()
        self.world.after(2.0, self._sign_retirement, node)

    def _sign_retirement(self, node: PowerNode) -> None:
        epoch = self.epoch()
        if epoch is None or self.desk.charter.members_of(epoch) == ():
            self.world.after(3.0, self._sign_retirement, node)
            return
        signer = self._keys.new_signer(self.chance.randbytes)
        node.is_retired = True
        machine = node.machine
        newcomer = self._add(signer, node.slot, machine)
        newcomer.weight = node.weight
        machine.is_on = True
        machine.reboot()
        if self.desk.charter.closings_of(epoch):
            self.counts["superseded"] += 1
        self.desk.retire(epoch, node.node_id, (newcomer.node_id, node.slot))
        self.counts["retirements"] += 1
        newcomer.records_kept_count = self.desk.count
        newcomer.start()
        self._tell([one for one in self.living if one is not newcomer])

    def join(self) -> None:
        """A machine is put into the empty slot, with the work that waits for it."""
        epoch = self.epoch()
        taken = {one.slot for one in self.nodes.values() if not one.is_retired}
        free = [name for name in self.desk.slots if name not in taken]
        if not free:
            return
        if epoch is None or self.desk.charter.closings_of(epoch):
            self.world.after(7.0, self.join)
            return
        signer = self._keys.new_signer(self.chance.randbytes)
        node = self._add(signer, free[0], self.machines[list(self.desk.slots).index(free[0])])
        node.weight = 2
        node.machine.demand_watts = int(0.9 * node.machine.maximum_watts)
        self.desk.join(node.node_id, free[0], epoch)
        node.records_kept_count = self.desk.count
        node.start()
        self._tell(self.living)

    # -- work -------------------------------------------------------------------------------------

    def shift(self, ratio: float = 0.5) -> None:
        """A random part of the rack goes idle, and the others want all that they can get."""
        nodes = list(self.living)
        self.chance.shuffle(nodes)
        idle = int(len(nodes) * ratio)
        for place, node in enumerate(nodes):
            low, high = (0.0, 0.15) if place < idle else (0.9, 1.0)
            ratio = self.chance.uniform(low, high)
            node.machine.demand_watts = int(ratio * node.machine.maximum_watts)
        for node in nodes:
            node.push_wants()
