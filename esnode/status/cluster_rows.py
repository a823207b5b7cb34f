"""One row for each node and each rack of the cluster document.

Its own file because a row is where membership, certificates and what a node told of itself meet. A
value is written with its age and source, and is null where it is not known. It must not know how
anything was heard.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cluster.gossip.view import MemberView
from cluster.identity.chains import NodeIdentity
from cluster.identity.standing import judge_standing
from cluster.ids import NodeId, RackId
from cluster.rack.model import NodeState, RackState, Total, count_of
from cluster.rack.summary import Heard, summarise
from esnode.status.gpu import Document
from esnode.status.times import utc_text

STATES = ("alive", "degraded", "suspect", "failed", "left", "removed")
HERE = ("alive", "degraded", "suspect")
STALE_SECONDS = 10.0
"""A rack mate tells how it is each second; whoever asks about a rack asks again each second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """What is known of one node, from wherever."""

    node_id: NodeId
    name: str
    rack: RackId
    status: str
    is_asked: bool = False
    status_age_seconds: float | None = None
    heard_age_seconds: float | None = None
    address: str | None = None
    observed_address: str | None = None
    epoch: int = 0
    sequence: int = 0
    state: NodeState | None = field(repr=False, default=None)
    state_age_seconds: float | None = None
    accusers: tuple[str, ...] = ()
    flaps_ratio: float = 0.0
    round_trip_seconds: float | None = None
    is_quarantined: bool = False
    identity: NodeIdentity | None = field(repr=False, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RackRow:
    """One rack, and where what is known of it comes from."""

    rack: RackId
    state: RackState
    source: str
    """``gossip``, ``detail``, ``summary`` or ``none``."""
    speaker: str | None = None
    age_seconds: float | None = None


def quantity(
    value: float | None,
    *,
    age_seconds: float | None = None,
    source: str | None = None,
    is_estimated: bool = False,
) -> Document:
    """A value with what it is worth."""
    if value is None:
        return {"value": None, "age_seconds": None, "source": None, "estimated": False}
    age = None if age_seconds is None else round(age_seconds, 1)
    return {
        "value": round(value, 3),
        "age_seconds": age,
        "source": source,
        "estimated": is_estimated,
    }


def of_member(
    member: MemberView,
    *,
    state: NodeState | None,
    state_age_seconds: float | None,
    identity: NodeIdentity | None,
    names: Mapping[NodeId, str],
) -> NodeRow:
    """The row of somebody that gossip has met."""
    return NodeRow(
        node_id=member.node_id,
        name=member.name,
        rack=member.rack,
        status=str(member.status),
        status_age_seconds=member.status_age_seconds,
        heard_age_seconds=member.heard_age_seconds,
        address=member.address,
        epoch=member.version.epoch,
        sequence=member.version.sequence,
        state=state,
        state_age_seconds=state_age_seconds,
        accusers=tuple(names.get(one, one.short) for one in member.accusers),
        flaps_ratio=member.flaps_ratio,
        round_trip_seconds=member.round_trip_seconds,
        is_quarantined=member.is_quarantined,
        identity=identity,
    )


def describe_node(row: NodeRow, *, now_unix_seconds: float) -> Document:
    """One node of the document."""
    state, age = row.state, row.state_age_seconds
    power_age = _sum_ages(age, None if state is None else state.power_draw_age_seconds)
    flags = list(() if state is None else state.flags)
    if row.is_quarantined:
        flags.append("contradicts_itself")
    return {
        "id": row.node_id.hex(),
        "name": row.name,
        "rack": row.rack,
        "state": row.status,
        "is_asked": row.is_asked,
        "last_heard_seconds": _rounded(row.heard_age_seconds),
        "state_seconds": _rounded(row.status_age_seconds),
        "address": row.address,
        "observed_address": row.observed_address,
        "version": None if state is None else state.agent_version or None,
        "epoch": row.epoch,
        "sequence": row.sequence,
        "power": {
            "draw_watts": quantity(
                None if state is None else state.power_draw_watts,
                age_seconds=power_age,
                source=None if state is None else state.power_draw_source or None,
                is_estimated=state is not None and state.is_power_draw_estimated,
            ),
            "cap_watts": quantity(
                None if state is None else state.power_cap_watts, age_seconds=age, source="agent"
            ),
            "limit_watts": quantity(None),
            "lowest_watts": quantity(
                None if state is None else state.power_lowest_watts, age_seconds=age, source="agent"
            ),
            "highest_watts": quantity(
                None if state is None else state.power_highest_watts,
                age_seconds=age,
                source="agent",
            ),
        },
        "gpus": _node_gpus(state, age),
        "cpu_utilization_ratio": quantity(
            None if state is None else state.cpu_utilization_ratio, age_seconds=age, source="proc"
        ),
        "memory_used_ratio": quantity(
            None if state is None else state.memory_used_ratio, age_seconds=age, source="proc"
        ),
        "jobs": {"running": None if state is None else state.jobs_running_count},
        "score": None if state is None else state.degradation_score,
        "flags": flags,
        "accusers": list(row.accusers),
        "flaps_ratio": round(row.flaps_ratio, 2),
        "round_trip_seconds": _rounded(row.round_trip_seconds, 6),
        "certificate": _certificate(row.identity, now_unix_seconds),
    }


def rack_of(
    rack: RackId,
    rows: Sequence[NodeRow],
    *,
    summary: RackState | None,
    summary_age_seconds: float | None,
    speaker: str | None,
    is_own: bool,
    budget_watts: float | None = None,
) -> RackRow:
    """What is known of one rack: from its nodes where they told lately, else from its speaker."""
    heard = [
        Heard(status=row.status, state=row.state, age_seconds=row.state_age_seconds) for row in rows
    ]
    if budget_watts is None and summary is not None:
        budget_watts = summary.power_budget_watts
    computed = summarise(rack, heard, budget_watts=budget_watts)
    ages = [
        row.state_age_seconds
        for row in rows
        if row.status in HERE and row.state_age_seconds is not None
    ]
    latest_seconds = min(ages, default=math.inf)
    is_newer = (
        summary_age_seconds is not None and summary_age_seconds + STALE_SECONDS < latest_seconds
    )
    if is_own or (any(row.state is not None for row in rows) and not is_newer):
        source = "gossip" if is_own else "detail"
        return RackRow(
            rack=rack,
            state=computed,
            source=source,
            speaker=speaker,
            age_seconds=max(ages, default=None),
        )
    if summary is None:
        return RackRow(rack=rack, state=computed, source="none")
    # Who is there is better known from membership than from what the speaker saw a while ago.
    told = RackState(
        rack=rack,
        counts=computed.counts,
        power_draw_watts=_older(summary.power_draw_watts, summary_age_seconds),
        power_cap_watts=_older(summary.power_cap_watts, summary_age_seconds),
        power_budget_watts=summary.power_budget_watts,
        gpu_count=summary.gpu_count,
        gpu_healthy_count=summary.gpu_healthy_count,
        gpu_busy_count=summary.gpu_busy_count,
        temperature_max_celsius=summary.temperature_max_celsius,
        versions=summary.versions,
    )
    return RackRow(
        rack=rack,
        state=told,
        source="summary",
        speaker=speaker,
        age_seconds=summary_age_seconds,
    )


def describe_rack(row: RackRow) -> Document:
    """One rack of the document."""
    state = row.state
    return {
        "id": row.rack,
        "state": rack_state(state),
        "speaker": row.speaker,
        "source": row.source,
        "age_seconds": _rounded(row.age_seconds),
        "nodes": describe_counts(state.counts),
        "power": describe_power(
            state.power_draw_watts, state.power_cap_watts, state.power_budget_watts, state.counts
        ),
        "gpus": describe_gpus(state.gpu_count, state.gpu_busy_count, state.gpu_healthy_count),
        "temperature_max_celsius": quantity(
            state.temperature_max_celsius, age_seconds=row.age_seconds, source="gpus"
        ),
    }


def rack_state(state: RackState) -> str:
    """In a word."""
    here = sum(count_of(state.counts, name) for name in HERE)
    if here == 0:
        return "dark" if count_of(state.counts, "failed") else "unknown"
    troubled = ("degraded", "suspect", "failed")
    return "degraded" if any(count_of(state.counts, name) for name in troubled) else "ok"


def describe_counts(counts: tuple[tuple[str, int], ...]) -> Document:
    """Nodes by state; those that left or were removed are not part of the total."""
    total = sum(count_of(counts, name) for name in (*HERE, "failed"))
    return {"total": total, **{name: count_of(counts, name) for name in STATES}}


def describe_power(
    draw: Total, cap: Total, budget_watts: float | None, counts: tuple[tuple[str, int], ...]
) -> Document:
    """The sums of a rack or of the cluster. A sum over a part of the nodes says so."""
    nodes_count = sum(count_of(counts, name) for name in (*HERE, "failed"))
    headroom = None
    if budget_watts is not None and draw.value is not None and draw.known_count >= nodes_count:
        headroom = budget_watts - draw.value
    return {
        "budget_watts": quantity(budget_watts, source="operator"),
        "cap_watts": _of_total(cap, nodes_count),
        "draw_watts": _of_total(draw, nodes_count),
        "headroom_watts": quantity(headroom, age_seconds=draw.age_seconds, source="nodes"),
        "stranded_watts": quantity(None),
    }


def describe_gpus(total: int | None, busy: int | None, healthy: int | None) -> Document:
    """GPUs of a rack or of the cluster."""
    return {
        "total": total,
        "busy": busy,
        "idle": None if busy is None or healthy is None else max(0, healthy - busy),
        "unhealthy": None if total is None or healthy is None else max(0, total - healthy),
    }


def _of_total(total: Total, nodes_count: int) -> Document:
    is_part = total.known_count < nodes_count
    source = f"nodes {total.known_count}/{nodes_count}" if is_part else "nodes"
    return quantity(
        total.value,
        age_seconds=total.age_seconds,
        source=source,
        is_estimated=total.is_estimated or is_part,
    )


def _older(total: Total, seconds: float | None) -> Total:
    return Total(
        value=total.value,
        known_count=total.known_count,
        is_estimated=total.is_estimated,
        age_seconds=_sum_ages(total.age_seconds, seconds),
    )


def _node_gpus(state: NodeState | None, age: float | None) -> Document:
    if state is None:
        return {
            "total": None,
            "healthy": None,
            "draw_watts": quantity(None),
            "cap_watts": quantity(None),
            "limit_watts": quantity(None),
            "utilization_ratio": quantity(None),
            "memory_used_ratio": quantity(None),
            "temperature_max_celsius": quantity(None),
        }
    return {
        "total": state.gpu_count,
        "healthy": state.gpu_healthy_count,
        "draw_watts": quantity(state.gpu_draw_watts, age_seconds=age, source="gpus"),
        "cap_watts": quantity(state.gpu_cap_watts, age_seconds=age, source="gpus"),
        "limit_watts": quantity(state.gpu_limit_watts, age_seconds=age, source="gpus"),
        "utilization_ratio": quantity(state.gpu_utilization_ratio, age_seconds=age, source="gpus"),
        "memory_used_ratio": quantity(state.gpu_memory_used_ratio, age_seconds=age, source="gpus"),
        "temperature_max_celsius": quantity(
            state.temperature_max_celsius, age_seconds=age, source="gpus"
        ),
    }


def _certificate(identity: NodeIdentity | None, now_unix_seconds: float) -> Document | None:
    if identity is None:
        return None
    standing = judge_standing(identity, int(now_unix_seconds))
    return {
        "serial": f"{identity.serial:x}",
        "invite": f"{identity.rights.serial:x}",
        "ends_at": utc_text(identity.window.end_unix_seconds),
        "roles": [str(role) for role in standing.roles],
        "validity": str(standing.validity),
    }


def _sum_ages(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def _rounded(value: float | None, digits: int = 3) -> float | None:
    return None if value is None else round(value, digits)
