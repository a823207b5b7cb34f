"""One rich node for tests: every field set, awkward texts, eight GPUs of which one does not answer.

The figures are written down, so that tests can write down what follows from them.
"""

from dataclasses import replace

from esnode.metrics import AgentStats, ClusterStats, ControlStats, JobStats, RackPowerStats, View
from esnode.readings.sample import SourceStatus
from esnode.snapshot import (
    AppState,
    CpuUsage,
    DiskUsage,
    Flag,
    HealthState,
    InterfaceUsage,
    NodePower,
    PowerState,
    RaplZoneState,
    RatesState,
    Snapshot,
)
from tests.rich_gpus import INVENTORY, LOST_GPU, gpu_identity, gpu_state, gpu_uuid
from tests.rich_host import (
    APP,
    AWKWARD,
    CPU,
    DISK,
    IPMI,
    MEMORY,
    NETWORK,
    NUMA,
    POWER_READING,
    interface,
    mounted,
)

__all__ = [
    "AWKWARD",
    "CPU",
    "DISK",
    "MEMORY",
    "NETWORK",
    "NOW_SECONDS",
    "NUMA",
    "gpu_identity",
    "gpu_uuid",
    "interface",
    "mounted",
    "rich_snapshot",
    "rich_view",
    "without_gpu",
]

NOW_SECONDS = 1000.0

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
        last_error_at_seconds=990.0,
        stalled_since_seconds=990.0,
        interval_seconds=5.0,
        errors_total=3,
        stalls_total=2,
    ),
    SourceStatus(
        collector="ipmi", state="unavailable", reason="no ipmitool", interval_seconds=30.0
    ),
)


RATES = RatesState(
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
)

POWER = PowerState(
    node=NodePower(power_watts=5200.0, source="dcmi", is_estimated=False, age_seconds=12.5),
    node_energy_joules_total=1_000_000.5,
    zones=tuple(
        RaplZoneState(
            path=f"intel-rapl:{socket}{inner}",
            zone=zone,
            socket=socket,
            power_watts=watts + socket,
            energy_joules_total=4000.0 + socket,
        )
        for zone, inner, watts in (("package", "", 200.0), ("core", ":0", 150.0))
        for socket in (0, 1)
    ),
    energy_cost_total=0.125,
    energy_cost_currency="EUR",
    carbon_grams_total=98.5,
    envelope_watts=5000.0,
    is_envelope_exceeded=True,
)

APP_STATE = AppState(
    endpoints=(APP,),
    tokens_per_second=20.0,
    tokens_per_joule=0.004,
    cost_per_million_tokens=9.5,
    carbon_grams_per_token=0.0125,
    window_seconds=60.0,
)

HEALTH = HealthState(
    flags=(
        Flag(kind="disk_busy", subject="nvme0n1", detail="busy 90% of the time"),
        Flag(kind="network_drops", subject="eth0", detail="3.0 packets dropped a second"),
        Flag(kind="gpu_ecc", subject=gpu_uuid(0), detail="new uncorrected memory errors"),
    ),
    score=3,
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
        rates=RATES,
        numa=NUMA,
        power_reading=POWER_READING,
        ipmi=IPMI,
        power=POWER,
        gpu_inventory=INVENTORY,
        gpus=(*(gpu_state(index) for index in range(7)), LOST_GPU),
        app=APP_STATE,
        health=HEALTH,
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


JOB_STATS = JobStats(
    states=((("queued",), 1), (("running",), 2)),
    turns_total=((("started",), 3),),
    energy_joules_total=5.0,
    has_trouble=False,
)
CONTROL_STATS = ControlStats(
    modes=((("thermal", "observe"), False), (("thermal", "enforce"), True)),
    is_paused=((("thermal",), False),),
    actions_total=((("thermal", "enforce", "done"), 3),),
    skipped_total=((("thermal", "cooldown"), 40),),
    budgets_remaining=((("thermal",), 57),),
)
RACK_POWER_STATS = RackPowerStats(
    state="enforcing",
    cap_wanted_watts=3200,
    cap_watts=3195,
    bound_watts=3195,
    floor_watts=900,
    demand_watts=3900,
    shares_watts=((("rack:r01",), 3200),),
    is_gate_open=True,
    is_refusing=False,
    throttle_watts=0,
    has_disk_trouble=False,
    counts=(("Credited", 4), ("Debited", 3), ("cap_writes", 9), ("sent", 120)),
    budgets_watts=((("rack:r01",), 52000),),
    floors_watts=((("rack:r01",), 9000),),
    grades=((("rack:r01", "A"), True), (("rack:r01", "B"), False), (("rack:r01", "C"), False)),
    stranded_watts=((("rack:r01",), 0),),
    epochs=((("rack:r01",), 1),),
    slots=((("rack:r01", "enforcing"), 9), (("rack:r01", "static"), 1)),
)
CLUSTER_STATS = ClusterStats(
    identity=("lab", "c1" * 16, "node-07", "07" * 16, "r01"),
    members=((("alive",), 11), (("failed",), 1)),
    is_isolated=False,
    epoch=3,
    health_score=0,
    suspicions_total=4,
    refutations_total=3,
    failures_total=1,
    pauses_total=1,
    round_trip_median_seconds=0.0004,
    round_trip_max_seconds=0.002,
    loop_lag_seconds=0.001,
    signature_checks_total=12_345,
    operator_records=2,
    certificate_end_time_seconds=1_860_000_000.0,
    view_comparisons_total=((("equal",), 900), (("different",), 12)),
    state_ages_seconds=((("node-08",), 0.4),),
    datagrams_total=((("received", "probe"), 500), (("sent", "state"), 700)),
    datagram_bytes_total=((("received", "probe"), 90_000), (("sent", "state"), 250_000)),
    datagram_errors_total=((("icmp-econnrefused",), 2),),
    rejected_total=((("replayed",), 1),),
    stream_requests_total=((("caller", "answered"), 9), (("called", "refused"), 1)),
)


def rich_view(snapshot: Snapshot | None = None) -> View:
    """Everything that can be served, opted into."""
    return View(
        snapshot=snapshot or rich_snapshot(),
        agent=AGENT_STATS,
        cluster=CLUSTER_STATS,
        rack_power=RACK_POWER_STATS,
        jobs=JOB_STATS,
        control=CONTROL_STATS,
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
