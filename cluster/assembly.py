"""A Peer made of real keys and of what the last life of the node left.

Its own file because it is where gossip, roster and keyring are put together; simulations put the
same parts together with a keyed hash instead. It must not know files or sockets.
"""

import random
from collections.abc import Iterable, Sequence
from functools import lru_cache

from cluster import keyring
from cluster.enrolment import NodeKeys
from cluster.gossip.members import Introduction
from cluster.gossip.messages import Address
from cluster.gossip.own import Identity
from cluster.gossip.settings import GossipSettings
from cluster.gossip.swim import Swim
from cluster.identity.chains import KnownIssuers, NodeIdentity, TrustedAuthority, judge_node
from cluster.identity.refusals import Refused
from cluster.keeping import Remembered
from cluster.keyring import Ed25519Verifier
from cluster.papers import Chain, Paper
from cluster.peer import Peer
from cluster.roster import JudgeChain, Roster
from cluster.signatures import RememberingVerifier


def chain_of(keys: NodeKeys) -> Chain:
    """The certificates that a node shows."""
    return Chain(node_der=keys.chain[0].der, issuer_der=keys.chain[1].der)


def make_peer(
    keys: NodeKeys,
    remembered: Remembered,
    *,
    address: Address,
    seeds: Sequence[Address],
    settings: GossipSettings,
    rng: random.Random,
) -> Peer:
    """One node of a cluster, ready to start."""
    identity, verifier = keys.identity, Ed25519Verifier()
    roster = make_roster(keys, remembered.papers)
    introduction = Introduction(
        node_id=identity.node_id,
        public_key=identity.public_key,
        name=identity.name,
        rack=identity.rack,
    )
    swim = Swim(
        identity=Identity(
            cluster_id=identity.cluster_id,
            introduction=introduction,
            addresses=(address,),
            chain_hash=chain_of(keys).hash,
            epoch=remembered.epoch,
        ),
        signer=keys.signer,
        verifier=verifier,
        rng=random.Random(rng.getrandbits(64)),
        settings=settings,
        seeds=seeds,
        heads=remembered.heads,
    )
    return Peer(swim=swim, roster=roster, own=identity, rng=rng)


def make_roster(keys: NodeKeys, papers: Iterable[Paper]) -> Roster:
    """Who is in, and what operators have said, by these papers and this node's own."""
    roster = Roster(
        authority=keys.authority,
        own=keys.identity,
        signer=keys.signer,
        verifier=Ed25519Verifier(),
        judge_chain=judge_with(keys.authority),
        read_certificate=keyring.read_certificate,
    )
    roster.learn((chain_of(keys), *papers))
    return roster


def judge_with(authority: TrustedAuthority) -> JudgeChain:
    """What a chain proves to whoever trusts this authority."""
    # One invite brings many nodes: its own certificate is read and judged once. A caller's chain
    # is judged when it is shown and again when it is learned.
    read_issuer = lru_cache(maxsize=64)(keyring.read_certificate)
    verifier = RememberingVerifier(Ed25519Verifier())
    known = KnownIssuers(authority)

    @lru_cache(maxsize=16)
    def judge(chain: Chain) -> NodeIdentity | Refused:
        certificates = (
            keyring.read_certificate(chain.node_der),
            read_issuer(chain.issuer_der),
        )
        return judge_node(certificates, authority, verifier, known=known)

    return judge
