"""What the power collectors read: meters as they are, nothing chosen and nothing summed.

Which of them becomes the node's power is decided in `esnode.fold.power`.
"""

from dataclasses import dataclass

from esnode.readings.host import Absence


@dataclass(frozen=True, slots=True, kw_only=True)
class RaplZoneReading:
    """One powercap zone (kernel documentation, power/powercap)."""

    path: str
    """Folder below `class/powercap`, e.g. ``intel-rapl:0:1``: unique, unlike the name."""
    zone: str
    """The zone's own name without its number: ``package``, ``core``, ``dram``, ``psys`` ..."""
    socket: int | None
    """The package the zone belongs to; ``None`` for psys and other zones of the whole machine."""
    energy_microjoules: int
    """The raw counter: wraps at `energy_range_microjoules`."""
    energy_range_microjoules: int | None
    """``None`` when unreadable: then a decrease cannot be told from a wrap and is skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerSensorReading:
    """One power sensor of a hwmon chip or of the baseboard controller."""

    chip: str
    """Stable chip name (hwmon) or ``bmc``."""
    sensor: str
    """``power1``, or the name that the baseboard controller gives."""
    label: str
    power_watts: float
    is_average: bool = False
    """Whether the value is the meter's own average (`power*_average`) and not the present draw."""
    chip_driver: str = ""
    """The hwmon chip's `name` file, e.g. ``power_meter`` for an ACPI meter of the whole machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerReading:
    """RAPL zones and hwmon power sensors of the host."""

    zones: tuple[RaplZoneReading, ...] = ()
    sensors: tuple[PowerSensorReading, ...] = ()
    absent: tuple[Absence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DcmiPowerReading:
    """`ipmitool dcmi power reading`: the draw of the whole chassis."""

    power_watts: float
    minimum_watts: float | None
    maximum_watts: float | None
    average_watts: float | None
    is_active: bool
    """Whether the controller says that measurement is activated; a 0 W answer is not a reading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcSensorReading:
    """One other sensor of the baseboard controller: a temperature or a fan."""

    sensor: str
    kind: str
    """``temperature`` (value in Celsius) or ``fan`` (value in revolutions per minute)."""
    temperature_celsius: float | None = None
    fan_speed_rpm: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IpmiReading:
    """One round of the baseboard controller, from `ipmitool`."""

    dcmi: DcmiPowerReading | None = None
    power_sensors: tuple[PowerSensorReading, ...] = ()
    sensors: tuple[BmcSensorReading, ...] = ()
    absent: tuple[Absence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChassisPowerReading:
    """The draw of the whole machine as a simulated machine's own meter gives it."""

    power_watts: float
