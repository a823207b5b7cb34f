"""Between the peer and the socket: nothing is sent under an epoch that is not on disk.

Its own file because it is a promise, and small. A node that is mute for a moment loses datagrams,
which gossip repairs; one that sent under a number that it forgets in a crash could contradict
itself.
"""

from collections.abc import Iterable

from cluster.gossip.effects import PersistEpoch, Send
from cluster.gossip.inputs import Input
from cluster.peer import Effect, Peer
from cluster.writing import Writing


class Gate:
    """The peer as the datagram driver sees it: nothing is sent while a new epoch is not on disk."""

    def __init__(self, peer: Peer, writing: Writing) -> None:
        self._peer = peer
        self._writing = writing

    def receive(self, came: Input, now: float) -> list[Effect]:
        """Something came from the network."""
        return unless_mute(self._peer.receive(came, now), self._writing)

    def advance(self, now: float) -> list[Effect]:
        """Time has passed."""
        return unless_mute(self._peer.advance(now), self._writing)

    def deadline(self) -> float | None:
        """When `advance` is wanted."""
        return self._peer.deadline()


def unless_mute(effects: Iterable[Effect], writing: Writing) -> list[Effect]:
    """What may be done of these: nothing is sent while, or after, an epoch waits for the disk."""
    kept: list[Effect] = []
    is_mute = writing.is_mute
    for effect in effects:
        is_mute = is_mute or isinstance(effect, PersistEpoch)
        if not (is_mute and isinstance(effect, Send)):
            kept.append(effect)
    return kept
