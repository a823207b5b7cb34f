"""What this node knows of the others, as frozen values.

Its own file because it is all that the layers above read. It must not know how any of it came to be
known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cluster.gossip.effects import Status
from cluster.gossip.fields import DecodeError
from cluster.gossip.members import Member, Members
from cluster.gossip.messages import Address, RackSummary, Version
from cluster.gossip.own import Own
from cluster.gossip.records import Records
from cluster.gossip.settings import GossipSettings
from cluster.gossip.statements import read_summary
from cluster.ids import NodeId, NodeName, RackId


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    """One member."""

    node_id: NodeId
    name: NodeName
    rack: RackId
    address: Address | None
    version: Version
    status: Status
    status_age_seconds: float
    heard_age_seconds: float | None
    """Since it last answered this node or a new state of it came; None if never."""
    accusers: tuple[NodeId, ...]
    flaps_ratio: float
    """How often it was suspected lately, old times counting half each half-life."""
    is_quarantined: bool
    round_trip_seconds: float | None
    state: bytes | None = field(repr=False)
    state_age_seconds: float | None
    state_version: Version

    @property
    def is_here(self) -> bool:
        """Whether it takes part: alive, hard to reach, or only suspected."""
        return self.status in (Status.ALIVE, Status.DEGRADED, Status.SUSPECT)


@dataclass(frozen=True, slots=True, kw_only=True)
class RackView:
    """What a rack's speaker last said of it."""

    speaker: NodeId
    version: Version
    payload: bytes = field(repr=False)
    age_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GossipView:
    """All of it at one instant."""

    node_id: NodeId
    version: Version
    members: tuple[MemberView, ...]
    """By id; without this node itself."""
    racks: dict[RackId, RackView]
    """Of other racks."""
    digest: int
    """Equal on two nodes that hold the same member records."""
    health_score: int
    is_speaker: bool
    """Whether this node is to summarise its rack: it has the lowest live id there."""
    is_isolated: bool
    """There are others, and none of them has answered for a while."""
    is_leaving: bool
    is_contested: bool
    """Somebody else goes on with this node's key: a cloned disk, or a stolen one."""
    checks_total: int
    """Signatures that were checked."""
    views_equal_total: int
    views_different_total: int
    """Pings and acks whose sender's view was ours, or another."""

    def get(self, node_id: NodeId) -> MemberView | None:
        """One member."""
        return next((one for one in self.members if one.node_id == node_id), None)


def view_member(member: Member, settings: GossipSettings, now: float) -> MemberView:
    """One member as it is now."""
    suspicion = member.suspicion
    return MemberView(
        node_id=member.node_id,
        name=member.introduction.name,
        rack=member.introduction.rack,
        address=member.address,
        version=member.version,
        status=member.shown(now, settings),
        status_age_seconds=now - member.changed_seconds,
        heard_age_seconds=None if member.heard_seconds is None else now - member.heard_seconds,
        accusers=() if suspicion is None else tuple(suspicion.accusers),
        flaps_ratio=member.flaps.score(now, settings.flap_half_life_seconds),
        is_quarantined=member.is_quarantined,
        round_trip_seconds=member.round_trips.mean_seconds,
        state=member.state_body,
        state_age_seconds=None if member.state_seconds is None else now - member.state_seconds,
        state_version=member.state_version,
    )


def is_speaker(own: Own, members: Members) -> bool:
    """Whether no live rack mate has a lower id than this node."""
    return all(own.node_id < mate.node_id for mate in members.mates)


def view_racks(
    own: Own,
    members: Members,
    records: Records,
    *,
    heard_seconds: Mapping[NodeId, float],
    now: float,
) -> dict[RackId, RackView]:
    """The summary of each other rack, from its live node of lowest id among those that sent one."""
    speakers: dict[RackId, RackView] = {}
    for node_id, held in records.summaries():
        member = members.get(node_id)
        summary = _read(held.statements[0].body)
        if member is None or summary is None or not member.is_here:
            continue
        before = speakers.get(summary.rack)
        is_own = summary.rack == own.introduction.rack
        if not is_own and (before is None or node_id < before.speaker):
            speakers[summary.rack] = RackView(
                speaker=node_id,
                version=held.version,
                payload=summary.payload,
                age_seconds=now - heard_seconds.get(node_id, now),
            )
    return dict(sorted(speakers.items()))


def _read(body: bytes) -> RackSummary | None:
    try:
        return read_summary(body)
    except DecodeError:
        return None
