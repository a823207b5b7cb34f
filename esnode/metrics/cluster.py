"""Families about the cluster as this node sees it. Absent where there is no cluster."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from esnode.metrics.model import ClusterStats, Labels, Sample, Value, View, families

_BASIC = frozenset({"cluster_members", "cluster_isolated"})


def _one(get: Callable[[ClusterStats], Value]) -> Callable[[View], Iterable[Sample]]:
    def read(view: View) -> Iterator[Sample]:
        if view.cluster is not None:
            yield (), get(view.cluster)

    return read


def _each(
    expand: Callable[[ClusterStats], Iterable[tuple[Labels, Value]]],
) -> Callable[[View], Iterable[Sample]]:
    def read(view: View) -> Iterator[Sample]:
        if view.cluster is not None:
            yield from expand(view.cluster)

    return read


_family = partial(families, "cluster", basic=_BASIC)

CLUSTER = (
    *_family(("cluster", "cluster_id", "node", "node_id", "rack"), ("cluster_info", "info", "Which node of which cluster this is.", _each(lambda c: [(c.identity, 1)]))),
    *_family(("state",), ("cluster_members", "gauge", "Members by state, this node among the alive ones.", _each(lambda c: c.members))),
    *_family(
        (),
        ("cluster_isolated", "gauge", "1 when other members are known and none of them answers.", _one(lambda c: c.is_isolated)),
        ("cluster_epoch", "gauge", "Lives of this node so far.", _one(lambda c: c.epoch)),
        ("cluster_health_score", "gauge", "How far this node doubts its own network, 0 to 7; probes are slowed by it.", _one(lambda c: c.health_score)),
        ("cluster_suspicions_total", "counter", "Times that a member came to be suspected here.", _one(lambda c: c.suspicions_total)),
        ("cluster_refutations_total", "counter", "Times that a suspected member answered for itself.", _one(lambda c: c.refutations_total)),
        ("cluster_failures_total", "counter", "Times that a member was given up here.", _one(lambda c: c.failures_total)),
        ("cluster_pauses_total", "counter", "Times that this node found that it had not been running.", _one(lambda c: c.pauses_total)),
        ("cluster_probe_round_trip_median_seconds", "gauge", "Middle of the members' smoothed times to answer.", _one(lambda c: c.round_trip_median_seconds)),
        ("cluster_probe_round_trip_max_seconds", "gauge", "The slowest member's smoothed time to answer.", _one(lambda c: c.round_trip_max_seconds)),
        ("cluster_loop_lag_seconds", "gauge", "How late the loop that answers peers was for its last deadline.", _one(lambda c: c.loop_lag_seconds)),
        ("cluster_signature_checks_total", "counter", "Signatures checked.", _one(lambda c: c.signature_checks_total)),
        ("cluster_operator_records", "gauge", "Records of operators that stand here.", _one(lambda c: c.operator_records)),
        ("cluster_certificate_end_time_seconds", "gauge", "Unix time at which this node's certificate ends.", _one(lambda c: c.certificate_end_time_seconds)),
    ),
    *_family(("result",), ("cluster_view_comparisons_total", "counter", "Pings and acks that carried the same view as ours, or another (equal, different).", _each(lambda c: c.view_comparisons_total))),
    *_family(("node",), ("cluster_state_age_seconds", "gauge", "Time since the last state of each rack mate.", _each(lambda c: c.state_ages_seconds))),
    *_family(
        ("direction", "class"),
        ("cluster_datagrams_total", "counter", "Datagrams by direction (received, sent) and what they were for.", _each(lambda c: c.datagrams_total)),
        ("cluster_datagram_bytes_total", "counter", "Their bytes, without the headers of IP and UDP.", _each(lambda c: c.datagram_bytes_total)),
    ),
    *_family(("error",), ("cluster_datagram_errors_total", "counter", "What the network did wrong.", _each(lambda c: c.datagram_errors_total))),
    *_family(("reason",), ("cluster_rejected_total", "counter", "What came in and was dropped, by the rule that it broke.", _each(lambda c: c.rejected_total))),
    *_family(("role", "result"), ("cluster_stream_requests_total", "counter", "Questions over streams, asked and answered (caller, called), by how they ended.", _each(lambda c: c.stream_requests_total))),
)  # fmt: skip
