"""Readings of a rich host, every field set. Figures are written down, for tests to build on."""

from esnode.readings.app import AppReading, TokenCount
from esnode.readings.host import (
    Absence,
    BlockDeviceReading,
    CpuReading,
    DiskReading,
    FilesystemReading,
    InterfaceReading,
    MemoryReading,
    Mount,
    NetworkReading,
    NumaNodeReading,
    NumaReading,
    PressureReading,
    TemperatureReading,
)
from esnode.readings.power import (
    BmcSensorReading,
    DcmiPowerReading,
    IpmiReading,
    PowerReading,
    PowerSensorReading,
    RaplZoneReading,
)

AWKWARD = 'a "quoted" back\\slash\nnew line Ünïcode 電力'
"""A label value with everything that the formats escape."""
GIGABYTE = 10**9
ABSENT = (Absence(what="something", reason="not on this machine"),)
MODE_SECONDS = (400.0, 1.0, 90.0, 5000.0, 12.0, 3.0, 2.0, 0.5, 7.0, 0.25)

CPU = CpuReading(
    load1=1.5,
    load5=2.25,
    load15=3.0,
    boot_time_seconds=1_700_000_000.0,
    mode_seconds=MODE_SECONDS,
    cpu_mode_seconds=((0, MODE_SECONDS), (1, MODE_SECONDS)),
    interrupts_total=123_456,
    context_switches_total=234_567,
    forks_total=3456,
    processes_running=3,
    processes_blocked=1,
    pressure=(PressureReading(resource="cpu", kind="some", stalled_seconds_total=1.25),),
    temperatures=(
        TemperatureReading(
            chip="platform_coretemp_0",
            sensor="temp1",
            label=AWKWARD,
            temperature_celsius=61.5,
            critical_celsius=100.0,
        ),
        TemperatureReading(
            chip="platform_coretemp_1",
            sensor="temp1",
            label="Package id 1",
            temperature_celsius=58.0,
            critical_celsius=100.0,
        ),
    ),
    absent=ABSENT,
)

MEMORY = MemoryReading(
    total_bytes=64 * GIGABYTE,
    free_bytes=10 * GIGABYTE,
    available_bytes=40 * GIGABYTE,
    buffers_bytes=1 * GIGABYTE,
    cached_bytes=20 * GIGABYTE,
    shared_bytes=2 * GIGABYTE,
    slab_reclaimable_bytes=3 * GIGABYTE,
    dirty_bytes=4096,
    swap_total_bytes=8 * GIGABYTE,
    swap_free_bytes=6 * GIGABYTE,
    swap_cached_bytes=8192,
    page_in_bytes_total=1_000_000,
    page_out_bytes_total=2_000_000,
    swap_in_pages_total=30,
    swap_out_pages_total=40,
    page_faults_total=5_000_000,
    major_page_faults_total=600,
    oom_kills_total=1,
    absent=ABSENT,
)

DISK = DiskReading(
    devices=(
        BlockDeviceReading(
            device="nvme0n1",
            reads_completed_total=1000,
            read_bytes_total=4_096_000,
            read_time_seconds_total=1.5,
            writes_completed_total=2000,
            written_bytes_total=8_192_000,
            write_time_seconds_total=2.5,
            io_time_seconds_total=3.125,
            io_weighted_seconds_total=4.0,
            io_in_progress=2,
            discards_completed_total=5,
            flush_requests_total=6,
        ),
    ),
    absent=ABSENT,
)


def mounted(mountpoint: str, device: str = "/dev/nvme0n1p2") -> FilesystemReading:
    return FilesystemReading(
        mount=Mount(mountpoint=mountpoint, device=device, filesystem_type="ext4", read_only=False),
        size_bytes=500 * GIGABYTE,
        free_bytes=200 * GIGABYTE,
        available_bytes=175 * GIGABYTE,
        inodes_total=1_000_000,
        inodes_free=900_000,
    )


def interface(name: str, factor: int = 1) -> InterfaceReading:
    return InterfaceReading(
        interface=name,
        receive_bytes_total=10_000 * factor,
        receive_packets_total=100 * factor,
        receive_errors_total=1,
        receive_dropped_total=2,
        transmit_bytes_total=20_000 * factor,
        transmit_packets_total=200 * factor,
        transmit_errors_total=3,
        transmit_dropped_total=4,
        is_up=True,
        speed_bytes_per_second=12_500_000_000.0,
        mtu_bytes=9000,
    )


NETWORK = NetworkReading(
    interfaces=(interface("lo", 100), interface("eth0")),
    tcp_retransmitted_segments_total=11,
    tcp_sent_segments_total=1000,
    tcp_received_segments_total=900,
    tcp_connections_established=17,
    tcp_listen_drops_total=2,
    absent=ABSENT,
)

NUMA = NumaReading(
    nodes=tuple(
        NumaNodeReading(
            node=node,
            cpus=(node,),
            memory_total_bytes=32 * GIGABYTE,
            memory_free_bytes=5 * GIGABYTE,
            memory_used_bytes=27 * GIGABYTE,
            memory_file_bytes=10 * GIGABYTE,
            numa_hit_total=1000 + node,
            numa_miss_total=10,
            numa_foreign_total=11,
            interleave_hit_total=12,
            local_node_total=990,
            other_node_total=13,
            distances=((node, 10), (1 - node, 21)),
        )
        for node in (0, 1)
    ),
    absent=ABSENT,
)


def zone_reading(socket: int, joules: float = 5.0) -> RaplZoneReading:
    return RaplZoneReading(
        path=f"intel-rapl:{socket}",
        zone="package",
        socket=socket,
        energy_microjoules=int(joules * 1e6),
        energy_range_microjoules=262_143_328_850,
    )


POWER_READING = PowerReading(
    zones=(zone_reading(0), zone_reading(1)),
    sensors=(
        PowerSensorReading(
            chip="acpi_acpi000d:00",
            sensor="power1",
            label=AWKWARD,
            power_watts=450.0,
            is_average=True,
            chip_driver="power_meter",
        ),
    ),
    absent=ABSENT,
)

IPMI = IpmiReading(
    dcmi=DcmiPowerReading(
        power_watts=5200.0,
        minimum_watts=900.0,
        maximum_watts=6100.0,
        average_watts=5100.0,
        is_active=True,
    ),
    power_sensors=(
        PowerSensorReading(
            chip="bmc", sensor="PS1 Input Power", label="PS1 Input Power", power_watts=2600.0
        ),
    ),
    sensors=(
        BmcSensorReading(sensor="Inlet Temp", kind="temperature", temperature_celsius=23.0),
        BmcSensorReading(sensor="Fan1", kind="fan", fan_speed_rpm=7800.0),
    ),
    absent=ABSENT,
)


APP = AppReading(
    endpoint="http://127.0.0.1:8000/metrics",
    engine="vllm",
    tokens=(
        TokenCount(model=AWKWARD, kind="prompt", tokens_total=1000.0),
        TokenCount(model=AWKWARD, kind="generation", tokens_total=250.0),
    ),
    requests_running=3.0,
    requests_waiting=1.0,
    absent=ABSENT,
)
