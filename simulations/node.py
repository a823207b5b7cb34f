"""One node and the machine that it runs on, as a simulation sees them.

Its own file because faults change the machine, the fleet drives the core, and checkers read both.
It must not know how either is done.
"""

import math
import random
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from cluster.gossip.effects import Deliver, Equivocated, Head, LeaveEnded, MemberChanged, Status
from cluster.gossip.envelope import Reason
from cluster.gossip.inputs import Input
from cluster.gossip.introduction import Introduction
from cluster.gossip.messages import Address
from cluster.gossip.swim import Swim
from cluster.identity.chains import NodeIdentity
from cluster.ids import NodeId
from cluster.papers import Chain, Paper
from cluster.peer import Peer
from cluster.signatures import Signer

SOCKET_BUFFER_COUNT = 500
"""Datagrams that the kernel keeps for a process that does not read: 212 992 bytes of them,
Linux's `rmem_default`, at about 400 each with what the kernel adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A machine's monotonic clock: it began somewhere, and runs a little wrong."""

    rate_ratio: float = 1.0
    offset_seconds: float = 0.0

    def local(self, world_seconds: float) -> float:
        """What this clock shows then."""
        return self.offset_seconds + self.rate_ratio * world_seconds

    def world(self, local_seconds: float) -> float:
        """When this clock shows that."""
        return (local_seconds - self.offset_seconds) / self.rate_ratio


@dataclass(slots=True)
class Told:
    """What a node's core has told, in its order; times are the world's."""

    changes: list[tuple[float, MemberChanged]] = field(default_factory=list)
    rejected: Counter[Reason] = field(default_factory=Counter)
    delivered: list[Deliver] = field(default_factory=list)
    records: list[bytes] = field(default_factory=list)
    """Operators' records that stand, encoded."""
    alarms: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    """What it was told by whoever did not let it in."""
    equivocated: list[Equivocated] = field(default_factory=list)
    pauses_seconds: list[float] = field(default_factory=list)
    goodbyes: list[LeaveEnded] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Node:
    """A core, what its machine keeps for it, and how its machine is."""

    number: int
    signer: Signer
    introduction: Introduction
    address: Address
    clock: Clock
    core: Swim | Peer | None = None
    """None while no process runs; gossip alone in a fleet without papers."""
    gossip: Swim | None = None
    """The core itself, or what is inside it; to be looked at, not to be driven."""

    epoch: int = 0
    """On disk, as are the heads, the papers and, without papers, the introductions."""
    heads: dict[NodeId, Head] = field(default_factory=dict)
    papers: list[Paper] = field(default_factory=list)
    known: dict[NodeId, Introduction] = field(default_factory=dict)
    enrolment: tuple[NodeIdentity, Chain] | None = None
    """Who it is by its certificates, and these; None in a fleet without papers."""
    seeds: tuple[Address, ...] = ()

    is_host_up: bool = True
    """Whether its machine refuses what comes for a process that is gone."""
    is_paused: bool = False
    work_seconds: tuple[float, float] = (0.0, 0.0)
    """Each datagram takes something between; its queue is bounded."""
    work_chance: random.Random | None = None
    inbox: deque[Input] = field(default_factory=deque)
    busy_until_seconds: float = -math.inf
    is_serving: bool = False
    wake_seconds: float = math.inf
    """For when the core's timer is set, in the world's time."""

    assumed: Mapping[NodeId, int] = field(default_factory=dict)
    """Whom its core took for alive when this process began, without saying so."""
    statuses: dict[NodeId, Status] = field(default_factory=dict)
    """What its core has said of each since."""
    told: Told = field(default_factory=Told)
    sent_total: int = 0
    sent_bytes: int = 0
    received_total: int = 0
    received_bytes: int = 0
    dropped_total: int = 0
    """Datagrams for which its queue had no room."""
    withdrawn: str | None = None
    """Why an operator withdrew it, once it knows."""

    def end(self) -> None:
        """Its process is gone."""
        self.core = self.gossip = None
        self.inbox.clear()
        self.wake_seconds = math.inf
        self.is_paused = False

    @property
    def identity(self) -> NodeIdentity:
        """Who it is by its certificates."""
        assert self.enrolment is not None, f"{self.name} has no certificates"
        return self.enrolment[0]

    @property
    def chain(self) -> Chain:
        """The certificates that it shows."""
        assert self.enrolment is not None, f"{self.name} has no certificates"
        return self.enrolment[1]

    @property
    def peer(self) -> Peer:
        """Its core, where that is more than gossip."""
        assert isinstance(self.core, Peer), f"{self.name} runs no peer"
        return self.core

    @property
    def node_id(self) -> NodeId:
        """Whose key it holds."""
        return self.introduction.node_id

    @property
    def name(self) -> str:
        """What people call it."""
        return self.introduction.name

    @property
    def is_running(self) -> bool:
        """Whether a process is there and goes on."""
        return self.core is not None and not self.is_paused

    def knows_of(self, subject: NodeId) -> Status | None:
        """What its core last said of somebody; degraded is not told, so it counts as alive."""
        status = self.statuses.get(subject)
        return Status.ALIVE if status is None and subject in self.assumed else status

    def sees(self, subject: NodeId) -> bool:
        """Whether somebody is alive to it."""
        return self.knows_of(subject) is Status.ALIVE
