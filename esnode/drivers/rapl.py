"""Energy counters of the processors: the powercap zones of RAPL, raw.

It is its own file because the naming of zones is a subject of its own: numbers in hexadecimal,
twins of one package behind two interfaces, the same names under every socket. It must not know
time: rates and wraps are worked out where readings are folded.
Source: kernel documentation, power/powercap/powercap.
"""

import errno
import re
from dataclasses import dataclass

from esnode.drivers.files import (
    ReadFile,
    Unreadable,
    list_folder,
    parse_count,
    read_number,
    read_text,
)
from esnode.readings.host import Absence
from esnode.readings.power import RaplZoneReading

_ZONE_FOLDER = re.compile(r"([a-z]+-rapl(?:-[a-z]+)?)((?::[0-9a-f]+)+)")
"""Control type, then one hexadecimal number a level: ``intel-rapl:a:0``. AMD processors appear
under ``intel-rapl`` too."""

_NUMBERED = re.compile(r"package-(\d+)(?:-die-\d+)?")
_MMIO = "-mmio"

_MSR_REASON = "(energy_uj is root-only since CVE-2020-8694)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Zone:
    """A zone's place in the hierarchy, before its counter is read."""

    path: str
    name: str
    outer_name: str
    """Name of the top zone it lies in; empty for a top zone."""
    is_mmio: bool


def read_zones(
    sysfs: str, read: ReadFile = read_text
) -> tuple[tuple[RaplZoneReading, ...], tuple[Absence, ...]]:
    """Read every zone once; a zone that fails is an absence of its own."""
    base = f"{sysfs}/class/powercap"
    folders = list_folder(base)
    if isinstance(folders, Unreadable):
        reason = f"no RAPL: {folders.reason}; virtual machines have none, else load intel_rapl_msr"
        return (), (Absence(what="rapl", reason=reason),)
    absent: list[Absence] = []
    zones = _list_zones(base, folders, read, absent)
    if not zones and not absent:
        absent.append(Absence(what="rapl", reason=f"{base} holds no RAPL zone"))
    readings: list[RaplZoneReading] = []
    given: set[tuple[str, str]] = set()
    # The memory-mapped interface repeats the package that the MSR interface gives, so it comes
    # last and fills gaps only: both together would count the same joules twice.
    for zone in sorted(zones, key=lambda zone: zone.is_mmio):
        identity = (zone.outer_name, zone.name)
        if zone.is_mmio and identity in given:
            continue
        reading = _read_zone(base, zone, read, absent)
        if reading is not None:
            readings.append(reading)
            given.add(identity)
    return tuple(sorted(readings, key=lambda reading: reading.path)), tuple(absent)


def _list_zones(
    base: str, folders: tuple[str, ...], read: ReadFile, absent: list[Absence]
) -> list[_Zone]:
    names: dict[str, str] = {}
    for folder in folders:
        if not _ZONE_FOLDER.fullmatch(folder):
            continue
        name = read(f"{base}/{folder}/name")
        if isinstance(name, Unreadable):
            absent.append(Absence(what=f"rapl:{folder}", reason=name.reason))
        elif not name.strip():
            absent.append(Absence(what=f"rapl:{folder}", reason=f"{base}/{folder}/name is empty"))
        else:
            names[folder] = " ".join(name.split())
    return [
        _Zone(
            path=folder,
            name=name,
            outer_name="" if folder.count(":") == 1 else names.get(_top_of(folder), ""),
            is_mmio=folder.partition(":")[0].endswith(_MMIO),
        )
        for folder, name in names.items()
    ]


def _top_of(folder: str) -> str:
    return ":".join(folder.split(":")[:2])


def find_socket(name: str) -> int | None:
    """The socket in a zone's name: 10 for ``package-10``, nothing for ``psys``."""
    match = _NUMBERED.fullmatch(name)
    return int(match[1]) if match and len(match[1]) < 6 else None


def name_zone(name: str) -> str:
    """The zone's kind: ``package`` for ``package-10-die-1``; other names are their own kind."""
    return "package" if _NUMBERED.fullmatch(name) else name


def _read_zone(
    base: str, zone: _Zone, read: ReadFile, absent: list[Absence]
) -> RaplZoneReading | None:
    folder = f"{base}/{zone.path}"
    energy = read_number(f"{folder}/energy_uj", parse_count, read)
    if isinstance(energy, Unreadable):
        is_refused = energy.error_number in (errno.EACCES, errno.EPERM)
        reason = f"{energy.reason} {_MSR_REASON}" if is_refused else energy.reason
        absent.append(Absence(what=f"rapl:{zone.path}", reason=reason))
        return None
    span = read_number(f"{folder}/max_energy_range_uj", parse_count, read)
    if span == 0:
        span = Unreadable(reason=f"{folder}/max_energy_range_uj is 0")
    if isinstance(span, Unreadable):
        absent.append(Absence(what=f"rapl:{zone.path}:range", reason=span.reason))
    return RaplZoneReading(
        path=zone.path,
        zone=name_zone(zone.name),
        socket=find_socket(zone.outer_name or zone.name),
        energy_microjoules=energy,
        energy_range_microjoules=None if isinstance(span, Unreadable) else span,
    )
