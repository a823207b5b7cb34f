"""What a simulated node runs: the one place where a core is made.

Its own file so that another core with the same verbs can take this one's place, and nothing else
has to know.
"""

import random
from typing import TypeAlias

from cluster.gossip.ground import Ground
from cluster.gossip.own import Identity
from cluster.gossip.settings import GossipSettings
from cluster.gossip.swim import Swim
from cluster.ids import ClusterId
from cluster.signatures import Verifier
from simulations.node import Node

Core: TypeAlias = Swim

CLUSTER = ClusterId(b"simulated-cluste")


def make_core(
    node: Node,
    *,
    verifier: Verifier,
    rng: random.Random,
    settings: GossipSettings,
    ground: Ground,
) -> Core:
    """The core of one life of a node, from what its disk holds and what all know."""
    identity = Identity(
        cluster_id=CLUSTER,
        introduction=node.introduction,
        addresses=(node.address,),
        epoch=node.epoch,
    )
    return Swim(
        identity=identity,
        signer=node.signer,
        verifier=verifier,
        rng=rng,
        settings=settings,
        seeds=node.seeds,
        heads=node.heads,
        ground=ground,
    )


def digest_of(core: Core) -> int:
    """What changes whenever a member record that this core holds does."""
    return core.digest
