from pathlib import Path

import pytest

from esnode.drivers.files import Unreadable
from esnode.drivers.hwmon import HwmonChip, list_chips, read_power, read_temperatures
from esnode.readings.host import TemperatureReading
from esnode.readings.power import PowerSensorReading
from tests.host_trees import FOLDER, write_chip, write_tree


def chips_of(sysfs: Path) -> tuple[HwmonChip, ...]:
    chips = list_chips(str(sysfs))
    assert not isinstance(chips, Unreadable)
    return chips


def one_chip(sysfs: Path, attributes: dict[str, str | None]) -> HwmonChip:
    write_chip(sysfs, "hwmon0", "platform/meter.0", attributes)
    (chip,) = chips_of(sysfs)
    return chip


def test_a_chip_is_named_by_its_device_and_not_by_the_order_of_loading(tmp_path: Path) -> None:
    write_chip(tmp_path, "hwmon7", "pci0000:00/0000:00:18.3", {"name": "k10temp\n"})
    write_chip(tmp_path, "hwmon3", "nvme/nvme0", {"name": "nvme\n"})

    assert [(chip.chip, chip.driver) for chip in chips_of(tmp_path)] == [
        ("nvme_nvme0", "nvme"),
        ("pci0000:00_0000:00:18_3", "k10temp"),
    ]


def test_without_a_device_the_driver_names_the_chip_and_without_both_its_folder(
    tmp_path: Path,
) -> None:
    write_tree(
        tmp_path,
        {
            "class/hwmon/hwmon0/name": "acpitz\n",
            "class/hwmon/hwmon1/temp1_input": "1000\n",
            "class/hwmon/hwmon2/name": FOLDER,
        },
    )

    assert [chip.chip for chip in chips_of(tmp_path)] == ["acpitz", "hwmon1", "hwmon2"]


def test_chips_of_one_device_are_told_apart_by_driver_and_then_by_folder(tmp_path: Path) -> None:
    for folder, driver in (("hwmon0", "asus"), ("hwmon1", "asus_ec"), ("hwmon2", "asus")):
        write_chip(tmp_path, folder, "platform/asus-nb-wmi", {"name": f"{driver}\n"})

    assert [chip.chip for chip in chips_of(tmp_path)] == [
        "platform_asus_nb_wmi_asus_hwmon0",
        "platform_asus_nb_wmi_asus_ec",
        "platform_asus_nb_wmi_asus_hwmon2",
    ]


def test_the_recorded_host_s_chips_have_different_names(linux_host_tree: Path) -> None:
    assert [chip.chip for chip in chips_of(linux_host_tree / "sys")] == [
        "platform_coretemp_0",
        "platform_coretemp_1",
        "ieee80211_phy0_mt7996_phy0_2",
        "platform_applesmc_768",
        "nct6779",
        "hwmon4",
        "bogus",
        "platform_asus_nb_wmi_asus",
        "platform_asus_nb_wmi_asus_wmi_sensors",
        "ieee80211_phy0_mt7996_phy0_0",
        "ieee80211_phy0_mt7996_phy0_1",
    ]


def test_a_temperature_has_label_and_limit(tmp_path: Path) -> None:
    chip = one_chip(
        tmp_path,
        {
            "name": "coretemp\n",
            "temp1_input": "55000\n",
            "temp1_label": "Package id 0\n",
            "temp1_crit": "100000\n",
            "temp2_input": "-5500\n",
            "temp2_crit": "0\n",
        },
    )

    assert read_temperatures(chip) == (
        (
            TemperatureReading(
                chip="platform_meter_0",
                sensor="temp1",
                label="Package id 0",
                temperature_celsius=55.0,
                critical_celsius=100.0,
            ),
            TemperatureReading(
                chip="platform_meter_0", sensor="temp2", label="", temperature_celsius=-5.5
            ),
        ),
        (),
    )


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        pytest.param({"temp1_input": FOLDER}, "is a folder", id="unreadable"),
        pytest.param({"temp1_input": ""}, "holds nothing", id="empty"),
        pytest.param({"temp1_input": "hot\n"}, "holds 'hot'", id="garbage"),
        pytest.param({"temp1_input": "-128000\n"}, "not a real temperature", id="no value, cold"),
        pytest.param({"temp1_input": "255000\n"}, "not a real temperature", id="no value, hot"),
        pytest.param({"temp1_input": "0\n", "temp1_enable": "0\n"}, "switched off", id="off"),
        pytest.param({"temp1_input": "0\n", "temp1_fault": "1\n"}, "broken", id="fault"),
    ],
)
def test_a_sensor_without_a_value_is_absent_and_its_neighbour_stays(
    tmp_path: Path, attributes: dict[str, str | None], reason: str
) -> None:
    chip = one_chip(tmp_path, {**attributes, "temp2_input": "40000\n"})

    readings, absent = read_temperatures(chip)

    assert [reading.sensor for reading in readings] == ["temp2"]
    assert [a.what for a in absent] == ["hwmon:platform_meter_0:temp1"]
    assert reason in absent[0].reason


def test_sensors_of_an_old_driver_lie_beside_the_device(tmp_path: Path) -> None:
    write_chip(tmp_path, "hwmon0", "platform/old.1", {})
    write_tree(tmp_path / "devices/platform/old.1", {"name": "w83627\n", "temp1_input": "30000\n"})

    (chip,) = chips_of(tmp_path)
    readings, _ = read_temperatures(chip)

    assert chip.driver == "w83627"
    assert [reading.temperature_celsius for reading in readings] == [30.0]


def test_power_is_in_watts_with_the_chip_s_driver(tmp_path: Path) -> None:
    chip = one_chip(
        tmp_path,
        {
            "name": "power_meter\n",
            "power1_average": "312500000\n",
            "power1_average_interval": "1000\n",
            "power1_label": "Chassis\n",
        },
    )

    readings, absent = read_power(chip)

    assert readings == (
        PowerSensorReading(
            chip="platform_meter_0",
            sensor="power1",
            label="Chassis",
            power_watts=312.5,
            is_average=True,
            chip_driver="power_meter",
        ),
    )
    assert absent == ()


def test_a_channel_with_draw_and_average_is_one_reading_of_the_draw(tmp_path: Path) -> None:
    chip = one_chip(tmp_path, {"power1_input": "120000000\n", "power1_average": "118000000\n"})

    readings, _ = read_power(chip)

    assert [(r.sensor, r.power_watts, r.is_average) for r in readings] == [("power1", 120.0, False)]


def test_the_average_steps_in_for_a_draw_that_fails(tmp_path: Path) -> None:
    chip = one_chip(tmp_path, {"power1_input": "0\n", "power1_average": "118000000\n"})

    readings, absent = read_power(chip)

    assert [(r.power_watts, r.is_average) for r in readings] == [(118.0, True)]
    assert absent == ()


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        pytest.param({"power1_input": "0\n"}, "says 0 W", id="zero"),
        pytest.param({"power1_input": "-5000000\n"}, "not a draw", id="negative"),
        pytest.param({"power1_input": "100000000001\n"}, "more than any machine", id="absurd"),
        pytest.param({"power1_input": "\n"}, "not a draw", id="empty"),
        pytest.param({"power1_input": FOLDER}, "is a folder", id="unreadable"),
        pytest.param({"power1_input": "5000000\n", "power1_enable": "0\n"}, "off", id="disabled"),
    ],
)
def test_a_draw_that_cannot_be_is_absent_and_its_neighbour_stays(
    tmp_path: Path, attributes: dict[str, str | None], reason: str
) -> None:
    chip = one_chip(tmp_path, {**attributes, "power2_input": "7000000\n", "power2_enable": "1\n"})

    readings, absent = read_power(chip)

    assert [(r.sensor, r.power_watts) for r in readings] == [("power2", 7.0)]
    assert [a.what for a in absent] == ["hwmon:platform_meter_0:power1"]
    assert reason in absent[0].reason


def test_limits_of_a_channel_are_no_sensors(tmp_path: Path) -> None:
    chip = one_chip(tmp_path, {"power1_cap": "200000000\n", "power1_cap_max": "300000000\n"})

    assert read_power(chip) == ((), ())


def test_the_recorded_meters_give_their_known_draws(power_meters_tree: Path) -> None:
    readings = [
        reading for chip in chips_of(power_meters_tree / "sys") for reading in read_power(chip)[0]
    ]

    assert [(r.chip, r.sensor, r.label, r.power_watts, r.is_average) for r in readings] == [
        ("k10temp", "power1", "Package", 45.0, False),
        ("k10temp", "power2", "Core", 15.0, False),
        ("amdgpu", "power1", "GPU", 120.0, False),
        ("platform_sensor", "power1", "", 30.0, False),
        ("multi_sensor", "power1", "package", 50.0, False),
        ("multi_sensor", "power2", "package", 30.0, False),
        ("drm_card0", "power1", "device_path_test", 25.0, False),
        ("hwmon_dir_fallback", "power1", "dir_fallback_test", 35.0, False),
        ("test_power_chip", "power1", "PSU_Rail_A", 45.0, False),
        ("test_power_chip", "power2", "PSU_Rail_B", 15.0, False),
    ]
