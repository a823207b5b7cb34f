"""Which versions to keep on disk, said now and then.

Its own file because what is kept protects the next life from the past, not this one from anything.
It must not know how or where it is kept.
"""

import math

from cluster.gossip.effects import Head, PersistHeads
from cluster.gossip.members import Members
from cluster.gossip.outbox import Outbox
from cluster.gossip.settings import GossipSettings
from cluster.ids import NodeId


class HeadsKept:
    """The newest versions of every origin, as they were last handed over."""

    def __init__(
        self,
        *,
        settings: GossipSettings,
        outbox: Outbox,
        members: Members,
        floors: dict[NodeId, Head],
    ) -> None:
        self._interval_seconds = settings.persist_interval_seconds
        self._outbox = outbox
        self._members = members
        self._floors = floors
        self._heads: tuple[Head, ...] = ()
        self.due_seconds = math.inf

    def start(self, now: float) -> None:
        """Nothing is new yet."""
        self.due_seconds = now + self._interval_seconds

    def advance(self, now: float) -> None:
        """Hand them over, if there is anything new."""
        self.due_seconds = now + self._interval_seconds
        heads = self._members.heads(self._floors)
        if heads != self._heads:
            self._heads = heads
            self._outbox.emit(PersistHeads(heads=heads))
