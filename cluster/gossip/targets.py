"""Whom to ask next: those who are missed, those in doubt, those near them, and everybody in turn.

Its own file because how soon a death is noticed depends on whom one asks, and nothing else does. It
must not know how anybody is asked.
"""

import random

from cluster.gossip.effects import Status
from cluster.gossip.members import Member, Members
from cluster.gossip.roll import Turns
from cluster.gossip.settings import GossipSettings
from cluster.ids import NodeId

_PROBERS = 4
"""So many members, on average, leave their round each interval to ask one suspect, or one that
shares a rack with suspects."""
_WITNESSED_COUNT = 4
"""A suspect with so many accusers needs no more of them."""
_SUSPECTS_RATIO_MAX = 0.34
_NEIGHBOURS_RATIO_MAX = 0.25
"""The round must go on: there may be others."""


class Targets:
    """Chooses for one node."""

    def __init__(
        self, *, settings: GossipSettings, members: Members, own_id: NodeId, rng: random.Random
    ) -> None:
        self._settings = settings
        self._members = members
        self._own_id = own_id
        self._rng = rng
        self._turns = Turns(members.roll, rng)

    def next(self, now: float) -> Member | None:
        """Whom to ask now; None where nobody is left."""
        overdue = self._overdue(now)
        if overdue:
            return self._rng.choice(overdue)
        suspects = self._members.suspects
        if suspects:
            chosen = self._witnessless(suspects) or self._near(suspects)
            if chosen is not None:
                return chosen
        node_id = self._turns.next()
        return None if node_id is None else self._members.get(node_id)

    def _overdue(self, now: float) -> list[Member]:
        """Rack mates whose state, which comes every second, has not come."""
        limit = now - self._settings.state_overdue_seconds
        return [
            one
            for one in self._members.mates
            if one.status is Status.ALIVE
            and one.state_seconds is not None
            and max(one.state_seconds, one.heard_seconds or 0.0) < limit
        ]

    def _witnessless(self, suspects: list[Member]) -> Member | None:
        """A suspect of others that this node has not tried to reach itself."""
        doubtful = [
            one
            for one in suspects
            if one.suspicion is not None
            and self._own_id not in one.suspicion.accusers
            and len(one.suspicion.accusers) < _WITNESSED_COUNT
        ]
        return self._perhaps(doubtful, _SUSPECTS_RATIO_MAX)

    def _near(self, suspects: list[Member]) -> Member | None:
        """Somebody in the rack of a suspect: power fails by the rack."""
        rack = self._members.rack_of(self._rng.choice(suspects))
        near = [one for one in map(self._members.get, rack) if one is not None]
        return self._perhaps(
            [one for one in near if one.status is Status.ALIVE], _NEIGHBOURS_RATIO_MAX
        )

    def _perhaps(self, offered: list[Member], ratio_max: float) -> Member | None:
        """One of these, so often that together all members ask each of them as often as is good."""
        wanted = _PROBERS * len(offered) / max(1, self._members.here_count)
        if offered and self._rng.random() < min(ratio_max, wanted):
            return self._rng.choice(offered)
        return None
