"""The draw of the whole machine, from the meter of a simulated machine.

Its own file because it is a meter like RAPL or a baseboard controller, and what the node's power
is made of is decided elsewhere. It knows nothing of the machine behind the meter.
"""

from typing import Protocol

from esnode.collectors.base import CollectFailed
from esnode.drivers.base import DriverUnavailable
from esnode.readings.power import ChassisPowerReading


class ChassisMeter(Protocol):
    """Something that measures what the whole machine draws."""

    def chassis_power_watts(self) -> float:
        """The present draw at the wall.

        Raises:
            DriverUnavailable: the meter cannot be read now.
        """
        ...


class ChassisCollector:
    """Reads one chassis meter."""

    name = "chassis"

    def __init__(self, meter: ChassisMeter) -> None:
        self._meter = meter

    def read(self) -> ChassisPowerReading:
        """The present draw.

        Raises:
            CollectFailed: the meter cannot be read.
        """
        try:
            return ChassisPowerReading(power_watts=self._meter.chassis_power_watts())
        except DriverUnavailable as error:
            raise CollectFailed(str(error)) from None
