"""What a simulated node runs: the one place where a core is made.

Its own file so that the rest drives a whole peer and gossip alone by the same verbs, and has not to
know which it is. The parts are put together as `cluster.assembly` does it for an agent.
"""

import random
from collections.abc import Sequence
from typing import TypeAlias

from cluster.gossip.ground import Ground
from cluster.gossip.own import Identity
from cluster.gossip.settings import GossipSettings
from cluster.gossip.swim import Swim
from cluster.keyring import read_certificate
from cluster.peer import Peer
from cluster.roster import Roster
from cluster.signatures import Verifier
from simulations.node import Node
from simulations.office import CLUSTER, Office

Core: TypeAlias = Swim | Peer


def make_core(
    node: Node,
    *,
    office: Office | None,
    verifier: Verifier,
    rng: random.Random,
    settings: GossipSettings,
    ground: Ground,
) -> tuple[Core, Swim]:
    """The core of one life of a node, from what its disk holds and what all know; its gossip.

    Without an office it is gossip alone.
    """
    gossip = Swim(
        identity=Identity(
            cluster_id=CLUSTER,
            introduction=node.introduction,
            addresses=(node.address,),
            chain_hash=node.chain.hash if office else b"",
            epoch=node.epoch,
        ),
        signer=node.signer,
        verifier=verifier,
        rng=random.Random(rng.getrandbits(64)) if office else rng,
        settings=settings,
        seeds=node.seeds,
        heads=node.heads,
        ground=ground,
    )
    if office is None:
        return gossip, gossip
    roster = Roster(
        authority=office.authority,
        own=node.identity,
        signer=node.signer,
        verifier=verifier,
        judge_chain=office.judge,
        read_certificate=read_certificate,
    )
    roster.learn((node.chain, *node.papers))
    return Peer(swim=gossip, roster=roster, own=node.identity, rng=rng), gossip


def enrol_all(nodes: Sequence[Node], office: Office) -> None:
    """Everybody has a certificate: the first may found the cluster, each rack has one invite."""
    founder, *others = nodes
    invite = office.invite(founder.introduction.rack, uses=1, may_found=True)
    founder.enrolment = office.enrol(founder.introduction, invite)
    founder.papers.append(office.first_record)
    racks = dict.fromkeys(node.introduction.rack for node in others)
    invites = {rack: office.invite(rack) for rack in racks}
    for node in others:
        node.enrolment = office.enrol(node.introduction, invites[node.introduction.rack])
