"""What gossip asks of whoever drives it, and what it tells: values, in the order to be done.

Its own file because drivers, simulations and the layer above match on these and on nothing else. It
must not know how any of it is done.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from cluster.gossip.envelope import Reason
from cluster.gossip.messages import NEVER, Address, Application, Statement, Version
from cluster.ids import NodeId


class Status(StrEnum):
    """What a member is to this node."""

    ALIVE = "alive"
    DEGRADED = "degraded"
    """Alive by its last word, but hard to reach, flapping, or in contradiction with itself."""
    SUSPECT = "suspect"
    FAILED = "failed"
    LEFT = "left"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The newest that is known of one origin: kept on disk, so that nothing older is believed."""

    node_id: NodeId
    member: Version = NEVER
    state: Version = NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Put these bytes on the wire."""

    to: Address
    datagram: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberChanged:
    """A member is now something else to this node, and why."""

    node_id: NodeId
    before: Status | None
    after: Status
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistHeads:
    """Keep these; the next life of this node is handed them."""

    heads: tuple[Head, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistEpoch:
    """Keep this as our epoch *before* the sends that follow."""

    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainsWanted:
    """Fetch certificates over the stream and hand in who they speak for.

    Without ids: exchange all introductions with whoever is there.
    """

    ask: Address
    node_ids: tuple[NodeId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliver:
    """A message for the layer above; its sender signed it, and it was not heard before."""

    sender: NodeId
    message: Application


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRecordHeard:
    """A record that claims to be an operator's. Judge it; relay and obey it if it stands."""

    record: bytes = field(repr=False)
    source: Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivocated:
    """A node said two things under one number. The statements prove it to anybody."""

    node_id: NodeId
    proof: tuple[Statement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """We were not running for so long; this node accuses nobody until it is up to date."""

    pause_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """Something that came in was dropped."""

    reason: Reason
    source: Address


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveEnded:
    """As many peers as asked for know that this node has left, or the time for it is over."""

    informed_count: int


Effect: TypeAlias = (
    Send
    | MemberChanged
    | PersistHeads
    | PersistEpoch
    | ChainsWanted
    | Deliver
    | OperatorRecordHeard
    | Equivocated
    | Paused
    | Rejected
    | LeaveEnded
)
