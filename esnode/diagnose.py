"""Which parts of the node do less than they could, judged on the last interval. Pure.

A flag is raised while its cause lasts and is gone with it. The score is the number of *kinds* that
are raised, so that forty busy disks weigh no more than one.
"""

from dataclasses import dataclass

from esnode.readings.gpu import HARMFUL_THROTTLE_REASONS
from esnode.snapshot import Flag, GpuState, HealthState, RatesState

KINDS = (
    "disk_busy",
    "disk_latency",
    "network_drops",
    "tcp_retransmissions",
    "swap",
    "gpu_throttle",
    "gpu_ecc",
)
"""Every kind of flag, in the order in which they are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """From where on a figure counts as degraded; see the `degradation_*` keys."""

    disk_busy_ratio: float = 0.8
    disk_latency_seconds: float = 0.05
    network_drops_per_second: float = 1.0
    tcp_retransmission_ratio: float = 0.02
    swap_pages_per_second: float = 256.0


def diagnose(rates: RatesState, gpus: tuple[GpuState, ...], thresholds: Thresholds) -> HealthState:
    """All flags that hold now, and the score."""
    flags = (*_disk_flags(rates, thresholds), *_network_flags(rates, thresholds))
    flags += (*_swap_flags(rates, thresholds), *_gpu_flags(gpus))
    raised = {flag.kind for flag in flags}
    return HealthState(flags=flags, score=sum(kind in raised for kind in KINDS))


def _disk_flags(rates: RatesState, thresholds: Thresholds) -> list[Flag]:
    flags = []
    for disk in rates.disks:
        busy, latency = disk.busy_ratio, disk.latency_seconds
        if busy is not None and busy >= thresholds.disk_busy_ratio:
            detail = f"busy {busy:.0%} of the time"
            flags.append(Flag(kind="disk_busy", subject=disk.device, detail=detail))
        if latency is not None and latency >= thresholds.disk_latency_seconds:
            detail = f"requests took {latency * 1000:.0f} ms on average"
            flags.append(Flag(kind="disk_latency", subject=disk.device, detail=detail))
    return flags


def _network_flags(rates: RatesState, thresholds: Thresholds) -> list[Flag]:
    flags = []
    for usage in rates.interfaces:
        drops = usage.drops_per_second
        if drops is not None and drops >= thresholds.network_drops_per_second:
            detail = f"{drops:.1f} packets dropped a second"
            flags.append(Flag(kind="network_drops", subject=usage.interface, detail=detail))
    ratio = rates.tcp_retransmission_ratio
    if ratio is not None and ratio >= thresholds.tcp_retransmission_ratio:
        detail = f"{ratio:.1%} of TCP segments sent again"
        flags.append(Flag(kind="tcp_retransmissions", subject="", detail=detail))
    return flags


def _swap_flags(rates: RatesState, thresholds: Thresholds) -> list[Flag]:
    pages = rates.swap_pages_per_second
    if pages is None or pages < thresholds.swap_pages_per_second:
        return []
    return [Flag(kind="swap", subject="", detail=f"{pages:.0f} pages swapped a second")]


def _gpu_flags(gpus: tuple[GpuState, ...]) -> list[Flag]:
    flags = []
    for gpu in gpus:
        if gpu.reading is None:
            continue
        harmful = [r for r in gpu.reading.throttle_reasons or () if r in HARMFUL_THROTTLE_REASONS]
        if harmful:
            detail = "clocks held back by " + ", ".join(harmful)
            flags.append(Flag(kind="gpu_throttle", subject=gpu.uuid, detail=detail))
        ecc = []
        if gpu.has_new_ecc_errors:
            ecc.append("new uncorrected memory errors")
        if gpu.reading.is_remap_pending:
            ecc.append("row remapping waits for a reset")
        if gpu.reading.is_remap_failed:
            ecc.append("row remapping failed")
        if ecc:
            flags.append(Flag(kind="gpu_ecc", subject=gpu.uuid, detail=", ".join(ecc)))
    return flags
