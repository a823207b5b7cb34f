"""How a node leaves: it says so, signed, and waits until some peers have answered that they know.

Its own file because a good-bye that is only gossiped is lost with the node that gossips it. It must
not know what others make of it.
"""

import math
import random
from typing import TYPE_CHECKING

from cluster.gossip.detector import Detector
from cluster.gossip.effects import LeaveEnded
from cluster.gossip.members import Members
from cluster.gossip.outbox import Outbox
from cluster.gossip.own import Own
from cluster.gossip.settings import GossipSettings

if TYPE_CHECKING:
    from cluster.ids import NodeId

_AGAIN_SECONDS = 0.3


class Farewell:
    """The end of one node's part."""

    def __init__(
        self,
        *,
        own: Own,
        settings: GossipSettings,
        outbox: Outbox,
        members: Members,
        detector: Detector,
    ) -> None:
        self._own = own
        self._settings = settings
        self._outbox = outbox
        self._members = members
        self._detector = detector
        self._peers: dict[NodeId, None] = {}
        self._nonces: dict[int, NodeId] = {}
        self._asked_count = 0
        self._ends_seconds = math.inf
        self.due_seconds = math.inf
        self.is_begun = False
        self.is_over = False

    def begin(self, rng: random.Random, now: float) -> None:
        """Choose the peers that shall know, and tell them."""
        peers = self._members.draw(rng, self._settings.leave_peers_count)
        self._peers = {one.node_id: None for one in peers}
        self._asked_count = len(peers)
        self._ends_seconds = now + self._settings.leave_seconds
        self.is_begun = True
        self.advance(now)

    def advance(self, now: float) -> None:
        """Tell those again who have not answered, until it has taken too long."""
        if now >= self._ends_seconds or not self._peers:
            self._end()
            return
        self.due_seconds = min(self._ends_seconds, now + _AGAIN_SECONDS)
        for node_id in self._peers:
            member = self._members.get(node_id)
            if member is not None:
                nonce = self._detector.run_errand(member, [self._own.member], now)
                if nonce is not None:
                    self._nonces[nonce] = node_id

    def hear_ack(self, nonce: int) -> None:
        """A peer has answered a ping that carried our good-bye."""
        peer = self._nonces.get(nonce)
        if peer is None or self.is_over:
            return
        self._peers.pop(peer, None)
        if not self._peers:
            self._end()

    def _end(self) -> None:
        self.is_over = True
        self.due_seconds = math.inf
        informed = self._asked_count - len(self._peers)
        self._outbox.emit(LeaveEnded(informed_count=informed))
