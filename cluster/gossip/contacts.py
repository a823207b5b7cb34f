"""Knocking where nobody answers yet: at seeds, at members that were given up, at strangers.

Its own file because cuts heal at any time, so this never ends, and because each of its ways out is
bounded: whoever can make us open streams could make us do it without end. It must not know what
comes of a contact.
"""

import math
import random

from cluster.gossip.detector import Detector
from cluster.gossip.effects import ChainsWanted
from cluster.gossip.members import Members
from cluster.gossip.messages import Address
from cluster.gossip.outbox import Outbox
from cluster.gossip.own import Own
from cluster.gossip.settings import GossipSettings
from cluster.ids import NodeId

_STRANGERS_PER_SECOND = 20.0
_STRANGERS_MAX = 100.0
_TRIES_MAX = 16
_HURRY_SECONDS = 0.1
"""So that many accusers make one attempt."""


class Contacts:
    """Whom one node tries to reach beside its members."""

    def __init__(
        self,
        *,
        own: Own,
        settings: GossipSettings,
        outbox: Outbox,
        members: Members,
        detector: Detector,
        seeds: tuple[Address, ...],
        rng: random.Random,
    ) -> None:
        self._own = own
        self._settings = settings
        self._outbox = outbox
        self._members = members
        self._detector = detector
        self.seeds = seeds
        self._rng = rng
        self._strangers_count = _STRANGERS_MAX
        self._strangers_seconds = 0.0
        self._hurried_seconds = -math.inf
        self._is_hurried = False
        self.due_seconds = math.inf

    def hurry(self, now: float) -> None:
        """Others could not reach us: so what we hold against others may be our own fault."""
        if now - self._hurried_seconds >= self._settings.join_interval_seconds:
            self._hurried_seconds = now
            self._is_hurried = True
            self.due_seconds = min(self.due_seconds, now + _HURRY_SECONDS)

    def advance(self, now: float) -> None:
        """Try one that was given up, more where most were; a seed that is no member, or all."""
        is_alone = not self._members.here_count
        settings = self._settings
        failed = self._members.failed
        # Where most are gone it is rather this node that was: the others may have it back already,
        # and it must find each of them again.
        is_lost = len(failed) > self._members.here_count or self._is_hurried
        is_urgent = is_alone or is_lost
        self._is_hurried = False
        wait = settings.join_interval_seconds if is_urgent else settings.reach_interval_seconds
        self.due_seconds = now + wait * (0.75 + 0.5 * self._rng.random())
        count = min(len(failed), _TRIES_MAX if is_lost else 1)
        for lost in self._rng.sample(failed, count):
            self._detector.run_errand(lost, [self._own.member], now)
        missing = [
            one
            for one in self.seeds
            if one != self._own.address and not self._members.is_here_at(one)
        ]
        if missing and not is_alone:
            missing = [self._rng.choice(missing)]
        for seed in missing:
            self._outbox.emit(ChainsWanted(ask=seed))

    def ask_stranger(self, claimed: NodeId, source: Address, now: float) -> None:
        """Somebody unknown speaks of our cluster: ask who it is, so many times a second."""
        elapsed = now - self._strangers_seconds
        self._strangers_seconds = now
        left = self._strangers_count + elapsed * _STRANGERS_PER_SECOND
        self._strangers_count = min(_STRANGERS_MAX, left)
        if self._strangers_count >= 1:
            self._strangers_count -= 1
            self._outbox.emit(ChainsWanted(ask=source, node_ids=(claimed,)))
