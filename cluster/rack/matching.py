"""Who gives to whom, once it is known who has too much and who has too little.

Its own file because every donor must come to the same pairing by itself, without a word. It must
not know why somebody has too much.

Both sides are laid end to end in one fixed order, as two rulers, and whoever lies beside each other
trades (the north-west corner rule). So there are fewer transfers than traders.
Source: G. B. Dantzig, Linear Programming and Extensions, chapter 14.
"""

from collections.abc import Mapping
from typing import NamedTuple

from cluster.ids import NodeId


class Transfer(NamedTuple):
    """One part that one donor should give to one taker."""

    giver: NodeId
    to: NodeId
    shares: int


def pair(donors: Mapping[NodeId, int], takers: Mapping[NodeId, int]) -> tuple[Transfer, ...]:
    """The transfers that fit both; what one side has more than the other stays where it is.

    The order is that of the ids. An id is the hash of a key, so this is as mixed as any.
    """
    transfers: list[Transfer] = []
    waiting = iter(sorted(takers))
    to, missing = next(waiting, None), 0
    if to is not None:
        missing = takers[to]
    for giver in sorted(donors):
        spare = donors[giver]
        while to is not None and spare > 0:
            moved = min(spare, missing)
            if moved > 0:
                transfers.append(Transfer(giver, to, moved))
            spare, missing = spare - moved, missing - moved
            if missing <= 0:
                to = next(waiting, None)
                missing = 0 if to is None else takers[to]
    return tuple(transfers)
