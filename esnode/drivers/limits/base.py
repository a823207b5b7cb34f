"""What every back end of limited devices can do, in whole watts, and how it fails.

Its own file because GPUs and processors are limited through the same four calls. All of them block
and may hang with the device, so each is about one device, and calls for different devices may be
made at the same time. It must not know who asks, or why.
"""

from dataclasses import dataclass
from typing import Protocol

from esnode.readings.host import Absence
from esnode.readings.limits import EnforcedLimit, LimitRange


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDevices:
    """What a back end has, and what it has not."""

    devices: tuple[str, ...] = ()
    absent: tuple[Absence, ...] = ()
    """Devices that cannot be opened, or why there are none."""


class LimitDevices(Protocol):
    """The devices of one kind."""

    name: str
    """``nvml``, ``simulated`` or ``rapl``."""

    def discover(self) -> FoundDevices:
        """List the devices. Nothing is raised: what fails is in `absent`."""
        ...

    def limit_range(self, device: str) -> LimitRange | Absence:
        """Between what the limit can be set, or why it cannot.

        Raises:
            DeviceFault: the device did not answer.
        """
        ...

    def enforced(self, device: str) -> EnforcedLimit:
        """What is in force now.

        Raises:
            DeviceFault: the device did not answer.
        """
        ...

    def set_limit(self, device: str, watts: int) -> None:
        """Ask for a limit. What is in force is what `enforced` says, after the settle time.

        Raises:
            PowerLimitRefused: the device kept its old limit.
            DeviceFault: the device did not answer: what is in force is unknown.
        """
        ...
