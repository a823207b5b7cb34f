"""Who a node is, as far as a certificate says so.

Its own file because everything in gossip asks for it and nothing in gossip judges it. It must not
know certificates.
"""

from dataclasses import dataclass, field

from cluster.ids import NodeId, NodeName, RackId


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    """Who a certificate, judged by somebody else, speaks for."""

    node_id: NodeId
    public_key: bytes = field(repr=False)
    name: NodeName
    rack: RackId
