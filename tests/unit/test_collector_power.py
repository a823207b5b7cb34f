import errno
from pathlib import Path

import pytest

from esnode.collectors.base import CollectFailed
from esnode.collectors.power import PowerCollector
from esnode.collectors.root import HostRoot
from esnode.drivers.files import Unreadable, explain_error, read_text
from tests.host_trees import root_of, write_chip, write_tree

RAPL = {
    "sys/class/powercap/intel-rapl:0/name": "package-0\n",
    "sys/class/powercap/intel-rapl:0/energy_uj": "5\n",
    "sys/class/powercap/intel-rapl:0/max_energy_range_uj": "100\n",
}


def test_zones_and_sensors_are_read_side_by_side(tmp_path: Path) -> None:
    write_tree(tmp_path, RAPL)
    write_chip(
        tmp_path / "sys",
        "hwmon0",
        "ACPI/ACPI000D:00",
        {"name": "power_meter\n", "power1_average": "250000000\n"},
    )

    reading = PowerCollector(root_of(tmp_path)).read()

    assert [zone.path for zone in reading.zones] == ["intel-rapl:0"]
    assert [(s.chip, s.chip_driver, s.power_watts) for s in reading.sensors] == [
        ("acpi_acpi000d:00", "power_meter", 250.0)
    ]
    assert reading.absent == ()


def test_two_supplies_of_one_driver_do_not_collide(tmp_path: Path) -> None:
    for number in (0, 1):
        write_chip(
            tmp_path / "sys",
            f"hwmon{number}",
            f"i2c-3/3-005{8 + number}",
            {"name": "pmbus\n", "power1_input": "400000000\n", "power1_label": "pin\n"},
        )

    reading = PowerCollector(root_of(tmp_path)).read()

    assert [(s.chip, s.sensor) for s in reading.sensors] == [
        ("i2c_3_3_0058", "power1"),
        ("i2c_3_3_0059", "power1"),
    ]


def test_a_refusal_of_rapl_leaves_the_sensors(tmp_path: Path) -> None:
    def read(path: str) -> str | Unreadable:
        if path.endswith("energy_uj"):
            return explain_error(path, PermissionError(errno.EACCES, "Permission denied"))
        return read_text(path)

    write_tree(tmp_path, RAPL)
    write_chip(tmp_path / "sys", "hwmon0", "platform/x", {"power1_input": "9000000\n"})

    reading = PowerCollector(root_of(tmp_path), read=read).read()

    assert reading.zones == ()
    assert [s.power_watts for s in reading.sensors] == [9.0]
    assert "CVE-2020-8694" in reading.absent[0].reason


def test_a_host_without_meters_is_a_reading_that_says_why(tmp_path: Path) -> None:
    reading = PowerCollector(root_of(write_tree(tmp_path, {"sys/class/x": ""}))).read()

    assert (reading.zones, reading.sensors) == ((), ())
    assert [absence.what for absence in reading.absent] == ["rapl", "hwmon"]


def test_chips_without_power_sensors_are_one_absence(tmp_path: Path) -> None:
    write_tree(tmp_path, RAPL)
    write_chip(tmp_path / "sys", "hwmon0", "platform/x", {"temp1_input": "40000\n"})

    reading = PowerCollector(root_of(tmp_path)).read()

    assert [absence.reason for absence in reading.absent] == ["no hwmon chip has a power sensor"]


def test_without_sysfs_it_fails_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(CollectFailed, match=r"^no sysfs: .* does not exist$"):
        PowerCollector(root_of(tmp_path)).read()


def test_the_recorded_meters_are_read_whole(power_meters_tree: Path) -> None:
    reading = PowerCollector(root_of(power_meters_tree)).read()

    assert len(reading.zones) == 3
    assert len(reading.sensors) == 10
    assert [absence.what for absence in reading.absent] == ["hwmon:test_power_chip:power3"]


def test_this_machine_is_read_or_says_why_not() -> None:
    reading = PowerCollector(HostRoot()).read()

    assert reading.zones or reading.sensors or reading.absent
    assert all(zone.energy_microjoules >= 0 for zone in reading.zones)
    assert all(0 < sensor.power_watts <= 100_000 for sensor in reading.sensors)
