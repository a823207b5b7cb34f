"""The catalogue: what each simulated part is, and what a machine may be built of.

Its own file because these are data with sources, not behaviour. It knows no state, no file and
no time. Figures without a source of their own are fitted by us and say so.
"""

import hashlib
import re
from dataclasses import dataclass, replace
from functools import lru_cache

MEBIBYTE = 1024 * 1024
MEGAHERTZ = 1_000_000.0
GPUS_MAX = 64
"""More than any real chassis holds; keeps a mistyped count from making a machine of a million."""


class UnknownSpec(ValueError):
    """A machine that cannot be built. The text is one line that names the known parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Throughput against power: ``((p - p0) / (knee - p0)) ^ exponent``, flat above the knee.

    Source: the shapes are fitted by us to published sweeps. Compute-bound work follows the SM
    clock (H100/H200 DGEMM, 200 to 700 W, arXiv 2604.11391; H100 training at 600 of 700 W runs 10 to
    15 % slower). Mixed work: V100 image generation at 70 / 80 / 100 % of power runs at 88 / 93 /
    100 %. LLM decode draws 137 to 300 W of an H200's 700 W (arXiv 2605.11999), so that no cap above
    that ever binds.
    """

    kind: str
    floor_ratio: float
    """`p0`: the share of the part's maximum below which no work is done."""
    knee_ratio: float
    """The share of the part's maximum that this kind of work draws when nothing holds it."""
    exponent: float
    memory_utilization_ratio: float
    """Share of time in which memory is busy at full load (H100 gpu-burn: 0.1; decode is bound by
    memory)."""

    def throughput_ratio(self, power_ratio: float) -> float:
        """Throughput at a share of the part's maximum power, relative to unhindered work."""
        if power_ratio >= self.knee_ratio:
            return 1.0
        if power_ratio <= self.floor_ratio:
            return 0.0
        above_floor = (power_ratio - self.floor_ratio) / (self.knee_ratio - self.floor_ratio)
        return float(above_floor**self.exponent)


COMPUTE = Curve(
    kind="compute",
    floor_ratio=0.1,
    knee_ratio=1.0,
    exponent=0.9,
    memory_utilization_ratio=0.15,
)
MIXED = Curve(
    kind="mixed",
    floor_ratio=0.1,
    knee_ratio=1.0,
    exponent=0.3,
    memory_utilization_ratio=0.5,
)
DECODE = Curve(
    kind="decode",
    floor_ratio=0.05,
    knee_ratio=0.4,
    exponent=0.4,
    memory_utilization_ratio=0.9,
)
CURVES = {curve.kind: curve for curve in (COMPUTE, MIXED, DECODE)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One model of GPU as its driver would describe it, and its place in a chassis."""

    key: str
    """What a specification calls it: ``h100``."""
    name: str
    architecture: str
    pci_device_id: str
    memory_total_bytes: int
    memory_reserved_bytes: int
    bar1_total_bytes: int
    limit_default_watts: int
    limit_min_watts: int
    limit_max_watts: int
    idle_watts: float
    clock_idle_hertz: float
    clock_max_hertz: float
    clock_memory_idle_hertz: float
    clock_memory_hertz: float
    clock_video_max_hertz: float
    idle_performance_state: int
    thermal_resistance_celsius_per_watt: float
    thermal_time_constant_seconds: float
    max_operating_celsius: float
    slowdown_celsius: float
    shutdown_celsius: float
    memory_temperature_offset_celsius: float | None
    """How much hotter memory reads than the core; ``None`` where there is no such sensor."""
    settle_seconds: float
    """From a changed limit to the draw that obeys it."""
    pcie_link_generation: int
    is_mig_supported: bool
    chassis_share_watts: float
    """This GPU's share of everything else in the machine: CPUs, memory, fans, network cards."""


H100 = Part(
    key="h100",
    name="NVIDIA H100 80GB HBM3",
    architecture="hopper",
    pci_device_id="0x233010de",
    memory_total_bytes=81559 * MEBIBYTE,
    memory_reserved_bytes=479 * MEBIBYTE,
    bar1_total_bytes=131072 * MEBIBYTE,
    limit_default_watts=700,
    limit_min_watts=200,
    limit_max_watts=700,
    idle_watts=69.6,
    clock_idle_hertz=345 * MEGAHERTZ,
    clock_max_hertz=1980 * MEGAHERTZ,
    clock_memory_idle_hertz=2619 * MEGAHERTZ,
    clock_memory_hertz=2619 * MEGAHERTZ,
    clock_video_max_hertz=1545 * MEGAHERTZ,
    idle_performance_state=0,
    thermal_resistance_celsius_per_watt=0.06,
    thermal_time_constant_seconds=20.0,
    max_operating_celsius=87.0,
    slowdown_celsius=89.0,
    shutdown_celsius=95.0,
    memory_temperature_offset_celsius=7.0,
    settle_seconds=1.2,
    pcie_link_generation=5,
    is_mig_supported=True,
    chassis_share_watts=300.0,
)
"""Source: everything but the thermal constants from a driver 590.48.01 capture of an H100 SXM
(nvidia_gpu_exporter), whose T.Limit of 46 at 41 C puts the operating maximum at 87 C, slowdown
2 C and shutdown 8 C above it. Thermal constants fitted by us to the same capture (65 C and rising
after some 30 s at 634 W). Settle: the start value that the power specification asks to calibrate.
Chassis share: a DGX H100 draws 8.4 kW in training of which its GPUs draw some 5.4 kW (IEEE Access
2025), through power supplies of `SUPPLY_EFFICIENCY_RATIO`."""

H200 = replace(
    H100,
    key="h200",
    name="NVIDIA H200",
    pci_device_id="0x233510de",
    memory_total_bytes=143771 * MEBIBYTE,
    memory_reserved_bytes=640 * MEBIBYTE,
    bar1_total_bytes=262144 * MEBIBYTE,
    idle_watts=75.0,
    clock_memory_idle_hertz=3201 * MEGAHERTZ,
    clock_memory_hertz=3201 * MEGAHERTZ,
)
"""Source: an H100 with larger memory, same 200 to 700 W range; idle from the 64 to 80 W that
700 W parts show. Memory sizes and clocks are as commonly listed, not from a capture of our own."""

B200 = replace(
    H100,
    key="b200",
    name="NVIDIA B200",
    architecture="blackwell",
    pci_device_id="0x290110de",
    memory_total_bytes=183359 * MEBIBYTE,
    memory_reserved_bytes=717 * MEBIBYTE,
    bar1_total_bytes=262144 * MEBIBYTE,
    limit_default_watts=1000,
    limit_min_watts=500,
    limit_max_watts=1000,
    idle_watts=140.0,
    clock_idle_hertz=120 * MEGAHERTZ,
    clock_max_hertz=1965 * MEGAHERTZ,
    clock_memory_idle_hertz=3996 * MEGAHERTZ,
    clock_memory_hertz=3996 * MEGAHERTZ,
    thermal_resistance_celsius_per_watt=0.045,
    chassis_share_watts=450.0,
)
"""Source: 1000 W rating (DGX B200 guide, 14.3 kW for eight); memory clock of 3996 MHz (pytorch/ao
pull request 4002). The 500 W minimum is that of its Blackwell successor: taken as the cautious
value, since a floor that is too high only makes budgets harder to meet. The rest fitted by us."""

A100 = replace(
    H100,
    key="a100",
    name="NVIDIA A100-SXM4-80GB",
    architecture="ampere",
    pci_device_id="0x20b210de",
    memory_total_bytes=81920 * MEBIBYTE,
    memory_reserved_bytes=571 * MEBIBYTE,
    limit_default_watts=400,
    limit_min_watts=100,
    limit_max_watts=400,
    idle_watts=55.0,
    clock_idle_hertz=210 * MEGAHERTZ,
    clock_max_hertz=1410 * MEGAHERTZ,
    clock_memory_idle_hertz=1593 * MEGAHERTZ,
    clock_memory_hertz=1593 * MEGAHERTZ,
    clock_video_max_hertz=1290 * MEGAHERTZ,
    thermal_resistance_celsius_per_watt=0.1,
    max_operating_celsius=85.0,
    slowdown_celsius=89.0,
    shutdown_celsius=92.0,
    memory_temperature_offset_celsius=5.0,
    pcie_link_generation=4,
    chassis_share_watts=260.0,
)
"""Source: 100 to 400 W and 1410 MHz as nvidia-smi lists them for the SXM4 part (nvidia-docker
issue 1648); chassis from the 6.5 kW DGX A100. Memory, temperatures and thermal constants are taken
by us without a capture of the 80 GB part."""

L40S = replace(
    H100,
    key="l40s",
    name="NVIDIA L40S",
    architecture="ada",
    pci_device_id="0x26b910de",
    memory_total_bytes=46068 * MEBIBYTE,
    memory_reserved_bytes=569 * MEBIBYTE,
    bar1_total_bytes=65536 * MEBIBYTE,
    limit_default_watts=350,
    limit_min_watts=100,
    limit_max_watts=350,
    idle_watts=35.0,
    clock_idle_hertz=210 * MEGAHERTZ,
    clock_max_hertz=2520 * MEGAHERTZ,
    clock_memory_idle_hertz=405 * MEGAHERTZ,
    clock_memory_hertz=9001 * MEGAHERTZ,
    clock_video_max_hertz=1965 * MEGAHERTZ,
    idle_performance_state=8,
    thermal_resistance_celsius_per_watt=0.12,
    thermal_time_constant_seconds=30.0,
    max_operating_celsius=90.0,
    slowdown_celsius=92.0,
    shutdown_celsius=98.0,
    memory_temperature_offset_celsius=None,
    pcie_link_generation=4,
    is_mig_supported=False,
    chassis_share_watts=180.0,
)
"""Source: memory layout of the 46068 MiB Ada boards (open-gpu-kernel-modules issue 874); the data
sheet's 350 W and 2520 MHz; GDDR6 without a memory sensor. The 100 W minimum, temperatures and
thermal constants are taken by us without a capture of the part."""

PARTS = {part.key: part for part in (H100, H200, B200, A100, L40S)}

SUPPLY_EFFICIENCY_RATIO = 0.94
"""From the wall to the boards, at the load where a Titanium power supply is near its best."""

MIXED_SPEC = "h100x4+l40sx2"
"""What ``mixed`` means: a training machine that also serves; two makes of board, two ranges."""

_GROUP = re.compile(r"(?P<part>[a-z][a-z0-9]*?)x(?P<count>[0-9]+)")


def parse_spec(text: str) -> tuple[Part, ...]:
    """Read ``h100x8``, ``h100x4+l40sx2`` or ``mixed`` as one part per GPU, in order.

    Raises:
        UnknownSpec: one line that says what is wrong and which parts there are.
    """
    spec = text.strip().lower()
    known = ", ".join(sorted(PARTS))
    parts: list[Part] = []
    for group in (MIXED_SPEC if spec == "mixed" else spec).split("+"):
        match = _GROUP.fullmatch(group)
        if match is None:
            raise UnknownSpec(
                f"{text!r} is not a simulated machine: write PARTxCOUNT, joined by +, such as"
                f" h100x8 or {MIXED_SPEC}, or mixed (parts: {known})"
            )
        part = PARTS.get(match["part"])
        if part is None:
            raise UnknownSpec(f"{text!r} has no known part {match['part']!r} (parts: {known})")
        count = int(match["count"]) if len(match["count"]) <= len(str(GPUS_MAX)) else GPUS_MAX + 1
        if not 1 <= count <= GPUS_MAX - len(parts):
            raise UnknownSpec(f"{text!r} has no GPU or more than {GPUS_MAX} (parts: {known})")
        parts.extend([part] * count)
    return tuple(parts)


def canonical_spec(text: str) -> str:
    """The specification as the file keeps it, so that ``mixed`` and its meaning are the same.

    Raises:
        UnknownSpec: as `parse_spec`.
    """
    groups: list[tuple[str, int]] = []
    for part in parse_spec(text):
        if groups and groups[-1][0] == part.key:
            groups[-1] = (part.key, groups[-1][1] + 1)
        else:
            groups.append((part.key, 1))
    return "+".join(f"{key}x{count}" for key, count in groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class Individual:
    """How one board differs from its part's data sheet, so that eight of them are not clones."""

    idle_watts: float
    demand_ratio: float
    """Share of the part's full power that the same work draws on this board."""
    thermal_resistance_celsius_per_watt: float


@lru_cache(maxsize=4 * GPUS_MAX)
def individual(part_key: str, uuid: str) -> Individual:
    """The board behind a UUID: the same for ever, and within a few per cent of its part.

    Source: spreads are ours, small enough that a board never leaves its part's range; boards of
    one model measurably differ in idle draw and cooling.
    """
    part = PARTS[part_key]
    digest = hashlib.sha256(uuid.encode()).digest()
    idle, demand, cooling = (byte / 255 for byte in digest[:3])
    return Individual(
        idle_watts=part.idle_watts * (0.95 + 0.1 * idle),
        demand_ratio=0.97 + 0.03 * demand,
        thermal_resistance_celsius_per_watt=part.thermal_resistance_celsius_per_watt
        * (0.94 + 0.12 * cooling),
    )
