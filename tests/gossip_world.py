"""A small deterministic network in memory: many Swims, one event heap, faults by seed.

Every datagram goes through the real codec and the real door, signed by the simulation's keyring.
Chance has one stream a concern, so that a new draw in one does not shift the others.
"""

import hashlib
import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from cluster.gossip.effects import (
    ChainsWanted,
    Deliver,
    Effect,
    Equivocated,
    Head,
    LeaveEnded,
    MemberChanged,
    OperatorRecordHeard,
    Paused,
    PersistEpoch,
    PersistHeads,
    Rejected,
    Send,
    Status,
)
from cluster.gossip.envelope import Reason
from cluster.gossip.inputs import Datagram, Input, Refused
from cluster.gossip.members import Introduction
from cluster.gossip.messages import Address
from cluster.gossip.own import Identity
from cluster.gossip.settings import DATAGRAM_BYTES_MAX, GossipSettings
from cluster.gossip.swim import Swim
from cluster.ids import ClusterId, NodeId, NodeName, RackId
from cluster.keyring import Ed25519Signer, Ed25519Verifier
from cluster.signatures import KeyedHashKeyring, RandomBytes, Signer, Verifier

CLUSTER = ClusterId(b"the-test-cluster")
SOCKET_BUFFER_COUNT = 500
"""Datagrams that the kernel keeps for a process that does not run."""


@dataclass(slots=True)
class Node:
    """One node and its machine."""

    number: int
    signer: Signer
    introduction: Introduction
    address: Address
    swim: Swim | None = None
    epoch: int = 0
    heads: dict[NodeId, Head] = field(default_factory=dict)
    known: dict[NodeId, Introduction] = field(default_factory=dict)
    is_paused: bool = False
    is_host_up: bool = True
    """Whether its machine refuses what comes for a process that is gone."""
    buffer: list[Input] = field(default_factory=list)
    timer_number: int = 0
    changes: list[tuple[float, MemberChanged]] = field(default_factory=list)
    rejected: Counter[Reason] = field(default_factory=Counter)
    delivered: list[Deliver] = field(default_factory=list)
    records: list[bytes] = field(default_factory=list)
    equivocated: list[Equivocated] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    goodbyes: list[LeaveEnded] = field(default_factory=list)
    sent_total: int = 0
    sent_bytes: int = 0

    @property
    def node_id(self) -> NodeId:
        return self.introduction.node_id


class World:
    """The nodes, the network between them, and virtual time."""

    def __init__(
        self,
        count: int,
        *,
        seed: int = 1,
        rack_size: int = 10,
        settings: GossipSettings | None = None,
        has_states: bool = True,
        has_real_keys: bool = False,
    ) -> None:
        self.now = 0.0
        self.seed = seed
        self.loss_ratio = 0.0
        self.duplicate_ratio = 0.0
        self.delay_seconds = (0.0002, 0.002)
        self.sides: dict[Address, int] = {}
        self.removals: dict[bytes, NodeId] = {}
        """What an operator's record removes; whoever hears one judges, relays and obeys it."""
        self.taps: list[Callable[[Address, Address, bytes], None]] = []
        self._settings = settings or GossipSettings()
        self._has_states = has_states
        self._network = random.Random(f"network {seed}")
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._events_total = 0
        self._trace = hashlib.blake2b(digest_size=16)
        keyring = KeyedHashKeyring()
        self._verifier: Verifier = Ed25519Verifier() if has_real_keys else keyring
        self._new_signer: Callable[[RandomBytes], Signer] = (
            Ed25519Signer.generate if has_real_keys else keyring.new_signer
        )
        keys = random.Random(f"keys {seed}")
        self.nodes = [self._make(number, rack_size, keys) for number in range(count)]
        self.by_address = {node.address: node for node in self.nodes}
        self.by_id = {node.node_id: node for node in self.nodes}

    def _make(self, number: int, rack_size: int, keys: random.Random) -> Node:
        signer = self._new_signer(keys.randbytes)
        introduction = Introduction(
            node_id=NodeId.of_public_key(signer.public_key),
            public_key=signer.public_key,
            name=NodeName(f"n{number:03}"),
            rack=RackId(f"r{number // rack_size:02}"),
        )
        return Node(number, signer, introduction, Address(f"10.0.0.{number}:7947"))

    # Time.

    def at(self, when: float, action: Callable[[], None]) -> None:
        self._events_total += 1
        heapq.heappush(self._heap, (when, self._events_total, action))

    def run_until(self, when: float, until: Callable[[], bool] | None = None) -> bool:
        """Whether the condition held before the time was over."""
        while self._heap and self._heap[0][0] <= when:
            self.now, _, action = heapq.heappop(self._heap)
            action()
            if until is not None and until():
                return True
        self.now = when
        return until is not None and until()

    def run_for(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        return self.run_until(self.now + seconds, until)

    @property
    def trace_digest(self) -> str:
        return self._trace.hexdigest()

    def trace(self, *words: object) -> None:
        self._trace.update(repr((round(self.now, 9), *words)).encode())

    # Nodes.

    def start(self, node: Node, seeds: Iterable[Node] = ()) -> None:
        node.epoch += 1
        node.is_paused, node.buffer = False, []
        node.known = {}
        node.swim = Swim(
            identity=Identity(
                cluster_id=CLUSTER,
                introduction=node.introduction,
                addresses=(node.address,),
                epoch=node.epoch,
            ),
            signer=node.signer,
            verifier=self._verifier,
            rng=random.Random(f"node {self.seed} {node.number} {node.epoch}"),
            settings=self._settings,
            seeds=[seed.address for seed in seeds],
            heads=node.heads,
        )
        swim = node.swim
        self._do(node, swim.start(self.now))
        if self._has_states:
            self.at(self.now + self._network.random(), lambda: self._publish(node, swim))

    def introduce_all(self) -> None:
        """Everybody's certificates are known to everybody: the cluster is an old one."""
        for node in self.nodes:
            for other in self.nodes:
                node.known[other.node_id] = other.introduction
            if node.swim is not None:
                others = [other.introduction for other in self.nodes]
                self._do(node, node.swim.trust(others, self.nodes[0].address, self.now))

    def start_all(self, *, within_seconds: float = 0.1) -> None:
        """A mass join: all but the first know only the first."""
        self.start(self.nodes[0])
        for node in self.nodes[1:]:
            moment = self.now + self._network.random() * within_seconds
            self.at(moment, lambda node=node: self.start(node, [self.nodes[0]]))  # type: ignore[misc]  # bound early

    def crash(self, node: Node, *, is_host_up: bool) -> None:
        node.swim = None
        node.buffer = []
        node.is_host_up = is_host_up

    def pause(self, node: Node) -> None:
        node.is_paused = True

    def resume(self, node: Node) -> None:
        node.is_paused = False
        waiting, node.buffer = node.buffer, []
        for came in waiting:
            self._hand_in(node, came)
        self._wake(node, node.timer_number)

    def move(self, node: Node, address: Address) -> None:
        """A running node at a new address; what goes to the old one is lost."""
        del self.by_address[node.address]
        node.address = address
        self.by_address[address] = node
        assert node.swim is not None
        self._do(node, node.swim.move((address,), self.now))

    def ask(self, node: Node, request: Callable[[Swim, float], list[Effect]]) -> None:
        assert node.swim is not None
        self._do(node, request(node.swim, self.now))

    def obey(self, node: Node, record: bytes) -> None:
        if node.swim is None or record not in self.removals:
            return
        self._do(node, node.swim.relay_operator_record(record, self.now))
        self._do(node, node.swim.exclude(self.removals[record], "removed", self.now))

    def inject(self, to: Node, data: bytes, source: str = "10.66.6.6:666") -> None:
        """A datagram of somebody who is none of ours."""
        self._hand_in(to, Datagram(source=Address(source), data=data))

    # Questions.

    @property
    def running(self) -> list[Node]:
        return [node for node in self.nodes if node.swim is not None]

    def status(self, observer: Node, subject: Node) -> Status | None:
        assert observer.swim is not None
        member = observer.swim.view(self.now).get(subject.node_id)
        return None if member is None else member.status

    def sees_all(self, observer: Node, subjects: Iterable[Node]) -> bool:
        assert observer.swim is not None
        view = observer.swim.view(self.now)
        status = {member.node_id: member.status for member in view.members}
        fine = (Status.ALIVE, Status.DEGRADED)
        return all(status.get(one.node_id) in fine for one in subjects if one is not observer)

    def all_see(self, subjects: Iterable[Node]) -> bool:
        wanted = list(subjects)
        return all(self.sees_all(node, wanted) for node in self.running)

    def changes_to(self, status: Status) -> list[tuple[float, Node, NodeId]]:
        found = [
            (when, node, change.node_id)
            for node in self.nodes
            for when, change in node.changes
            if change.after is status
        ]
        return sorted(found, key=lambda one: one[0])

    # Machinery.

    def _publish(self, node: Node, swim: Swim) -> None:
        if node.swim is not swim or swim.deadline() is None:
            return
        if not node.is_paused:
            self._do(node, swim.publish_state(f"{self.now:.3f}".encode(), self.now))
        self.at(self.now + 1.0, lambda: self._publish(node, swim))

    def _do(self, node: Node, effects: list[Effect]) -> None:
        for effect in effects:
            self._carry_out(node, effect)
        if node.swim is None:
            return
        deadline = node.swim.deadline()
        node.timer_number += 1
        if deadline is not None:
            number = node.timer_number
            self.at(max(deadline, self.now), lambda: self._wake(node, number))

    def _wake(self, node: Node, number: int) -> None:
        if node.swim is not None and not node.is_paused and number == node.timer_number:
            self._do(node, node.swim.advance(self.now))

    def _carry_out(self, node: Node, effect: Effect) -> None:
        match effect:
            case Send(to=to, datagram=datagram):
                assert len(datagram) <= DATAGRAM_BYTES_MAX
                self._send(node, to, datagram)
            case MemberChanged():
                self.trace(node.number, effect.node_id.hex(), effect.after, effect.reason)
                node.changes.append((self.now, effect))
            case PersistHeads(heads=heads):
                node.heads = {head.node_id: head for head in heads}
            case PersistEpoch(epoch=epoch):
                node.epoch = epoch
            case ChainsWanted(ask=address, node_ids=node_ids):
                delay = 0.005 + 0.02 * self._network.random()
                self.at(self.now + delay, lambda: self._exchange(node, address, node_ids))
            case Deliver():
                node.delivered.append(effect)
            case OperatorRecordHeard(record=record):
                node.records.append(record)
                self.obey(node, record)
            case Equivocated():
                node.equivocated.append(effect)
            case Paused(pause_seconds=seconds):
                node.pauses.append(seconds)
            case Rejected(reason=reason):
                node.rejected[reason] += 1
            case LeaveEnded():
                node.goodbyes.append(effect)

    def _exchange(self, node: Node, address: Address, node_ids: tuple[NodeId, ...]) -> None:
        """Both ends of a stream learn who the other is; the asker learns whom it asked for."""
        other = self.by_address.get(address)
        is_cut = self.sides.get(node.address, 0) != self.sides.get(address, 0)
        if other is None or other.swim is None or other.is_paused or is_cut or node.swim is None:
            return
        given = {other.node_id: other.introduction}
        for node_id in node_ids or tuple(other.known):
            if node_id in other.known:
                given[node_id] = other.known[node_id]
        node.known.update(given)
        other.known[node.node_id] = node.introduction
        self._do(other, other.swim.trust([node.introduction], node.address, self.now))
        self._do(node, node.swim.trust(given.values(), address, self.now))

    def _send(self, node: Node, to: Address, datagram: bytes) -> None:
        node.sent_total += 1
        node.sent_bytes += len(datagram)
        self._trace.update(datagram)
        for tap in self.taps:
            tap(node.address, to, datagram)
        copies = 2 if self._network.random() < self.duplicate_ratio else 1
        for _ in range(copies):
            delay = self._network.uniform(*self.delay_seconds)
            if self._network.random() >= self.loss_ratio:
                self.at(self.now + delay, lambda: self._arrive(node, to, datagram))

    def _arrive(self, sender: Node, to: Address, datagram: bytes) -> None:
        if self.sides.get(sender.address, 0) != self.sides.get(to, 0):
            return
        receiver = self.by_address.get(to)
        if receiver is None:
            return
        if receiver.swim is None:
            if receiver.is_host_up:
                self.at(self.now + 0.0002, lambda: self._hand_in(sender, Refused(address=to)))
            return
        self._hand_in(receiver, Datagram(source=sender.address, data=datagram))

    def _hand_in(self, node: Node, came: Input) -> None:
        if node.swim is None:
            return
        if node.is_paused:
            if len(node.buffer) < SOCKET_BUFFER_COUNT:
                node.buffer.append(came)
            return
        self._do(node, node.swim.receive(came, self.now))
