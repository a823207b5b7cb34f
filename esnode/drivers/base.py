"""What every GPU back end can do, in our units, and how it fails.

A driver is blocking and is called from one worker thread per device (`esnode.collect`), so it
must be safe to call for different devices at the same time. It keeps one session open and
re-opens it by itself after `release` or a driver reload.
"""

from typing import Protocol

from esnode.readings.gpu import GpuIdentity, GpuInventory, GpuReading
from esnode.readings.limits import EnforcedLimit


class DriverUnavailable(Exception):
    """The whole back end cannot be used: no library, no kernel module, version mismatch.

    The text is one line for the operator: what is missing and what would help. Discovery is tried
    again for ever, because a driver may be loaded later.
    """

    def __init__(self, reason: str, *, is_absent: bool = False) -> None:
        super().__init__(reason)
        self.is_absent = is_absent
        """The machine simply has none: not an error, unlike a driver that is broken."""


class DeviceFault(Exception):
    """One device did not answer; the others are not affected."""

    def __init__(self, reason: str, *, is_lost: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_lost = is_lost
        """The device has fallen off the bus or needs a reset: its handles are void."""


class PowerLimitRefused(Exception):
    """The device would not take a power limit: out of range, no permission, not supported."""


class GpuDriver(Protocol):
    """One vendor's library, or the simulated machine."""

    name: str
    """``nvml`` or ``simulated``: the `driver` of its inventories."""

    def discover(self) -> GpuInventory:
        """Open the session if need be, and list the devices.

        Raises:
            DriverUnavailable: the back end cannot be used now.
        """
        ...

    def read(self, gpu: GpuIdentity) -> GpuReading:
        """Read one device. May block for as long as the hardware does.

        Raises:
            DeviceFault: the device did not answer.
            DriverUnavailable: the session is gone.
        """
        ...

    def read_power_limit(self, gpu: GpuIdentity) -> EnforcedLimit:
        """What one device obeys, and was asked for: two calls, since it is asked very often.

        Raises:
            DeviceFault: the device did not answer.
            DriverUnavailable: the session is gone.
        """
        ...

    def set_power_limit(self, gpu: GpuIdentity, watts: int) -> None:
        """Ask for a limit of whole watts. `read_power_limit` says what is in force then.

        Raises:
            PowerLimitRefused: the device kept its old limit.
            DeviceFault: the device did not answer: what is in force is unknown.
        """
        ...

    def release(self) -> None:
        """Close the session and every device file, so that the driver can be unloaded."""
        ...
