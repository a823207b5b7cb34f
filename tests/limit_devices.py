"""Limited devices in memory, for tests of whoever sets limits: obedient, late, hung or refusing."""

import threading
from dataclasses import dataclass, field

from esnode.drivers.base import DeviceFault, PowerLimitRefused
from esnode.drivers.limits import FoundDevices
from esnode.readings.host import Absence
from esnode.readings.limits import EnforcedLimit, LimitRange


@dataclass
class MemoryDevice:
    """One device; a test sets how it behaves."""

    enforced_watts: int = 700
    requested_watts: int = 700
    minimum_watts: int = 200
    maximum_watts: int = 700
    refuses: bool = False
    is_late: bool = False
    """It takes a limit and goes on obeying the old one."""
    is_lost: bool = False
    is_rangeless: bool = False
    gate: threading.Event | None = None
    """Calls block until it is set."""


@dataclass
class MemoryDevices:
    """A back end whose every write is remembered, in order."""

    devices: dict[str, MemoryDevice]
    name: str = "memory"
    writes: list[tuple[str, int]] = field(default_factory=list)
    sums: list[int] = field(default_factory=list)
    """What all devices obeyed together, after each write."""

    def discover(self) -> FoundDevices:
        return FoundDevices(devices=tuple(self.devices))

    def limit_range(self, device: str) -> LimitRange | Absence:
        known = self._reach(device)
        if known.is_rangeless:
            return Absence(what=f"limit:{device}", reason="no range")
        return LimitRange(
            device=device,
            kind="gpu",
            minimum_watts=known.minimum_watts,
            maximum_watts=known.maximum_watts,
        )

    def enforced(self, device: str) -> EnforcedLimit:
        known = self._reach(device)
        return EnforcedLimit(
            device=device,
            enforced_watts=known.enforced_watts,
            requested_watts=known.requested_watts,
        )

    def set_limit(self, device: str, watts: int) -> None:
        known = self._reach(device)
        self.writes.append((device, watts))
        if known.refuses:
            raise PowerLimitRefused(f"{device} refuses")
        known.requested_watts = watts
        if not known.is_late:
            known.enforced_watts = watts
        self.sums.append(sum(one.enforced_watts for one in self.devices.values()))

    def _reach(self, device: str) -> MemoryDevice:
        known = self.devices[device]
        if known.gate is not None:
            known.gate.wait(30.0)
        if known.is_lost:
            raise DeviceFault(f"{device} is lost", is_lost=True)
        return known
