"""How operators' records make a node a member, and with what.

Its own file because it is decided once for each account, by the records alone, and must come out
the same on every node. It must not know what became of the account.
"""

from dataclasses import replace

from cluster.ids import NodeId
from cluster.rack.ledger.book import Opened
from cluster.rack.ledger.charter import Charter
from cluster.rack.units import FIRST_EPOCH, Epoch


def opening_of(charter: Charter, own: NodeId) -> Opened | None:
    """How the operators' records make this node a member; None where they do not."""
    openings: list[Opened] = []
    if own in (gone for record in charter.retired for gone in record.out):
        return None
    for node_id, shares in charter.founded.shares:
        if node_id == own:
            openings.append(_opened(charter, FIRST_EPOCH, shares))
    openings += [
        _opened(charter, joined.epoch, 0) for joined in charter.joined if joined.node_id == own
    ]
    closing = charter.closing_of_newcomer(own)
    if closing is not None:
        opened = _opened(charter, closing.epoch, 0)
        openings.append(replace(opened, members=closing.members))
    return max(openings, key=lambda one: one.epoch, default=None)


def _opened(charter: Charter, epoch: Epoch, shares: int) -> Opened:
    return Opened(
        epoch=epoch,
        members=charter.members_of(epoch),
        own_shares=shares,
        version=charter.version,
        founded=charter.founded.digest,
    )
