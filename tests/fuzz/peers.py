"""A few real peers, with real keys and certificates, in a network that loses nothing."""

import heapq
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from cluster.assembly import chain_of, make_peer
from cluster.enrolment import NodeKeys
from cluster.gossip.effects import MemberChanged, Rejected, Send, Status
from cluster.gossip.inputs import Datagram
from cluster.gossip.messages import Address
from cluster.gossip.settings import GossipSettings
from cluster.keeping import Remembered
from cluster.papers import decode_request, encode_paper, encode_request
from cluster.peer import Effect, Exchange, Peer
from tests.identities import NOW, Lab

DELAY_SECONDS = 0.001


@dataclass(eq=False)
class Node:
    """One of them."""

    keys: NodeKeys
    address: Address
    peer: Peer
    gone: list[MemberChanged] = field(default_factory=list)
    """Who was given up, or has left; all else would fill the memory that is measured."""
    rejected: Counter[str] = field(default_factory=Counter)
    effects: Counter[str] = field(default_factory=Counter)

    @property
    def name(self) -> str:
        return self.keys.identity.name


class Peers:
    """All of them, and the time."""

    def __init__(self, count: int, seed: int) -> None:
        self.now = 1000.0
        self.lab = Lab(seed)
        self._chance = random.Random(f"peers {seed}")
        self._due: list[tuple[float, int, Address, Datagram]] = []
        self._order = itertools.count()
        self.nodes: dict[Address, Node] = {}
        self.overheard: Callable[[bytes, Address], None] = lambda data, to: None
        founder = self.lab.join(self.lab.invite(may_found=True, uses=1), "n0")
        self._add(founder, 0)
        invite = self.lab.invite()
        for number in range(1, count):
            self._add(self.lab.join(invite, f"n{number}"), number)

    def _add(self, keys: NodeKeys, number: int) -> None:
        address = Address(f"10.0.0.{number + 1}:7947")
        peer = make_peer(
            keys,
            Remembered(epoch=1, heads={}, addresses={}, papers=()),
            address=address,
            seeds=tuple(self.nodes)[:1],
            settings=GossipSettings(),
            rng=random.Random(self._chance.getrandbits(64)),
        )
        node = Node(keys=keys, address=address, peer=peer)
        self.nodes[address] = node
        self._obey(node, peer.start(self.now, now_unix_seconds=NOW))

    def run_for(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        while True:
            due, node = min(
                ((node.peer.deadline() or end, node) for node in self.nodes.values()),
                key=lambda one: one[0],
            )
            if self._due and self._due[0][0] <= min(due, end):
                self.now = max(self.now, self._due[0][0])
                _, _, to, datagram = heapq.heappop(self._due)
                self.hand_in(self.nodes[to], datagram)
            elif due <= end:
                self.now = max(self.now, due)
                self._obey(node, node.peer.advance(self.now))
            else:
                self.now = end
                return

    def hand_in(self, node: Node, datagram: Datagram) -> None:
        """Something comes to a node."""
        self._obey(node, node.peer.receive(datagram, self.now))

    def publish(self, node: Node, state: bytes) -> None:
        self._obey(node, node.peer.publish_state(state, self.now))

    def statuses(self, node: Node) -> dict[str, tuple[str, ...]]:
        """What a node sees of the others."""
        members = node.peer.view(self.now).gossip.members
        return {
            one.name: (str(one.status), one.rack, str(one.address), one.node_id.hex())
            for one in members
        }

    def _obey(self, node: Node, effects: Iterable[Effect]) -> None:
        for effect in effects:
            node.effects[type(effect).__name__] += 1
            match effect:
                case Send(to=to, datagram=data):
                    self.overheard(data, to)
                    if to in self.nodes:
                        came = Datagram(source=node.address, data=data)
                        at = self.now + DELAY_SECONDS
                        heapq.heappush(self._due, (at, next(self._order), to, came))
                case Exchange():
                    self._exchange(node, effect)
                case MemberChanged(after=after):
                    if after in (Status.FAILED, Status.LEFT, Status.REMOVED):
                        node.gone.append(effect)
                case Rejected(reason=reason):
                    node.rejected[str(reason)] += 1
                case _:
                    pass

    def _exchange(self, node: Node, wish: Exchange) -> None:
        other = self.nodes.get(wish.ask)
        if other is None or other is node:
            return
        request = decode_request(encode_request(node.peer.request_for(wish)))
        meeting = other.peer.meet(
            chain_of(node.keys), node.address, request.offered, self.now, now_unix_seconds=NOW
        )
        self._obey(other, meeting.effects)
        if meeting.refused is None:
            parts = (encode_paper(chain_of(other.keys)), *other.peer.give(request))
            self._obey(node, node.peer.hear_papers(parts, wish.ask, self.now))
