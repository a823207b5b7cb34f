"""What peers say to each other: the wire contract on one screen.

Its own file so that it can be read at once, beside `docs/protocol.md`. Two kinds of things travel.
A *statement* is signed by whoever makes it and relayed byte for byte: a relay can forge nothing. A
*message* is between two peers, and is worth as much as the envelope around it. It must not know how
either is written as bytes (`wire`), nor what follows from it (`swim`).
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NewType, TypeAlias

from cluster.ids import NodeId, NodeName, RackId

Address = NewType("Address", str)
"""HOST:PORT. Where a node is to be found; never who it is."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Version:
    """Of what one node says. Only that node's signature can raise it.

    The epoch is a counter that the node keeps on disk and raises at each start, so no clock is
    needed to order two lives of one node; the sequence counts within a life.
    """

    epoch: int
    sequence: int

    def next(self) -> "Version":
        """The one after it in the same life."""
        return Version(epoch=self.epoch, sequence=self.sequence + 1)


NEVER = Version(epoch=0, sequence=0)
"""Older than anything that was ever said."""


class Kind(IntEnum):
    """What a statement is. Numbers are never used again for something else."""

    MEMBER = 1
    """I am here: name, rack, addresses, hash of my certificates. Raising its version refutes."""
    STATE = 2
    """How I am; opaque, once a second, inside the rack."""
    SUMMARY = 3
    """How my rack is; opaque, across racks, by the rack's live node of lowest id."""
    SUSPECT = 4
    """I could not reach that one."""
    FAILED = 5
    """I have given that one up."""
    LEFT = 6
    """I have gone, of my own will. Takes the place of my member record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Something one node signed. Its bytes are kept, since they are what is passed on."""

    kind: Kind
    signer: NodeId
    version: Version
    body: bytes = field(repr=False)
    encoded: bytes = field(repr=False)
    """Header, body and signature."""

    @property
    def is_claim(self) -> bool:
        """Whether it is about somebody else."""
        return self.kind is Kind.SUSPECT or self.kind is Kind.FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRecord:
    """The body of MEMBER."""

    name: NodeName
    rack: RackId
    addresses: tuple[Address, ...]
    chain_hash: bytes = field(repr=False, default=b"")
    """Of the certificates that travel over the stream."""


class Evidence(IntEnum):
    """Why a node is suspected."""

    SILENCE = 0
    REFUSED = 1
    """Its machine answered that nobody listens on the port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The body of SUSPECT and FAILED. It is void once the subject's version is higher."""

    subject: NodeId
    subject_version: Version
    evidence: Evidence = Evidence.SILENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class RackSummary:
    """The body of SUMMARY."""

    rack: RackId
    payload: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping:
    """Are you there? Answered at once, and only by the one who is asked."""

    nonce: int
    target: NodeId
    view_digest: int
    is_bare: bool = False
    """The answer shall carry nothing else, so that it can be relayed whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """I am. The nonce was chosen by whoever asked, so an old answer answers nothing."""

    nonce: int
    view_digest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PingRequest:
    """Ask that one for me; with my nonce, so that its answer is to me."""

    nonce: int
    target: NodeId
    address: Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Nack:
    """I asked as you wished, and heard nothing either. Says that *I* can be reached."""

    nonce: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Relayed:
    """The answer that came for you: the other's whole datagram, under its own signature."""

    datagram: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """My view in 64 hashes, one a bucket of ids: where do we differ?"""

    buckets: tuple[int, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What I hold of one member."""

    node_id: NodeId
    version: Version
    content_hash: int = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """All that I hold of one bucket, from one id to another, both included."""

    begin: bytes
    end: bytes
    entries: tuple[Entry, ...]
    is_reply: bool = False
    """Ends the exchange: what is newer here is sent, no further page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDigest:
    """States of my rack that are overdue here, with what I have of each: who has a newer one?"""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorNews:
    """A record signed by an operator; gossip carries it first and does not judge it."""

    record: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A message of a layer above, from one node to another."""

    channel: int
    priority: int
    """0 is the most urgent."""
    payload: bytes = field(repr=False)


Message: TypeAlias = (
    Ping
    | Ack
    | PingRequest
    | Nack
    | Relayed
    | Summary
    | Page
    | StateDigest
    | OperatorNews
    | Application
    | Statement
)
