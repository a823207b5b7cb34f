"""Which exchange of papers a node begins next: wishes joined, narrowed and chosen. Pure.

Its own file because agents (`exchanges`) and simulated fleets choose by the same rules, each with
streams of its own. It must not know streams, nor how many exchanges run at once.
"""

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import replace

from cluster.gossip.messages import Address
from cluster.ids import NodeId
from cluster.peer import Exchange, Peer

MANY_COUNT = 4
"""Whoever named fewer strangers knows them; of many, somebody near may know all."""
IDS_MAX = 32
"""Whoever lacks more than these asks for everything that is lacking: it lacks others as well."""

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
    wanted: MutableMapping[Address, Exchange], running: Mapping[Address, None], narrow: Narrow
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
