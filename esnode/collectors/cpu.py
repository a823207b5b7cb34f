"""The processors: load, seconds by mode, pressure and temperatures.

It is its own file as one subject with one worker. It must not know rates or utilization, which
need two readings; and it keeps nothing between two reads.
"""

import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass

from esnode.collectors.base import CollectFailed
from esnode.collectors.root import HostRoot, note_missing, read_section
from esnode.drivers.files import Unreadable, list_folder, parse_count, read_text
from esnode.drivers.hwmon import list_chips, read_millidegrees, read_temperatures
from esnode.readings.host import (
    CPU_MODES,
    Absence,
    CpuReading,
    CpuTimes,
    PressureReading,
    TemperatureReading,
)

CPU_CHIPS = re.compile(r"coretemp|k8temp|k10temp|zenpower|via_cputemp|.*cpu.*thermal.*|.*cputemp.*")
"""hwmon drivers of processors: Intel, AMD, VIA, and the thermal zones of Arm boards."""

_CPU_ZONES = re.compile(r".*(cpu|pkg|package|soc|core).*|acpitz", re.IGNORECASE)
"""Types of thermal zones that stand for the processor where no chip does. An ACPI zone
(``acpitz``) is the only one that some Arm servers have."""

_FEWEST_MODES = 4
_LAST_MODE = 1 + len(CPU_MODES)
_MOST_SECONDS = 2.0**64
"""Counters have 64 bits, so a longer number is damage."""
_STAT_WORDS = {
    "mode_seconds": "cpu",
    "boot_time_seconds": "btime",
    "interrupts_total": "intr",
    "context_switches_total": "ctxt",
    "forks_total": "processes",
    "processes_running": "procs_running",
    "processes_blocked": "procs_blocked",
}
_PRESSURE_RESOURCES = ("cpu", "io", "memory", "irq")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """What `/proc/stat` says; a line that is missing or damaged is ``None``."""

    mode_seconds: CpuTimes | None
    cpu_mode_seconds: tuple[tuple[int, CpuTimes], ...]
    damaged_cpus: tuple[str, ...]
    boot_time_seconds: float | None
    interrupts_total: int | None
    context_switches_total: int | None
    forks_total: int | None
    processes_running: int | None
    processes_blocked: int | None


def parse_stat(text: str, ticks_per_second: int) -> Stat | None:
    """Read `/proc/stat` in one pass; ``None`` when no line of it is known.

    Source: proc(5), /proc/stat.
    """
    modes: CpuTimes | None = None
    cpus: list[tuple[int, CpuTimes]] = []
    damaged: list[str] = []
    counts: dict[str, int | None] = {}
    for line in text.split("\n"):
        if line[:3] == "cpu":
            # Hot path: 256 of these lines on a large host, ten numbers in each.
            words = line.split()
            name = words[0]
            ticks = [] if "-" in line else words[1:_LAST_MODE]
            seconds = _parse_modes(ticks, float(ticks_per_second))
            if name == "cpu":
                modes = seconds
            elif seconds is not None and (number := parse_count(name[3:])) is not None:
                cpus.append((number, seconds))
            else:
                damaged.append(name[:20])
        else:
            # The intr line holds thousands of numbers, of which only the first is wanted.
            words = line.split(None, 2)
            if len(words) > 1:
                counts[words[0]] = parse_count(words[1])
    if not counts.keys() & set(_STAT_WORDS.values()) and modes is None and not cpus:
        return None
    boot_time = counts.get("btime")
    return Stat(
        mode_seconds=modes,
        cpu_mode_seconds=tuple(sorted(dict(cpus).items())),
        damaged_cpus=tuple(damaged),
        boot_time_seconds=None if boot_time is None else float(boot_time),
        interrupts_total=counts.get("intr"),
        context_switches_total=counts.get("ctxt"),
        forks_total=counts.get("processes"),
        processes_running=counts.get("procs_running"),
        processes_blocked=counts.get("procs_blocked"),
    )


def _parse_modes(ticks: list[str], ticks_per_second: float) -> CpuTimes | None:
    # As floats, because they are converted and divided twice as fast as whole numbers, and are
    # exact far beyond the ticks of any uptime. One sum finds what is endless or no number.
    try:
        times = tuple([tick / ticks_per_second for tick in map(float, ticks)])
    except ValueError:
        return None
    return times if len(times) >= _FEWEST_MODES and sum(times) < _MOST_SECONDS else None


def parse_loadavg(text: str) -> tuple[float, float, float] | None:
    """The three load averages of `/proc/loadavg`."""
    try:
        one, five, fifteen = (float(word) for word in text.split()[:3])
    except ValueError:
        return None
    loads = (one, five, fifteen)
    return loads if all(math.isfinite(load) and load >= 0 for load in loads) else None


def parse_pressure(text: str, resource: str) -> tuple[PressureReading, ...] | None:
    """The stalled time of one resource, e.g. ``some avg10=0.00 ... total=14036781``.

    Left out is ``full`` of the cpu: a whole machine cannot have it, and the kernel prints a
    constant 0. Source: kernel documentation, accounting/psi (microseconds).
    """
    readings: list[PressureReading] = []
    for line in text.splitlines():
        kind, *pairs = line.split() or [""]
        if kind not in ("some", "full") or (resource, kind) == ("cpu", "full"):
            continue
        values = dict(pair.partition("=")[::2] for pair in pairs)
        stalled = parse_count(values.get("total", ""))
        if stalled is not None:
            readings.append(
                PressureReading(resource=resource, kind=kind, stalled_seconds_total=stalled / 1e6)
            )
    return tuple(readings) or None


class CpuCollector:
    """Reads the processors of one host."""

    name = "cpu"

    def __init__(self, root: HostRoot, *, ticks_per_second: int | None = None) -> None:
        self._root = root
        self._ticks_per_second = ticks_per_second or os.sysconf("SC_CLK_TCK")

    def read(self) -> CpuReading:
        """Read everything once.

        Raises:
            CollectFailed: neither times, load, pressure nor a temperature could be read.
        """
        absent: list[Absence] = []
        stat_path = self._root.proc("stat")
        stat = read_section(
            stat_path,
            lambda text: parse_stat(text, self._ticks_per_second),
            what="stat",
            absent=absent,
        )
        loads = read_section(
            self._root.proc("loadavg"), parse_loadavg, what="loadavg", absent=absent
        )
        pressure = self._read_pressure(absent)
        temperatures = self._read_temperatures(absent)
        if stat is None and loads is None and not pressure and not temperatures:
            raise CollectFailed(absent[0].reason)
        if stat is not None:
            note_missing(_STAT_WORDS, stat, path=stat_path, absent=absent)
            absent.extend(
                Absence(what=name, reason=f"{stat_path} has a damaged line for {name}")
                for name in stat.damaged_cpus
            )
        return CpuReading(
            load1=loads[0] if loads else None,
            load5=loads[1] if loads else None,
            load15=loads[2] if loads else None,
            boot_time_seconds=stat.boot_time_seconds if stat else None,
            mode_seconds=stat.mode_seconds if stat else None,
            cpu_mode_seconds=stat.cpu_mode_seconds if stat else (),
            interrupts_total=stat.interrupts_total if stat else None,
            context_switches_total=stat.context_switches_total if stat else None,
            forks_total=stat.forks_total if stat else None,
            processes_running=stat.processes_running if stat else None,
            processes_blocked=stat.processes_blocked if stat else None,
            pressure=pressure,
            temperatures=temperatures,
            absent=tuple(absent),
        )

    def _read_pressure(self, absent: list[Absence]) -> tuple[PressureReading, ...]:
        folder = self._root.proc("pressure")
        listed = list_folder(folder)
        if isinstance(listed, Unreadable):
            reason = f"{listed.reason}: a kernel with CONFIG_PSI, booted with psi=1, has it"
            absent.append(Absence(what="pressure", reason=reason))
            return ()
        readings: list[PressureReading] = []
        for resource in _PRESSURE_RESOURCES:
            readings.extend(
                read_section(
                    f"{folder}/{resource}",
                    _pressure_parser(resource),
                    what=f"pressure:{resource}",
                    absent=absent,
                )
                or ()
            )
        return tuple(readings)

    def _read_temperatures(self, absent: list[Absence]) -> tuple[TemperatureReading, ...]:
        chips = list_chips(os.fspath(self._root.sysfs))
        readings: list[TemperatureReading] = []
        if not isinstance(chips, Unreadable):
            for chip in chips:
                if CPU_CHIPS.fullmatch(chip.driver):
                    found, missing = read_temperatures(chip)
                    readings.extend(found)
                    absent.extend(missing)
        if not readings:
            readings.extend(self._read_thermal_zones(absent))
        if not readings:
            reason = "no hwmon chip and no thermal zone of a processor (usual in virtual machines)"
            absent.append(Absence(what="temperatures", reason=reason))
        return tuple(readings)

    def _read_thermal_zones(self, absent: list[Absence]) -> list[TemperatureReading]:
        base = self._root.sys("class/thermal")
        folders = list_folder(base)
        readings: list[TemperatureReading] = []
        if isinstance(folders, Unreadable):
            return readings
        for folder in folders:
            kind = read_text(f"{base}/{folder}/type") if folder.startswith("thermal_zone") else ""
            if isinstance(kind, Unreadable) or not _CPU_ZONES.fullmatch(kind.strip()):
                continue
            celsius = read_millidegrees(f"{base}/{folder}/temp")
            if isinstance(celsius, Unreadable):
                absent.append(Absence(what=f"thermal:{folder}", reason=celsius.reason))
                continue
            readings.append(
                TemperatureReading(
                    chip=folder, sensor="temp", label=kind.strip(), temperature_celsius=celsius
                )
            )
        return readings


def _pressure_parser(resource: str) -> Callable[[str], tuple[PressureReading, ...] | None]:
    return lambda text: parse_pressure(text, resource)
