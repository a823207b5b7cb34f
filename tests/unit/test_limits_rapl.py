import errno
import os
from pathlib import Path

import pytest

from esnode.drivers.base import DeviceFault, PowerLimitRefused
from esnode.drivers.files import ReadFile, Unreadable, read_text
from esnode.drivers.limits import RaplLimits
from esnode.drivers.limits.rapl import WriteFile, write_text
from esnode.readings.host import Absence
from esnode.readings.limits import EnforcedLimit, LimitRange
from tests.host_trees import write_tree

ZONE = "intel-rapl:0"


def zone(
    folder: str = ZONE, name: str = "package-0", **files: str | None
) -> dict[str, str | bytes | None]:
    at = f"class/powercap/{folder}"
    content: dict[str, str | None] = {
        "name": name,
        "enabled": "1",
        "constraint_0_name": "long_term",
        "constraint_0_power_limit_uw": "350000000",
        "constraint_0_max_power_uw": "350000000",
        **files,
    }
    return {f"{at}/{file}": f"{text}\n" for file, text in content.items() if text is not None}


def limits_of(tree: Path, read: ReadFile = read_text, write: WriteFile = write_text) -> RaplLimits:
    return RaplLimits(str(tree), read=read, write=write)


def limit_file(tree: Path) -> Path:
    return tree / "class/powercap" / ZONE / "constraint_0_power_limit_uw"


def test_packages_are_devices_and_other_zones_are_not(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            "class/powercap/intel-rapl/enabled": "1\n",
            "class/powercap/dtpm/enabled": "1\n",
            **zone("intel-rapl:0", "package-0"),
            **zone("intel-rapl:0:0", "dram"),
            **zone("intel-rapl:1", "package-1-die-0"),
            **zone("intel-rapl:a", "package-10"),
            **zone("intel-rapl:2", "psys"),
            **zone("intel-rapl-mmio:0", "package-0"),
        },
    )

    found = limits_of(tmp_path).discover()

    assert found.devices == ("intel-rapl:0", "intel-rapl:1", "intel-rapl:a")
    assert found.absent == ()


def test_the_memory_mapped_zone_serves_where_it_is_the_only_one(tmp_path: Path) -> None:
    write_tree(tmp_path, zone("intel-rapl-mmio:0", "package-0"))

    assert limits_of(tmp_path).discover().devices == ("intel-rapl-mmio:0",)


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        pytest.param({}, "does not exist; virtual machines have none", id="no-powercap"),
        pytest.param({"class/powercap/dtpm/enabled": "1\n"}, "holds no package", id="no-zone"),
    ],
)
def test_a_machine_without_rapl_says_so(
    tmp_path: Path, tree: dict[str, str | bytes | None], reason: str
) -> None:
    write_tree(tmp_path, tree)

    found = limits_of(tmp_path).discover()

    assert found.devices == ()
    assert [entry.what for entry in found.absent] == ["limits:rapl"]
    assert reason in found.absent[0].reason


def test_the_range_is_half_to_all_of_the_maximum(tmp_path: Path) -> None:
    write_tree(tmp_path, zone(constraint_0_max_power_uw="95000000"))

    assert limits_of(tmp_path).limit_range(ZONE) == LimitRange(
        device=ZONE, kind="cpu", minimum_watts=48, maximum_watts=95
    )


def test_a_lowest_limit_of_the_kernels_own_counts(tmp_path: Path) -> None:
    write_tree(tmp_path, zone(constraint_0_min_power_uw="120500000"))

    limits = limits_of(tmp_path).limit_range(ZONE)

    assert isinstance(limits, LimitRange)
    assert limits.minimum_watts == 121


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        pytest.param({"enabled": "0"}, "enabled is '0': the zone keeps no limit", id="disabled"),
        pytest.param({"enabled": None}, "enabled does not exist", id="no-enabled"),
        pytest.param(
            {"constraint_0_name": "short_term"}, "is 'short_term', not long_term", id="other-limit"
        ),
        pytest.param(
            {"constraint_0_name": None}, "constraint_0_name does not exist", id="no-limit-at-all"
        ),
        pytest.param(
            {"constraint_0_max_power_uw": "0"}, "max_power_uw is 0: no value", id="no-maximum"
        ),
        pytest.param(
            {"constraint_0_max_power_uw": None}, "max_power_uw does not exist", id="maximum-missing"
        ),
        pytest.param(
            {"constraint_0_max_power_uw": "much"}, "holds 'much' where a number", id="no-number"
        ),
    ],
)
def test_a_zone_without_a_usable_limit_has_no_range(
    tmp_path: Path, files: dict[str, str | None], reason: str
) -> None:
    write_tree(tmp_path, zone(**files))

    answer = limits_of(tmp_path).limit_range(ZONE)

    assert isinstance(answer, Absence)
    assert reason in answer.reason


def test_what_is_in_force_is_rounded_up(tmp_path: Path) -> None:
    write_tree(tmp_path, zone(constraint_0_power_limit_uw="150125000"))

    assert limits_of(tmp_path).enforced(ZONE) == EnforcedLimit(
        device=ZONE, enforced_watts=151, requested_watts=151
    )


def test_a_zone_that_keeps_no_limit_obeys_nothing_known(tmp_path: Path) -> None:
    write_tree(tmp_path, zone(enabled="0"))

    assert limits_of(tmp_path).enforced(ZONE) == EnforcedLimit(
        device=ZONE, enforced_watts=None, requested_watts=350
    )


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param("0", "is 0: no value", id="nought-is-no-limit"),
        pytest.param(None, "does not exist", id="missing"),
    ],
)
def test_an_unreadable_limit_is_a_fault_and_not_nought(
    tmp_path: Path, value: str | None, reason: str
) -> None:
    write_tree(tmp_path, zone(constraint_0_power_limit_uw=value))

    with pytest.raises(DeviceFault, match=reason):
        limits_of(tmp_path).enforced(ZONE)


def test_a_limit_is_written_in_microwatts(tmp_path: Path) -> None:
    write_tree(tmp_path, zone())
    limits = limits_of(tmp_path)

    limits.set_limit(ZONE, 200)

    assert limit_file(tmp_path).read_text().split()[0] == "200000000"
    assert limits.enforced(ZONE).enforced_watts == 200


def test_a_limit_that_is_in_force_already_can_be_written_again(tmp_path: Path) -> None:
    write_tree(tmp_path, zone())

    limits_of(tmp_path).set_limit(ZONE, 350)


def test_a_write_that_does_not_stick_is_refused(tmp_path: Path) -> None:
    write_tree(tmp_path, zone())

    with pytest.raises(PowerLimitRefused, match="took 200 W and still says 350 W: locked"):
        limits_of(tmp_path, write=lambda path, text: None).set_limit(ZONE, 200)


def test_a_write_that_cannot_be_read_back_is_a_fault(tmp_path: Path) -> None:
    write_tree(tmp_path, zone())

    def write_and_lose(path: str, text: str) -> Unreadable | None:
        os.unlink(path)
        return None

    with pytest.raises(DeviceFault, match="200 W were written and cannot be read back"):
        limits_of(tmp_path, write=write_and_lose).set_limit(ZONE, 200)


def test_a_disabled_zone_is_not_written(tmp_path: Path) -> None:
    write_tree(tmp_path, zone(enabled="0"))

    with pytest.raises(PowerLimitRefused, match="the zone keeps no limit"):
        limits_of(tmp_path).set_limit(ZONE, 200)

    assert limit_file(tmp_path).read_text() == "350000000\n"


@pytest.mark.parametrize("device", ["../../etc", "intel-rapl:0/../intel-rapl:1", "intel-rapl:0:0"])
def test_a_name_that_is_no_top_zone_is_refused(tmp_path: Path, device: str) -> None:
    write_tree(tmp_path, zone())

    with pytest.raises(PowerLimitRefused, match="is not a powercap zone"):
        limits_of(tmp_path).set_limit(device, 200)


def test_the_kernels_refusal_is_one_line(tmp_path: Path) -> None:
    write_tree(tmp_path, zone())

    def refuse(path: str, text: str) -> Unreadable:
        return Unreadable(reason=f"{path} is locked", error_number=errno.EACCES)

    with pytest.raises(PowerLimitRefused, match="is locked"):
        limits_of(tmp_path, write=refuse).set_limit(ZONE, 200)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        pytest.param("/nowhere/at/all", "does not exist", id="missing"),
        pytest.param("/dev/full", "No space left", id="refused-on-write"),
    ],
)
def test_a_file_that_takes_no_write_says_why(path: str, reason: str) -> None:
    failure = write_text(path, "1\n")

    assert failure is not None
    assert failure.reason.startswith(path)
    assert reason in failure.reason


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write any file")
def test_a_file_of_roots_needs_root(tmp_path: Path) -> None:
    write_tree(tmp_path, zone())
    limit_file(tmp_path).chmod(0o444)

    failure = write_text(str(limit_file(tmp_path)), "1\n")

    assert failure is not None
    assert failure.reason.endswith("cannot be opened for writing: needs root")


def test_a_recorded_package_has_a_range_and_a_limit_above_it(linux_host_tree: Path) -> None:
    limits = limits_of(linux_host_tree / "sys")

    answer = limits.limit_range(ZONE)

    assert answer == LimitRange(device=ZONE, kind="cpu", minimum_watts=48, maximum_watts=95)
    # As the firmware left it: no limit at all, to all intents and purposes.
    assert limits.enforced(ZONE).enforced_watts == 4090
