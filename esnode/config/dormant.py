"""The predecessor's keys that nothing reads yet.

They are accepted, checked and kept, so that its files work unchanged; `esnode config show` and
`esnode diagnostics` say of each one that is set that it has no effect.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from esnode.config import values
from esnode.config.schema import BOOLEAN, INTERVAL, PATH, POSITIVE, TEXT, key


@dataclass(frozen=True, slots=True, kw_only=True)
class DormantKeys:
    """Settings of capabilities that this version does not have."""

    mig_config_devices: str | None = key(
        None,
        TEXT,
        "Which GPUs are asked for MIG instances.",
        is_dormant=True,
        environment_aliases=("NVIDIA_MIG_CONFIG_DEVICES",),
    )
    enable_gpu_mig: bool = key(False, BOOLEAN, "Collect MIG instances.", is_dormant=True)
    enable_gpu_events: bool = key(False, BOOLEAN, "Listen for GPU events.", is_dormant=True)
    enable_gpu_amd: bool = key(False, BOOLEAN, "Collect AMD GPUs.", is_dormant=True)
    enable_ebpf: bool = key(False, BOOLEAN, "Collect through eBPF.", is_dormant=True)
    enable_rack_thermals: bool = key(False, BOOLEAN, "Collect rack sensors.", is_dormant=True)
    enable_mcp: bool = key(False, BOOLEAN, "The predecessor's console toggle.", is_dormant=True)
    enable_local_tsdb: bool = key(False, BOOLEAN, "Keep a local history.", is_dormant=True)
    local_tsdb_path: str | None = key(None, PATH, "Where the history lies.", is_dormant=True)
    local_tsdb_retention_hours: float = key(
        48.0, POSITIVE, "How long the history is kept.", is_dormant=True
    )
    local_tsdb_max_disk_mb: float = key(
        2048.0, POSITIVE, "How large the history may grow.", is_dormant=True
    )
    efficiency_profile_path: str | None = key(None, PATH, "A profile file.", is_dormant=True)
    enforcement_mode: str = key(
        "monitor",
        ("monitor|enforce", values.one_of("monitor", "enforce")),
        "Whether profiles act.",
        is_dormant=True,
    )
    enforcement_interval: float = key(
        5.0, INTERVAL, "How often profiles are judged.", is_dormant=True
    )
    dampening_interval: float = key(
        60.0, INTERVAL, "Pause between two actions of a rule.", is_dormant=True
    )
    drivers: tuple[Mapping[str, object], ...] = key(
        (),
        ("TABLES", values.parse_tables),
        "Facility protocols ([[drivers]]).",
        is_dormant=True,
        is_secret=True,  # their parameters hold passwords and communities
    )
    managed_server: str | None = key(None, TEXT, "The predecessor's server.", is_dormant=True)
    managed_cluster_id: str | None = key(None, TEXT, "Its cluster id.", is_dormant=True)
    managed_node_id: str | None = key(None, TEXT, "Its node id.", is_dormant=True)
    managed_join_token: str | None = key(
        None, TEXT, "Its join token.", is_dormant=True, is_secret=True
    )
    managed_last_contact_unix_ms: float | None = key(
        None, POSITIVE, "Its last contact.", is_dormant=True
    )
    orchestrator_enable_zombie_reaper: bool = key(
        False, BOOLEAN, "End orphaned GPU processes.", is_dormant=True
    )
    orchestrator_enable_turbo_mode: bool = key(False, BOOLEAN, "Turbo mode.", is_dormant=True)
    orchestrator_enable_bin_packing: bool = key(False, BOOLEAN, "Bin packing.", is_dormant=True)
    orchestrator_enable_dataset_prefetch: bool = key(
        False, BOOLEAN, "Prefetch datasets.", is_dormant=True
    )
    orchestrator_enable_bandwidth_reserve: bool = key(
        False, BOOLEAN, "Reserve bandwidth.", is_dormant=True
    )
    orchestrator_enable_fs_cleanup: bool = key(
        False, BOOLEAN, "Clean filesystems.", is_dormant=True
    )
