"""States inside the rack: sent by their origin to every mate, asked for where one did not come.

Its own file because states are the many: one a second from every node. They need no repetition, a
newer one is never far; a mate that missed one asks another for it. It must not know what a state
says.
"""

import math
import random

from cluster.gossip.members import Member, Members
from cluster.gossip.messages import Entry, Kind, StateDigest
from cluster.gossip.outbox import Outbox
from cluster.gossip.own import Own
from cluster.gossip.records import Records
from cluster.gossip.settings import GossipSettings

_ENTRIES_MAX = 16


class States:
    """Sends this node's states and fetches those of its mates."""

    def __init__(
        self,
        *,
        own: Own,
        settings: GossipSettings,
        outbox: Outbox,
        members: Members,
        records: Records,
        rng: random.Random,
    ) -> None:
        self._own = own
        self._settings = settings
        self._outbox = outbox
        self._members = members
        self._records = records
        self._rng = rng
        self.due_seconds = math.inf

    def start(self, now: float) -> None:
        """Begin to miss states."""
        self.due_seconds = now + self._settings.state_pull_seconds

    def publish(self, state: bytes) -> None:
        """Send our state to every mate."""
        statement = self._own.say(Kind.STATE, (state,))
        self._records.put(statement)
        for mate in self._members.mates:
            if mate.address is not None:
                self._outbox.send(mate.address, [statement])

    def advance(self, now: float) -> None:
        """Ask a mate whose own state is fresh for the states of others that have not come."""
        self.due_seconds = now + self._settings.probe_interval_seconds
        limit = now - self._settings.state_pull_seconds
        overdue = [one for one in self._members.mates if _is_overdue(one, limit)]
        fresh = [one for one in self._members.mates if not _is_overdue(one, limit)]
        if not overdue or not fresh:
            return
        chosen = self._rng.sample(overdue, min(_ENTRIES_MAX, len(overdue)))
        entries = tuple(
            Entry(node_id=one.node_id, version=one.state_version, content_hash=0) for one in chosen
        )
        mate = self._rng.choice(fresh)
        if mate.address is not None:
            self._outbox.send(mate.address, [StateDigest(entries=entries)])


def _is_overdue(member: Member, limit: float) -> bool:
    return max(member.state_seconds or 0.0, member.changed_seconds) < limit
