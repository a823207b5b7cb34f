"""Processors as limited devices: the long-term limit of each package's powercap zone.

Its own file, apart from the counters of `esnode.drivers.rapl`, because writing has rules of its
own:

* Packages only: psys and the memory-mapped twins limit what the packages limit already, and the
  cores and memory below a package count within it.
* A zone whose `enabled` is not 1 keeps no limit, whatever its file says, so it has none here.
* `constraint_0` must be the long-term limit. The short-term one is left alone: a cap is an average,
  and the time window of the long-term limit is the hardware's (about a second).
* The kernel gives no lowest limit, or only on some machines (`constraint_0_min_power_uw`). Without
  it the lowest is `LOWEST_RATIO` of the maximum.
* A write proves nothing: the value is read back, and one that did not move was refused. The kernel
  answers a locked register with "permission denied" on the write, also to root.

It must not know time or GPUs. The root of `/sys` is handed in.
Source: kernel documentation, power/powercap/powercap, and drivers/powercap/intel_rapl_common.c;
the enable bit that stays set is geopm issue 4026.
"""

import errno
import math
import os
import re
from collections.abc import Callable

from esnode.drivers.base import DeviceFault, PowerLimitRefused
from esnode.drivers.files import (
    ReadFile,
    Unreadable,
    explain_error,
    list_folder,
    parse_count,
    read_number,
    read_text,
)
from esnode.drivers.limits.base import FoundDevices
from esnode.drivers.rapl import name_zone
from esnode.readings.host import Absence
from esnode.readings.limits import EnforcedLimit, LimitRange

LOWEST_RATIO = 0.5
"""Of a package's maximum. Far below it work costs more energy than it saves, and the limit is
overshot (Zhang and Hoffmann: under 65 % of the best performance at very low caps)."""

_TOP_ZONE = re.compile(r"([a-z]+-rapl(?:-[a-z]+)?):[0-9a-f]+")
_MMIO = "-mmio"
_MICROWATTS = 1_000_000
_LONG_TERM = "long_term"

WriteFile = Callable[[str, str], Unreadable | None]
"""How one file is written: `write_text`, unless a test hands in another."""


def write_text(path: str, text: str) -> Unreadable | None:
    """Write a kernel file in one go; ``None`` when the kernel took it."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM):
            reason = f"{path} cannot be opened for writing: needs root"
            return Unreadable(reason=reason, error_number=error.errno)
        return explain_error(path, error)
    try:
        os.write(descriptor, text.encode("ascii"))
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM):
            reason = f"{path} is locked: the firmware keeps this limit until the next boot"
            return Unreadable(reason=reason, error_number=error.errno)
        return explain_error(path, error)
    finally:
        os.close(descriptor)
    return None


class RaplLimits:
    """The processor packages of one machine."""

    name = "rapl"

    def __init__(
        self,
        sysfs: str = "/sys",
        *,
        read: ReadFile = read_text,
        write: WriteFile = write_text,
        lowest_ratio: float = LOWEST_RATIO,
    ) -> None:
        self._base = f"{sysfs}/class/powercap"
        self._read = read
        self._write = write
        self._lowest_ratio = lowest_ratio

    def discover(self) -> FoundDevices:
        """List the packages' zones; where two interfaces give a package, the first one counts."""
        folders = list_folder(self._base)
        if isinstance(folders, Unreadable):
            reason = f"no RAPL: {folders.reason}; virtual machines have none"
            return FoundDevices(absent=(Absence(what="limits:rapl", reason=reason),))
        devices: list[str] = []
        absent: list[Absence] = []
        names: set[str] = set()
        zones = [match[0] for folder in folders if (match := _TOP_ZONE.fullmatch(folder))]
        for zone in sorted(zones, key=lambda zone: (_MMIO in zone, zone)):
            name = self._read(f"{self._base}/{zone}/name")
            if isinstance(name, Unreadable):
                absent.append(Absence(what=f"limit:{zone}", reason=name.reason))
            elif name_zone(name.strip()) == "package" and name.strip() not in names:
                names.add(name.strip())
                devices.append(zone)
        if not devices and not absent:
            reason = f"{self._base} holds no package of a processor"
            absent.append(Absence(what="limits:rapl", reason=reason))
        return FoundDevices(devices=tuple(sorted(devices)), absent=tuple(absent))

    def limit_range(self, device: str) -> LimitRange | Absence:
        """A package's range, or why it takes no limit."""
        unusable = self._why_unusable(device)
        if unusable is not None:
            return Absence(what=f"limit:{device}", reason=unusable)
        maximum = self._read_watts(device, "constraint_0_max_power_uw")
        if isinstance(maximum, Unreadable):
            return Absence(what=f"limit:{device}", reason=maximum.reason)
        lowest = self._read_watts(device, "constraint_0_min_power_uw")
        if isinstance(lowest, Unreadable):
            lowest = math.ceil(maximum * self._lowest_ratio)
        return LimitRange(
            device=device,
            kind="cpu",
            minimum_watts=_to_watts(min(lowest, maximum)),
            maximum_watts=_to_watts(maximum),
        )

    def enforced(self, device: str) -> EnforcedLimit:
        """What one package obeys. A zone that is not enabled obeys nothing, so that is unknown.

        Raises:
            DeviceFault: the kernel gives no value.
        """
        limit = self._read_watts(device, "constraint_0_power_limit_uw")
        if isinstance(limit, Unreadable):
            raise DeviceFault(limit.reason)
        watts = _to_watts(limit)
        is_kept = self._why_unusable(device) is None
        return EnforcedLimit(
            device=device, enforced_watts=watts if is_kept else None, requested_watts=watts
        )

    def set_limit(self, device: str, watts: int) -> None:
        """Write one package's long-term limit and see that it moved.

        Raises:
            PowerLimitRefused: the zone kept its old limit.
            DeviceFault: what is in force is unknown.
        """
        unusable = self._why_unusable(device)
        if unusable is not None:
            raise PowerLimitRefused(unusable)
        file = "constraint_0_power_limit_uw"
        path = f"{self._base}/{device}/{file}"
        before = self._read_watts(device, file)
        failure = self._write(path, f"{watts * _MICROWATTS}\n")
        if failure is not None:
            raise PowerLimitRefused(failure.reason)
        after = self._read_watts(device, file)
        if isinstance(after, Unreadable):
            raise DeviceFault(f"{watts} W were written and cannot be read back: {after.reason}")
        if after == before and _to_watts(after) != watts:
            raise PowerLimitRefused(
                f"{path} took {watts} W and still says {_to_watts(after)} W: locked by the firmware"
            )

    def _why_unusable(self, device: str) -> str | None:
        """Why no limit of this zone is kept; ``None`` when one is."""
        if _TOP_ZONE.fullmatch(device) is None:
            return f"{device!r} is not a powercap zone"
        folder = f"{self._base}/{device}"
        enabled = self._read(f"{folder}/enabled")
        if isinstance(enabled, Unreadable):
            return enabled.reason
        if enabled.strip() != "1":
            return f"{folder}/enabled is {enabled.strip()[:20]!r}: the zone keeps no limit"
        name = self._read(f"{folder}/constraint_0_name")
        if isinstance(name, Unreadable):
            return name.reason
        if name.strip() != _LONG_TERM:
            return f"{folder}/constraint_0_name is {name.strip()[:20]!r}, not {_LONG_TERM}"
        return None

    def _read_watts(self, device: str, file: str) -> int | Unreadable:
        """A number of microwatts; 0 is what the kernel says where there is none."""
        path = f"{self._base}/{device}/{file}"
        value = read_number(path, parse_count, self._read)
        return Unreadable(reason=f"{path} is 0: no value") if value == 0 else value


def _to_watts(microwatts: int) -> int:
    return -(-microwatts // _MICROWATTS)
