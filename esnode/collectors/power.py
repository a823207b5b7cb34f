"""The power meters that the kernel offers: RAPL zones and hwmon power sensors.

It is its own file as one subject with one worker. It must not know which meter is the node's
power: it lists them as they are, and `esnode.fold` chooses.
"""

import os

from esnode.collectors.root import HostRoot, require_sysfs
from esnode.drivers.files import ReadFile, Unreadable, read_text
from esnode.drivers.hwmon import list_chips, read_power
from esnode.drivers.rapl import read_zones
from esnode.readings.host import Absence
from esnode.readings.power import PowerReading, PowerSensorReading


class PowerCollector:
    """Reads the power meters of one host."""

    name = "power"

    def __init__(self, root: HostRoot, *, read: ReadFile = read_text) -> None:
        self._root = root
        self._read = read

    def read(self) -> PowerReading:
        """Read every meter once. A host without any is a reading with absences, not a failure.

        Raises:
            CollectFailed: there is no sysfs.
        """
        require_sysfs(self._root)
        sysfs = os.fspath(self._root.sysfs)
        zones, zones_absent = read_zones(sysfs, self._read)
        sensors, sensors_absent = self._read_sensors(sysfs)
        return PowerReading(zones=zones, sensors=sensors, absent=zones_absent + sensors_absent)

    def _read_sensors(
        self, sysfs: str
    ) -> tuple[tuple[PowerSensorReading, ...], tuple[Absence, ...]]:
        chips = list_chips(sysfs, self._read)
        if isinstance(chips, Unreadable):
            return (), (Absence(what="hwmon", reason=f"no hwmon chips: {chips.reason}"),)
        sensors: list[PowerSensorReading] = []
        absent: list[Absence] = []
        for chip in chips:
            found, missing = read_power(chip, self._read)
            sensors.extend(found)
            absent.extend(missing)
        if not sensors and not absent:
            absent.append(Absence(what="hwmon", reason="no hwmon chip has a power sensor"))
        return tuple(sensors), tuple(absent)
