"""Streams between nodes: who asks whom for papers, when, and what comes of it.

Its own file because it stands for what `cluster.host`, `cluster.exchanges` and a TLS connection are
to an agent. Requests and papers go through their real encodings; how long it takes and whether
there is a way is simulated. Wishes for one address are joined, those of one node begin no faster
than an agent's, and newcomers that come together are answered together. A node of gossip alone
exchanges introductions. It must not know what papers say.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from cluster.exchanges import (
    BURST_COUNT,
    GATHER_SECONDS,
    PACE_SECONDS,
    RUNNING_MAX,
    WANTED_MAX,
)
from cluster.gossip.introduction import Introduction
from cluster.gossip.messages import Address
from cluster.identity.refusals import Rule
from cluster.ids import NodeId
from cluster.papers import PapersRequest, decode_request, encode_paper, encode_request
from cluster.peer import Effect, Exchange, Peer
from cluster.wishes import (
    Crowd,
    is_for_somebody_near,
    is_granted_by,
    join_wishes,
    narrow_wish,
    take_wish,
)
from simulations.network import Network
from simulations.node import Node
from simulations.world import World

_SHORTEST_SECONDS = 0.005
_SPAN_SECONDS = 0.02
_SILENCE_SECONDS = 5.0
"""Until a caller gives up where nobody answers. Source: `cluster.stream.StreamLimits`."""
_ROUNDING_SECONDS = 1e-6
_KEPT_SECONDS = 10.0
"""So long a connection stays open. Source: `cluster.stream.StreamLimits`."""
_WITHDRAWN = (Rule.REVOKED, Rule.REMOVED)


class Driver(Protocol):
    """Whoever drives the nodes."""

    by_address: dict[Address, Node]

    @property
    def now_unix_seconds(self) -> int:
        """What wall clocks show."""
        ...

    def local(self, node: Node) -> float:
        """What a node's own clock shows."""
        ...

    def do(self, node: Node, effects: Sequence[Effect]) -> None:
        """Carry out what a core has answered."""
        ...


@dataclass(slots=True, kw_only=True, eq=False)
class _Wishes:
    """What one life of a node wants of others."""

    core: Peer
    wanted: dict[Address, Exchange] = field(default_factory=dict)
    running: dict[Address, Exchange] = field(default_factory=dict)
    allowance_count: float = 1.0
    allowance_seconds: float
    is_due: bool = False
    kept: dict[Address, float] = field(default_factory=dict)
    """With whom a connection is still open, and since when it is idle; the latest last."""
    avoided: Address | None = None
    """Who was near and could not grant all of a wish."""
    crowd: Crowd = field(default_factory=Crowd)
    """Newcomers who ask this one."""

    def nearest(self, wish: Exchange, now: float) -> Address:
        """Of many strangers somebody knows most with whom a connection is open."""
        self.kept = {at: since for at, since in self.kept.items() if now - since < _KEPT_SECONDS}
        near = next(reversed(self.kept), None)
        if near is None or near in self.running or near == self.avoided:
            return wish.ask
        return near if is_for_somebody_near(wish) else wish.ask

    def wait_seconds(self, now: float) -> float:
        """How long until one more may begin."""
        earned = (now - self.allowance_seconds) / PACE_SECONDS
        self.allowance_count = min(float(BURST_COUNT), self.allowance_count + earned)
        self.allowance_seconds = now
        wait = (1.0 - self.allowance_count) * PACE_SECONDS
        # What was waited for may come out a rounding short of one.
        return wait if wait > _ROUNDING_SECONDS else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One exchange between the lives of two nodes."""

    node: Node
    wishes: _Wishes
    other: Node
    called: Peer
    asked: Exchange
    meant: Exchange
    request: PapersRequest

    @property
    def is_cut(self) -> bool:
        """Whether one of the two lives has ended."""
        return self.node.core is not self.wishes.core or self.other.core is not self.called


class Streams:
    """All streams of one fleet."""

    introduced: Mapping[NodeId, Introduction]
    """Without papers: whom all nodes know beside those whom they have met."""

    def __init__(
        self, driver: Driver, *, world: World, network: Network, chance: random.Random
    ) -> None:
        self._driver = driver
        self._world = world
        self._network = network
        self._chance = chance
        self._wishes: dict[int, _Wishes] = {}
        self.introduced = {}

    def begin(self, node: Node) -> None:
        """A life of a peer begins: it wants nothing yet."""
        self._wishes[node.number] = _Wishes(core=node.peer, allowance_seconds=self._world.now)

    def want(self, node: Node, wish: Exchange) -> None:
        """A peer asks for an exchange."""
        wishes = self._wishes[node.number]
        running = wishes.running.get(wish.ask)
        if running is not None and is_granted_by(running, wish):
            return
        held = wishes.wanted.get(wish.ask)
        if held is None and len(wishes.wanted) >= WANTED_MAX:
            return
        wishes.wanted[wish.ask] = wish if held is None else join_wishes(held, wish)
        self._go_on(node, wishes)

    def want_introductions(
        self, node: Node, address: Address, node_ids: tuple[NodeId, ...]
    ) -> None:
        """Gossip without papers asks whom somebody knows."""
        self._world.after(self._delay(), self._introduce, node, address, node_ids)

    # Papers.

    def _go_on(self, node: Node, wishes: _Wishes, wait_seconds: float = GATHER_SECONDS) -> None:
        if not wishes.is_due:
            wishes.is_due = True
            self._world.after(wait_seconds, self._begin, node, wishes)

    def _begin(self, node: Node, wishes: _Wishes) -> None:
        """Begin the next exchange, if it is time and there is one."""
        wishes.is_due = False
        if node.core is not wishes.core:
            return
        if node.is_paused:
            self._go_on(node, wishes, PACE_SECONDS)
            return
        wait = wishes.wait_seconds(self._world.now)
        if wait > 0.0:
            self._go_on(node, wishes, wait)
            return
        if len(wishes.running) >= RUNNING_MAX:
            return  # the end of one begins the next
        narrow = partial(_narrowed, node, wishes.core)
        wish = take_wish(wishes.wanted, wishes.running, narrow)
        if wish is None:
            return
        wishes.allowance_count -= 1.0
        asked = replace(wish, ask=wishes.nearest(wish, self._world.now))
        wishes.running[asked.ask] = asked
        wishes.kept.pop(asked.ask, None)
        other = self._driver.by_address.get(asked.ask)
        if other is not None and self._is_silent(node, other):
            self._world.after(_SILENCE_SECONDS, self._end, node, wishes, asked)
        else:
            self._world.after(self._delay(), self._exchange, node, wishes, asked, wish)
        if wishes.wanted:
            self._go_on(node, wishes)

    def _end(self, node: Node, wishes: _Wishes, asked: Exchange) -> None:
        wishes.running.pop(asked.ask, None)
        if node.core is wishes.core and wishes.wanted:
            self._go_on(node, wishes)

    def _exchange(self, node: Node, wishes: _Wishes, asked: Exchange, meant: Exchange) -> None:
        """As the caller: ask; the answer may wait for other newcomers."""
        other = self._driver.by_address.get(asked.ask)
        if node.core is not wishes.core or other is None or not self._is_open(node, other):
            self._end(node, wishes, asked)
            return
        call = _Call(
            node=node,
            wishes=wishes,
            other=other,
            called=other.peer,
            asked=asked,
            meant=meant,
            request=_as_sent(wishes.core.request_for(asked)),
        )
        roster = call.called.roster
        was_in = roster.identity_by(node.chain) is not None
        refused = self._meet(call, call.request)
        is_in = roster.identity_by(node.chain) is not None
        if refused is None and is_in and not was_in and not call.request.node_ids:
            until = self._wishes[other.number].crowd.arrive(self._world.now)
            self._hold(call, until)
        else:
            self._conclude(call, refused)

    def _hold(self, call: _Call, until: float) -> None:
        """Answer when no more newcomers come."""
        crowd = self._wishes[call.other.number].crowd
        wait = 0.0 if call.is_cut else crowd.wait_seconds(until, self._world.now)
        if wait > 0.0:
            self._world.after(wait, self._hold, call, until)
            return
        is_in = call.called.roster.identity_by(call.node.chain) is not None
        self._conclude(call, None if is_in else Rule.REVOKED)

    def _conclude(self, call: _Call, refused: Rule | None) -> None:
        """The answer comes, unless one of the two has ended meanwhile."""
        node, wishes = call.node, call.wishes
        parts: tuple[bytes, ...] | None = None
        if not call.is_cut and refused is None:
            parts = call.called.give(call.request)
        elif not call.is_cut and refused in _WITHDRAWN:
            parts = call.called.give_records(call.request)
        if parts is not None:
            self._hear(call, (encode_paper(call.other.chain), *parts))
            if node.core is wishes.core:
                wishes.kept[call.asked.ask] = self._world.now
                self._settle(node, wishes, call.asked, call.meant)
        self._end(node, wishes, call.asked)

    def _settle(self, node: Node, wishes: _Wishes, asked: Exchange, meant: Exchange) -> None:
        """Ask whoever was meant for what somebody nearer did not know."""
        if asked.ask == meant.ask:
            wishes.avoided = None
            return
        left = _narrowed(node, wishes.core, meant)
        if left is not None:
            wishes.avoided = asked.ask
            wishes.allowance_count += 1.0
            self.want(node, left)

    def _hear(self, call: _Call, parts: tuple[bytes, ...]) -> None:
        """As the caller: believe the answer, and send on what it asks back."""
        peer = call.wishes.core
        local = self._driver.local(call.node)
        self._driver.do(call.node, peer.hear_papers(parts, call.asked.ask, local))
        for offer in peer.offers_for(parts):
            if not call.is_cut:
                self._meet(call, _as_sent(offer))

    def _meet(self, call: _Call, request: PapersRequest) -> Rule | None:
        """As who is called: judge who asks; why it is sent away."""
        meeting = call.called.meet(
            call.node.chain,
            call.node.address,
            request.offered,
            self._driver.local(call.other),
            now_unix_seconds=self._driver.now_unix_seconds,
        )
        refused = meeting.refused
        if refused is not None and refused.rule not in _WITHDRAWN:
            call.node.told.refusals.append(refused.line)
        self._driver.do(call.other, meeting.effects)
        return None if refused is None else refused.rule

    # Introductions.

    def _introduce(self, node: Node, address: Address, node_ids: tuple[NodeId, ...]) -> None:
        """Both ends of a stream learn who the other is; the asker learns whom it asked for."""
        other = self._driver.by_address.get(address)
        if other is None or other is node or not self._is_open(node, other):
            return
        given = {other.node_id: other.introduction}
        for node_id in node_ids or tuple(other.known):
            known = other.known.get(node_id) or self.introduced.get(node_id)
            if known is not None:
                given[node_id] = known
        node.known.update(given)
        other.known[node.node_id] = node.introduction
        for one, learned, source in (
            (other, (node.introduction,), node.address),
            (node, tuple(given.values()), address),
        ):
            assert one.gossip is not None
            self._driver.do(one, one.gossip.trust(learned, source, self._driver.local(one)))

    # The network.

    def _delay(self) -> float:
        return _SHORTEST_SECONDS + _SPAN_SECONDS * self._chance.random()

    def _is_open(self, node: Node, other: Node) -> bool:
        is_way = self._network.is_open(node.address, other.address)
        return other is not node and node.is_running and other.is_running and is_way

    def _is_silent(self, node: Node, other: Node) -> bool:
        """Whether nothing at all answers there, not even a refusal."""
        if not self._network.is_open(node.address, other.address) or other.is_paused:
            return True
        return other.core is None and not other.is_host_up


def _narrowed(node: Node, peer: Peer, wish: Exchange) -> Exchange | None:
    """What others have not granted meanwhile, and is not asked of the node itself."""
    return None if wish.ask == node.address else narrow_wish(wish, peer, node.node_id)


def _as_sent(request: PapersRequest) -> PapersRequest:
    """What arrives of a request."""
    return decode_request(encode_request(request))
