"""Datagrams made by hand, as whoever lies, repeats or contradicts itself makes them.

Its own file because attackers in stories and in tests need the same tools: everything that somebody
with one stolen key can do, and nothing more. It must not know what a core makes of it.
"""

from collections.abc import Sequence

from cluster.codec import Value
from cluster.gossip.envelope import seal
from cluster.gossip.messages import (
    Address,
    Claim,
    Kind,
    MemberRecord,
    Message,
    Statement,
    Version,
)
from cluster.gossip.statements import claim_body, member_body, sign_statement
from cluster.gossip.wire import encode_message, join_messages
from cluster.ids import ClusterId, NodeId, RackId
from cluster.signatures import Signer
from simulations.node import Node
from simulations.office import CLUSTER

FAR = Version(epoch=1, sequence=10**6)
"""Ahead of whatever an honest life of that epoch has reached."""


def datagram(
    messages: Sequence[Message],
    sender: NodeId,
    *,
    signer: Signer | None = None,
    version: Version = FAR,
    cluster_id: ClusterId = CLUSTER,
) -> bytes:
    """A datagram in somebody's name; without a signer one that may only carry statements."""
    return seal(
        join_messages(encode_message(one) for one in messages),
        cluster_id=cluster_id,
        sender=sender,
        version=version,
        signer=signer,
    )


def statement(kind: Kind, version: Version, body: Sequence[Value], signer: Signer) -> Statement:
    """A statement under a key that the liar has."""
    return sign_statement(kind, version, body, cluster_id=CLUSTER, signer=signer)


def member_record(
    node: Node,
    version: Version,
    *,
    rack: str | None = None,
    addresses: tuple[Address, ...] | None = None,
    signer: Signer | None = None,
) -> Statement:
    """A member record that speaks of a node, under its own key or another's."""
    record = MemberRecord(
        name=node.introduction.name,
        rack=node.introduction.rack if rack is None else RackId(rack),
        addresses=(node.address,) if addresses is None else addresses,
        chain_hash=node.enrolment[1].hash if node.enrolment else b"",
    )
    return statement(Kind.MEMBER, version, member_body(record), signer or node.signer)


def forged(real: Statement, signer: NodeId) -> Statement:
    """The same bytes, claiming to be somebody else's."""
    encoded = real.encoded[:1] + bytes(signer) + real.encoded[17:]
    return Statement(
        kind=real.kind, signer=signer, version=real.version, body=real.body, encoded=encoded
    )


def claim(
    by: Node, about: Node, version: Version, kind: Kind = Kind.SUSPECT, sequence: int = 999
) -> Statement:
    """An accusation, rightly signed by the accuser."""
    body = claim_body(Claim(subject=about.node_id, subject_version=version))
    return statement(kind, Version(epoch=1, sequence=sequence), body, by.signer)
