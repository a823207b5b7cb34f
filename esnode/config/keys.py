"""Every configuration key: its name, default, kind and the reason one would change it.

`Config` is the table. Flags, environment variables, `esnode config show` and
`docs/configuration.md` are all made from it, so a key exists in all of them or in none. It imports
nothing heavy, because `esnode --help` reads it.
"""

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from typing import Any, cast

from esnode.config import values
from esnode.config.dormant import DormantKeys
from esnode.config.schema import (
    ADDRESS,
    ALIAS_SETS,
    BOOLEAN,
    COUNT,
    INTERVAL,
    MODE,
    PATH,
    POSITIVE,
    RATIO,
    TEXT,
    URLS,
    WATTS,
    Key,
    key,
)
from esnode.config.values import Address

DEFAULT_LISTEN_ADDRESS = Address("0.0.0.0", 9100)
"""node_exporter's port: both describe a node, so a machine runs one of them or moves one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(DormantKeys):
    """The whole configuration of one agent. Durations are seconds; see each key's help."""

    # -- serving ---------------------------------------------------------------------------------
    listen_address: Address = key(
        DEFAULT_LISTEN_ADDRESS,
        ADDRESS,
        "Where /metrics, /status and /events are served. Use 127.0.0.1:PORT to serve this "
        "machine only; port 0 takes any free port.",
    )
    tls_certificate_path: str | None = key(
        None, PATH, "PEM certificate chain: serve HTTPS instead of HTTP. Needs tls_key_path."
    )
    tls_key_path: str | None = key(None, PATH, "PEM private key of tls_certificate_path.")
    metric_aliases: tuple[str, ...] = key(
        (),
        ("SET[,SET]", values.list_of(values.one_of(*ALIAS_SETS))),
        "Also serve the predecessor's names (esnode-core) or DCGM's (dcgm), so that dashboards "
        "made for them go on working.",
        is_reloadable=True,
    )
    metrics_per_core: bool = key(
        False,
        BOOLEAN,
        "Serve one CPU utilisation series per core. Off, because 256 cores make 256 series.",
        is_reloadable=True,
    )
    metrics_per_process: bool = key(
        False,
        BOOLEAN,
        "Serve one GPU memory series per process (the largest gpu_process_count of them). Off, "
        "because process ids make ever new series.",
        is_reloadable=True,
    )
    tags: tuple[tuple[str, str], ...] = key(
        (),
        ("K=V[,K=V]", values.parse_pairs),
        "Texts about this node, shown in /status and in esnode_agent_tag_info.",
        is_reloadable=True,
    )

    # -- the cluster -----------------------------------------------------------------------------
    cluster_bind: Address = key(
        Address("0.0.0.0", 7947),
        ADDRESS,
        "Where this node talks to its peers, UDP and TCP on one port; `[::]:7947` is both "
        "families. Opened only by a node of a cluster; port 0 takes any free port.",
    )
    cluster_advertise: str | None = key(
        None,
        ("HOST[:PORT]", values.parse_text),
        "Where peers find this node, when that is not where it is bound: behind NAT, in a "
        "container. A name is looked up again and again.",
    )
    cluster_seeds: tuple[str, ...] = key(
        (),
        ("HOST:PORT[,...]", values.list_of(values.parse_text)),
        "Members to knock at, beside those that the invite named. Names are looked up again and "
        "again.",
    )

    # -- what is collected -----------------------------------------------------------------------
    scrape_interval: float = key(
        5.0,
        INTERVAL,
        "How often telemetry is collected (floor 100ms; power at least every 60s).",
        is_reloadable=True,
        file_aliases=(("scrape_interval_seconds", values.parse_plain_seconds),),
        environment_aliases=("ESNODE_SCRAPE_INTERVAL_SECONDS",),
    )
    collect_deadline: float = key(
        2.0,
        INTERVAL,
        "How long one source may take before it counts as stalled. A stalled source never delays "
        "the others.",
        is_reloadable=True,
    )
    enable_cpu: bool = key(True, BOOLEAN, "Collect CPU telemetry.", is_reloadable=True)
    enable_memory: bool = key(True, BOOLEAN, "Collect memory and swap.", is_reloadable=True)
    enable_disk: bool = key(
        True, BOOLEAN, "Collect block devices and filesystems.", is_reloadable=True
    )
    enable_network: bool = key(
        True, BOOLEAN, "Collect network interfaces and TCP counters.", is_reloadable=True
    )
    enable_numa: bool = key(True, BOOLEAN, "Collect NUMA nodes.", is_reloadable=True)
    enable_gpu: bool = key(
        True,
        BOOLEAN,
        "Collect GPUs. When off, no driver library is loaded and no device file is opened, so "
        "the driver can be unloaded.",
        is_reloadable=True,
    )
    enable_power: bool = key(
        True,
        BOOLEAN,
        "Collect RAPL and hwmon power, and work out the node's power.",
        is_reloadable=True,
    )
    enable_ipmi: bool = key(
        True,
        BOOLEAN,
        "Ask the baseboard controller through ipmitool, in the background.",
        is_reloadable=True,
    )
    ipmi_interval: float = key(
        30.0, INTERVAL, "How often the baseboard controller is asked.", is_reloadable=True
    )
    ipmi_deadline: float = key(
        10.0, INTERVAL, "How long one ipmitool may run before it is killed.", is_reloadable=True
    )
    enable_app: bool = key(
        False, BOOLEAN, "Collect token counters of inference servers.", is_reloadable=True
    )
    app_metrics_url: tuple[str, ...] = key(
        ("http://127.0.0.1:8000/metrics",),
        URLS,
        "Prometheus endpoints of inference servers (vLLM, SGLang, TGI, Triton, llama.cpp).",
        is_reloadable=True,
    )
    gpu_visible_devices: str | None = key(
        None,
        ("LIST", values.parse_text),
        "Which GPUs to watch: all, none, indices or UUIDs with commas.",
        is_reloadable=True,
        environment_aliases=("NVIDIA_VISIBLE_DEVICES",),
    )
    gpu_process_count: int = key(
        10, COUNT, "How many processes per GPU are shown, by memory.", is_reloadable=True
    )
    k8s_mode: bool = key(
        False,
        BOOLEAN,
        "Also serve the predecessor's four _compat GPU families with Kubernetes resource names.",
        is_reloadable=True,
    )

    # -- judging ---------------------------------------------------------------------------------
    node_power_envelope_watts: float | None = key(
        None,
        WATTS,
        "Power that this node should not exceed: a breach is flagged.",
        is_reloadable=True,
    )
    degradation_disk_busy_ratio: float = key(
        0.8,
        RATIO,
        "Share of time a disk is busy from which it counts as degraded.",
        is_reloadable=True,
    )
    degradation_disk_latency: float = key(
        0.05,
        ("DURATION", values.parse_duration_seconds),
        "Mean time of a disk request from which it counts as degraded.",
        is_reloadable=True,
    )
    degradation_network_drops_per_second: float = key(
        1.0,
        POSITIVE,
        "Dropped packets a second from which an interface counts as degraded.",
        is_reloadable=True,
    )
    degradation_tcp_retransmission_ratio: float = key(
        0.02,
        RATIO,
        "Share of sent TCP segments that are sent again, to count as degraded.",
        is_reloadable=True,
    )
    degradation_swap_pages_per_second: float = key(
        256.0,
        POSITIVE,
        "Swapped pages a second from which memory counts as degraded.",
        is_reloadable=True,
    )
    energy_price_per_kilowatt_hour: float | None = key(
        None,
        ("PRICE", values.parse_not_negative),
        "Tariff, in the currency below: makes energy cost counters appear.",
        is_reloadable=True,
    )
    energy_price_currency: str = key(
        "USD", TEXT, "Currency of the tariff, a label of the cost counters.", is_reloadable=True
    )
    carbon_intensity_grams_per_kilowatt_hour: float | None = key(
        None,
        ("GRAMS", values.parse_not_negative),
        "Carbon intensity of the supply: makes carbon counters appear.",
        is_reloadable=True,
    )

    # -- control over TCP ------------------------------------------------------------------------
    orchestrator_enabled: bool = key(
        False,
        BOOLEAN,
        "Take orders over TCP, too: /orchestrator/*. Only with orchestrator.token.",
        environment_aliases=("ESNODE_ENABLE_ORCHESTRATOR",),
        flag_aliases=("--enable-orchestrator",),
    )
    orchestrator_allow_public: bool = key(
        False, BOOLEAN, "Take such orders from other machines as well, not from this one alone."
    )
    orchestrator_token: str | None = key(
        None,
        TEXT,
        "Whoever sends it as `Authorization: Bearer TOKEN` may give orders over TCP. Unset: "
        "orders are taken on the control socket alone.",
        is_secret=True,
    )
    orchestrator_user: str | None = key(
        None,
        TEXT,
        "As whom jobs run that come with the token. Needed where the agent runs as root.",
    )

    # -- rack power ------------------------------------------------------------------------------
    power_control: str = key(
        "enforce",
        ("enforce|observe|off", values.one_of("enforce", "observe", "off")),
        "Whether this node keeps the cap that its share of the rack's budget gives it. Nothing is "
        "written to the hardware before an operator has signed a budget for the rack. With observe "
        "and off nothing is ever written: the rack counts this node at its maximum.",
    )
    power_settle: float = key(
        2.0,
        INTERVAL,
        "From a power limit's read-back to the moment when the hardware surely keeps it; longer "
        "than it takes to follow a write. Watts are given away only after it. "
        "`esnode power status --gpus` shows what was seen on this machine.",
    )
    power_rest_watts: float | None = key(
        None,
        WATTS,
        "The most that this machine draws besides its GPUs (fans, processors, memory, drives), as "
        "load on its power supplies. Without it: 200 W and 300 W for each GPU, until the machine's "
        "own meter has told more.",
    )
    power_priority: int = key(
        1,
        ("0|1|2|3", values.whole_number_to(3)),
        "Class of this node's work where watts are short: 0 is served first.",
    )
    power_limit_watts: float | None = key(
        None,
        WATTS,
        "The most that this machine may draw at its inlet while its rack is governed, whatever its "
        "share is worth.",
    )

    # -- what the agent may do by itself ---------------------------------------------------------
    control_thermal: str = key(
        "observe",
        MODE,
        "Whether a GPU that is too hot gets less power and no more work. With observe it is only "
        "said what would be done.",
    )
    control_thermal_per_hour: int = key(
        60,
        COUNT,
        "How many things thermal care may begin within an hour; one more, and it only observes "
        "until somebody resumes it.",
    )
    control_preemption: str = key(
        "observe",
        MODE,
        "Whether a job of low priority that allows it makes room for one of higher priority. With "
        "observe it is only said what would be done.",
    )
    control_preemption_per_hour: int = key(
        6,
        COUNT,
        "How many jobs may be made to make room within an hour; one more, and it only observes "
        "until somebody resumes it.",
    )
    orchestrator_enable_thermal_management: bool = key(
        False, BOOLEAN, 'The predecessor\'s way to say control_thermal = "enforce".'
    )
    orchestrator_enable_flash_preemption: bool = key(
        False, BOOLEAN, 'The predecessor\'s way to say control_preemption = "enforce".'
    )

    # -- where things are ------------------------------------------------------------------------
    state_dir: str | None = key(
        None,
        PATH,
        "Where this agent keeps its state. Several agents live on one machine by it. Default: "
        "/var/lib/esnode for root, else $XDG_STATE_HOME/esnode or ~/.local/state/esnode.",
    )
    procfs_path: str = key("/proc", PATH, "The observed host's /proc (containers).")
    sysfs_path: str = key("/sys", PATH, "The observed host's /sys (containers).")
    rootfs_path: str = key("/", PATH, "The observed host's root, for filesystem sizes.")
    hardware: str = key(
        "auto",
        ("auto|simulated:SPEC", values.parse_text),
        "Which GPUs: auto (NVIDIA's driver) or a simulated machine, e.g. simulated:h100x8.",
    )
    simulated_hardware_path: str | None = key(
        None, PATH, "The simulated machine's file. Default: simulated-hardware.json in state_dir."
    )
    log_level: str = key(
        "info",
        ("LEVEL", values.one_of("trace", "debug", "info", "warn", "warning", "error")),
        "How much is logged.",
        is_reloadable=True,
    )
    log_format: str = key(
        "text", ("text|json", values.one_of("text", "json")), "How log lines look."
    )


TABLES = ("orchestrator",)
"""TOML tables whose keys are keys of ours."""


def _key_of(of: Field[Any]) -> Key:
    name = of.name
    for table in TABLES:
        if name.startswith(table + "_"):
            name = f"{table}.{name.removeprefix(table + '_')}"
    return Key(name=name, default=of.default, **cast("dict[str, Any]", of.metadata["key"]))


KEYS: Mapping[str, Key] = {
    key.name: key
    for key in sorted(
        map(_key_of, fields(Config)), key=lambda key: (key.is_dormant, "." in key.name)
    )
}
"""Every key by the name that the file uses; those that nothing reads yet come last."""
