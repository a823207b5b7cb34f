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
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from cluster.gossip.effects import Head, MemberChanged, Status
from cluster.gossip.ground import BARE, Ground
from cluster.gossip.introduction import Introduction as Introduction
from cluster.gossip.messages import NEVER, Address, MemberRecord, Statement, Version
from cluster.gossip.roll import Roll
from cluster.gossip.settings import GossipSettings
from cluster.gossip.suspicion import Suspicion
from cluster.ids import NodeId, RackId

_MISSES_DEGRADED = 2
_WEIGHT = 0.125
_SPREAD_WEIGHT = 0.25
"""Source of both: RFC 6298, section 2."""


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
    """Everybody but this node itself.

    What is asked for in every round is kept up to date change by change, so that nothing but a view
    costs a walk through all members.
    """

    def __init__(self, own_id: NodeId, own_rack: RackId, ground: Ground = BARE) -> None:
        self._own_id = own_id
        self._own_rack = own_rack
        self._ground = ground
        self._members: dict[NodeId, Member] = {}
        """Of those on the ground, the ones that were ever asked for."""
        self._new_count = 0
        """Of those that are not on the ground."""
        self._forgotten: dict[NodeId, None] = {}
        """Of those that are on the ground."""
        self._began_seconds = 0.0
        self.roll = Roll(ground.order, ground.places)
        """Those who take part."""
        self.roll.strike(own_id)
        self._mates: dict[NodeId, Member] = {}
        self._suspects: dict[NodeId, Member] = {}
        self._failed: dict[NodeId, Member] = {}
        self._racks: dict[RackId, dict[NodeId, None]] = {}
        self._addresses: dict[Address, NodeId] = {}
        for node_id in ground.racks.get(own_rack, ()):
            self.get(node_id)

    def start(self, now: float) -> None:
        """Time begins."""
        self._began_seconds = now
        for member in self._members.values():
            member.changed_seconds = max(member.changed_seconds, now)

    def __len__(self) -> int:
        on_ground = len(self._ground.order) - (self._own_id in self._ground.places)
        return on_ground - len(self._forgotten) + self._new_count

    def __iter__(self) -> Iterator[Member]:
        yield from self._members.values()
        for node_id in self._ground.order:
            if node_id not in self._members and self._is_shown(node_id):
                yield self._from_ground(node_id)

    def forget(self, member: Member) -> None:
        """One that was removed is not even shown any more."""
        node_id = member.node_id
        self._members.pop(node_id, None)
        self._racks.get(member.introduction.rack, {}).pop(node_id, None)
        if node_id in self._ground.places:
            self._forgotten[node_id] = None
        else:
            self._new_count -= 1

    def get(self, node_id: NodeId) -> Member | None:
        """One of them."""
        member = self._members.get(node_id)
        if member is None and node_id in self._ground.places and self._is_shown(node_id):
            member = self._members[node_id] = self._from_ground(node_id)
            self._place(member)
        return member

    def add(self, member: Member) -> None:
        """Somebody new, or back after having been forgotten."""
        self._members[member.node_id] = member
        if member.node_id in self._forgotten:
            del self._forgotten[member.node_id]
        else:
            self._new_count += 1
        self._racks.setdefault(member.introduction.rack, {})[member.node_id] = None
        self._locate(member)
        self._place(member)

    def renew(
        self, member: Member, introduction: Introduction, record: MemberRecord, version: Version
    ) -> None:
        """It has said something newer of itself."""
        member.introduction, member.record, member.version = introduction, record, version
        self._locate(member)

    def change(self, member: Member, after: Status, reason: str, now: float) -> MemberChanged:
        """A member is something else from now on; the effect that says so."""
        before = member.status
        member.status = after
        member.changed_seconds = now
        self._place(member)
        return MemberChanged(node_id=member.node_id, before=before, after=after, reason=reason)

    @property
    def here_count(self) -> int:
        """How many take part."""
        return len(self.roll)

    @property
    def here(self) -> list[Member]:
        """Those who take part; a walk through all of them."""
        return self._known(self.roll)

    @property
    def mates(self) -> list[Member]:
        """Those of them in this node's own rack."""
        return list(self._mates.values())

    @property
    def suspects(self) -> list[Member]:
        """Those in doubt."""
        return list(self._suspects.values())

    @property
    def failed(self) -> list[Member]:
        """Those given up, who are tried for ever all the same."""
        return list(self._failed.values())

    def draw(self, rng: random.Random, count: int, without: NodeId | None = None) -> list[Member]:
        """So many of those who take part, by chance."""
        return self._known(self.roll.draw(rng, count, without))

    def is_mate(self, member: Member) -> bool:
        """Whether it takes part, in this node's own rack."""
        return member.node_id in self._mates

    def is_here_at(self, address: Address) -> bool:
        """Whether one that takes part says that it is there."""
        node_id = self._addresses.get(address) or self._ground.addresses.get(address)
        if node_id is None or node_id not in self.roll:
            return False
        member = self._members.get(node_id)
        return member is None or member.address == address

    def rack_of(self, member: Member) -> list[NodeId]:
        """All ids in a member's rack, whatever has become of them."""
        rack = member.introduction.rack
        return [*self._ground.racks.get(rack, ()), *self._racks.get(rack, ())]

    def heads(self, floors: dict[NodeId, Head]) -> tuple[Head, ...]:
        """The newest versions, with those from before this life of whoever was not heard since."""
        newest = dict(self._ground.heads)
        newest.pop(self._own_id, None)
        newest.update(floors)
        for member in self._members.values():
            floor = floors.get(member.node_id, Head(node_id=member.node_id))
            newest[member.node_id] = Head(
                node_id=member.node_id,
                member=max(member.version, floor.member),
                state=max(member.state_version, floor.state),
            )
        return tuple(newest[node_id] for node_id in sorted(newest))

    def _is_shown(self, node_id: NodeId) -> bool:
        return node_id != self._own_id and node_id not in self._forgotten

    def _known(self, node_ids: Iterable[NodeId]) -> list[Member]:
        members = (self.get(node_id) for node_id in node_ids)
        return [member for member in members if member is not None]

    def _from_ground(self, node_id: NodeId) -> Member:
        ground = self._ground
        return Member(
            introduction=ground.introductions[node_id],
            record=ground.bodies[node_id],
            version=ground.held[node_id].version,
            status=Status.ALIVE,
            changed_seconds=self._began_seconds,
        )

    def _locate(self, member: Member) -> None:
        if member.address is not None:
            self._addresses[member.address] = member.node_id

    def _place(self, member: Member) -> None:
        """Into the lists that it belongs to now."""
        node_id, status = member.node_id, member.status
        if member.is_here:
            self.roll.add(node_id)
        else:
            self.roll.strike(node_id)
        is_mate = member.introduction.rack == self._own_rack
        _list(self._mates, member, is_listed=member.is_here and is_mate)
        _list(self._suspects, member, is_listed=status is Status.SUSPECT)
        _list(self._failed, member, is_listed=status is Status.FAILED)


def _list(members: dict[NodeId, Member], member: Member, *, is_listed: bool) -> None:
    if is_listed:
        members[member.node_id] = member
    else:
        members.pop(member.node_id, None)
