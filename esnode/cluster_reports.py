"""What this agent says of its rack: to the other racks each few seconds, to members who ask.

Its own file because each is made from the same view. It must not know streams.
"""

from collections.abc import Iterable

from cluster.errors import Malformed
from cluster.gossip.view import MemberView
from cluster.host import Host
from cluster.rack.model import NodeState, RackState
from cluster.rack.report import NodeReport, encode_report
from cluster.rack.summary import Heard, summarise
from cluster.rack.wire import decode_node_state, encode_node_state


def state_of(member: MemberView) -> NodeState | None:
    """What a member told last, if it can be read; one that contradicts itself told nothing."""
    if member.state is None or member.is_quarantined:
        return None
    try:
        return decode_node_state(member.state)
    except Malformed:
        return None


def own_summary(host: Host, own_state: NodeState, budget_watts: float | None = None) -> RackState:
    """How the rack of this node is, as its speaker tells it."""
    rack = host.keys.identity.rack
    mates = (
        Heard(
            status=str(member.status),
            state=state_of(member),
            age_seconds=member.state_age_seconds,
        )
        for member in host.view().gossip.members
        if member.rack == rack
    )
    own = Heard(status="alive", state=own_state, age_seconds=0.0)
    return summarise(rack, [own, *mates], budget_watts=budget_watts)


def rack_reports(host: Host, own_state: NodeState | None) -> Iterable[bytes]:
    """The rack of this node in full: this node first, then its mates."""
    gossip = host.view().gossip
    own = NodeReport(
        node_id=gossip.node_id,
        status="alive",
        heard_age_seconds=0.0,
        state=None if own_state is None else encode_node_state(own_state),
        state_age_seconds=None if own_state is None else 0.0,
        view_digest=gossip.digest,
    )
    mates = (one for one in gossip.members if one.rack == host.keys.identity.rack)
    return [encode_report(own), *(_report(mate) for mate in mates)]


def view_reports(host: Host) -> Iterable[bytes]:
    """Everybody, as this node takes each for."""
    gossip = host.view().gossip
    own = NodeReport(node_id=gossip.node_id, status="alive", view_digest=gossip.digest)
    others = (
        NodeReport(
            node_id=one.node_id,
            status=str(one.status),
            status_age_seconds=one.status_age_seconds,
            heard_age_seconds=one.heard_age_seconds,
        )
        for one in gossip.members
    )
    return [encode_report(own), *(encode_report(one) for one in others)]


def _report(member: MemberView) -> bytes:
    return encode_report(
        NodeReport(
            node_id=member.node_id,
            status=str(member.status),
            status_age_seconds=member.status_age_seconds,
            heard_age_seconds=member.heard_age_seconds,
            state=None if member.is_quarantined else member.state,
            state_age_seconds=member.state_age_seconds,
        )
    )


def address_line(host: Host) -> str | None:
    """What to tell where peers see this node elsewhere than it says."""
    seen = host.observed_elsewhere()
    if seen is None:
        return None
    return (
        f"this node announces {host.address}, and peers see it at {seen}: set cluster_advertise to "
        "where it can be reached"
    )
