"""What a GPU driver says of its devices, in base units, whoever the vendor is.

``None`` means "this device or driver does not give it"; `GpuReading.absent` says why, field by
field, with the driver's own return code.
"""

from dataclasses import dataclass

from esnode.readings.host import Absence


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuIdentity:
    """What does not change while the driver is loaded. `uuid` is the key everywhere."""

    uuid: str
    index: int
    """The driver's enumeration order: may change between boots, so never a key."""
    name: str
    vendor: str
    pci_bus_id: str | None = None
    """``domain:bus:device.function`` in lower case, e.g. ``00000000:18:00.0``."""
    serial: str | None = None
    vbios_version: str | None = None
    architecture: str | None = None
    minor_number: int | None = None
    numa_node: int | None = None
    pci_device_id: str | None = None
    pci_subsystem_id: str | None = None
    board_id: int | None = None
    is_mig_supported: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuInventory:
    """One discovery: the driver, the devices that answered, and those that did not."""

    driver: str
    """Which back end: ``nvml``, ``simulated``."""
    driver_version: str | None = None
    library_version: str | None = None
    cuda_version: str | None = None
    gpus: tuple[GpuIdentity, ...] = ()
    lost: tuple[Absence, ...] = ()
    """Devices that the driver counts but cannot open (`what` is ``gpu:INDEX``)."""
    found_count: int = 0
    """How many devices the driver counts, answering or not."""
    absent: tuple[Absence, ...] = ()
    """Entries of `visible_devices` that name no device (`what` is ``visible_devices:ENTRY``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EccCount:
    """One error counter of the device."""

    error: str
    """``corrected`` or ``uncorrected``."""
    scope: str
    """``volatile`` (since driver load) or ``aggregate`` (life of the device)."""
    location: str
    """``total``, ``device_memory``, ``l2_cache``, ``sram`` ..."""
    errors_total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """One process that holds a context on the device."""

    pid: int
    kind: str
    """``compute`` or ``graphics``."""
    name: str | None
    """From `/proc/PID/comm`; ``None`` when the process is gone or in another pid namespace."""
    memory_used_bytes: int | None


THROTTLE_REASONS = (
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "display_clocks_setting",
)
"""All clock event reasons, bit 0 upwards (nvml.h, nvmlClocksEventReasons)."""

HARMFUL_THROTTLE_REASONS = frozenset(
    {
        "sw_power_cap",
        "hw_slowdown",
        "sw_thermal_slowdown",
        "hw_thermal_slowdown",
        "hw_power_brake_slowdown",
    }
)
"""Reasons that cost work; the others describe an idle device or an operator's choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReading:
    """One device at one instant."""

    identity: GpuIdentity
    utilization_ratio: float | None = None
    memory_utilization_ratio: float | None = None
    """Share of time in which memory was read or written (not its fill)."""
    encoder_utilization_ratio: float | None = None
    decoder_utilization_ratio: float | None = None
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    memory_free_bytes: int | None = None
    memory_reserved_bytes: int | None = None
    bar1_total_bytes: int | None = None
    bar1_used_bytes: int | None = None
    temperature_celsius: float | None = None
    memory_temperature_celsius: float | None = None
    slowdown_celsius: float | None = None
    shutdown_celsius: float | None = None
    temperature_margin_celsius: float | None = None
    """Distance to the device's own thermal limit (T.Limit); falls towards 0 as it heats."""
    power_average_watts: float | None = None
    """Averaged by the device, over 1 s on most parts since Ampere."""
    power_instant_watts: float | None = None
    power_limit_default_watts: float | None = None
    power_limit_min_watts: float | None = None
    power_limit_max_watts: float | None = None
    power_limit_requested_watts: float | None = None
    power_limit_enforced_watts: float | None = None
    energy_joules_total: float | None = None
    """The device's own counter, since the driver was loaded."""
    clock_sm_hertz: float | None = None
    clock_memory_hertz: float | None = None
    clock_graphics_hertz: float | None = None
    clock_video_hertz: float | None = None
    clock_sm_max_hertz: float | None = None
    clock_memory_max_hertz: float | None = None
    clock_graphics_max_hertz: float | None = None
    performance_state: int | None = None
    """P-state: 0 is the fastest, 15 the slowest."""
    throttle_reasons: tuple[str, ...] | None = None
    """The active ones of `THROTTLE_REASONS`, in its order; ``()`` is "none active"."""
    violation_seconds_total: tuple[tuple[str, float], ...] = ()
    """(policy, seconds) for which the device says that it held clocks back."""
    fan_speed_ratios: tuple[float, ...] = ()
    """One per fan; empty for parts without fans of their own."""
    is_ecc_enabled: bool | None = None
    ecc: tuple[EccCount, ...] = ()
    retired_pages: tuple[tuple[str, int], ...] = ()
    """(cause, pages) on parts before Ampere."""
    remapped_rows: tuple[tuple[str, int], ...] = ()
    """(kind, rows): ``corrected``, ``uncorrected``."""
    is_remap_pending: bool | None = None
    is_remap_failed: bool | None = None
    pcie_link_generation: int | None = None
    pcie_link_generation_max: int | None = None
    pcie_link_width: int | None = None
    pcie_link_width_max: int | None = None
    pcie_replays_total: int | None = None
    is_persistence_enabled: bool | None = None
    is_mig_enabled: bool | None = None
    processes: tuple[GpuProcess, ...] | None = None
    """``None`` when the driver cannot list them; ``()`` when there are none."""
    unlisted_process_count: int = 0
    """How many more there are, none with more memory than those in `processes`."""
    absent: tuple[Absence, ...] = ()
    """Fields that this device or driver does not give, with its return code."""

    @property
    def process_count(self) -> int | None:
        """All processes that hold a context on the device."""
        return None if self.processes is None else len(self.processes) + self.unlisted_process_count

    @property
    def power_watts(self) -> float | None:
        """The draw: the device's average, else its instantaneous value."""
        if self.power_average_watts is not None:
            return self.power_average_watts
        return self.power_instant_watts
