"""Fixed keys, ids and certificates: everything in the golden bytes follows from these."""

import random

from cluster.enrolment import InviteWish, NodeKeys, found_cluster, issue_invite, join, open_invite
from cluster.gossip.messages import Address, Version
from cluster.ids import ClusterName, NodeName, RackId
from cluster.keyring import Ed25519Signer

NOW = 1_800_000_000
_chance = random.Random(20_270_115)
AUTHORITY = found_cluster(
    ClusterName("golden"), now_unix_seconds=NOW, random_bytes=_chance.randbytes
)
CLUSTER = AUTHORITY.authority.cluster_id


def _node(name: str) -> NodeKeys:
    wish = InviteWish(rack=RackId("r01"), ttl_seconds=3600)
    token = issue_invite(AUTHORITY, wish, now_unix_seconds=NOW, random_bytes=_chance.randbytes)
    return join(
        open_invite(token), NodeName(name), now_unix_seconds=NOW, random_bytes=_chance.randbytes
    )


N1, N2 = _node("gpu-01"), _node("gpu-02")
A, B = N1.identity.node_id, N2.identity.node_id
SIGNER: Ed25519Signer = N1.signer
FIRST = Version(epoch=3, sequence=1)
LAST = Version(epoch=2**64 - 1, sequence=2**64 - 1)
ADDRESSES = (Address("10.0.0.1:7947"), Address("[fd00::1]:7947"))
