"""Names of other exporters, served beside ours so that their dashboards go on working.

``esnode-core``: the predecessor's names. Where its family had our name, ours gains its `index`
label; where it had another name or unit, a second family is served. Families that it registered
and never set, and whose subject we do not read, are not served at all: a constant 0 is a lie.
``dcgm``: dcgm-exporter's names, units (MiB, MHz, percent, mJ) and labels.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from esnode.metrics.model import (
    Kind,
    Labels,
    Metric,
    Sample,
    Value,
    View,
    as_text,
    each,
    gpu,
    one,
    source,
)
from esnode.readings.gpu import THROTTLE_REASONS, GpuReading
from esnode.readings.host import CPU_MODES
from esnode.snapshot import GpuState, Snapshot

MEBIBYTE = 1 << 20

_THERMAL = ("sw_thermal_slowdown", "hw_thermal_slowdown")
_POWER = ("sw_power_cap", "hw_power_brake_slowdown")


def with_index(metric: Metric) -> Metric:
    """The same family with the GPU's `index` after its `uuid`, as the predecessor had it."""
    if metric.group != "gpu" or metric.labels[:1] != ("uuid",) or "index" in metric.labels:
        return metric

    def read(view: View) -> Iterator[Sample]:
        index = {state.uuid: as_text(state.index) for state in view.snapshot.gpus}
        for labels, value in metric.read(view):
            yield (labels[0], index.get(labels[0], ""), *labels[1:]), value

    return replace(metric, labels=("uuid", "index", *metric.labels[1:]), read=read)


def times(value: Value, factor: float) -> Value:
    """In another unit, without the dust of binary fractions: 0.57 is 57 percent."""
    return value if value is None or factor == 1 else round(value * factor, 6)


def _scaled(
    get: Callable[[GpuReading], float | None], factor: float
) -> Callable[[View], Iterable[Sample]]:
    return gpu(lambda reading: times(get(reading), factor))


def _old(
    name: str,
    kind: Kind,
    read: Callable[[View], Iterable[Sample]],
    successor: str,
    *,
    group: str,
    labels: Labels = (),
) -> Metric:
    return Metric(
        name=f"esnode_{name}", kind=kind, group=group, labels=labels, read=read,
        help=f"Alias of the predecessor; use {successor}.",
    )  # fmt: skip


def _old_gpu(
    name: str,
    read: Callable[[View], Iterable[Sample]],
    successor: str,
    kind: Kind = "gauge",
    labels: Labels = (),
) -> Metric:
    return with_index(_old(name, kind, read, successor, group="gpu", labels=("uuid", *labels)))


def _cores_percent(view: View) -> Iterator[Sample]:
    if view.is_per_core:
        for cpu, ratio in view.snapshot.cpu_usage.core_utilization_ratios:
            yield (f"cpu{cpu}",), times(ratio, 100)


def _modes(snapshot: Snapshot) -> Iterator[Sample]:
    if snapshot.cpu is not None and snapshot.cpu.mode_seconds is not None:
        for mode, seconds in zip(CPU_MODES[:8], snapshot.cpu.mode_seconds, strict=False):
            yield (mode,), seconds


def _numa_percent(snapshot: Snapshot) -> Iterator[Sample]:
    for node, ratio in snapshot.cpu_usage.node_utilization_ratios:
        yield (str(node),), times(ratio, 100)


def _mounts(pick: Callable[[int, int, int], int]) -> Callable[[View], Iterable[Sample]]:
    def expand(snapshot: Snapshot) -> Iterator[Sample]:
        for fs in snapshot.filesystems:
            yield (fs.mount.mountpoint,), pick(fs.size_bytes, fs.free_bytes, fs.available_bytes)

    return each(expand)


def _devices(attribute: str, factor: float = 1) -> Callable[[View], Iterable[Sample]]:
    def expand(snapshot: Snapshot) -> Iterator[Sample]:
        for device in snapshot.disk.devices if snapshot.disk else ():
            yield (device.device,), times(getattr(device, attribute), factor)

    return each(expand)


def _latency(snapshot: Snapshot) -> Iterator[Sample]:
    for disk in snapshot.rates.disks:
        yield (disk.device,), times(disk.latency_seconds, 1000)


def _flag(
    kind: str, subjects: Callable[[Snapshot], Iterable[str]]
) -> Callable[[View], Iterable[Sample]]:
    def expand(snapshot: Snapshot) -> Iterator[Sample]:
        for subject in subjects(snapshot):
            yield (subject,), snapshot.health.has(kind, subject)

    return each(expand)


def _disks(snapshot: Snapshot) -> Iterator[str]:
    return (disk.device for disk in snapshot.rates.disks)


def _interfaces(snapshot: Snapshot) -> Iterator[str]:
    return (usage.interface for usage in snapshot.rates.interfaces)


def _telling_throttle(snapshot: Snapshot) -> Iterator[str]:
    for state in snapshot.gpus:
        if state.reading is not None and state.reading.throttle_reasons is not None:
            yield state.uuid


def _telling_errors(snapshot: Snapshot) -> Iterator[str]:
    for state in snapshot.gpus:
        if state.reading is not None and (state.reading.ecc or state.reading.remapped_rows):
            yield state.uuid


def _packages(attribute: str) -> Callable[[View], Iterable[Sample]]:
    def expand(snapshot: Snapshot) -> Iterator[Sample]:
        for zone in snapshot.power.zones:
            yield (zone.path,), getattr(zone, attribute)

    return each(expand)


def _core_zones(snapshot: Snapshot) -> Iterator[Sample]:
    for zone in snapshot.power.zones:
        if zone.zone == "core":
            yield (zone.path,), zone.power_watts


def _throttle(view: View) -> Iterator[Sample]:
    for state in view.snapshot.gpus:
        if state.reading is not None and state.reading.throttle_reasons is not None:
            active = state.reading.throttle_reasons
            yield (state.uuid, "thermal"), any(r in _THERMAL for r in active)
            yield (state.uuid, "power"), any(r in _POWER for r in active)
            yield (
                (state.uuid, "other"),
                any(r not in (*_THERMAL, *_POWER, "gpu_idle") for r in active),
            )


def _fan(reading: GpuReading) -> float | None:
    return max(reading.fan_speed_ratios) if reading.fan_speed_ratios else None


ESNODE_CORE = (
    _old("cpu_load_avg_1m", "gauge", one(lambda s: s.cpu.load1 if s.cpu else None), "esnode_cpu_load1", group="cpu"),
    _old("cpu_load_avg_5m", "gauge", one(lambda s: s.cpu.load5 if s.cpu else None), "esnode_cpu_load5", group="cpu"),
    _old("cpu_load_avg_15m", "gauge", one(lambda s: s.cpu.load15 if s.cpu else None), "esnode_cpu_load15", group="cpu"),
    _old("cpu_usage_percent", "gauge", _cores_percent, "esnode_cpu_utilization_ratio", group="cpu", labels=("core",)),
    _old("cpu_time_seconds_total", "counter", each(_modes), "esnode_cpu_seconds_total", group="cpu", labels=("state",)),
    _old("numa_cpu_usage_percent", "gauge", each(_numa_percent), "esnode_numa_cpu_utilization_ratio", group="numa", labels=("node",)),
    _old("page_in_bytes_total", "counter", one(lambda s: s.memory.page_in_bytes_total if s.memory else None), "esnode_memory_page_in_bytes_total", group="memory"),
    _old("page_out_bytes_total", "counter", one(lambda s: s.memory.page_out_bytes_total if s.memory else None), "esnode_memory_page_out_bytes_total", group="memory"),
    _old("disk_total_bytes", "gauge", _mounts(lambda size, free, avail: size), "esnode_filesystem_size_bytes", group="filesystem", labels=("mount",)),
    _old("disk_used_bytes", "gauge", _mounts(lambda size, free, avail: size - avail), "esnode_filesystem_size_bytes", group="filesystem", labels=("mount",)),
    _old("disk_free_bytes", "gauge", _mounts(lambda size, free, avail: avail), "esnode_filesystem_avail_bytes", group="filesystem", labels=("mount",)),
    _old("disk_read_ops_total", "counter", _devices("reads_completed_total"), "esnode_disk_reads_completed_total", group="disk", labels=("device",)),
    _old("disk_write_ops_total", "counter", _devices("writes_completed_total"), "esnode_disk_writes_completed_total", group="disk", labels=("device",)),
    _old("disk_io_time_ms_total", "counter", _devices("io_time_seconds_total", 1000), "esnode_disk_io_time_seconds_total", group="disk", labels=("device",)),
    _old("disk_io_avg_latency_ms", "gauge", each(_latency), "esnode_disk_request_latency_seconds", group="disk", labels=("device",)),
    _old("disk_degradation_busy", "gauge", _flag("disk_busy", _disks), "esnode_degradation_flag", group="disk", labels=("device",)),
    _old("disk_degradation_latency", "gauge", _flag("disk_latency", _disks), "esnode_degradation_flag", group="disk", labels=("device",)),
    _old("network_tcp_retrans_total", "counter", one(lambda s: s.network.tcp_retransmitted_segments_total if s.network else None), "esnode_tcp_retransmitted_segments_total", group="network"),
    _old("network_degradation_drops", "gauge", _flag("network_drops", _interfaces), "esnode_degradation_flag", group="network", labels=("iface",)),
    _old("network_degradation_retrans", "gauge", one(lambda s: s.health.has("tcp_retransmissions") if s.network else None), "esnode_degradation_flag", group="network"),
    _old("swap_degradation_spike", "gauge", one(lambda s: s.health.has("swap") if s.memory else None), "esnode_degradation_flag", group="memory"),
    _old("cpu_package_power_watts", "gauge", _packages("power_watts"), "esnode_cpu_rapl_power_watts", group="power", labels=("package",)),
    _old("cpu_package_energy_joules_total", "counter", _packages("energy_joules_total"), "esnode_cpu_rapl_energy_joules_total", group="power", labels=("package",)),
    _old("cpu_core_power_watts", "gauge", each(_core_zones), "esnode_cpu_rapl_power_watts", group="power", labels=("core",)),
    _old("app_tokens_per_sec", "gauge", one(lambda s: s.app.tokens_per_second), "esnode_app_tokens_total", group="app"),
    _old("agent_scrape_duration_seconds", "gauge", source(lambda status, now: status.duration_seconds), "esnode_agent_collector_duration_seconds", group="agent", labels=("collector", "target")),
    _old("agent_errors_total", "counter", source(lambda status, now: status.errors_total), "esnode_agent_collector_errors_total", group="agent", labels=("collector", "target")),
    _old("agent_running", "gauge", one(lambda s: 1), "up", group="agent"),
    _old_gpu("gpu_utilization_percent", _scaled(lambda r: r.utilization_ratio, 100), "esnode_gpu_utilization_ratio"),
    _old_gpu("gpu_fan_speed_percent", _scaled(_fan, 100), "esnode_gpu_fan_speed_ratio"),
    _old_gpu("gpu_clock_sm_mhz", _scaled(lambda r: r.clock_sm_hertz, 1e-6), "esnode_gpu_clock_hertz"),
    _old_gpu("gpu_clock_mem_mhz", _scaled(lambda r: r.clock_memory_hertz, 1e-6), "esnode_gpu_clock_hertz"),
    _old_gpu("gpu_clock_graphics_mhz", _scaled(lambda r: r.clock_graphics_hertz, 1e-6), "esnode_gpu_clock_hertz"),
    _old_gpu("gpu_encoder_utilization_percent", _scaled(lambda r: r.encoder_utilization_ratio, 100), "esnode_gpu_encoder_utilization_ratio"),
    _old_gpu("gpu_decoder_utilization_percent", _scaled(lambda r: r.decoder_utilization_ratio, 100), "esnode_gpu_decoder_utilization_ratio"),
    _old_gpu("gpu_ecc_mode", gpu(lambda r: r.is_ecc_enabled), "esnode_gpu_ecc_enabled"),
    _old_gpu("gpu_pcie_replay_errors_total", gpu(lambda r: r.pcie_replays_total), "esnode_gpu_pcie_replays_total", "counter"),
    _old_gpu("pcie_link_width", gpu(lambda r: r.pcie_link_width), "esnode_gpu_pcie_link_width"),
    _old_gpu("pcie_link_gen", gpu(lambda r: r.pcie_link_generation), "esnode_gpu_pcie_link_generation"),
    _old_gpu("gpu_throttle_reason", _throttle, "esnode_gpu_clocks_event_reason", labels=("reason",)),
    _old_gpu("gpu_degradation_throttle", _flag("gpu_throttle", _telling_throttle), "esnode_degradation_flag"),
    _old_gpu("gpu_degradation_ecc", _flag("gpu_ecc", _telling_errors), "esnode_degradation_flag"),
)  # fmt: skip


def _compat(get: Callable[[GpuReading], Value]) -> Callable[[View], Iterable[Sample]]:
    # The predecessor gave all GPUs one label value, so the last one won; ours adds the index.
    def read(view: View) -> Iterator[Sample]:
        for state in view.snapshot.gpus:
            if state.reading is not None:
                yield ("nvidia.com/gpu", as_text(state.index)), get(state.reading)

    return read


KUBERNETES = tuple(
    _old(f"gpu_{name}_compat", "gauge", _compat(get), f"esnode_gpu_{successor}", group="gpu", labels=("gpu", "index"))
    for name, get, successor in (
        ("utilization_percent", lambda r: times(r.utilization_ratio, 100), "utilization_ratio"),
        ("memory_used_bytes", lambda r: r.memory_used_bytes, "memory_used_bytes"),
        ("temperature_celsius", lambda r: r.temperature_celsius, "temperature_celsius"),
        ("power_watts", lambda r: r.power_watts, "power_watts"),
    )
)  # fmt: skip

_DCGM_LABELS = ("gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname")


def _dcgm(name: str, text: str, get: Callable[[GpuState], Value], kind: Kind = "gauge") -> Metric:
    def read(view: View) -> Iterator[Sample]:
        for state in view.snapshot.gpus:
            if state.reading is not None:
                identity = state.reading.identity
                labels = (
                    str(identity.index), identity.uuid, as_text(identity.pci_bus_id).upper(),
                    f"nvidia{identity.index}", identity.name, view.hostname,
                )  # fmt: skip
                yield labels, get(state)

    return Metric(name=name, kind=kind, help=text, group="gpu", labels=_DCGM_LABELS, read=read)


def _dcgm_reading(
    name: str,
    text: str,
    get: Callable[[GpuReading], Value],
    factor: float = 1,
    kind: Kind = "gauge",
) -> Metric:
    def scaled(state: GpuState) -> Value:
        return times(get(state.reading), factor) if state.reading else None

    return _dcgm(name, text, scaled, kind)


def _reason_bits(reading: GpuReading) -> int | None:
    if reading.throttle_reasons is None:
        return None
    return sum(
        1 << THROTTLE_REASONS.index(r) for r in reading.throttle_reasons if r in THROTTLE_REASONS
    )


def _rows(kind: str) -> Callable[[GpuReading], int | None]:
    return lambda reading: dict(reading.remapped_rows).get(kind)


DCGM = (
    _dcgm_reading("DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).", lambda r: r.clock_sm_hertz, 1e-6),
    _dcgm_reading("DCGM_FI_DEV_MEM_CLOCK", "Memory clock frequency (in MHz).", lambda r: r.clock_memory_hertz, 1e-6),
    _dcgm_reading("DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", lambda r: r.temperature_celsius),
    _dcgm_reading("DCGM_FI_DEV_MEMORY_TEMP", "Memory temperature (in C).", lambda r: r.memory_temperature_celsius),
    _dcgm_reading("DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", lambda r: r.power_watts),
    _dcgm("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "Energy consumption (in mJ).", lambda g: None if g.energy_joules_total is None else int(g.energy_joules_total * 1000), "counter"),
    _dcgm_reading("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "PCIe retries.", lambda r: r.pcie_replays_total, 1, "counter"),
    _dcgm_reading("DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", lambda r: r.utilization_ratio, 100),
    _dcgm_reading("DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization (in %).", lambda r: r.memory_utilization_ratio, 100),
    _dcgm_reading("DCGM_FI_DEV_ENC_UTIL", "Encoder utilization (in %).", lambda r: r.encoder_utilization_ratio, 100),
    _dcgm_reading("DCGM_FI_DEV_DEC_UTIL", "Decoder utilization (in %).", lambda r: r.decoder_utilization_ratio, 100),
    _dcgm_reading("DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", lambda r: r.memory_used_bytes, 1 / MEBIBYTE),
    _dcgm_reading("DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", lambda r: r.memory_free_bytes, 1 / MEBIBYTE),
    _dcgm_reading("DCGM_FI_DEV_FB_RESERVED", "Framebuffer memory reserved (in MiB).", lambda r: r.memory_reserved_bytes, 1 / MEBIBYTE),
    _dcgm_reading("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "Clock event reasons (bit mask).", _reason_bits),
    _dcgm_reading("DCGM_FI_DEV_POWER_MGMT_LIMIT", "Power limit in force (in W).", lambda r: r.power_limit_enforced_watts),
    _dcgm_reading("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "Remapped rows for correctable errors.", _rows("corrected")),
    _dcgm_reading("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "Remapped rows for uncorrectable errors.", _rows("uncorrected")),
    _dcgm_reading("DCGM_FI_DEV_ROW_REMAP_FAILURE", "Whether remapping of rows has failed.", lambda r: r.is_remap_failed),
)  # fmt: skip
