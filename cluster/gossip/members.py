"""Who is here: the members as this node sees them, and what each is to it.

Its own file because everything asks it and only `beliefs` changes it. A member is known by its key;
its address, name and rack are what it last signed. The states:

    alive -> suspect            somebody could not reach it
    suspect -> alive            it raised its version
    suspect -> failed           see `suspicion`
    failed -> alive             it raised its version
    any -> left                 it said so itself
    left -> alive               a later life of it
    any -> removed              an operator said so; nothing it says counts any more

*degraded* is not a state of its own but what an alive one looks like while it is hard to reach.
It must not know messages or time-outs.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from cluster.gossip.effects import Head, MemberChanged, Status
from cluster.gossip.messages import NEVER, Address, MemberRecord, Statement, Version
from cluster.gossip.settings import GossipSettings
from cluster.gossip.suspicion import Suspicion
from cluster.ids import NodeId, NodeName, RackId

_MISSES_DEGRADED = 2
_WEIGHT = 0.125
_SPREAD_WEIGHT = 0.25
"""Source of both: RFC 6298, section 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    """Who a certificate, judged by somebody else, speaks for."""

    node_id: NodeId
    public_key: bytes = field(repr=False)
    name: NodeName
    rack: RackId


class RoundTrips:
    """How long one peer takes to answer. Source: RFC 6298, section 2."""

    __slots__ = ("_mean_seconds", "_spread_seconds")

    def __init__(self) -> None:
        self._mean_seconds: float | None = None
        self._spread_seconds = 0.0

    @property
    def mean_seconds(self) -> float | None:
        """Smoothed; None before the first answer."""
        return self._mean_seconds

    def add(self, seconds: float) -> None:
        """One more answer."""
        if self._mean_seconds is None:
            self._mean_seconds, self._spread_seconds = seconds, seconds / 2
            return
        off = abs(seconds - self._mean_seconds)
        self._spread_seconds += _SPREAD_WEIGHT * (off - self._spread_seconds)
        self._mean_seconds += _WEIGHT * (seconds - self._mean_seconds)

    def timeout_seconds(self, settings: GossipSettings) -> float:
        """How long to wait for this peer before help is asked for."""
        if self._mean_seconds is None:
            return settings.probe_timeout_max_seconds
        wanted = self._mean_seconds + 4 * self._spread_seconds
        return min(
            settings.probe_timeout_max_seconds, max(settings.probe_timeout_min_seconds, wanted)
        )


class Flaps:
    """How often a member was suspected lately; old times count half every half-life."""

    __slots__ = ("_at_seconds", "_score")

    def __init__(self) -> None:
        self._score = 0.0
        self._at_seconds = 0.0

    def score(self, now: float, half_life_seconds: float) -> float:
        """The sum, as it has faded until now."""
        return self._score * math.exp2(-max(0.0, now - self._at_seconds) / half_life_seconds)

    def add(self, now: float, half_life_seconds: float) -> None:
        """Once more."""
        self._score = self.score(now, half_life_seconds) + 1.0
        self._at_seconds = now


@dataclass(slots=True, kw_only=True)
class Member:
    """One member as this node sees it."""

    introduction: Introduction
    record: MemberRecord
    version: Version
    status: Status
    changed_seconds: float
    heard_seconds: float | None = None
    """When it last answered this node itself, or a new state of it came."""
    suspicion: Suspicion | None = None
    claims: dict[NodeId, Statement] = field(default_factory=dict, repr=False)
    """What its accusers signed, to be shown to it."""
    state_body: bytes | None = field(default=None, repr=False)
    state_seconds: float | None = None
    state_version: Version = NEVER
    is_quarantined: bool = False
    misses_count: int = 0
    """Pings in a row that it did not answer directly."""
    round_trips: RoundTrips = field(default_factory=RoundTrips)
    flaps: Flaps = field(default_factory=Flaps)
    synced_seconds: float = -math.inf
    warned_seconds: float = -math.inf

    @property
    def node_id(self) -> NodeId:
        """Whose key it is."""
        return self.introduction.node_id

    @property
    def address(self) -> Address | None:
        """Where it says that it is."""
        return self.record.addresses[0] if self.record.addresses else None

    @property
    def is_here(self) -> bool:
        """Whether it takes part: alive, or only suspected."""
        return self.status in (Status.ALIVE, Status.SUSPECT)

    def shown(self, now: float, settings: GossipSettings) -> Status:
        """Its state for people and for the layer above."""
        if self.status is not Status.ALIVE:
            return self.status
        flaps = self.flaps.score(now, settings.flap_half_life_seconds)
        is_hard_to_reach = self.misses_count >= _MISSES_DEGRADED
        if self.is_quarantined or is_hard_to_reach or flaps >= settings.flap_degraded_ratio:
            return Status.DEGRADED
        return Status.ALIVE


class Members:
    """Everybody but this node itself."""

    def __init__(self, own_rack: RackId) -> None:
        self._own_rack = own_rack
        self._members: dict[NodeId, Member] = {}
        self._here: list[Member] = []
        self._mates: list[Member] = []
        self._failed: list[Member] = []
        self._suspects: list[Member] = []
        self._is_stale = False

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def get(self, node_id: NodeId) -> Member | None:
        """One of them."""
        return self._members.get(node_id)

    def add(self, member: Member) -> None:
        """Somebody new."""
        self._members[member.node_id] = member
        self._is_stale = True

    def change(self, member: Member, after: Status, reason: str, now: float) -> MemberChanged:
        """A member is something else from now on; the effect that says so."""
        before = member.status
        member.status = after
        member.changed_seconds = now
        self._is_stale = True
        return MemberChanged(node_id=member.node_id, before=before, after=after, reason=reason)

    @property
    def here(self) -> list[Member]:
        """Those who take part, in the order in which they came."""
        self._sort()
        return self._here

    @property
    def mates(self) -> list[Member]:
        """Those of them in this node's own rack."""
        self._sort()
        return self._mates

    @property
    def suspects(self) -> list[Member]:
        """Those in doubt."""
        self._sort()
        return self._suspects

    @property
    def failed(self) -> list[Member]:
        """Those given up, who are tried for ever all the same."""
        self._sort()
        return self._failed

    def heads(self, floors: dict[NodeId, Head]) -> tuple[Head, ...]:
        """The newest versions, with those from before this life of whoever was not heard since."""
        newest = dict(floors)
        for member in self._members.values():
            floor = floors.get(member.node_id, Head(node_id=member.node_id))
            newest[member.node_id] = Head(
                node_id=member.node_id,
                member=max(member.version, floor.member),
                state=max(member.state_version, floor.state),
            )
        return tuple(newest[node_id] for node_id in sorted(newest))

    def _sort(self) -> None:
        if not self._is_stale:
            return
        self._is_stale = False
        self._here = [one for one in self._members.values() if one.is_here]
        self._mates = [one for one in self._here if one.introduction.rack == self._own_rack]
        self._suspects = [one for one in self._here if one.status is Status.SUSPECT]
        self._failed = [one for one in self._members.values() if one.status is Status.FAILED]
