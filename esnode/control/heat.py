"""How hot one GPU is, on one scale for all its sensors: from `OK` to `CRITICAL`.

Pure. Its own file because it is about one look alone: what follows from several looks, and what is
done then, is in `thermal`. Boards differ, so their own margins come first: the driver's distance to
the highest operating temperature, else the slowdown or shutdown temperatures that the driver gives,
else fixed ones. Memory and the air at the inlet are judged beside the core; the worst counts. It
must not know watts.
Source: margins and their steps from the power ledger's specification, 6.3 (Hopper: slowdown 2 C and
shutdown 8 C above the highest operating temperature); fixed temperatures from the requirements of
thermal care; memory from the 95 C commonly quoted for HBM; inlet from the allowable range of
ASHRAE's class A3.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from esnode.readings.gpu import GpuReading
from esnode.readings.limits import round_up

SLOWDOWN_BITS = ("hw_thermal_slowdown", "sw_thermal_slowdown")
"""Reasons by which a device says that heat holds it back. `hw_slowdown` alone may be a power
brake."""

SLOWDOWN_ABOVE_OPERATING_CELSIUS = 2.0
SHUTDOWN_ABOVE_OPERATING_CELSIUS = 8.0


class Level(IntEnum):
    """How near a GPU is to what it bears."""

    OK = 0
    WARM = 1
    """No new work."""
    HOT = 2
    """Less power, step by step."""
    SEVERE = 3
    """Much less power at once, and its work should go elsewhere."""
    CRITICAL = 4
    """At or above what it is made for."""

    @property
    def word(self) -> str:
        """How people and documents call it: what is severe is hot to them, and being drained."""
        return {Level.SEVERE: "hot"}.get(self, self.name.lower())


RISING = (Level.WARM, Level.HOT, Level.SEVERE, Level.CRITICAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From which temperature on each level is reached; ``None`` where a sensor never says so."""

    warm_celsius: float
    hot_celsius: float | None
    severe_celsius: float | None
    critical_celsius: float | None

    def set_celsius(self, level: Level) -> float | None:
        """From where on a level is reached."""
        match level:
            case Level.WARM:
                return self.warm_celsius
            case Level.HOT:
                return self.hot_celsius
            case Level.SEVERE:
                return self.severe_celsius
            case Level.CRITICAL:
                return self.critical_celsius
            case Level.OK:
                return None

    def level(self, celsius: float) -> Level:
        """The highest level that a temperature reaches."""
        reached = Level.OK
        for level in RISING:
            begins = self.set_celsius(level)
            if begins is not None and celsius >= begins:
                reached = level
        return reached


def scale_below(operating_celsius: float) -> Scale:
    """The scale of something that bears a temperature: 8, 4, 2 and 0 degrees below it."""
    return Scale(
        warm_celsius=operating_celsius - 8.0,
        hot_celsius=operating_celsius - 4.0,
        severe_celsius=operating_celsius - 2.0,
        critical_celsius=operating_celsius,
    )


FIXED = Scale(warm_celsius=80.0, hot_celsius=85.0, severe_celsius=88.0, critical_celsius=90.0)
"""For a core of which nothing is known but its temperature."""

MEMORY = scale_below(95.0)

INLET = Scale(warm_celsius=40.0, hot_celsius=None, severe_celsius=None, critical_celsius=None)
"""Hot air alone keeps new work away and no more. Less power would not cool it, and whether a GPU
bears it, its own sensors say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmth:
    """One sensor's word."""

    sensor: str
    """``margin``, ``core``, ``memory`` or ``inlet``."""
    celsius: float
    scale: Scale

    @property
    def level(self) -> Level:
        """What it comes to."""
        return self.scale.level(self.celsius)

    def is_clear_of(self, level: Level, *, reset_celsius: float) -> bool:
        """Whether it is so far below a level that the level may be left."""
        begins = self.scale.set_celsius(level)
        return begins is None or self.celsius < begins - reset_celsius

    @property
    def line(self) -> str:
        """The evidence, in one line."""
        if self.sensor == "margin":
            return f"{-self.celsius:g} C below its highest operating temperature"
        return f"{self.sensor} at {self.celsius:g} C (warm from {self.scale.warm_celsius:g} C)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look at one GPU; every number may be unknown."""

    gpu: str
    """Its UUID."""
    at_seconds: float
    """When the read began, on the clock of `now`."""
    minimum_watts: int | None = None
    maximum_watts: int | None = None
    draw_watts: float | None = None
    margin_celsius: float | None = None
    core_celsius: float | None = None
    slowdown_celsius: float | None = None
    shutdown_celsius: float | None = None
    memory_celsius: float | None = None
    inlet_celsius: float | None = None
    """The air that reaches the machine."""
    is_slowed_by_heat: bool | None = None
    """Whether the device says that heat holds its clocks back."""

    @property
    def warmths(self) -> tuple[Warmth, ...]:
        """What every sensor that answers says, the core's first."""
        core = self._core()
        found = [] if core is None else [core]
        if self.memory_celsius is not None:
            found.append(Warmth(sensor="memory", celsius=self.memory_celsius, scale=MEMORY))
        if self.inlet_celsius is not None:
            found.append(Warmth(sensor="inlet", celsius=self.inlet_celsius, scale=INLET))
        return tuple(found)

    @property
    def has_core(self) -> bool:
        """Whether the GPU itself says how hot it is; the air around it does not stand in."""
        return self._core() is not None

    def _core(self) -> Warmth | None:
        if self.margin_celsius is not None:
            return Warmth(sensor="margin", celsius=-self.margin_celsius, scale=scale_below(0.0))
        if self.core_celsius is None:
            return None
        return Warmth(sensor="core", celsius=self.core_celsius, scale=self._core_scale())

    def _core_scale(self) -> Scale:
        if self.slowdown_celsius is not None:
            return scale_below(self.slowdown_celsius - SLOWDOWN_ABOVE_OPERATING_CELSIUS)
        if self.shutdown_celsius is not None:
            return scale_below(self.shutdown_celsius - SHUTDOWN_ABOVE_OPERATING_CELSIUS)
        return FIXED


def worst_of(warmths: Iterable[Warmth]) -> Warmth | None:
    """The one that says the highest level; of several the first."""
    return max(warmths, key=lambda warmth: warmth.level, default=None)


def look_of(reading: GpuReading, *, at_seconds: float, inlet_celsius: float | None = None) -> Look:
    """What thermal care wants to know of a reading."""
    reasons = reading.throttle_reasons
    return Look(
        gpu=reading.identity.uuid,
        at_seconds=at_seconds,
        minimum_watts=round_up(reading.power_limit_min_watts),
        maximum_watts=round_up(reading.power_limit_max_watts),
        draw_watts=reading.power_watts,
        margin_celsius=reading.temperature_margin_celsius,
        core_celsius=reading.temperature_celsius,
        slowdown_celsius=reading.slowdown_celsius,
        shutdown_celsius=reading.shutdown_celsius,
        memory_celsius=reading.memory_temperature_celsius,
        inlet_celsius=inlet_celsius,
        is_slowed_by_heat=(
            None if reasons is None else any(bit in reasons for bit in SLOWDOWN_BITS)
        ),
    )
