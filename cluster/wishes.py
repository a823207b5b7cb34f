"""Which exchange of papers a node begins next, and when a newcomer is answered. Pure.

Its own file because agents (`exchanges`, `host`) and simulated fleets keep the same rules, each
with streams of its own. It must not know streams, nor how many exchanges run at once.

A crowd: in a mass join all ask one member for all papers within a second. Whoever is answered at
once learns of the few that came before it, meets the others as strangers, and asks again and again,
each time over a stream that costs both ends. So all are let in at once, and answered when no more
come. Somebody who comes alone does not wait.
"""

import math
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import replace

from cluster.gossip.messages import Address
from cluster.ids import NodeId
from cluster.peer import Exchange, Peer

MANY_COUNT = 4
"""Whoever named fewer strangers knows them; of many, somebody near may know all."""
IDS_MAX = 32
"""Whoever lacks more than these asks for everything that is lacking: it lacks others as well."""
QUIET_SECONDS = 0.1
"""Nobody has come for so long: there will be no more."""
APART_SECONDS = 0.3
"""Newcomers that are further apart are no crowd. Longer than the quiet, since whoever lets them in
may be kept from its work for a while."""
HOLD_SECONDS = 0.5
"""No answer waits longer, whatever comes."""
_LEAST_SECONDS = 0.001
"""Not worth a timer, and more than what two clocks may differ by."""

Narrow = Callable[[Exchange], Exchange | None]
"""What of a wish has not been granted meanwhile by others."""


def join_wishes(first: Exchange, second: Exchange) -> Exchange:
    """Both, asked of whom the first one asks."""
    is_all = not first.node_ids or not second.node_ids
    ids = () if is_all else tuple(dict.fromkeys((*first.node_ids, *second.node_ids)))
    return Exchange(
        ask=first.ask,
        node_ids=ids if len(ids) <= IDS_MAX else (),
        offered=tuple(dict.fromkeys((*first.offered, *second.offered))),
    )


def narrow_wish(wish: Exchange, peer: Peer, own_id: NodeId) -> Exchange | None:
    """What others have not granted meanwhile; None if that is all of it.

    Our own id stands for operators' records, which are always wanted.
    """
    if wish.offered:
        return wish
    if not wish.node_ids:
        return None if peer.is_here_at(wish.ask) else wish
    roster = peer.roster
    left = tuple(one for one in wish.node_ids if one == own_id or roster.identity_of(one) is None)
    return replace(wish, node_ids=left) if left else None


def take_wish(
    wanted: MutableMapping[Address, Exchange], running: Mapping[Address, Exchange], narrow: Narrow
) -> Exchange | None:
    """Take out the most useful wish that can be granted now: what we tell, then the largest."""
    for address, wish in list(wanted.items()):
        left = narrow(wish)
        if left is None:
            del wanted[address]
        else:
            wanted[address] = left
    free = [one for one in wanted.values() if one.ask not in running]
    if not free:
        return None
    chosen = max(free, key=lambda one: (bool(one.offered), not one.node_ids, len(one.node_ids)))
    del wanted[chosen.ask]
    for other in wanted.values() if chosen.node_ids else ():
        if other.node_ids:  # whoever is asked may know those as well
            chosen = join_wishes(chosen, replace(other, offered=()))
    return chosen


def is_for_somebody_near(wish: Exchange) -> bool:
    """Whether a member with whom a connection is open is as good as the one that is meant."""
    return not wish.offered and len(wish.node_ids) >= MANY_COUNT


def is_granted_by(running: Exchange, wish: Exchange) -> bool:
    """Whether an exchange that has begun with somebody will grant a further wish of the same one.

    If it fails, gossip asks again.
    """
    return not running.node_ids and not wish.node_ids and not wish.offered


class Crowd:
    """Newcomers as one member sees them."""

    def __init__(self) -> None:
        self._latest_seconds = -math.inf

    def arrive(self, now: float) -> float:
        """Somebody has been let in; until when its answer waits at most."""
        is_alone = now - self._latest_seconds > APART_SECONDS
        self._latest_seconds = now
        return now if is_alone else now + HOLD_SECONDS

    def wait_seconds(self, until: float, now: float) -> float:
        """How long an answer still waits, unless more come meanwhile."""
        wait = min(self._latest_seconds + QUIET_SECONDS, until) - now
        return wait if wait > _LEAST_SECONDS else 0.0
