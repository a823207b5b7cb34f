"""The status document: one node for people and programs, made from one snapshot.

It keeps the predecessor's field names (`StatusSnapshot`), so its clients read it, and adds what
they lacked. A field that is unknown is left out or null, never 0.
"""

from esnode import __version__
from esnode.metrics.gpu import power_watts
from esnode.metrics.host import swap_used_bytes, used_bytes
from esnode.readings.gpu import GpuReading
from esnode.readings.host import Absence
from esnode.readings.sample import SourceStatus
from esnode.snapshot import GpuState, Snapshot

SCHEMA = "esnode.status/1"

Document = dict[str, object]


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
        "gpu_driver": _driver(snapshot),
        "gpus": [_gpu(state) for state in snapshot.gpus],
        "app": _app(snapshot),
        "filesystems": _filesystems(snapshot),
        "network_interfaces": _interfaces(snapshot),
        "disks": _disks(snapshot),
        "numa_nodes": _numa(snapshot),
        "sources": [_source(status, snapshot.taken_at_seconds) for status in snapshot.sources],
        "absent": _absences(snapshot),
    }


def is_healthy(snapshot: Snapshot) -> bool:
    """Whether every source that this machine has answers; degradation is told apart."""
    return all(status.state not in ("failed", "stalled") for status in snapshot.sources)


def _errors(snapshot: Snapshot, unix_seconds: float) -> list[Document]:
    return [
        {
            "collector": status.name,
            "message": status.reason,
            "unix_ms": int(unix_seconds * 1000),
        }
        for status in snapshot.sources
        if status.state in ("failed", "stalled")
    ][:10]


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
        "disk_degraded": health.has("disk_busy") or health.has("disk_latency"),
        "network_degraded": health.has("network_drops") or health.has("tcp_retransmissions"),
        "swap_degraded": health.has("swap"),
    }


def _driver(snapshot: Snapshot) -> Document | None:
    inventory = snapshot.gpu_inventory
    if inventory is None:
        return None
    return {
        "driver": inventory.driver,
        "driver_version": inventory.driver_version,
        "library_version": inventory.library_version,
        "cuda_version": inventory.cuda_version,
        "found": inventory.found_count,
        "lost": [_absence(absence) for absence in inventory.lost],
        "absent": [_absence(absence) for absence in inventory.absent],
    }


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio * 100, 2)


def _megahertz(hertz: float | None) -> float | None:
    return None if hertz is None else hertz / 1e6


def _gpu(state: GpuState) -> Document:
    reading = state.reading
    document: Document = {
        "uuid": state.uuid,
        "gpu": None if state.index is None else str(state.index),
        "up": state.is_up,
        "reason": state.reason,
        "age_seconds": None if state.age_seconds is None else round(state.age_seconds, 3),
    }
    if reading is None:
        return document
    document |= {
        "name": reading.identity.name,
        "vendor": reading.identity.vendor,
        "identity": _identity(reading),
        "health": _gpu_health(state, reading),
        "temperature_celsius": reading.temperature_celsius,
        "memory_temperature_celsius": reading.memory_temperature_celsius,
        "temperature_margin_celsius": reading.temperature_margin_celsius,
        "power_watts": power_watts(reading),
        "power_average_watts": reading.power_average_watts,
        "power_instant_watts": reading.power_instant_watts,
        "power_limit": {
            "default_watts": reading.power_limit_default_watts,
            "min_watts": reading.power_limit_min_watts,
            "max_watts": reading.power_limit_max_watts,
            "requested_watts": reading.power_limit_requested_watts,
            "enforced_watts": reading.power_limit_enforced_watts,
        },
        "energy_joules_total": state.energy_joules_total,
        "energy_source": state.energy_source,
        "util_percent": _percent(reading.utilization_ratio),
        "memory_total_bytes": reading.memory_total_bytes,
        "memory_used_bytes": reading.memory_used_bytes,
        "fan_percent": _percent(max(reading.fan_speed_ratios, default=None)),
        "clock_sm_mhz": _megahertz(reading.clock_sm_hertz),
        "clock_mem_mhz": _megahertz(reading.clock_memory_hertz),
        "thermal_throttle": _has_reason(reading, "sw_thermal_slowdown", "hw_thermal_slowdown"),
        "power_throttle": _has_reason(reading, "sw_power_cap", "hw_power_brake_slowdown"),
        "processes": _processes(reading),
        "absent": [_absence(absence) for absence in reading.absent],
    }
    return document


def _identity(reading: GpuReading) -> Document:
    identity = reading.identity
    return {
        "pci_bus_id": identity.pci_bus_id,
        "pci_gen": reading.pcie_link_generation,
        "pci_link_width": reading.pcie_link_width,
        "pci_gen_max": reading.pcie_link_generation_max,
        "pci_link_width_max": reading.pcie_link_width_max,
        "serial": identity.serial,
        "vbios_version": identity.vbios_version,
        "architecture": identity.architecture,
        "board_id": identity.board_id,
        "numa_node": identity.numa_node,
    }


def _gpu_health(state: GpuState, reading: GpuReading) -> Document:
    return {
        "pstate": reading.performance_state,
        "throttle_reasons": list(reading.throttle_reasons or ()),
        "throttle_seconds_total": dict(state.throttle_seconds_total),
        "ecc_mode": reading.is_ecc_enabled,
        "ecc": [
            {
                "error": count.error,
                "scope": count.scope,
                "location": count.location,
                "count": count.errors_total,
            }
            for count in reading.ecc
        ],
        "retired_pages": dict(reading.retired_pages),
        "remapped_rows": dict(reading.remapped_rows),
        "remap_pending": reading.is_remap_pending,
        "remap_failed": reading.is_remap_failed,
        "encoder_util_percent": _percent(reading.encoder_utilization_ratio),
        "decoder_util_percent": _percent(reading.decoder_utilization_ratio),
        "bar1_total_bytes": reading.bar1_total_bytes,
        "bar1_used_bytes": reading.bar1_used_bytes,
        "pcie_replays_total": reading.pcie_replays_total,
    }


def _has_reason(reading: GpuReading, *reasons: str) -> bool | None:
    if reading.throttle_reasons is None:
        return None
    return any(reason in reading.throttle_reasons for reason in reasons)


def _processes(reading: GpuReading) -> list[Document] | None:
    if reading.processes is None:
        return None
    return [
        {
            "pid": process.pid,
            "name": process.name,
            "kind": process.kind,
            "memory_used_bytes": process.memory_used_bytes,
        }
        for process in reading.processes
    ]


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


def _absence(absence: Absence) -> Document:
    return {"what": absence.what, "reason": absence.reason}


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
    )
    found = {name: [_absence(a) for a in part.absent] for name, part in parts if part}
    for status in snapshot.sources:
        if status.state == "unavailable" and not status.target:
            found.setdefault(status.collector, []).append(
                {"what": status.collector, "reason": status.reason}
            )
    return {name: absences for name, absences in found.items() if absences}
