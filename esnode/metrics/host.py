"""Families of the processor, memory, disks, network and NUMA nodes."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from esnode.metrics.model import Sample, Value, View, each, families, one
from esnode.readings.host import (
    CPU_MODES,
    BlockDeviceReading,
    CpuReading,
    FilesystemReading,
    InterfaceReading,
    MemoryReading,
    NetworkReading,
    NumaNodeReading,
)
from esnode.snapshot import Snapshot


def _cpu(get: Callable[[CpuReading], Value]) -> Callable[[View], Iterable[Sample]]:
    return one(lambda s: get(s.cpu) if s.cpu else None)


def _memory(get: Callable[[MemoryReading], Value]) -> Callable[[View], Iterable[Sample]]:
    return one(lambda s: get(s.memory) if s.memory else None)


def _network(get: Callable[[NetworkReading], Value]) -> Callable[[View], Iterable[Sample]]:
    return one(lambda s: get(s.network) if s.network else None)


def _filesystem(get: Callable[[FilesystemReading], Value]) -> Callable[[View], Iterable[Sample]]:
    def expand(snapshot: Snapshot) -> Iterator[Sample]:
        for fs in snapshot.filesystems:
            yield (fs.mount.mountpoint, fs.mount.device, fs.mount.filesystem_type), get(fs)

    return each(expand)


def _disk(get: Callable[[BlockDeviceReading], Value]) -> Callable[[View], Iterable[Sample]]:
    def expand(snapshot: Snapshot) -> Iterator[Sample]:
        for device in snapshot.disk.devices if snapshot.disk else ():
            yield (device.device,), get(device)

    return each(expand)


def _interface(get: Callable[[InterfaceReading], Value]) -> Callable[[View], Iterable[Sample]]:
    def expand(snapshot: Snapshot) -> Iterator[Sample]:
        for interface in snapshot.network.interfaces if snapshot.network else ():
            yield (interface.interface,), get(interface)

    return each(expand)


def _numa(get: Callable[[NumaNodeReading], Value]) -> Callable[[View], Iterable[Sample]]:
    def expand(snapshot: Snapshot) -> Iterator[Sample]:
        for node in snapshot.numa.nodes if snapshot.numa else ():
            yield (str(node.node),), get(node)

    return each(expand)


def _cpu_modes(snapshot: Snapshot) -> Iterator[Sample]:
    if snapshot.cpu is not None and snapshot.cpu.mode_seconds is not None:
        for mode, seconds in zip(CPU_MODES, snapshot.cpu.mode_seconds, strict=False):
            yield (mode,), seconds


def _pressure(snapshot: Snapshot) -> Iterator[Sample]:
    for pressure in snapshot.cpu.pressure if snapshot.cpu else ():
        yield (pressure.resource, pressure.kind), pressure.stalled_seconds_total


def _temperatures(snapshot: Snapshot) -> Iterator[Sample]:
    for sensor in snapshot.cpu.temperatures if snapshot.cpu else ():
        yield (sensor.chip, sensor.sensor, sensor.label), sensor.temperature_celsius


def _cores(view: View) -> Iterator[Sample]:
    if view.is_per_core:
        for cpu, ratio in view.snapshot.cpu_usage.core_utilization_ratios:
            yield (str(cpu),), ratio


def _numa_utilization(snapshot: Snapshot) -> Iterator[Sample]:
    for node, ratio in snapshot.cpu_usage.node_utilization_ratios:
        yield (str(node),), ratio


def _distances(snapshot: Snapshot) -> Iterator[Sample]:
    for node in snapshot.numa.nodes if snapshot.numa else ():
        for other, distance in node.distances:
            yield (str(node.node), str(other)), distance


def used_bytes(memory: MemoryReading) -> int | None:
    """Memory that cannot be given to a new program: total less available, as free(1) counts."""
    if memory.total_bytes is None or memory.available_bytes is None:
        return None
    return memory.total_bytes - memory.available_bytes


def swap_used_bytes(memory: MemoryReading) -> int | None:
    """Swap in use."""
    if memory.swap_total_bytes is None or memory.swap_free_bytes is None:
        return None
    return memory.swap_total_bytes - memory.swap_free_bytes


_BASIC = frozenset({
    "cpu_load1", "cpu_utilization_ratio", "memory_total_bytes", "memory_available_bytes",
    "memory_used_bytes", "filesystem_size_bytes", "filesystem_avail_bytes",
    "disk_read_bytes_total", "disk_written_bytes_total", "network_rx_bytes_total",
    "network_tx_bytes_total",
})  # fmt: skip
_family = partial(families, basic=_BASIC)

CPU = (
    *_family(
        "cpu", (),
        ("cpu_load1", "gauge", "Load average over 1 minute.", _cpu(lambda c: c.load1)),
        ("cpu_load5", "gauge", "Load average over 5 minutes.", _cpu(lambda c: c.load5)),
        ("cpu_load15", "gauge", "Load average over 15 minutes.", _cpu(lambda c: c.load15)),
        ("cpus", "gauge", "Online CPUs (hardware threads).", _cpu(lambda c: len(c.cpu_mode_seconds) or None)),
        ("cpu_utilization_ratio", "gauge", "Share of CPU time that was neither idle nor waiting for I/O, over the last interval.", one(lambda s: s.cpu_usage.utilization_ratio)),
        ("cpu_interrupts_total", "counter", "Interrupts served since boot.", _cpu(lambda c: c.interrupts_total)),
        ("cpu_context_switches_total", "counter", "Context switches since boot.", _cpu(lambda c: c.context_switches_total)),
        ("cpu_forks_total", "counter", "Processes and threads created since boot.", _cpu(lambda c: c.forks_total)),
        ("cpu_processes_running", "gauge", "Runnable threads.", _cpu(lambda c: c.processes_running)),
        ("cpu_processes_blocked", "gauge", "Threads blocked on I/O.", _cpu(lambda c: c.processes_blocked)),
        ("boot_time_seconds", "gauge", "Unix time of the boot.", _cpu(lambda c: c.boot_time_seconds)),
    ),
    *_family("cpu", ("mode",), ("cpu_seconds_total", "counter", "CPU time by mode since boot, all CPUs. Guest time is also in user.", each(_cpu_modes))),
    *_family("cpu", ("core",), ("cpu_core_utilization_ratio", "gauge", "Utilisation of each core; served with metrics_per_core.", _cores)),
    *_family("cpu", ("resource", "kind"), ("pressure_stalled_seconds_total", "counter", "Time in which some or all tasks waited for the resource (PSI).", each(_pressure))),
    *_family("cpu", ("chip", "sensor", "label"), ("cpu_temperature_celsius", "gauge", "Temperature by sensor.", each(_temperatures))),
)  # fmt: skip

MEMORY = _family(
    "memory", (),
    ("memory_total_bytes", "gauge", "Usable memory.", _memory(lambda m: m.total_bytes)),
    ("memory_used_bytes", "gauge", "Memory that a new program cannot have: total less available.", _memory(used_bytes)),
    ("memory_free_bytes", "gauge", "Memory used for nothing.", _memory(lambda m: m.free_bytes)),
    ("memory_available_bytes", "gauge", "Memory that a new program can have without swapping.", _memory(lambda m: m.available_bytes)),
    ("memory_buffers_bytes", "gauge", "Block device buffers.", _memory(lambda m: m.buffers_bytes)),
    ("memory_cached_bytes", "gauge", "Page cache.", _memory(lambda m: m.cached_bytes)),
    ("memory_shared_bytes", "gauge", "Shared memory and tmpfs.", _memory(lambda m: m.shared_bytes)),
    ("memory_slab_reclaimable_bytes", "gauge", "Kernel caches that can be reclaimed.", _memory(lambda m: m.slab_reclaimable_bytes)),
    ("memory_dirty_bytes", "gauge", "Data waiting to be written to disk.", _memory(lambda m: m.dirty_bytes)),
    ("swap_total_bytes", "gauge", "Swap space.", _memory(lambda m: m.swap_total_bytes)),
    ("swap_free_bytes", "gauge", "Unused swap space.", _memory(lambda m: m.swap_free_bytes)),
    ("swap_used_bytes", "gauge", "Swap space in use.", _memory(swap_used_bytes)),
    ("swap_in_pages_total", "counter", "Pages swapped in since boot.", _memory(lambda m: m.swap_in_pages_total)),
    ("swap_out_pages_total", "counter", "Pages swapped out since boot.", _memory(lambda m: m.swap_out_pages_total)),
    ("memory_page_in_bytes_total", "counter", "Bytes read from block devices into memory since boot.", _memory(lambda m: m.page_in_bytes_total)),
    ("memory_page_out_bytes_total", "counter", "Bytes written from memory to block devices since boot.", _memory(lambda m: m.page_out_bytes_total)),
    ("memory_page_faults_total", "counter", "Page faults since boot.", _memory(lambda m: m.page_faults_total)),
    ("memory_major_page_faults_total", "counter", "Page faults that had to read from a device, since boot.", _memory(lambda m: m.major_page_faults_total)),
    ("memory_oom_kills_total", "counter", "Processes killed for want of memory since boot.", _memory(lambda m: m.oom_kills_total)),
)  # fmt: skip

FILESYSTEM = _family(
    "filesystem", ("mountpoint", "device", "fstype"),
    ("filesystem_size_bytes", "gauge", "Size of the filesystem.", _filesystem(lambda f: f.size_bytes)),
    ("filesystem_free_bytes", "gauge", "Free space, the superuser's reserve included.", _filesystem(lambda f: f.free_bytes)),
    ("filesystem_avail_bytes", "gauge", "Free space for everybody.", _filesystem(lambda f: f.available_bytes)),
    ("filesystem_files", "gauge", "Inodes.", _filesystem(lambda f: f.inodes_total)),
    ("filesystem_files_free", "gauge", "Free inodes.", _filesystem(lambda f: f.inodes_free)),
    ("filesystem_read_only", "gauge", "1 when mounted read-only.", _filesystem(lambda f: f.mount.read_only)),
)  # fmt: skip


def _usage(attribute: str) -> Callable[[View], Iterable[Sample]]:
    def expand(snapshot: Snapshot) -> Iterator[Sample]:
        for disk in snapshot.rates.disks:
            yield (disk.device,), getattr(disk, attribute)

    return each(expand)


DISK = _family(
    "disk", ("device",),
    ("disk_reads_completed_total", "counter", "Reads completed since boot.", _disk(lambda d: d.reads_completed_total)),
    ("disk_read_bytes_total", "counter", "Bytes read since boot.", _disk(lambda d: d.read_bytes_total)),
    ("disk_read_time_seconds_total", "counter", "Time spent on reads, summed over requests.", _disk(lambda d: d.read_time_seconds_total)),
    ("disk_writes_completed_total", "counter", "Writes completed since boot.", _disk(lambda d: d.writes_completed_total)),
    ("disk_written_bytes_total", "counter", "Bytes written since boot.", _disk(lambda d: d.written_bytes_total)),
    ("disk_write_time_seconds_total", "counter", "Time spent on writes, summed over requests.", _disk(lambda d: d.write_time_seconds_total)),
    ("disk_io_time_seconds_total", "counter", "Time with at least one request in flight.", _disk(lambda d: d.io_time_seconds_total)),
    ("disk_io_weighted_seconds_total", "counter", "Time in flight, summed over requests.", _disk(lambda d: d.io_weighted_seconds_total)),
    ("disk_io_in_progress", "gauge", "Requests in flight.", _disk(lambda d: d.io_in_progress)),
    ("disk_discards_completed_total", "counter", "Discards completed since boot.", _disk(lambda d: d.discards_completed_total)),
    ("disk_flush_requests_total", "counter", "Flushes completed since boot.", _disk(lambda d: d.flush_requests_total)),
    ("disk_busy_ratio", "gauge", "Share of the last interval with a request in flight.", _usage("busy_ratio")),
    ("disk_request_latency_seconds", "gauge", "Mean time of the requests that ended in the last interval.", _usage("latency_seconds")),
)  # fmt: skip

NETWORK = (
    *_family(
        "network", ("iface",),
        ("network_rx_bytes_total", "counter", "Bytes received.", _interface(lambda i: i.receive_bytes_total)),
        ("network_rx_packets_total", "counter", "Packets received.", _interface(lambda i: i.receive_packets_total)),
        ("network_rx_errors_total", "counter", "Receive errors.", _interface(lambda i: i.receive_errors_total)),
        ("network_rx_dropped_total", "counter", "Received packets dropped.", _interface(lambda i: i.receive_dropped_total)),
        ("network_tx_bytes_total", "counter", "Bytes sent.", _interface(lambda i: i.transmit_bytes_total)),
        ("network_tx_packets_total", "counter", "Packets sent.", _interface(lambda i: i.transmit_packets_total)),
        ("network_tx_errors_total", "counter", "Send errors.", _interface(lambda i: i.transmit_errors_total)),
        ("network_tx_dropped_total", "counter", "Packets dropped when sending.", _interface(lambda i: i.transmit_dropped_total)),
        ("network_up", "gauge", "1 when the interface is operational; absent when the kernel does not know.", _interface(lambda i: i.is_up)),
        ("network_speed_bytes_per_second", "gauge", "Link speed.", _interface(lambda i: i.speed_bytes_per_second)),
        ("network_mtu_bytes", "gauge", "Largest packet.", _interface(lambda i: i.mtu_bytes)),
    ),
    *_family(
        "network", (),
        ("tcp_retransmitted_segments_total", "counter", "TCP segments sent again since boot.", _network(lambda n: n.tcp_retransmitted_segments_total)),
        ("tcp_sent_segments_total", "counter", "TCP segments sent since boot.", _network(lambda n: n.tcp_sent_segments_total)),
        ("tcp_received_segments_total", "counter", "TCP segments received since boot.", _network(lambda n: n.tcp_received_segments_total)),
        ("tcp_connections_established", "gauge", "Open TCP connections.", _network(lambda n: n.tcp_connections_established)),
        ("tcp_listen_drops_total", "counter", "Connections dropped by full listen queues since boot.", _network(lambda n: n.tcp_listen_drops_total)),
    ),
)  # fmt: skip

NUMA = (
    *_family(
        "numa", ("node",),
        ("numa_memory_total_bytes", "gauge", "Memory of the node.", _numa(lambda n: n.memory_total_bytes)),
        ("numa_memory_free_bytes", "gauge", "Free memory of the node.", _numa(lambda n: n.memory_free_bytes)),
        ("numa_memory_used_bytes", "gauge", "Memory in use, page cache included.", _numa(lambda n: n.memory_used_bytes)),
        ("numa_memory_file_bytes", "gauge", "Page cache on the node.", _numa(lambda n: n.memory_file_bytes)),
        ("numa_hit_total", "counter", "Pages allocated on the node as intended.", _numa(lambda n: n.numa_hit_total)),
        ("numa_miss_total", "counter", "Pages allocated here though another node was preferred.", _numa(lambda n: n.numa_miss_total)),
        ("numa_foreign_total", "counter", "Pages intended for here but allocated elsewhere.", _numa(lambda n: n.numa_foreign_total)),
        ("numa_interleave_hit_total", "counter", "Interleaved pages allocated as intended.", _numa(lambda n: n.interleave_hit_total)),
        ("numa_local_total", "counter", "Pages allocated by processes running on the node.", _numa(lambda n: n.local_node_total)),
        ("numa_other_total", "counter", "Pages allocated by processes running elsewhere.", _numa(lambda n: n.other_node_total)),
        ("numa_cpu_utilization_ratio", "gauge", "Utilisation of the node's CPUs.", each(_numa_utilization)),
    ),
    *_family("numa", ("node", "to"), ("numa_distance", "gauge", "Distance to another node (ACPI SLIT; 10 is local).", each(_distances))),
)  # fmt: skip

HOST = (*CPU, *MEMORY, *FILESYSTEM, *DISK, *NETWORK, *NUMA)
