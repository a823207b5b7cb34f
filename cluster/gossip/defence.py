"""A node speaks up for itself: it refutes, outlives what it forgot, and says so to all at once.

Its own file because nobody else may raise its version, and because here is where it notices that
somebody else goes on with its key. It must not know who accused it, or why.
"""

import random

from cluster.gossip.beliefs import Beliefs
from cluster.gossip.contacts import Contacts
from cluster.gossip.detector import Detector
from cluster.gossip.doubts import Doubts
from cluster.gossip.effects import Equivocated, PersistEpoch
from cluster.gossip.held import Slot
from cluster.gossip.messages import Statement
from cluster.gossip.outbox import Outbox
from cluster.gossip.own import Own
from cluster.gossip.rebirth import Rebirth
from cluster.gossip.rumors import Urgency
from cluster.gossip.settings import GossipSettings


class Defence:
    """Of one node."""

    def __init__(
        self,
        *,
        own: Own,
        settings: GossipSettings,
        outbox: Outbox,
        beliefs: Beliefs,
        doubts: Doubts,
        detector: Detector,
        contacts: Contacts,
        rng: random.Random,
    ) -> None:
        self._own = own
        self._settings = settings
        self._outbox = outbox
        self._beliefs = beliefs
        self._doubts = doubts
        self._detector = detector
        self._contacts = contacts
        self._rng = rng
        self._rebirth = Rebirth()

    @property
    def is_contested(self) -> bool:
        """Whether somebody else goes on with this node's key."""
        return self._rebirth.is_contested

    @property
    def due_seconds(self) -> float:
        """When another life is to be outlived."""
        return self._rebirth.due_seconds

    def advance(self, now: float) -> None:
        """Refute whoever says that we are not here; outlive a life of ours that we forgot."""
        heard, self._beliefs.outlived = self._beliefs.outlived, None
        if heard is not None:
            self._rebirth.hear(heard)
        accused_by, self._doubts.accused_by = self._doubts.accused_by, None
        outlived = self._rebirth.take(now)
        if outlived is not None:
            held = self._beliefs.records.get(Slot.MEMBER, self._own.node_id)
            if held is not None and (held.is_equivocal or self._rebirth.is_contested):
                self._outbox.emit(Equivocated(node_id=self._own.node_id, proof=held.statements))
            statement = self._own.outlive(outlived)
            self._outbox.emit(PersistEpoch(epoch=self._own.epoch))
            self.announce(statement)
        elif accused_by is not None:
            self._detector.health.was_accused()
            self._contacts.hurry(now)
            self.announce(self._own.refute())

    def announce(self, statement: Statement) -> None:
        """Say it to everybody at once, as far as that is possible, and let it be repeated."""
        self._beliefs.records.put(statement)
        self._outbox.spread(statement, Urgency.CLAIM)
        members = self._beliefs.members
        for member in members.draw(self._rng, self._settings.direct_members_max):
            if member.address is not None:
                self._outbox.send(member.address, [statement])
