"""Families about the agent itself and about what it thinks of the node."""

from collections.abc import Iterator
from functools import partial

from esnode.metrics.model import Sample, Value, View, agent, each, families, one, source
from esnode.readings.sample import SourceStatus
from esnode.snapshot import Snapshot

_BASIC = frozenset({"degradation_score", "agent_collector_success", "agent_build_info"})


def _age(status: SourceStatus, now: float) -> Value:
    last = status.last_success_at_seconds
    return None if last is None else max(0.0, now - last)


def _success(status: SourceStatus, now: float) -> Value:
    return None if status.state in ("pending", "unavailable") else status.state == "ok"


def _stalled_seconds(status: SourceStatus, now: float) -> Value:
    since = status.stalled_since_seconds
    return 0.0 if since is None else max(0.0, now - since)


def _disabled(snapshot: Snapshot) -> Iterator[Sample]:
    disabled = set(snapshot.disabled)
    running = dict.fromkeys(status.collector for status in snapshot.sources)
    for collector in sorted({*disabled, *running}):
        yield (collector,), collector in disabled


def _build(view: View) -> Iterator[Sample]:
    yield (view.agent.version, view.agent.python_version), 1


def _tags(snapshot: Snapshot) -> Iterator[Sample]:
    for tag, value in snapshot.tags:
        yield (tag, value), 1


def _flags(snapshot: Snapshot) -> Iterator[Sample]:
    for flag in snapshot.health.flags:
        yield (flag.kind, flag.subject), 1


_family = partial(families, "agent", basic=_BASIC)

AGENT = (
    *_family((), ("degradation_score", "gauge", "How many kinds of degradation are present; 0 is healthy.", one(lambda s: s.health.score))),
    *_family(("kind", "subject"), ("degradation_flag", "gauge", "1 for each sign that something does less than it could; absent when it is well.", each(_flags))),
    *_family(
        ("collector", "target"),
        ("agent_collector_success", "gauge", "1 when the last read went well; absent when the machine does not have it.", source(_success)),
        ("agent_collector_available", "gauge", "0 when this machine does not have it; /status says why.", source(lambda status, now: status.state != "unavailable")),
        ("agent_collector_duration_seconds", "gauge", "Time the last finished read took.", source(lambda status, now: status.duration_seconds)),
        ("agent_collector_age_seconds", "gauge", "Time since the last good read began.", source(_age)),
        ("agent_collector_stalled_seconds", "gauge", "How long a read has not come back; 0 when none is late.", source(_stalled_seconds)),
        ("agent_collector_errors_total", "counter", "Reads that failed.", source(lambda status, now: status.errors_total)),
        ("agent_collector_stalls_total", "counter", "Reads that passed their deadline.", source(lambda status, now: status.stalls_total)),
    ),
    *_family(("collector",), ("agent_collector_disabled", "gauge", "1 when the configuration turns the collector off.", each(_disabled))),
    *_family(("version", "python"), ("agent_build_info", "info", "Version of the agent.", _build)),
    *_family(("tag", "value"), ("agent_tag_info", "info", "Configured tags.", each(_tags))),
    *_family(
        (),
        ("agent_start_time_seconds", "gauge", "Unix time at which the agent started.", agent(lambda a: a.start_time_seconds)),
        ("agent_resident_memory_bytes", "gauge", "Memory of the agent.", agent(lambda a: a.resident_memory_bytes)),
        ("agent_cpu_seconds_total", "counter", "CPU time of the agent.", agent(lambda a: a.cpu_seconds_total)),
        ("agent_tick_lateness_seconds", "gauge", "How late the last tick began.", agent(lambda a: a.tick_lateness_seconds)),
        ("agent_ticks_skipped_total", "counter", "Ticks left out because one before took too long.", agent(lambda a: a.ticks_skipped_total)),
        ("agent_config_reloads_total", "counter", "Configurations applied by SIGHUP.", agent(lambda a: a.config_reloads_total)),
        ("agent_config_reload_failures_total", "counter", "Configurations refused by SIGHUP.", agent(lambda a: a.config_reload_failures_total)),
        ("agent_config_last_reload_successful", "gauge", "1 when the last SIGHUP was applied; absent before the first.", agent(lambda a: a.config_last_reload_successful)),
        ("agent_event_clients", "gauge", "Open /events streams.", agent(lambda a: a.event_clients)),
    ),
)  # fmt: skip
