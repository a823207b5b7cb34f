"""What the host collectors read: kernel values in base units, nothing derived.

Counters are the kernel's own absolute values since boot; rates and ratios are made in
`esnode.fold`. A value that could not be read is ``None``, never zero, and the reading's
`absent` says why.
"""

from dataclasses import dataclass, field

CPU_MODES = (
    "user",
    "nice",
    "system",
    "idle",
    "iowait",
    "irq",
    "softirq",
    "steal",
    "guest",
    "guest_nice",
)
"""Order of the columns of `/proc/stat` (proc(5)). Guest time is also counted in user time."""

CpuTimes = tuple[float, ...]
"""Seconds spent in each of `CPU_MODES` since boot; shorter on kernels that know fewer modes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """One thing that a collector cannot provide here, and why: an entry of the capability map."""

    what: str
    """What is missing, e.g. ``pressure`` or ``rapl:intel-rapl:0``."""
    reason: str
    """One line for the operator: what was tried, what happened, what would help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemperatureReading:
    """One temperature sensor of a hwmon chip or a thermal zone."""

    chip: str
    """Stable chip name made of the device path and the driver's name, e.g.
    ``platform_coretemp_0``; two sockets never share one."""
    sensor: str
    """The sensor's own name in the chip, e.g. ``temp1``."""
    label: str
    """The driver's text, e.g. ``Package id 0``; empty when it has none."""
    temperature_celsius: float
    critical_celsius: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PressureReading:
    """Pressure stall information of one resource (kernel documentation, accounting/psi)."""

    resource: str
    """``cpu``, ``io``, ``memory`` or ``irq``."""
    kind: str
    """``some`` (at least one task waited) or ``full`` (all did)."""
    stalled_seconds_total: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuReading:
    """Load, seconds by mode, interrupts, context switches, pressure and temperatures."""

    load1: float | None = None
    load5: float | None = None
    load15: float | None = None
    boot_time_seconds: float | None = None
    """Unix time of the boot, from `/proc/stat` btime."""
    mode_seconds: CpuTimes | None = None
    """Sum over all CPUs, as the kernel gives it."""
    cpu_mode_seconds: tuple[tuple[int, CpuTimes], ...] = ()
    """(CPU number, seconds by mode) for each online CPU, ascending."""
    interrupts_total: int | None = None
    context_switches_total: int | None = None
    forks_total: int | None = None
    processes_running: int | None = None
    processes_blocked: int | None = None
    pressure: tuple[PressureReading, ...] = ()
    temperatures: tuple[TemperatureReading, ...] = ()
    absent: tuple[Absence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReading:
    """Memory and swap sizes from `/proc/meminfo`, paging counters from `/proc/vmstat`."""

    total_bytes: int | None = None
    free_bytes: int | None = None
    available_bytes: int | None = None
    buffers_bytes: int | None = None
    cached_bytes: int | None = None
    shared_bytes: int | None = None
    slab_reclaimable_bytes: int | None = None
    dirty_bytes: int | None = None
    swap_total_bytes: int | None = None
    swap_free_bytes: int | None = None
    swap_cached_bytes: int | None = None
    page_in_bytes_total: int | None = None
    """Read from block devices for paging (vmstat pgpgin, which counts KiB)."""
    page_out_bytes_total: int | None = None
    swap_in_pages_total: int | None = None
    swap_out_pages_total: int | None = None
    page_faults_total: int | None = None
    major_page_faults_total: int | None = None
    oom_kills_total: int | None = None
    absent: tuple[Absence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One mounted filesystem that statfs is asked about: a target of the filesystem collector."""

    mountpoint: str
    """As processes of the host see it, without `rootfs_path`."""
    device: str
    filesystem_type: str
    read_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesystemReading:
    """Sizes of one mounted filesystem (statfs(2))."""

    mount: Mount
    size_bytes: int
    free_bytes: int
    available_bytes: int
    """Free to processes without privilege."""
    inodes_total: int | None
    """``None`` where the filesystem does not count them."""
    inodes_free: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockDeviceReading:
    """Counters of one whole block device, from `/proc/diskstats` (kernel doc, iostats)."""

    device: str
    reads_completed_total: int
    read_bytes_total: int
    read_time_seconds_total: float
    """Summed over requests, so two parallel requests count twice."""
    writes_completed_total: int
    written_bytes_total: int
    write_time_seconds_total: float
    io_time_seconds_total: float
    """Wall seconds during which at least one request was in flight."""
    io_weighted_seconds_total: float
    io_in_progress: int
    discards_completed_total: int | None = None
    flush_requests_total: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskReading:
    """All whole block devices; partitions, loop, ram and zram devices are left out."""

    devices: tuple[BlockDeviceReading, ...] = ()
    absent: tuple[Absence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfaceReading:
    """Counters of one network interface (`/proc/net/dev`) and its link (`/sys/class/net`)."""

    interface: str
    receive_bytes_total: int
    receive_packets_total: int
    receive_errors_total: int
    receive_dropped_total: int
    transmit_bytes_total: int
    transmit_packets_total: int
    transmit_errors_total: int
    transmit_dropped_total: int
    is_up: bool | None = None
    """From `operstate`; ``None`` when the kernel says ``unknown`` (loopback, tun)."""
    speed_bytes_per_second: float | None = None
    mtu_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkReading:
    """All interfaces, and the TCP counters of the host's network namespace."""

    interfaces: tuple[InterfaceReading, ...] = ()
    tcp_retransmitted_segments_total: int | None = None
    """`Tcp: RetransSegs` of `/proc/net/snmp`."""
    tcp_sent_segments_total: int | None = None
    tcp_received_segments_total: int | None = None
    tcp_connections_established: int | None = None
    tcp_listen_drops_total: int | None = None
    """`TcpExt: ListenDrops` of `/proc/net/netstat`."""
    absent: tuple[Absence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaNodeReading:
    """One NUMA node; a memory-only node has no CPUs, a CPU-only node no memory."""

    node: int
    cpus: tuple[int, ...] = ()
    memory_total_bytes: int | None = None
    memory_free_bytes: int | None = None
    memory_used_bytes: int | None = None
    memory_file_bytes: int | None = None
    """Page cache on this node (FilePages); part of used."""
    numa_hit_total: int | None = None
    numa_miss_total: int | None = None
    numa_foreign_total: int | None = None
    interleave_hit_total: int | None = None
    local_node_total: int | None = None
    other_node_total: int | None = None
    distances: tuple[tuple[int, int], ...] = ()
    """(other node, distance) as in the ACPI SLIT table; 10 is the node itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaReading:
    """All NUMA nodes of the host, ascending."""

    nodes: tuple[NumaNodeReading, ...] = ()
    absent: tuple[Absence, ...] = field(default=())
