"""What all members of an old cluster know alike, held once for the many nodes of one simulation.

Its own file because ten thousand nodes that each keep an object for each other are a hundred
million objects. A node that stands on a ground begins as if it had long heard all of it, and keeps
to itself only what it has learnt since. Agents begin on none. It must not be changed: nobody owns
it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cluster.gossip.effects import Head
from cluster.gossip.held import Held, bucket_of, entry_hash, hold
from cluster.gossip.introduction import Introduction
from cluster.gossip.messages import Address, MemberRecord, Statement
from cluster.gossip.statements import read_member
from cluster.gossip.wire import BUCKETS
from cluster.ids import NodeId, RackId


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Introductions, and the member records of those that are alive."""

    introductions: Mapping[NodeId, Introduction] = field(default_factory=dict)
    held: Mapping[NodeId, Held] = field(default_factory=dict)
    bodies: Mapping[NodeId, MemberRecord] = field(default_factory=dict)
    """The same, read."""
    heads: Mapping[NodeId, Head] = field(default_factory=dict)
    order: Sequence[NodeId] = ()
    places: Mapping[NodeId, int] = field(default_factory=dict)
    racks: Mapping[RackId, Sequence[NodeId]] = field(default_factory=dict)
    addresses: Mapping[Address, NodeId] = field(default_factory=dict)
    buckets: Sequence[Sequence[NodeId]] = ()
    bucket_hashes: Sequence[int] = ()
    digest: int = 0


BARE = Ground()
"""Nothing at all: where agents begin."""


def lay_ground(
    introductions: Mapping[NodeId, Introduction], members: Iterable[Statement]
) -> Ground:
    """The ground of these introductions and member records."""
    held = {one.signer: hold(one) for one in members}
    bodies = {node_id: read_member(one.statements[0].body) for node_id, one in held.items()}
    order = tuple(held)
    racks: dict[RackId, list[NodeId]] = {}
    buckets: list[list[NodeId]] = [[] for _ in range(BUCKETS)]
    hashes = [0] * BUCKETS
    digest = 0
    for node_id in order:
        racks.setdefault(bodies[node_id].rack, []).append(node_id)
        bucket = bucket_of(node_id)
        buckets[bucket].append(node_id)
        change = entry_hash(node_id, held[node_id])
        hashes[bucket] ^= change
        digest ^= change
    return Ground(
        introductions=introductions,
        held=held,
        bodies=bodies,
        heads={node_id: Head(node_id=node_id, member=one.version) for node_id, one in held.items()},
        order=order,
        places={node_id: place for place, node_id in enumerate(order)},
        racks=racks,
        addresses={
            body.addresses[0]: node_id for node_id, body in bodies.items() if body.addresses
        },
        buckets=[sorted(bucket) for bucket in buckets],
        bucket_hashes=hashes,
        digest=digest,
    )
