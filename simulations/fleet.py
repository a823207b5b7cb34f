"""Many nodes in one world: hands each what comes, takes what it answers, and does it.

Its own file because here, and nowhere else, the effects of a core are matched. Each node is driven
exactly as an agent drives its own: bytes or time in, effects out in order, and called again at its
deadline. Every datagram goes through the real codec and the real door. With papers a node is a
whole peer, with certificates, admissions and operators' records; without it is gossip alone, which
costs less. It must not know faults or what is checked.
"""

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from cluster.gossip.effects import (
    ChainsWanted,
    Deliver,
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
from cluster.gossip.ground import BARE, Ground, lay_ground
from cluster.gossip.inputs import Datagram, Input, Refused
from cluster.gossip.messages import Address, Version
from cluster.gossip.settings import GossipSettings
from cluster.identity import operator_records
from cluster.identity.chains import IssuingRights
from cluster.ids import NodeId
from cluster.papers import encode_paper
from cluster.peer import (
    Alarm,
    Effect,
    Exchange,
    OperatorSpoke,
    Peer,
    PersistPapers,
    Withdrawn,
)
from cluster.signatures import Verifier
from simulations.core import Core, enrol_all, make_core
from simulations.forgery import member_record
from simulations.hardware import make_nodes
from simulations.hooks import Hooks
from simulations.keys import Keys
from simulations.network import Network
from simulations.node import SOCKET_BUFFER_COUNT, Node
from simulations.office import UNIX_BEGIN_SECONDS, Office
from simulations.streams import Streams
from simulations.witness import Witness
from simulations.world import World


class Fleet:
    """All nodes of a run."""

    verifier: Verifier
    """Of every life that begins from now on."""

    def __init__(
        self,
        count: int,
        *,
        seed: int = 1,
        rack_size: int = 10,
        settings: GossipSettings | None = None,
        has_states: bool = True,
        has_real_keys: bool = False,
        has_papers: bool = False,
        drift_ppm: float = 0.0,
    ) -> None:
        self.world = World(seed)
        self.network = Network(self.world.chance("network"))
        self.removals: dict[bytes, NodeId] = {}
        """Without papers: what an operator's record removes; whoever hears one obeys it."""
        self.hooks = Hooks()
        self.changes_total = 0
        self.settings = settings or GossipSettings()
        self.has_states = has_states
        self._moments = self.world.chance("moments")
        self.streams = Streams(
            self, world=self.world, network=self.network, chance=self.world.chance("streams")
        )
        keys = Keys(are_real=has_real_keys)
        self.verifier = keys
        self.witness = Witness()
        chance = self.world.chance("keys")
        self.nodes = make_nodes(
            count,
            rack_size=rack_size,
            new_signer=lambda: self.witness.watch(keys.new_signer(chance.randbytes)),
            hardware=self.world.chance("hardware"),
            drift_ppm=drift_ppm,
        )
        self.office = Office(self.world.chance("office").randbytes) if has_papers else None
        if self.office is not None:
            enrol_all(self.nodes, self.office)
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
    def now_unix_seconds(self) -> int:
        """What all wall clocks show."""
        return UNIX_BEGIN_SECONDS + int(self.world.now)

    @property
    def running(self) -> list[Node]:
        """Those with a process."""
        return [node for node in self.nodes if node.core is not None]

    # Lives.

    def start(self, node: Node, seeds: Iterable[Node] = ()) -> None:
        """A new process, from what the disk holds."""
        known = Ground(introductions=self.streams.introduced)
        self._live(node, BARE if self.office else known, seeds)

    def begin_old(self, nodes: Sequence[Node] = (), *, seeds_count: int = 3) -> None:
        """All of these, or everybody, run and have long known each other: no news is left."""
        members = nodes or self.nodes
        introduced = {node.node_id: node.introduction for node in members}
        first = Version(epoch=1, sequence=1)
        ground = lay_ground(introduced, [member_record(node, first) for node in members])
        if self.office is None:
            self.streams.introduced = introduced
        else:
            enrolled = [(node.identity, node.chain) for node in members]
            founder = members[0]
            papers = self.office.old_papers(enrolled, founder.identity, founder.signer)
            for node in members:
                node.papers = list(papers)
        for node in members:
            self._live(node, ground, members[:seeds_count])

    def _live(self, node: Node, ground: Ground, seeds: Iterable[Node]) -> None:
        node.epoch += 1
        node.seeds = tuple(seed.address for seed in seeds) or node.seeds
        node.is_paused, node.is_host_up = False, True
        node.inbox.clear()
        node.statuses = {}
        node.assumed = ground.places
        node.is_serving = False
        node.wake_seconds = math.inf
        core, node.gossip = make_core(
            node,
            office=self.office,
            verifier=self.verifier,
            rng=random.Random(f"node {self.world.seed} {node.number} {node.epoch}"),
            settings=self.settings,
            ground=ground,
        )
        node.core = core
        now = self.local(node)
        if isinstance(core, Peer):
            self.streams.begin(node)
            self.do(node, core.start(now, now_unix_seconds=self.now_unix_seconds))
            self._tell_removed(node, tuple(core.roster.withdrawals()))
        else:
            self.do(node, core.start(now))
            if node.known:
                self.do(node, core.trust(node.known.values(), None, now))
        if self.has_states:
            self.world.after(self._moments.random(), self._publish, node, core)

    def start_all(self, *, within_seconds: float = 0.1) -> None:
        """A mass join: all but the first know only the first."""
        first, *others = self.nodes
        self.start(first)
        for node in others:
            self.world.after(self._moments.random() * within_seconds, self.start, node, [first])

    def introduce_all(self) -> None:
        """Without papers: everybody knows everybody's certificate, the cluster is an old one."""
        everybody = [node.introduction for node in self.nodes]
        address = self.nodes[0].address
        for node in self.nodes:
            node.known.update({one.node_id: one for one in everybody})
            if node.gossip is not None:
                self.do(node, node.gossip.trust(everybody, address, self.local(node)))

    def ask(self, node: Node, request: Callable[[Core, float], Sequence[Effect]]) -> None:
        """Call one of the verbs of a core, and do what it answers."""
        assert node.core is not None
        self.do(node, request(node.core, self.local(node)))

    # Operators.

    def enrol(self, node: Node, invite: IssuingRights) -> None:
        """A node that has not begun comes by this invite, into its rack."""
        assert self.office is not None
        node.introduction = replace(node.introduction, rack=invite.racks[0])
        node.enrolment = self.office.enrol(node.introduction, invite)

    def order(self, node: Node, statement: operator_records.Statement) -> None:
        """An operator says this at a node."""
        assert self.office is not None
        record = self.office.say(statement, now_unix_seconds=self.now_unix_seconds)
        effects, refused = node.peer.hear_operator(record, self.local(node))
        assert refused is None, refused
        self.do(node, effects)

    def obey(self, node: Node, record: bytes) -> None:
        """Without papers: an operator's record is at a node, is relayed and carried out."""
        removed = self.removals.get(record)
        if node.gossip is None or removed is None:
            return
        self._tell_removed(node, (removed,))
        self.do(node, node.gossip.relay_operator_record(record, self.local(node)))
        self.do(node, node.gossip.exclude(removed, "removed", self.local(node)))

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
            case Exchange():
                self.streams.want(node, effect)
            case PersistPapers(papers=papers):
                node.papers.extend(papers)
                for tell in self.hooks.learned:
                    tell(node)
            case OperatorSpoke(record=record):
                told.records.append(encode_paper(record))
                if self.office is not None:
                    self._tell_removed(node, self.office.removed_by(record.record.statement))
            case Withdrawn(reason=reason):
                node.withdrawn = reason
                node.end()
            case Alarm(line=line):
                told.alarms.append(line)
            case ChainsWanted(ask=address, node_ids=node_ids):
                self.streams.want_introductions(node, address, node_ids)
            case Deliver():
                told.delivered.append(effect)
            case OperatorRecordHeard(record=heard):
                told.records.append(heard)
                self.obey(node, heard)
            case Equivocated():
                told.equivocated.append(effect)
            case Paused(pause_seconds=seconds):
                told.pauses_seconds.append(seconds)
            case Rejected(reason=why):
                told.rejected[why] += 1
            case LeaveEnded():
                told.goodbyes.append(effect)

    def _change(self, node: Node, change: MemberChanged) -> None:
        self.world.note(node.number, change.node_id.hex(), change.after, change.reason)
        self.changes_total += 1
        node.statuses[change.node_id] = change.after
        node.told.changes.append((self.world.now, change))
        for tell in self.hooks.changed:
            tell(node, change)

    def _tell_removed(self, node: Node, removed: tuple[NodeId, ...]) -> None:
        for node_id in removed:
            for tell in self.hooks.removed:
                tell(node, node_id)

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
