"""Many nodes in one world: hands each what comes, takes what it answers, and does it.

Its own file because here, and nowhere else, the effects of a core are matched. Each node is driven
exactly as an agent drives its own: bytes or time in, effects out in order, and called again at its
deadline. Every datagram goes through the real codec and the real door. It must not know faults or
what is checked; who wants to know what happens hangs a hook in.
"""

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from cluster.gossip.effects import (
    ChainsWanted,
    Deliver,
    Effect,
    Equivocated,
    LeaveEnded,
    MemberChanged,
    OperatorRecordHeard,
    Paused,
    PersistEpoch,
    PersistHeads,
    Rejected,
    Send,
)
from cluster.gossip.ground import Ground, lay_ground
from cluster.gossip.inputs import Datagram, Input, Refused
from cluster.gossip.introduction import Introduction
from cluster.gossip.messages import Address, Version
from cluster.gossip.settings import GossipSettings
from cluster.ids import NodeId, NodeName, RackId
from cluster.keyring import Ed25519Signer, Ed25519Verifier
from cluster.signatures import KeyedHashKeyring, RandomBytes, Signer, Verifier
from simulations.core import Core, make_core
from simulations.forgery import member_record
from simulations.network import Network
from simulations.node import SOCKET_BUFFER_COUNT, Clock, Node
from simulations.witness import Witness
from simulations.world import World

_MILLION = 1_000_000
_OFFSET_SECONDS_MAX = 1e6
"""Machines have been up for so long, at most, when a run begins."""


@dataclass(slots=True)
class Hooks:
    """Who is told of what happens. Whoever is told must change nothing."""

    sent: list[Callable[[Node, Address, bytes], None]] = field(default_factory=list)
    """A node has sent this."""
    changed: list[Callable[[Node, MemberChanged], None]] = field(default_factory=list)
    """A member is something else to a node."""
    removed: list[Callable[[Node, NodeId], None]] = field(default_factory=list)
    """An operator's record that removes somebody has come to a node."""
    stepped: list[Callable[[Node], None]] = field(default_factory=list)
    """A node has been handed something, and all that followed is done."""


class Fleet:
    """All nodes of a run."""

    def __init__(
        self,
        count: int,
        *,
        seed: int = 1,
        rack_size: int = 10,
        settings: GossipSettings | None = None,
        has_states: bool = True,
        has_real_keys: bool = False,
        drift_ppm: float = 0.0,
    ) -> None:
        self.world = World(seed)
        self.network = Network(self.world.chance("network"))
        self.removals: dict[bytes, NodeId] = {}
        """What an operator's record removes; whoever hears one judges, relays and obeys it."""
        self.hooks = Hooks()
        self.changes_total = 0
        self._introduced: dict[NodeId, Introduction] = {}
        """Of an old fleet: every disk holds all of these."""
        self.settings = settings or GossipSettings()
        self.has_states = has_states
        self._streams = self.world.chance("streams")
        self._moments = self.world.chance("moments")
        keyring = KeyedHashKeyring()
        self.verifier: Verifier = Ed25519Verifier() if has_real_keys else keyring
        self.witness = Witness()
        new_signer: Callable[[RandomBytes], Signer] = (
            Ed25519Signer.generate if has_real_keys else keyring.new_signer
        )
        keys = self.world.chance("keys")
        hardware = self.world.chance("hardware")
        self.nodes = [
            _make_node(
                number,
                rack_size,
                self.witness.watch(new_signer(keys.randbytes)),
                _clock(hardware, drift_ppm),
            )
            for number in range(count)
        ]
        self.by_address = {node.address: node for node in self.nodes}
        self.by_id = {node.node_id: node for node in self.nodes}

    # Time.

    @property
    def now(self) -> float:
        """The world's time."""
        return self.world.now

    def run_for(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        """Let time pass; whether the condition held before it was over."""
        return self.world.run_until(self.world.now + seconds, until)

    def local(self, node: Node) -> float:
        """What a node's own clock shows."""
        return node.clock.local(self.world.now)

    @property
    def running(self) -> list[Node]:
        """Those with a process."""
        return [node for node in self.nodes if node.core is not None]

    # Lives.

    def start(self, node: Node, seeds: Iterable[Node] = ()) -> None:
        """A new process, from what the disk holds."""
        self._live(node, Ground(introductions=self._introduced), seeds)

    def begin_old(self, *, seeds_count: int = 3) -> None:
        """All run, and have long known each other: no news is left."""
        self._introduced = {node.node_id: node.introduction for node in self.nodes}
        first = Version(epoch=1, sequence=1)
        records = [member_record(node, first) for node in self.nodes]
        ground = lay_ground(self._introduced, records)
        for node in self.nodes:
            self._live(node, ground, self.nodes[:seeds_count])

    def _live(self, node: Node, ground: Ground, seeds: Iterable[Node]) -> None:
        node.epoch += 1
        node.seeds = tuple(seed.address for seed in seeds) or node.seeds
        node.is_paused, node.is_host_up = False, True
        node.inbox.clear()
        node.statuses = {}
        node.assumed = ground.places
        node.is_serving = False
        node.wake_seconds = math.inf
        rng = random.Random(f"node {self.world.seed} {node.number} {node.epoch}")
        node.core = make_core(
            node,
            verifier=self.verifier,
            rng=rng,
            settings=self.settings,
            ground=ground,
        )
        self.ask(node, lambda core, now: core.start(now))
        if node.known:
            self.ask(node, lambda core, now: core.trust(node.known.values(), None, now))
        if self.has_states:
            self.world.after(self._moments.random(), self._publish, node, node.core)

    def start_all(self, *, within_seconds: float = 0.1) -> None:
        """A mass join: all but the first know only the first."""
        first, *others = self.nodes
        self.start(first)
        for node in others:
            self.world.after(self._moments.random() * within_seconds, self.start, node, [first])

    def introduce_all(self) -> None:
        """Everybody's certificates are known to everybody: the cluster is an old one."""
        everybody = [node.introduction for node in self.nodes]
        address = self.nodes[0].address
        for node in self.nodes:
            node.known.update({one.node_id: one for one in everybody})
            if node.core is not None:
                self.ask(node, lambda core, now: core.trust(everybody, address, now))

    def ask(self, node: Node, request: Callable[[Core, float], list[Effect]]) -> None:
        """Call one of the verbs of a core, and do what it answers."""
        assert node.core is not None
        self.do(node, request(node.core, self.local(node)))

    def obey(self, node: Node, record: bytes) -> None:
        """An operator's record is at a node: what stands is relayed and carried out."""
        removed = self.removals.get(record)
        if node.core is None or removed is None:
            return
        for tell in self.hooks.removed:
            tell(node, removed)
        self.ask(node, lambda core, now: core.relay_operator_record(record, now))
        self.ask(node, lambda core, now: core.exclude(removed, "removed", now))

    def inject(self, to: Node, data: bytes, source: str = "10.66.6.6:666") -> None:
        """A datagram of somebody who is none of ours."""
        self.hand_in(to, Datagram(source=Address(source), data=data))

    def hand_in(self, node: Node, came: Input) -> None:
        """Something is at a node's socket."""
        if node.core is None:
            return
        if not node.is_paused and node.work_chance is None:
            self.do(node, node.core.receive(came, self.local(node)))
        elif len(node.inbox) >= SOCKET_BUFFER_COUNT:
            node.dropped_total += 1
        else:
            node.inbox.append(came)
            self.serve(node)

    def serve(self, node: Node) -> None:
        """Go on with what waits in a node's queue, if it can."""
        if node.core is None or node.is_paused or node.is_serving or not node.inbox:
            return
        if node.work_chance is None:
            waiting = list(node.inbox)
            node.inbox.clear()
            for came in waiting:
                self.hand_in(node, came)
            return
        node.is_serving = True
        work = node.work_chance.uniform(*node.work_seconds)
        node.busy_until_seconds = self.world.now + work
        self.world.after(work, self._finish_work, node, node.core)

    def wake(self, node: Node) -> None:
        """Call a node whose time may have come."""
        core = node.core
        node.wake_seconds = math.inf
        if core is None or node.is_paused:
            return
        due = core.deadline()
        if due is None:
            return
        local = self.local(node)
        # What is due within a nanosecond is due: clocks that differ are rounded.
        if due <= local + 1e-9:
            self.do(node, core.advance(max(due, local)))
        else:
            self._set_timer(node)

    # Machinery.

    def _finish_work(self, node: Node, core: Core) -> None:
        if node.core is not core:
            return
        node.is_serving = False
        if node.is_paused or not node.inbox:
            return
        self.do(node, core.receive(node.inbox.popleft(), self.local(node)))
        self.serve(node)

    def _publish(self, node: Node, core: Core) -> None:
        if node.core is not core or core.deadline() is None:
            return
        if not node.is_paused:
            state = f"{self.world.now:.3f}".encode()
            self.ask(node, lambda core, now: core.publish_state(state, now))
        self.world.after(1.0, self._publish, node, core)

    def do(self, node: Node, effects: Sequence[Effect]) -> None:
        """Carry out what a core has answered, and call it again when it wishes."""
        for effect in effects:
            self._carry_out(node, effect)
        self._set_timer(node)
        for tell in self.hooks.stepped:
            tell(node)

    def _set_timer(self, node: Node) -> None:
        due = None if node.core is None else node.core.deadline()
        if due is None:
            return
        when = max(node.clock.world(due), self.world.now)
        if node.work_chance is not None:
            when = max(when, node.busy_until_seconds)
        if when < node.wake_seconds:
            node.wake_seconds = when
            self.world.at(when, self._ring, node, when)

    def _ring(self, node: Node, when: float) -> None:
        # A timer that was set for later and then for earlier still rings for the later time.
        if when == node.wake_seconds:
            self.wake(node)

    def _carry_out(self, node: Node, effect: Effect) -> None:
        told = node.told
        match effect:
            case Send(to=to, datagram=datagram):
                self._send(node, to, datagram)
            case MemberChanged():
                self._change(node, effect)
            case PersistHeads(heads=heads):
                node.heads = {head.node_id: head for head in heads}
            case PersistEpoch(epoch=epoch):
                node.epoch = epoch
            case ChainsWanted(ask=address, node_ids=node_ids):
                delay = 0.005 + 0.02 * self._streams.random()
                self.world.after(delay, self._exchange, node, address, node_ids)
            case Deliver():
                told.delivered.append(effect)
            case OperatorRecordHeard(record=record):
                told.records.append(record)
                self.obey(node, record)
            case Equivocated():
                told.equivocated.append(effect)
            case Paused(pause_seconds=seconds):
                told.pauses_seconds.append(seconds)
            case Rejected(reason=reason):
                told.rejected[reason] += 1
            case LeaveEnded():
                told.goodbyes.append(effect)

    def _change(self, node: Node, change: MemberChanged) -> None:
        self.world.note(node.number, change.node_id.hex(), change.after, change.reason)
        self.changes_total += 1
        node.statuses[change.node_id] = change.after
        node.told.changes.append((self.world.now, change))
        for tell in self.hooks.changed:
            tell(node, change)

    def _exchange(self, node: Node, address: Address, node_ids: tuple[NodeId, ...]) -> None:
        """Both ends of a stream learn who the other is; the asker learns whom it asked for."""
        other = self.by_address.get(address)
        if other is None or not other.is_running or not node.is_running:
            return
        if other is node or not self.network.is_open(node.address, address):
            return
        given = {other.node_id: other.introduction}
        for node_id in node_ids or tuple(other.known):
            known = other.known.get(node_id) or self._introduced.get(node_id)
            if known is not None:
                given[node_id] = known
        node.known.update(given)
        other.known[node.node_id] = node.introduction
        self.ask(other, lambda core, now: core.trust([node.introduction], node.address, now))
        self.ask(node, lambda core, now: core.trust(given.values(), address, now))

    def _send(self, node: Node, to: Address, datagram: bytes) -> None:
        node.sent_total += 1
        node.sent_bytes += len(datagram)
        self.world.trace(datagram)
        for tell in self.hooks.sent:
            tell(node, to, datagram)
        for delay in self.network.delays(node.address, to):
            self.world.after(delay, self._arrive, node, to, datagram)

    def _arrive(self, sender: Node, to: Address, datagram: bytes) -> None:
        receiver = self.by_address.get(to)
        if receiver is None:
            return
        if receiver.core is None:
            if receiver.is_host_up:
                for delay in self.network.delays(to, sender.address):
                    self.world.after(delay, self.hand_in, sender, Refused(address=to))
            return
        receiver.received_total += 1
        receiver.received_bytes += len(datagram)
        self.hand_in(receiver, Datagram(source=sender.address, data=datagram))


def _make_node(number: int, rack_size: int, signer: Signer, clock: Clock) -> Node:
    introduction = Introduction(
        node_id=NodeId.of_public_key(signer.public_key),
        public_key=signer.public_key,
        name=NodeName(f"n{number:03}"),
        rack=RackId(f"r{number // rack_size:02}"),
    )
    address = Address(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}:7947")
    return Node(number, signer, introduction, address, clock)


def _clock(hardware: random.Random, drift_ppm: float) -> Clock:
    if not drift_ppm:
        return Clock()
    return Clock(
        rate_ratio=1.0 + hardware.uniform(-drift_ppm, drift_ppm) / _MILLION,
        offset_seconds=hardware.uniform(0.0, _OFFSET_SECONDS_MAX),
    )
