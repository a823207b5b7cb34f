"""GPUs as limited devices: over NVML, or over the simulated machine.

Its own file because the mapping is a decision: what is *enforced* counts, not what was requested,
and a range is rounded up to whole watts at both ends (drivers give whole watts in practice).

Scope: limits are those of the GPU, as nvmlDeviceSetPowerManagementLimit sets them. On a superchip
(Grace and its GPUs) there is a limit of the whole module besides; it is not written here, as the
GPU driver has no call for it. A lower one still shows, since the enforced limit is the least of all
limiters; the processor's own watts are not under any limit of ours and belong to the chassis' rest.

It must not know simulated machines or NVML: it has a `GpuDriver`, best one of its own, since a
driver is made for one call per device at a time.
"""

import math
import threading
from collections.abc import Callable
from typing import TypeVar

from esnode.drivers.base import DeviceFault, DriverUnavailable, GpuDriver, PowerLimitRefused
from esnode.drivers.limits.base import FoundDevices
from esnode.readings.gpu import GpuIdentity, GpuReading
from esnode.readings.host import Absence
from esnode.readings.limits import EnforcedLimit, LimitRange, round_up

_Answer = TypeVar("_Answer")


class GpuLimits:
    """The GPUs of one driver. Safe to call from one thread per device."""

    def __init__(self, driver: GpuDriver) -> None:
        self.name = driver.name
        self._driver = driver
        self._discovery = threading.Lock()
        self._gpus: dict[str, GpuIdentity] = {}
        self._found = FoundDevices()

    def discover(self) -> FoundDevices:
        """List the GPUs that answer, and name those that do not."""
        try:
            self._open()
        except DriverUnavailable as error:
            return FoundDevices(absent=(Absence(what=f"limits:{self.name}", reason=str(error)),))
        return self._found

    def limit_range(self, device: str) -> LimitRange | Absence:
        """The driver's constraints of one GPU, or why it takes no limit.

        Raises:
            DeviceFault: the device did not answer.
        """
        reading = self._ask(device, self._driver.read)
        low, high = reading.power_limit_min_watts, reading.power_limit_max_watts
        if low is None or high is None or not 0.0 < low <= high:
            return Absence(what=f"limit:{device}", reason=_why_absent(reading))
        return LimitRange(
            device=device,
            kind="gpu",
            minimum_watts=math.ceil(low),
            maximum_watts=math.ceil(high),
            default_watts=round_up(reading.power_limit_default_watts),
        )

    def enforced(self, device: str) -> EnforcedLimit:
        """What one GPU obeys, and what it was last asked for.

        Raises:
            DeviceFault: the device did not answer.
        """
        return self._ask(device, self._driver.read_power_limit)

    def set_limit(self, device: str, watts: int) -> None:
        """Ask one GPU for a limit.

        Raises:
            PowerLimitRefused: it kept its old limit.
            DeviceFault: what is in force is unknown.
        """
        self._ask(device, lambda gpu: self._driver.set_power_limit(gpu, watts))

    def _ask(self, device: str, question: Callable[[GpuIdentity], _Answer]) -> _Answer:
        """Ask about one GPU, through a new session if there is none or the last one is gone."""
        gpu = self._gpus.get(device)
        if gpu is not None:
            try:
                return question(gpu)
            except DriverUnavailable:
                pass
            except PowerLimitRefused as error:
                if not isinstance(error.__cause__, DriverUnavailable):
                    raise  # the device's own word, not that of a closed session
        try:
            self._open()
            gpu = self._gpus.get(device)
            if gpu is None:
                raise DeviceFault(f"no GPU {device} answers", is_lost=True)
            return question(gpu)
        except DriverUnavailable as error:
            raise DeviceFault(f"{device}: {error}") from None

    def _open(self) -> None:
        with self._discovery:
            inventory = self._driver.discover()
            self._gpus = {gpu.uuid: gpu for gpu in inventory.gpus}
            self._found = FoundDevices(
                devices=tuple(self._gpus), absent=(*inventory.lost, *inventory.absent)
            )


def _why_absent(reading: GpuReading) -> str:
    reasons = {entry.what: entry.reason for entry in reading.absent}
    for field in ("power_limit_max_watts", "power_limit_min_watts"):
        if field in reasons:
            return f"the range of its power limit is unknown: {reasons[field]}"
    return "the device gives no usable range for its power limit"
