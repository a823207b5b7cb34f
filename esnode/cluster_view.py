"""The whole cluster from here: gossip for this rack, one live member of each other rack for detail.

Its own file because looking means asking others, which takes time: each rack is asked once, within
a deadline, whoever looks and however many do; a rack that does not answer is shown by what its
speaker told last. It must not know how it is shown.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import trio

from cluster.conversation import StreamFailed
from cluster.errors import Malformed
from cluster.gossip.effects import Status
from cluster.gossip.view import GossipView, MemberView
from cluster.host import Host
from cluster.ids import NodeId, RackId
from cluster.rack.ledger.charter import read_charters
from cluster.rack.model import NodeState, RackState
from cluster.rack.report import RACK, VIEW, NodeReport, decode_report
from cluster.rack.wire import decode_node_state, decode_rack_state
from esnode.clock import unix_seconds
from esnode.cluster_reports import address_line, state_of
from esnode.peering import Peering
from esnode.status.cluster import (
    ClusterKnown,
    OtherView,
    Told,
    describe_cluster,
    describe_one_rack,
)
from esnode.status.cluster_warnings import Troubles
from esnode.status.gpu import Document
from esnode.status.power_elsewhere import ToldNode, describe_power_elsewhere

DETAIL_SECONDS = 1.5
"""For one rack to answer; half of what `cluster status` gives itself."""
KEPT_SECONDS = 1.0
"""Whoever looks within a second sees the same answers."""
TRIES = 2
AT_ONCE = 16
REPORTS_PER_MEMBER = 2
"""Of an answer, for each member known here: the asked may know more, and must not keep us busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Detail:
    reports: tuple[NodeReport, ...] = field(repr=False)
    at_seconds: float


class ClusterView:
    """What one agent can say of the whole cluster."""

    def __init__(self, peering: Peering) -> None:
        self._peering = peering
        self._details: dict[RackId, _Detail] = {}
        self._asked_seconds: dict[RackId, float] = {}
        self._views: tuple[float, list[OtherView]] | None = None
        self._asking = trio.Lock()
        self._places = trio.CapacityLimiter(AT_ONCE)

    async def document(self, *, is_everybody_asked: bool = False) -> Document:
        """The cluster document.

        Raises:
            NotInCluster: there is none.
        """
        known = await self._know()
        views = await self._ask_everybody() if is_everybody_asked else None
        return describe_cluster(known, views)

    async def rack_document(self, rack: str) -> Document | None:
        """One rack; None if there is no such rack.

        Raises:
            NotInCluster: there is none.
        """
        return describe_one_rack(await self._know(), RackId(rack))

    async def power_document(self, rack: str) -> Document | None:
        """The power of one rack, by the word of its nodes; None if there is no such rack.

        Raises:
            NotInCluster: there is none.
        """
        known = await self._know()
        host = self._peering.running()
        members = {one.node_id: one for one in known.view.gossip.members if one.rack == rack}
        if not members and known.own.rack != rack:
            return None
        nodes = {
            node_id: ToldNode(name=member.name, state=told.state, age_seconds=told.age_seconds)
            for node_id, member in members.items()
            if (told := known.told.get(node_id)) is not None and told.age_seconds is not None
        }
        if known.own.rack == rack:
            own = ToldNode(name=known.own.name, state=known.own_state, age_seconds=0.0)
            nodes[known.own.node_id] = own
        charters = read_charters(host.peer.roster.log.records)
        return describe_power_elsewhere(RackId(rack), charters, nodes)

    async def _know(self) -> ClusterKnown:
        host = self._peering.running()
        await self._ask_racks(host)
        # What was known before the answers came may be old by now.
        host = self._peering.running()
        view = host.view()
        gossip = view.gossip
        now = unix_seconds()
        return ClusterKnown(
            view=view,
            own=host.keys.identity,
            cluster_name=host.keys.authority.name,
            address=host.address,
            observed_address=host.observed_elsewhere(),
            own_state=self._peering.own_state or NodeState(agent_version=""),
            told=self._told(host, gossip),
            summaries=_summaries(gossip),
            troubles=Troubles(
                shared_names=view.shared_names,
                alarms=view.alarms,
                waiting=view.waiting,
                disk=host.disk_trouble,
                streams=host.last_failure if not gossip.members else None,
                address_line=address_line(host),
                is_unanswered=gossip.is_isolated,
                is_contested=gossip.is_contested,
                now_unix_seconds=now,
            ),
            now_unix_seconds=now,
            budget_watts=self._peering.budget_watts,
        )

    def _told(self, host: Host, gossip: GossipView) -> Mapping[NodeId, Told]:
        told: dict[NodeId, Told] = {}
        for member in gossip.members:
            state = state_of(member)
            if state is not None:
                told[member.node_id] = Told(state=state, age_seconds=member.state_age_seconds)
        racks = {member.node_id: member.rack for member in gossip.members}
        for rack, detail in self._details.items():
            passed = host.now - detail.at_seconds
            for report in detail.reports:
                state = _read_state(report)
                # A member is asked about its own rack, and has no say about others.
                if state is not None and racks.get(report.node_id) == rack:
                    age = None
                    if report.state_age_seconds is not None:
                        age = report.state_age_seconds + passed
                    told[report.node_id] = Told(state=state, age_seconds=age)
        return told

    async def _ask_racks(self, host: Host) -> None:
        async with self._asking:
            racks: dict[RackId, list[MemberView]] = {}
            for member in host.view().gossip.members:
                if member.rack != host.keys.identity.rack:
                    racks.setdefault(member.rack, []).append(member)
            self._details = {rack: one for rack, one in self._details.items() if rack in racks}
            async with trio.open_nursery() as nursery:
                for rack, members in racks.items():
                    # Whether it answered or not: whoever looks next must not wait for it as well.
                    if host.now - self._asked_seconds.get(rack, -math.inf) > KEPT_SECONDS:
                        nursery.start_soon(self._ask_rack, host, rack, members)

    async def _ask_rack(self, host: Host, rack: RackId, members: Sequence[MemberView]) -> None:
        """Ask live members of a rack, the most reliable first, until one answers."""
        fine = (Status.ALIVE, Status.DEGRADED)
        here = [one for one in members if one.status in fine and one.address]
        here.sort(key=lambda one: (one.status is not Status.ALIVE, one.node_id))
        with trio.move_on_after(DETAIL_SECONDS):
            async with self._places:
                for member in here[:TRIES]:
                    reports = await _ask(host, member, RACK)
                    if reports is not None:
                        self._details[rack] = _Detail(reports=reports, at_seconds=host.now)
                        break
        self._asked_seconds[rack] = host.now

    async def _ask_everybody(self) -> list[OtherView]:
        """Every member's own view; as for racks, once a second whoever looks."""
        async with self._asking:
            host = self._peering.running()
            if self._views is None or host.now - self._views[0] > KEPT_SECONDS:
                self._views = (host.now, await self._ask_members(host))
            return self._views[1]

    async def _ask_members(self, host: Host) -> list[OtherView]:
        members = [one for one in host.view().gossip.members if one.is_here]
        views: list[OtherView] = []

        async def ask_one(member: MemberView) -> None:
            reports = None
            with trio.move_on_after(DETAIL_SECONDS):
                async with self._places:
                    reports = await _ask(host, member, VIEW)
            own = next((one for one in reports or () if one.node_id == member.node_id), None)
            views.append(
                OtherView(
                    node_id=member.node_id,
                    name=member.name,
                    digest=None if own is None else own.view_digest,
                    statuses={one.node_id: one.status for one in reports or ()},
                )
            )

        async with trio.open_nursery() as nursery:
            for member in members:
                nursery.start_soon(ask_one, member)
        return sorted(views, key=lambda view: (view.name, view.node_id))


async def _ask(host: Host, member: MemberView, kind: str) -> tuple[NodeReport, ...] | None:
    if member.address is None:
        return None
    try:
        parts = await host.ask(member.address, kind)
    except StreamFailed:
        return None
    reports = []
    for part in parts[: REPORTS_PER_MEMBER * (len(host.view().gossip.members) + 1)]:
        try:
            reports.append(decode_report(part))
        except Malformed:
            continue
    return tuple(reports)


def _read_state(report: NodeReport) -> NodeState | None:
    if report.state is None:
        return None
    try:
        return decode_node_state(report.state)
    except Malformed:
        return None


def _summaries(gossip: GossipView) -> dict[RackId, tuple[NodeId, RackState, float]]:
    summaries = {}
    for rack, view in gossip.racks.items():
        try:
            state = decode_rack_state(view.payload)
        except Malformed:
            continue
        summaries[rack] = (view.speaker, state, view.age_seconds)
    return summaries
