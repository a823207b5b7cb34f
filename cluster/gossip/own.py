"""What this node says of itself: its key, its life's number, its versions.

Its own file because nobody else may raise a version of ours. It must not know whom anything is sent
to.
"""

from dataclasses import dataclass, field

from cluster.gossip.envelope import seal
from cluster.gossip.fields import Fields
from cluster.gossip.introduction import Introduction
from cluster.gossip.messages import Address, Claim, Kind, MemberRecord, Statement, Version
from cluster.gossip.statements import claim_body, member_body, sign_statement
from cluster.ids import ClusterId, NodeId
from cluster.signatures import Signer


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who this node is, as handed in at its start."""

    cluster_id: ClusterId
    introduction: Introduction
    addresses: tuple[Address, ...]
    chain_hash: bytes = field(repr=False, default=b"")
    epoch: int
    """Raised and on disk before anything is sent."""


class Own:
    """Signs for this node and counts."""

    def __init__(self, identity: Identity, signer: Signer) -> None:
        self._identity = identity
        self._signer = signer
        self._addresses = identity.addresses
        self._epoch = identity.epoch
        self._counts = {Kind.STATE: 0, Kind.SUMMARY: 0, Kind.SUSPECT: 0}
        self._datagrams_total = 0
        self._member = self._sign_member(Version(epoch=self._epoch, sequence=1))

    @property
    def node_id(self) -> NodeId:
        """Whose key it is."""
        return self._identity.introduction.node_id

    @property
    def introduction(self) -> Introduction:
        """What its certificate says."""
        return self._identity.introduction

    @property
    def cluster_id(self) -> ClusterId:
        """Which cluster it is in."""
        return self._identity.cluster_id

    @property
    def address(self) -> Address | None:
        """Where others find it."""
        return self._addresses[0] if self._addresses else None

    @property
    def epoch(self) -> int:
        """The number of this life."""
        return self._epoch

    @property
    def member(self) -> Statement:
        """The member record in force."""
        return self._member

    def refute(self) -> Statement:
        """Say again that we are here, in a version that voids every claim about the one before."""
        self._member = self._sign_member(self._member.version.next())
        return self._member

    def move(self, addresses: tuple[Address, ...]) -> Statement:
        """Say that we are somewhere else now."""
        self._addresses = addresses
        return self.refute()

    def outlive(self, seen: Version) -> Statement:
        """Begin a life after one that others know of and we do not: our disk is an older one."""
        self._epoch = max(self._epoch, seen.epoch) + 1
        self._counts = dict.fromkeys(self._counts, 0)
        self._datagrams_total = 0
        self._member = self._sign_member(Version(epoch=self._epoch, sequence=1))
        return self._member

    def leave(self) -> Statement:
        """Say that we have gone."""
        self._member = self._sign(Kind.LEFT, self._member.version.next(), ())
        return self._member

    def say(self, kind: Kind, body: Fields) -> Statement:
        """A statement of a kind that only counts up: a state, a summary."""
        self._counts[kind] += 1
        return self._sign(kind, Version(epoch=self._epoch, sequence=self._counts[kind]), body)

    def accuse(self, kind: Kind, claim: Claim) -> Statement:
        """A claim about somebody else."""
        self._counts[Kind.SUSPECT] += 1
        version = Version(epoch=self._epoch, sequence=self._counts[Kind.SUSPECT])
        return self._sign(kind, version, claim_body(claim))

    def seal(self, payload: bytes, *, is_signed: bool) -> bytes:
        """A datagram of ours."""
        sequence = 0
        if is_signed:
            self._datagrams_total += 1
            sequence = self._datagrams_total
        return seal(
            payload,
            cluster_id=self.cluster_id,
            sender=self.node_id,
            version=Version(epoch=self._epoch, sequence=sequence),
            signer=self._signer if is_signed else None,
        )

    def _sign_member(self, version: Version) -> Statement:
        record = MemberRecord(
            name=self.introduction.name,
            rack=self.introduction.rack,
            addresses=self._addresses,
            chain_hash=self._identity.chain_hash,
        )
        return self._sign(Kind.MEMBER, version, member_body(record))

    def _sign(self, kind: Kind, version: Version, body: Fields) -> Statement:
        return sign_statement(kind, version, body, cluster_id=self.cluster_id, signer=self._signer)
