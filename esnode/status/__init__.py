"""The status document: one node for people and programs, made from one snapshot.

It keeps the predecessor's field names (`StatusSnapshot`), so its clients read it, and adds what
they lacked. A field that is unknown is left out or null, never 0.
"""

from esnode import __version__
from esnode.metrics.host import swap_used_bytes, used_bytes
from esnode.readings.sample import SourceStatus
from esnode.snapshot import Snapshot
from esnode.status.gpu import Document, describe_absence, describe_driver, describe_gpu

SCHEMA = "esnode.status/1"

NO_NODE_POWER = (
    "no meter of the whole machine answers, and for an estimate the processors' load or the draw "
    "of a GPU is not known"
)


def describe(
    snapshot: Snapshot, *, hostname: str, unix_seconds: float, uptime_seconds: float | None
) -> Document:
    """The whole document."""
    return {
        "schema": SCHEMA,
        "agent_version": __version__,
        "hostname": hostname,
        "tags": dict(snapshot.tags),
        "healthy": is_healthy(snapshot),
        "uptime_seconds": uptime_seconds,
        "last_scrape_unix_ms": int(unix_seconds * 1000),
        "last_errors": _errors(snapshot, unix_seconds),
        **_host(snapshot),
        **_power(snapshot),
        **_health(snapshot),
        "gpu_driver": describe_driver(snapshot),
        "gpus": [describe_gpu(state, snapshot.gpu_inventory) for state in snapshot.gpus],
        "app_tokens_per_sec": snapshot.app.tokens_per_second,
        "app_tokens_per_watt": snapshot.app.tokens_per_joule,
        "app": _app(snapshot),
        "filesystems": _filesystems(snapshot),
        "network_interfaces": _interfaces(snapshot),
        "disks": _disks(snapshot),
        "numa_nodes": _numa(snapshot),
        "sources": [_source(status, snapshot.taken_at_seconds) for status in snapshot.sources],
        "absent": _absences(snapshot),
    }


def is_healthy(snapshot: Snapshot) -> bool:
    """Whether every source and GPU that this machine has answers; degradation is told apart."""
    if snapshot.gpu_inventory is not None and snapshot.gpu_inventory.lost:
        return False
    return all(status.state not in ("failed", "stalled") for status in snapshot.sources)


def _errors(snapshot: Snapshot, unix_seconds: float) -> list[Document]:
    clock_began = unix_seconds - snapshot.taken_at_seconds
    errors: list[Document] = []
    for status in snapshot.sources:
        if status.state in ("failed", "stalled"):
            at = status.last_error_at_seconds
            unix_ms = None if at is None else int((clock_began + at) * 1000)
            errors.append({"collector": status.name, "message": status.reason, "unix_ms": unix_ms})
    return errors[:10]


def _host(snapshot: Snapshot) -> Document:
    cpu, memory = snapshot.cpu, snapshot.memory
    usage = snapshot.cpu_usage.utilization_ratio
    root = next((fs for fs in snapshot.filesystems if fs.mount.mountpoint == "/"), None)
    busiest = max(
        snapshot.rates.interfaces,
        key=lambda usage: (
            (usage.receive_bytes_per_second or 0) + (usage.transmit_bytes_per_second or 0)
            if usage.interface != "lo"
            else -1.0
        ),
        default=None,
    )
    return {
        "load_avg_1m": cpu.load1 if cpu else None,
        "load_avg_5m": cpu.load5 if cpu else None,
        "load_avg_15m": cpu.load15 if cpu else None,
        "cpu_cores": len(cpu.cpu_mode_seconds) or None if cpu else None,
        "cpu_util_percent": None if usage is None else round(usage * 100, 2),
        "cpu_temperatures": [
            {"sensor": f"{t.chip} {t.label or t.sensor}", "celsius": t.temperature_celsius}
            for t in (cpu.temperatures if cpu else ())
        ],
        "mem_total_bytes": memory.total_bytes if memory else None,
        "mem_used_bytes": used_bytes(memory) if memory else None,
        "mem_free_bytes": memory.free_bytes if memory else None,
        "mem_available_bytes": memory.available_bytes if memory else None,
        "swap_total_bytes": memory.swap_total_bytes if memory else None,
        "swap_used_bytes": swap_used_bytes(memory) if memory else None,
        "disk_root_total_bytes": root.size_bytes if root else None,
        "disk_root_used_bytes": root.size_bytes - root.free_bytes if root else None,
        "primary_nic": busiest.interface if busiest else None,
        "net_rx_bytes_per_sec": busiest.receive_bytes_per_second if busiest else None,
        "net_tx_bytes_per_sec": busiest.transmit_bytes_per_second if busiest else None,
        "net_drops_per_sec": busiest.drops_per_second if busiest else None,
        "tcp_retransmission_ratio": snapshot.rates.tcp_retransmission_ratio,
    }


def _power(snapshot: Snapshot) -> Document:
    power = snapshot.power
    node = power.node
    return {
        "node_power_watts": node.power_watts if node else None,
        "node_power": {
            "watts": node.power_watts,
            "source": node.source,
            "estimated": node.is_estimated,
            "age_seconds": round(node.age_seconds, 3),
        }
        if node
        else None,
        "node_energy_joules_total": power.node_energy_joules_total,
        "node_power_envelope_watts": power.envelope_watts,
        "node_power_envelope_exceeded": power.is_envelope_exceeded,
        "cpu_package_power_watts": [
            {
                "package": zone.path,
                "zone": zone.zone,
                "socket": zone.socket,
                "watts": zone.power_watts,
            }
            for zone in power.zones
            if zone.power_watts is not None
        ],
    }


def _health(snapshot: Snapshot) -> Document:
    health = snapshot.health
    return {
        "degradation_score": health.score,
        "degradation_flags": [
            {"kind": flag.kind, "subject": flag.subject, "detail": flag.detail}
            for flag in health.flags
        ],
        "disk_degraded": _any_raised(snapshot, snapshot.disk, "disk_busy", "disk_latency"),
        "network_degraded": _any_raised(
            snapshot, snapshot.network, "network_drops", "tcp_retransmissions"
        ),
        "swap_degraded": _any_raised(snapshot, snapshot.memory, "swap"),
    }


def _any_raised(snapshot: Snapshot, part: object, *kinds: str) -> bool | None:
    """Whether a flag is raised; ``None`` when what it is judged by is not known."""
    return None if part is None else any(snapshot.health.has(kind) for kind in kinds)


def _app(snapshot: Snapshot) -> Document:
    app = snapshot.app
    return {
        "tokens_per_sec": app.tokens_per_second,
        "tokens_per_joule": app.tokens_per_joule,
        "cost_per_million_tokens": app.cost_per_million_tokens,
        "carbon_grams_per_token": app.carbon_grams_per_token,
        "window_seconds": app.window_seconds,
        "endpoints": [
            {
                "endpoint": endpoint.endpoint,
                "engine": endpoint.engine,
                "requests_running": endpoint.requests_running,
                "requests_waiting": endpoint.requests_waiting,
                "tokens": [
                    {"model": count.model, "kind": count.kind, "total": count.tokens_total}
                    for count in endpoint.tokens
                ],
            }
            for endpoint in app.endpoints
        ],
    }


def _filesystems(snapshot: Snapshot) -> list[Document]:
    return [
        {
            "mountpoint": fs.mount.mountpoint,
            "device": fs.mount.device,
            "fstype": fs.mount.filesystem_type,
            "size_bytes": fs.size_bytes,
            "available_bytes": fs.available_bytes,
        }
        for fs in snapshot.filesystems
    ]


def _interfaces(snapshot: Snapshot) -> list[Document]:
    return [
        {
            "interface": usage.interface,
            "receive_bytes_per_second": usage.receive_bytes_per_second,
            "transmit_bytes_per_second": usage.transmit_bytes_per_second,
            "drops_per_second": usage.drops_per_second,
        }
        for usage in snapshot.rates.interfaces
    ]


def _disks(snapshot: Snapshot) -> list[Document]:
    return [
        {
            "device": disk.device,
            "busy_ratio": disk.busy_ratio,
            "latency_seconds": disk.latency_seconds,
        }
        for disk in snapshot.rates.disks
    ]


def _numa(snapshot: Snapshot) -> list[Document]:
    usage = dict(snapshot.cpu_usage.node_utilization_ratios)
    return [
        {
            "node": node.node,
            "cpus": len(node.cpus),
            "memory_total_bytes": node.memory_total_bytes,
            "memory_free_bytes": node.memory_free_bytes,
            "cpu_utilization_ratio": usage.get(node.node),
        }
        for node in (snapshot.numa.nodes if snapshot.numa else ())
    ]


def _source(status: SourceStatus, now: float) -> Document:
    last = status.last_success_at_seconds
    since = status.stalled_since_seconds
    return {
        "collector": status.collector,
        "target": status.target,
        "state": status.state,
        "reason": status.reason,
        "age_seconds": None if last is None else round(now - last, 3),
        "duration_seconds": status.duration_seconds,
        "stalled_seconds": None if since is None else round(now - since, 3),
        "interval_seconds": status.interval_seconds,
        "errors_total": status.errors_total,
        "stalls_total": status.stalls_total,
    }


def _absences(snapshot: Snapshot) -> dict[str, list[Document]]:
    """The capability map: what each collector cannot provide here, and why."""
    parts = (
        ("cpu", snapshot.cpu),
        ("memory", snapshot.memory),
        ("disk", snapshot.disk),
        ("network", snapshot.network),
        ("numa", snapshot.numa),
        ("power", snapshot.power_reading),
        ("ipmi", snapshot.ipmi),
        ("gpu", snapshot.gpu_inventory),
        *((f"app:{endpoint.endpoint}", endpoint) for endpoint in snapshot.app.endpoints),
    )
    found = {name: [describe_absence(a) for a in part.absent] for name, part in parts if part}
    for status in snapshot.sources:
        if status.state == "unavailable" and not status.target:
            found.setdefault(status.collector, []).append(
                {"what": status.collector, "reason": status.reason}
            )
    if snapshot.power.node is None:
        found["node_power"] = [{"what": "node_power", "reason": NO_NODE_POWER}]
    return {name: absences for name, absences in found.items() if absences}
