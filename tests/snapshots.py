"""One rich node for tests: every field set, awkward texts, eight GPUs of which one does not answer.

The figures are written down, so that tests can write down what follows from them.
"""

from dataclasses import replace

from esnode.metrics import AgentStats, View
from esnode.readings.app import AppReading, TokenCount
from esnode.readings.gpu import (
    EccCount,
    GpuIdentity,
    GpuInventory,
    GpuProcess,
    GpuReading,
)
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
from esnode.readings.sample import SourceStatus
from esnode.snapshot import (
    AppState,
    CpuUsage,
    DiskUsage,
    Flag,
    GpuState,
    HealthState,
    InterfaceUsage,
    NodePower,
    PowerState,
    RaplZoneState,
    RatesState,
    Snapshot,
)

NOW_SECONDS = 1000.0
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


def gpu_uuid(index: int) -> str:
    return f"GPU-0000000{index}"


def gpu_identity(index: int) -> GpuIdentity:
    return GpuIdentity(
        uuid=gpu_uuid(index),
        index=index,
        name="NVIDIA H100 80GB HBM3" if index else AWKWARD,
        vendor="nvidia",
        pci_bus_id=f"00000000:{index + 16:02x}:00.0",
        serial=f"16501{index}",
        vbios_version="96.00.89.00.01",
        architecture="hopper",
        minor_number=index,
        numa_node=index // 4,
        pci_device_id="0x233010de",
        pci_subsystem_id="0x16c110de",
        board_id=256 * index,
        is_mig_supported=True,
    )


def gpu_reading(index: int) -> GpuReading:
    return GpuReading(
        identity=gpu_identity(index),
        utilization_ratio=0.57,
        memory_utilization_ratio=0.25,
        encoder_utilization_ratio=0.125,
        decoder_utilization_ratio=0.0625,
        memory_total_bytes=81559 << 20,
        memory_used_bytes=40000 << 20,
        memory_free_bytes=41080 << 20,
        memory_reserved_bytes=479 << 20,
        bar1_total_bytes=131072 << 20,
        bar1_used_bytes=12 << 20,
        temperature_celsius=65.0,
        memory_temperature_celsius=72.0,
        slowdown_celsius=89.0,
        shutdown_celsius=95.0,
        temperature_margin_celsius=22.0,
        power_average_watts=600.5,
        power_instant_watts=612.25,
        power_limit_default_watts=700.0,
        power_limit_min_watts=200.0,
        power_limit_max_watts=700.0,
        power_limit_requested_watts=650.0,
        power_limit_enforced_watts=640.0,
        energy_joules_total=123_456.789,
        clock_sm_hertz=1.98e9,
        clock_memory_hertz=2.619e9,
        clock_graphics_hertz=1.965e9,
        clock_video_hertz=1.545e9,
        clock_sm_max_hertz=1.98e9,
        clock_memory_max_hertz=2.619e9,
        clock_graphics_max_hertz=1.98e9,
        performance_state=0,
        throttle_reasons=("sw_power_cap", "hw_thermal_slowdown"),
        violation_seconds_total=(("power", 12.5), ("thermal", 0.25)),
        fan_speed_ratios=(0.4, 0.45),
        is_ecc_enabled=True,
        ecc=(
            EccCount(error="corrected", scope="volatile", location="total", errors_total=7),
            EccCount(error="uncorrected", scope="volatile", location="total", errors_total=1),
            EccCount(error="corrected", scope="aggregate", location="sram", errors_total=9),
        ),
        retired_pages=(("single_bit", 2),),
        remapped_rows=(("corrected", 3), ("uncorrected", 1)),
        is_remap_pending=True,
        is_remap_failed=False,
        pcie_link_generation=5,
        pcie_link_generation_max=5,
        pcie_link_width=16,
        pcie_link_width_max=16,
        pcie_replays_total=4,
        is_persistence_enabled=True,
        is_mig_enabled=False,
        processes=(GpuProcess(pid=4242, kind="compute", name=AWKWARD, memory_used_bytes=1 << 30),),
        absent=ABSENT,
    )


def gpu_state(index: int) -> GpuState:
    return GpuState(
        uuid=gpu_uuid(index),
        is_up=True,
        reason="it may come back",
        index=index,
        reading=gpu_reading(index),
        age_seconds=0.5,
        throttle_seconds_total=(("hw_thermal_slowdown", 1.5), ("sw_power_cap", 20.0)),
        energy_joules_total=123_456.789,
        energy_source="counter",
        is_throttled=True,
        has_new_ecc_errors=True,
    )


LOST_GPU = GpuState(uuid=gpu_uuid(7), is_up=False, reason="GPU is lost", index=7)

INVENTORY = GpuInventory(
    driver="nvml",
    driver_version="590.48.01",
    library_version="13.590.48.01",
    cuda_version="13.1",
    gpus=tuple(gpu_identity(index) for index in range(8)),
    lost=(Absence(what="gpu:8", reason="Unknown Error"),),
    found_count=9,
    absent=(Absence(what="visible_devices:12", reason="no GPU of that index"),),
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

SOURCES = (
    SourceStatus(
        collector="cpu",
        state="ok",
        duration_seconds=0.001,
        last_success_at_seconds=999.5,
        interval_seconds=5.0,
    ),
    SourceStatus(
        collector="filesystem",
        target="/mnt/nfs",
        state="stalled",
        reason="no answer within 2 s; waiting for it to come back",
        duration_seconds=0.002,
        last_success_at_seconds=900.0,
        stalled_since_seconds=990.0,
        interval_seconds=5.0,
        errors_total=3,
        stalls_total=2,
    ),
    SourceStatus(
        collector="ipmi", state="unavailable", reason="no ipmitool", interval_seconds=30.0
    ),
)


def rich_snapshot() -> Snapshot:
    return Snapshot(
        taken_at_seconds=NOW_SECONDS,
        sequence=7,
        sources=SOURCES,
        disabled=("app",),
        cpu=CPU,
        cpu_usage=CpuUsage(
            utilization_ratio=0.29,
            core_utilization_ratios=((0, 0.29), (1, 0.5)),
            node_utilization_ratios=((0, 0.29), (1, 0.5)),
        ),
        memory=MEMORY,
        disk=DISK,
        filesystems=(mounted("/"), mounted(AWKWARD, "/dev/sda1")),
        network=NETWORK,
        rates=RatesState(
            disks=(DiskUsage(device="nvme0n1", busy_ratio=0.9, latency_seconds=0.0625),),
            interfaces=(
                InterfaceUsage(
                    interface="lo",
                    receive_bytes_per_second=9e9,
                    transmit_bytes_per_second=9e9,
                    drops_per_second=0.0,
                ),
                InterfaceUsage(
                    interface="eth0",
                    receive_bytes_per_second=1000.0,
                    transmit_bytes_per_second=2000.0,
                    drops_per_second=3.0,
                ),
            ),
            tcp_retransmission_ratio=0.03,
            swap_pages_per_second=300.0,
        ),
        numa=NUMA,
        power_reading=POWER_READING,
        ipmi=IPMI,
        power=PowerState(
            node=NodePower(power_watts=5200.0, source="dcmi", is_estimated=False, age_seconds=12.5),
            node_energy_joules_total=1_000_000.5,
            zones=tuple(
                RaplZoneState(
                    path=f"intel-rapl:{socket}",
                    zone="package",
                    socket=socket,
                    power_watts=200.0 + socket,
                    energy_joules_total=4000.0 + socket,
                )
                for socket in (0, 1)
            ),
            energy_cost_total=0.125,
            energy_cost_currency="EUR",
            carbon_grams_total=98.5,
            envelope_watts=5000.0,
            is_envelope_exceeded=True,
        ),
        gpu_inventory=INVENTORY,
        gpus=(*(gpu_state(index) for index in range(7)), LOST_GPU),
        app=AppState(
            endpoints=(APP,),
            tokens_per_second=20.0,
            tokens_per_joule=0.004,
            cost_per_million_tokens=9.5,
            carbon_grams_per_token=0.0125,
            window_seconds=60.0,
        ),
        health=HealthState(
            flags=(
                Flag(kind="disk_busy", subject="nvme0n1", detail="busy 90% of the time"),
                Flag(kind="network_drops", subject="eth0", detail="3.0 packets dropped a second"),
                Flag(kind="gpu_ecc", subject=gpu_uuid(0), detail="new uncorrected memory errors"),
            ),
            score=3,
        ),
        tags=(("row", "7"), ("remark", AWKWARD)),
    )


AGENT_STATS = AgentStats(
    version="0.1.0",
    python_version="3.11.7",
    start_time_seconds=1_800_000_000.25,
    resident_memory_bytes=40_000_000,
    cpu_seconds_total=12.5,
    tick_lateness_seconds=0.0005,
    ticks_skipped_total=1,
    config_reloads_total=2,
    config_reload_failures_total=3,
    config_last_reload_successful=False,
    event_clients=4,
)


def rich_view(snapshot: Snapshot | None = None) -> View:
    """Everything that can be served, opted into."""
    return View(
        snapshot=snapshot or rich_snapshot(),
        agent=AGENT_STATS,
        hostname="node-07",
        is_per_core=True,
        is_per_process=True,
    )


def without_gpu(snapshot: Snapshot, uuid: str) -> Snapshot:
    """The node after one GPU has left it."""
    inventory = snapshot.gpu_inventory
    assert inventory is not None
    return replace(
        snapshot,
        gpus=tuple(state for state in snapshot.gpus if state.uuid != uuid),
        gpu_inventory=replace(
            inventory, gpus=tuple(gpu for gpu in inventory.gpus if gpu.uuid != uuid)
        ),
        health=HealthState(),
    )
