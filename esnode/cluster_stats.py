"""The cluster in figures, for `/metrics`: read from the running host when somebody scrapes."""

import statistics
from collections import Counter
from collections.abc import Mapping

from cluster.gossip.view import GossipView
from cluster.host import Host
from cluster.ids import RackId
from esnode.metrics.model import ClusterStats, Sample
from esnode.peering import Peering


def count_cluster(peering: Peering) -> ClusterStats | None:
    """What this agent counts of its cluster; None where it is in none."""
    host = peering.host
    if host is None:
        return None
    identity = host.keys.identity
    gossip = host.view().gossip
    trips = [one.round_trip_seconds for one in gossip.members if one.round_trip_seconds is not None]
    return ClusterStats(
        identity=(
            host.keys.authority.name,
            identity.cluster_id.hex(),
            identity.name,
            identity.node_id.hex(),
            identity.rack,
        ),
        members=_members(gossip),
        is_isolated=gossip.is_isolated,
        epoch=gossip.version.epoch,
        health_score=gossip.health_score,
        suspicions_total=peering.counts.get("suspect", 0),
        refutations_total=peering.counts.get("refuted", 0),
        failures_total=peering.counts.get("failed", 0),
        pauses_total=peering.counts.get("pause", 0),
        round_trip_median_seconds=statistics.median(trips) if trips else None,
        round_trip_max_seconds=max(trips, default=None),
        loop_lag_seconds=host.datagrams.lag_seconds,
        signature_checks_total=gossip.checks_total,
        operator_records=len(host.peer.roster.log.records),
        certificate_end_time_seconds=float(identity.window.end_unix_seconds),
        view_comparisons_total=(
            (("equal",), gossip.views_equal_total),
            (("different",), gossip.views_different_total),
        ),
        state_ages_seconds=state_ages(gossip, identity.rack),
        datagrams_total=_both(host, "datagrams_total"),
        datagram_bytes_total=_both(host, "bytes_total"),
        datagram_errors_total=_labelled(host.datagrams.errors_total),
        rejected_total=_labelled(peering.rejected_total),
        stream_requests_total=(
            *_labelled(host.stream_client.exchanges_total, "caller"),
            *_labelled(host.stream_server.requests_total, "called"),
        ),
    )


def _members(gossip: GossipView) -> tuple[Sample, ...]:
    counts = Counter(str(one.status) for one in gossip.members)
    counts["alive"] += 1
    states = ("alive", "degraded", "suspect", "failed", "left", "removed")
    return tuple(((state,), counts[state]) for state in states)


def state_ages(gossip: GossipView, rack: RackId) -> tuple[Sample, ...]:
    """By rack mate; of several keys under one name, a reimaged machine, whoever told last."""
    ages: dict[str, float | None] = {}
    for one in gossip.members:
        if one.rack != rack:
            continue
        known = [age for age in (ages.get(one.name), one.state_age_seconds) if age is not None]
        ages[one.name] = min(known, default=None)
    return tuple(((name,), age) for name, age in ages.items())


def _both(host: Host, what: str) -> tuple[Sample, ...]:
    received, sent = host.datagrams.received, host.datagrams.sent
    return (
        *_labelled(getattr(received, what), "received"),
        *_labelled(getattr(sent, what), "sent"),
    )


def _labelled(counts: Mapping[str, int], *before: str) -> tuple[Sample, ...]:
    return tuple(((*before, name), count) for name, count in sorted(counts.items()))
