"""Temperatures and power of the kernel's hwmon chips, under names that survive a reboot.

It is its own file because two collectors read hwmon: the CPU's temperatures and the power
sensors. It must not know which chip matters to the node; that is decided where readings are
weighed. Source: kernel documentation, hwmon/sysfs-interface.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from esnode.drivers.files import (
    ReadFile,
    Unreadable,
    list_folder,
    parse_count,
    parse_whole,
    read_number,
    read_text,
)
from esnode.readings.host import Absence, TemperatureReading
from esnode.readings.power import PowerSensorReading

MAX_POWER_WATTS = 100_000.0
"""Above any single machine: such a value is a broken sensor."""

_COLDEST_CELSIUS, _HOTTEST_CELSIUS = -60.0, 200.0
"""Outside of what silicon and its sensors survive; -128 and 255 are common "no value" codes."""

_CHANNEL = re.compile(r"(temp|power)(\d+)_(input|average)")
_UNFIT = re.compile(r"[^a-z0-9:_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class HwmonChip:
    """One folder of `class/hwmon`."""

    chip: str
    """The stable name: parent device and device, as node_exporter builds it."""
    driver: str
    """The `name` file, e.g. ``coretemp``; empty when the chip has none."""
    folder: str
    attributes: tuple[tuple[str, str], ...]
    """(attribute, folder it lies in), sorted; old drivers keep theirs in `device/`."""


def _clean(name: str) -> str:
    return _UNFIT.sub("_", name.strip().lower()).strip("_")


def name_chip(folder: str, driver: str) -> str:
    """Name a chip by its device's path, which does not depend on the order of driver loading.

    Source: node_exporter, collector/hwmon_linux.go (hwmonName).
    """
    device = os.path.join(folder, "device")
    if os.path.exists(device):
        parent, own = os.path.split(os.path.realpath(device))
        cleaned = [part for part in (_clean(os.path.basename(parent)), _clean(own)) if part]
        if cleaned:
            return "_".join(cleaned)
    return _clean(driver) or _clean(os.path.basename(folder))


def list_chips(sysfs: str, read: ReadFile = read_text) -> tuple[HwmonChip, ...] | Unreadable:
    """List the chips, each under a name of its own."""
    base = f"{sysfs}/class/hwmon"
    names = list_folder(base)
    if isinstance(names, Unreadable):
        return names
    return _tell_apart([_open_chip(f"{base}/{name}", read) for name in names])


def _open_chip(folder: str, read: ReadFile) -> HwmonChip:
    attributes: dict[str, str] = {}
    for place in (f"{folder}/device", folder):  # the chip's own folder wins
        names = list_folder(place)
        if not isinstance(names, Unreadable):
            attributes.update(
                (name, place) for name in names if name == "name" or name[:4] in ("temp", "powe")
            )
    driver = read(f"{attributes['name']}/name") if "name" in attributes else ""
    driver = "" if isinstance(driver, Unreadable) else driver.strip()
    return HwmonChip(
        chip=name_chip(folder, driver),
        driver=driver,
        folder=folder,
        attributes=tuple(sorted(attributes.items())),
    )


def _tell_apart(chips: Iterable[HwmonChip]) -> tuple[HwmonChip, ...]:
    """Give chips of one device different names: by driver first, by folder at the last."""
    by_driver = _lengthen([(chip, chip.driver) for chip in chips])
    return tuple(_lengthen([(chip, os.path.basename(chip.folder)) for chip in by_driver]))


def _lengthen(chips: list[tuple[HwmonChip, str]]) -> list[HwmonChip]:
    """Append the given words to the names that are taken twice."""
    taken = Counter(chip.chip for chip, _ in chips)
    return [
        replace(chip, chip=f"{chip.chip}_{_clean(word)}".rstrip("_"))
        if taken[chip.chip] > 1
        else chip
        for chip, word in chips
    ]


def _channels(chip: HwmonChip, kind: str) -> dict[str, dict[str, str]]:
    """Sensor (``temp1``) to {attribute suffix: path}, by number."""
    numbers = sorted(
        {
            int(match[2])
            for name, _ in chip.attributes
            if (match := _CHANNEL.fullmatch(name)) and match[1] == kind and len(match[2]) < 6
        }
    )
    paths: dict[str, dict[str, str]] = {f"{kind}{number}": {} for number in numbers}
    for name, place in chip.attributes:
        sensor, _, suffix = name.partition("_")
        if sensor in paths:
            paths[sensor][suffix] = f"{place}/{name}"
    return paths


def _read_label(paths: dict[str, str], read: ReadFile) -> str:
    text = read(paths["label"]) if "label" in paths else ""
    return "" if isinstance(text, Unreadable) else " ".join(text.split())


def _is_set(paths: dict[str, str], suffix: str, value: int, read: ReadFile) -> bool:
    """Whether an optional switch of the channel has the given value."""
    return suffix in paths and read_number(paths[suffix], parse_whole, read) == value


def read_temperatures(
    chip: HwmonChip, read: ReadFile = read_text
) -> tuple[tuple[TemperatureReading, ...], tuple[Absence, ...]]:
    """Read the temperature sensors of one chip."""
    readings: list[TemperatureReading] = []
    absent: list[Absence] = []
    for sensor, paths in _channels(chip, "temp").items():
        celsius = _read_celsius(paths, read)
        if isinstance(celsius, Unreadable):
            absent.append(Absence(what=f"hwmon:{chip.chip}:{sensor}", reason=celsius.reason))
            continue
        readings.append(
            TemperatureReading(
                chip=chip.chip,
                sensor=sensor,
                label=_read_label(paths, read),
                temperature_celsius=celsius,
                critical_celsius=_read_critical(paths, read),
            )
        )
    return tuple(readings), tuple(absent)


def _read_celsius(paths: dict[str, str], read: ReadFile) -> float | Unreadable:
    if "input" not in paths:
        return Unreadable(reason="the sensor has no input file")
    if _is_set(paths, "enable", 0, read):
        return Unreadable(reason="the sensor is switched off (enable is 0)")
    if _is_set(paths, "fault", 1, read):
        return Unreadable(reason="the driver says that the sensor is broken (fault is 1)")
    return read_millidegrees(paths["input"], read)


def _read_critical(paths: dict[str, str], read: ReadFile) -> float | None:
    """The chip's own limit, which many chips lack and some give as 0."""
    celsius = read_millidegrees(paths["crit"], read) if "crit" in paths else 0.0
    return None if isinstance(celsius, Unreadable) or celsius <= 0 else celsius


def read_millidegrees(path: str, read: ReadFile = read_text) -> float | Unreadable:
    """Read a kernel temperature, refusing what no machine can have."""
    number = read_number(path, parse_whole, read)
    if isinstance(number, Unreadable):
        return number
    celsius = number / 1000
    if not _COLDEST_CELSIUS <= celsius <= _HOTTEST_CELSIUS:
        return Unreadable(reason=f"{path} says {celsius:g} degrees Celsius: not a real temperature")
    return celsius


def read_power(
    chip: HwmonChip, read: ReadFile = read_text
) -> tuple[tuple[PowerSensorReading, ...], tuple[Absence, ...]]:
    """Read the power sensors of one chip: the present draw, else the meter's own average.

    One reading a channel, never both, so that a sum over a chip counts each channel once.
    """
    readings: list[PowerSensorReading] = []
    absent: list[Absence] = []
    for sensor, paths in _channels(chip, "power").items():
        if _is_set(paths, "enable", 0, read):
            found: tuple[float, bool] | Unreadable = Unreadable(
                reason="the sensor is switched off (enable is 0)"
            )
        else:
            found = _read_draw(paths, read)
        if isinstance(found, Unreadable):
            absent.append(Absence(what=f"hwmon:{chip.chip}:{sensor}", reason=found.reason))
            continue
        watts, is_average = found
        readings.append(
            PowerSensorReading(
                chip=chip.chip,
                sensor=sensor,
                label=_read_label(paths, read),
                power_watts=watts,
                is_average=is_average,
                chip_driver=chip.driver,
            )
        )
    return tuple(readings), tuple(absent)


def _read_draw(paths: dict[str, str], read: ReadFile) -> tuple[float, bool] | Unreadable:
    """(watts, whether they are an average) of one channel, or why the first try failed."""
    failed: Unreadable | None = None
    for suffix in ("input", "average"):
        if suffix in paths:
            watts = _read_microwatts(paths[suffix], read)
            if not isinstance(watts, Unreadable):
                return watts, suffix == "average"
            failed = failed or watts
    return failed or Unreadable(reason="the sensor has no input and no average file")


def _read_microwatts(path: str, read: ReadFile) -> float | Unreadable:
    text = read(path)
    if isinstance(text, Unreadable):
        return text
    microwatts = parse_count(text)
    if microwatts is None:
        return Unreadable(reason=f"{path} holds {text.strip()[:40]!r}, not a draw in microwatts")
    watts = microwatts / 1e6
    if watts == 0:
        return Unreadable(reason=f"{path} says 0 W: the meter is not measuring")
    if watts > MAX_POWER_WATTS:
        return Unreadable(reason=f"{path} says {watts:g} W: more than any machine draws")
    return watts
