"""The cluster document: every rack and node as this agent knows them, for people and programs.

Its own file because it is a contract (`esnode.cluster_status/1`; fields are only added). Pure: it
is handed what is known and the time. It must not know how anything was heard.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cluster.identity.chains import NodeIdentity
from cluster.ids import NodeId, RackId
from cluster.peer import PeerView
from cluster.rack.model import NodeState, RackState, Total
from esnode.status.cluster_rows import (
    HERE,
    NodeRow,
    RackRow,
    describe_counts,
    describe_gpus,
    describe_node,
    describe_power,
    describe_rack,
    of_member,
    rack_of,
)
from esnode.status.cluster_warnings import Troubles, find_warnings
from esnode.status.gpu import Document
from esnode.status.times import utc_text

SCHEMA = "esnode.cluster_status/1"
RACK_SCHEMA = "esnode.rack_status/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a node told of itself, at first or second hand."""

    state: NodeState
    age_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterKnown:
    """All that one agent knows of its cluster at one instant."""

    view: PeerView
    own: NodeIdentity
    cluster_name: str
    address: str
    observed_address: str | None
    """Where peers see this node, if that is elsewhere."""
    own_state: NodeState
    told: Mapping[NodeId, Told] = field(repr=False)
    """Of everybody else: rack mates by gossip, others where detail was asked for."""
    summaries: Mapping[RackId, tuple[NodeId, RackState, float]] = field(repr=False)
    """By rack: who speaks for it, what it said, how long ago."""
    troubles: Troubles
    now_unix_seconds: float
    budget_watts: float | None = None
    """Of the rack of this node; None while none was decreed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherView:
    """What another member answered about its own view."""

    node_id: NodeId
    name: str
    digest: int | None
    """None where it did not answer."""
    statuses: Mapping[NodeId, str] = field(default_factory=dict)


def describe_cluster(known: ClusterKnown, views: Sequence[OtherView] | None = None) -> Document:
    """The whole document; with `views`, also where others see it otherwise."""
    rows = node_rows(known)
    racks = rack_rows(known, rows)
    warnings = find_warnings(rows, racks, known.troubles, own=known.own)
    counts = tuple(sorted(Counter(row.status for row in rows).items()))
    document: Document = {
        "schema": SCHEMA,
        "generated_at": utc_text(known.now_unix_seconds),
        "asked": {
            "id": known.own.node_id.hex(),
            "name": known.own.name,
            "rack": known.own.rack,
        },
        "cluster": {
            "id": known.own.cluster_id.hex(),
            "name": known.cluster_name,
            "state": cluster_state(rows, warnings, is_unanswered=known.view.gossip.is_isolated),
            "view": _describe_view(known, views),
            "nodes": describe_counts(counts),
            "versions": _versions(rows, racks),
            "power": describe_power(
                _added([rack.state.power_draw_watts for rack in racks]),
                _added([rack.state.power_cap_watts for rack in racks]),
                _added_whole([rack.state.power_budget_watts for rack in racks]),
                counts,
            ),
            "gpus": describe_gpus(
                _added_counts([rack.state.gpu_count for rack in racks]),
                _added_counts([rack.state.gpu_busy_count for rack in racks]),
                _added_counts([rack.state.gpu_healthy_count for rack in racks]),
            ),
            "jobs": {"running": None, "migrating": None, "held": None, "queued": None},
        },
        "racks": [describe_rack(row) for row in racks],
        "nodes": [describe_node(row, now_unix_seconds=known.now_unix_seconds) for row in rows],
        "waiting": [
            {
                "id": identity.node_id.hex(),
                "name": identity.name,
                "rack": identity.rack,
                "invite": f"{identity.rights.serial:x}",
            }
            for identity in known.view.waiting
        ],
        "warnings": warnings,
    }
    if views is not None:
        names = {row.node_id: row.name for row in rows}
        here = {row.node_id: row.status for row in rows}
        document["views"] = [_describe_other(view, here, names) for view in views]
    return document


def describe_one_rack(known: ClusterKnown, rack: RackId) -> Document | None:
    """One rack by itself; None if there is no such rack."""
    rows = node_rows(known)
    racks = {row.rack: row for row in rack_rows(known, rows)}
    if rack not in racks:
        return None
    inside = [row for row in rows if row.rack == rack]
    ids = {row.node_id.hex() for row in inside}
    warnings = find_warnings(rows, list(racks.values()), known.troubles, own=known.own)
    names = {row.name for row in inside} | {rack}
    return {
        "schema": RACK_SCHEMA,
        "generated_at": utc_text(known.now_unix_seconds),
        "rack": describe_rack(racks[rack]),
        "nodes": [describe_node(row, now_unix_seconds=known.now_unix_seconds) for row in inside],
        "warnings": [one for one in warnings if one["subject"] in names | ids],
    }


def cluster_state(
    rows: Sequence[NodeRow], warnings: Sequence[Document], *, is_unanswered: bool
) -> str:
    """In a word: is everything well, and can this side tell at all?

    This side is isolated when nobody answers, or when less than half of all is here.
    """
    here = sum(row.status in HERE for row in rows)
    known = sum(row.status in (*HERE, "failed") for row in rows)
    if is_unanswered or 2 * here < known:
        return "isolated"
    is_troubled = any(one["severity"] != "info" for one in warnings)
    return "degraded" if is_troubled else "healthy"


def node_rows(known: ClusterKnown) -> list[NodeRow]:
    """Everybody, this node too, by rack and name."""
    gossip = known.view.gossip
    names = {one.node_id: str(one.name) for one in gossip.members}
    names[known.own.node_id] = known.own.name
    rows = [
        NodeRow(
            node_id=known.own.node_id,
            name=known.own.name,
            rack=known.own.rack,
            status="left" if gossip.is_leaving else "alive",
            is_asked=True,
            heard_age_seconds=0.0,
            address=known.address,
            observed_address=known.observed_address,
            epoch=gossip.version.epoch,
            sequence=gossip.version.sequence,
            state=known.own_state,
            state_age_seconds=0.0,
            identity=known.own,
        )
    ]
    for member in gossip.members:
        if not member.is_here and (member.name, member.node_id) in known.view.forgotten:
            continue
        told = known.told.get(member.node_id)
        rows.append(
            of_member(
                member,
                state=None if told is None else told.state,
                state_age_seconds=None if told is None else told.age_seconds,
                identity=known.view.identities.get(member.node_id),
                names=names,
            )
        )
    return sorted(rows, key=lambda row: (row.rack, row.name, row.node_id))


def rack_rows(known: ClusterKnown, rows: Sequence[NodeRow]) -> list[RackRow]:
    """Every rack of which a node is known."""
    by_rack: dict[RackId, list[NodeRow]] = {}
    for row in rows:
        by_rack.setdefault(row.rack, []).append(row)
    names = {row.node_id: row.name for row in rows}
    racks = []
    for rack, inside in sorted(by_rack.items()):
        speaker, summary, age = known.summaries.get(rack, (None, None, None))
        is_own = rack == known.own.rack
        here = [row for row in inside if row.status in HERE]
        if is_own and here:
            speaker = min(row.node_id for row in here)
        racks.append(
            rack_of(
                rack,
                inside,
                summary=summary,
                summary_age_seconds=age,
                speaker=None if speaker is None else names.get(speaker),
                is_own=is_own,
                budget_watts=known.budget_watts if is_own else None,
            )
        )
    return racks


def _describe_view(known: ClusterKnown, views: Sequence[OtherView] | None) -> Document:
    digest = known.view.gossip.digest
    return {
        "digest": f"{digest:016x}",
        "members": len(known.view.gossip.members) + 1,
        "agreeing": None if views is None else 1 + sum(view.digest == digest for view in views),
        "asked": None if views is None else 1 + len(views),
    }


def _describe_other(
    view: OtherView, here: Mapping[NodeId, str], names: Mapping[NodeId, str]
) -> Document:
    sees = Counter(view.statuses.values())
    return {
        "id": view.node_id.hex(),
        "name": view.name,
        "answered": view.digest is not None,
        "digest": None if view.digest is None else f"{view.digest:016x}",
        "sees": dict(sorted(sees.items())),
        "disagreements": [
            {"subject": names.get(node_id, node_id.short), "state": status, "here": here[node_id]}
            for node_id, status in sorted(view.statuses.items())
            if node_id in here and here[node_id] != status
        ],
    }


def _versions(rows: Sequence[NodeRow], racks: Sequence[RackRow]) -> Document:
    """Nodes by agent version: of those that told, and of whole racks where only a summary came."""
    versions = Counter(row.state.agent_version for row in rows if row.state is not None)
    for rack in racks:
        if rack.source == "summary":
            versions.update(dict(rack.state.versions))
    return dict(sorted(versions.items()))


def _added(totals: Sequence[Total]) -> Total:
    known = [total for total in totals if total.value is not None]
    ages = [total.age_seconds for total in known if total.age_seconds is not None]
    return Total(
        value=sum(total.value or 0.0 for total in known) if known else None,
        known_count=sum(total.known_count for total in known),
        is_estimated=any(total.is_estimated for total in known),
        age_seconds=max(ages, default=None),
    )


def _added_whole(values: Sequence[float | None]) -> float | None:
    """A sum that is only known when all of it is."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _added_counts(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
