import errno
from pathlib import Path

import pytest

from esnode.drivers.files import ReadFile, Unreadable, explain_error, read_text
from esnode.drivers.rapl import find_socket, name_zone, read_zones
from esnode.readings.power import RaplZoneReading
from tests.host_trees import FOLDER, write_tree

RANGE = "262143328850\n"


def zone(folder: str, name: str, energy: str = "5000000\n") -> dict[str, str | bytes | None]:
    at = f"class/powercap/{folder}"
    return {
        f"{at}/name": f"{name}\n",
        f"{at}/energy_uj": energy,
        f"{at}/max_energy_range_uj": RANGE,
    }


def refusing(suffix: str, error_number: int) -> ReadFile:
    """A reader that meets the kernel's refusal on files of one kind, as root never does."""

    def read(path: str) -> str | Unreadable:
        if path.endswith(suffix):
            return explain_error(path, OSError(error_number, "refused"))
        return read_text(path)

    return read


def test_zones_are_raw_counters_with_their_range(tmp_path: Path) -> None:
    write_tree(tmp_path, zone("intel-rapl:0", "package-0", "240422366267\n"))

    zones, absent = read_zones(str(tmp_path))

    assert zones == (
        RaplZoneReading(
            path="intel-rapl:0",
            zone="package",
            socket=0,
            energy_microjoules=240422366267,
            energy_range_microjoules=262143328850,
        ),
    )
    assert absent == ()


def test_zones_of_two_sockets_and_of_the_machine_have_their_place(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            "class/powercap/intel-rapl/enabled": "1\n",
            "class/powercap/dtpm/enabled": "1\n",
            **zone("intel-rapl:0", "package-0"),
            **zone("intel-rapl:0:0", "core"),
            **zone("intel-rapl:0:1", "dram"),
            **zone("intel-rapl:1", "package-1"),
            **zone("intel-rapl:1:0", "core"),
            **zone("intel-rapl:2", "psys"),
            **zone("intel-rapl:a", "package-10"),
            **zone("intel-rapl:a:0", "dram"),
            **zone("intel-rapl:b", "package-11-die-1"),
        },
    )

    zones, absent = read_zones(str(tmp_path))

    assert [(z.path, z.zone, z.socket) for z in zones] == [
        ("intel-rapl:0", "package", 0),
        ("intel-rapl:0:0", "core", 0),
        ("intel-rapl:0:1", "dram", 0),
        ("intel-rapl:1", "package", 1),
        ("intel-rapl:1:0", "core", 1),
        ("intel-rapl:2", "psys", None),
        ("intel-rapl:a", "package", 10),
        ("intel-rapl:a:0", "dram", 10),
        ("intel-rapl:b", "package", 11),
    ]
    assert absent == ()


def test_the_memory_mapped_twin_of_a_package_is_left_out(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            **zone("intel-rapl:0", "package-0"),
            **zone("intel-rapl-mmio:0", "package-0"),
            **zone("intel-rapl-mmio:0:0", "dram"),
        },
    )

    zones, _ = read_zones(str(tmp_path))

    # Its dram is no twin: the other interface has none.
    assert [z.path for z in zones] == ["intel-rapl-mmio:0:0", "intel-rapl:0"]


def test_the_twin_steps_in_where_the_first_interface_gives_nothing(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            **zone("intel-rapl:0", "package-0", ""),
            **zone("intel-rapl-mmio:0", "package-0", "7\n"),
        },
    )

    zones, absent = read_zones(str(tmp_path))

    assert [(z.path, z.energy_microjoules) for z in zones] == [("intel-rapl-mmio:0", 7)]
    assert [a.what for a in absent] == ["rapl:intel-rapl:0"]


def test_a_refused_counter_says_which_privilege_is_missing(tmp_path: Path) -> None:
    write_tree(tmp_path, zone("intel-rapl:0", "package-0"))

    zones, absent = read_zones(str(tmp_path), refusing("energy_uj", errno.EACCES))

    assert zones == ()
    assert [a.what for a in absent] == ["rapl:intel-rapl:0"]
    assert absent[0].reason.endswith(
        "/energy_uj permission denied: needs root or CAP_DAC_READ_SEARCH "
        "(energy_uj is root-only since CVE-2020-8694)"
    )


def test_an_invalid_argument_drops_its_zone_alone(tmp_path: Path) -> None:
    write_tree(tmp_path, {**zone("intel-rapl:0", "package-0"), **zone("intel-rapl:0:1", "dram")})

    zones, absent = read_zones(str(tmp_path), refusing("0:1/energy_uj", errno.EINVAL))

    assert [z.path for z in zones] == ["intel-rapl:0"]
    assert [a.what for a in absent] == ["rapl:intel-rapl:0:1"]
    assert "invalid argument" in absent[0].reason


@pytest.mark.parametrize("span", [FOLDER, "", "0\n", "-1\n"])
def test_a_range_that_is_unreadable_is_unknown_and_the_counter_stays(
    tmp_path: Path, span: str | None
) -> None:
    files = zone("intel-rapl:0", "package-0") | {
        "class/powercap/intel-rapl:0/max_energy_range_uj": span
    }

    zones, absent = read_zones(str(write_tree(tmp_path, files)))

    assert zones[0].energy_microjoules == 5000000
    assert zones[0].energy_range_microjoules is None
    assert [a.what for a in absent] == ["rapl:intel-rapl:0:range"]


@pytest.mark.parametrize("energy", [FOLDER, "", "-5\n", "a lot\n"])
def test_a_counter_that_is_none_is_absent_and_not_zero(tmp_path: Path, energy: str | None) -> None:
    files = zone("intel-rapl:0", "package-0") | {"class/powercap/intel-rapl:0/energy_uj": energy}

    zones, absent = read_zones(str(write_tree(tmp_path, files)))

    assert zones == ()
    assert [a.what for a in absent] == ["rapl:intel-rapl:0"]


@pytest.mark.parametrize("name", [FOLDER, "", "\n"])
def test_a_zone_without_a_name_is_absent(tmp_path: Path, name: str | None) -> None:
    files = zone("intel-rapl:0", "package-0") | {"class/powercap/intel-rapl:0/name": name}

    zones, absent = read_zones(str(write_tree(tmp_path, files)))

    assert zones == ()
    assert [a.what for a in absent] == ["rapl:intel-rapl:0"]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        pytest.param({}, "no RAPL: ", id="no powercap"),
        pytest.param(
            {"class/powercap/dtpm/enabled": "1\n"}, "holds no RAPL zone", id="another control type"
        ),
    ],
)
def test_a_host_without_rapl_is_one_absence(
    tmp_path: Path, files: dict[str, str], reason: str
) -> None:
    zones, absent = read_zones(str(write_tree(tmp_path, files)))

    assert zones == ()
    assert [a.what for a in absent] == ["rapl"]
    assert reason in absent[0].reason


def test_the_recorded_meters_give_each_package_once(power_meters_tree: Path) -> None:
    zones, absent = read_zones(str(power_meters_tree / "sys"))

    assert [(z.path, z.zone, z.socket, z.energy_microjoules) for z in zones] == [
        ("intel-rapl:0", "package", 0, 240422366267),
        ("intel-rapl:0:0", "core", 0, 118821284256),
        ("intel-rapl:a", "package", 10, 240422366267),
    ]
    assert absent == ()


def test_the_recorded_host_gives_its_two_zones(linux_host_tree: Path) -> None:
    zones, _ = read_zones(str(linux_host_tree / "sys"))

    assert [(z.path, z.energy_microjoules, z.energy_range_microjoules) for z in zones] == [
        ("intel-rapl:0", 240422366267, 262143328850),
        ("intel-rapl:0:0", 118821284256, 262143328850),
    ]


@pytest.mark.parametrize(
    ("name", "kind", "socket"),
    [
        ("package-0", "package", 0),
        ("package-15", "package", 15),
        ("package-1-die-1", "package", 1),
        ("dram", "dram", None),
        ("psys", "psys", None),
        ("package", "package", None),
        ("package-x", "package-x", None),
    ],
)
def test_a_zone_s_name_gives_kind_and_socket(name: str, kind: str, socket: int | None) -> None:
    assert (name_zone(name), find_socket(name)) == (kind, socket)
