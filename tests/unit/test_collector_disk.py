from pathlib import Path

import pytest

from esnode.collectors.base import CollectFailed
from esnode.collectors.disk import DiskCollector, is_whole_disk
from esnode.collectors.root import HostRoot
from esnode.readings.host import BlockDeviceReading
from tests.host_trees import FOLDER, root_of, write_tree

SDA = "8 0 sda 25354637 34367663 1003346126 18492372 28444756 11134226 505697032 63877960 3 9653880 82621804\n"  # noqa: E501
SDB = "8 16 sdb 326552 841 9657779 84 41822 2895 1972905 5007 0 60730 67070 68851 0 1925173784 11130\n"  # noqa: E501
SDC = "8 32 sdc 126552 141 1657779 14 11822 1895 172905 1007 0 10730 17070 18851 0 125173784 11130 1555 1944\n"  # noqa: E501


def read(tree: Path) -> dict[str, BlockDeviceReading]:
    return {device.device: device for device in DiskCollector(root_of(tree)).read().devices}


def test_sectors_are_512_bytes_and_times_are_seconds(tmp_path: Path) -> None:
    devices = read(write_tree(tmp_path, {"proc/diskstats": SDA}))

    assert devices["sda"] == BlockDeviceReading(
        device="sda",
        reads_completed_total=25354637,
        read_bytes_total=513713216512,
        read_time_seconds_total=18492.372,
        writes_completed_total=28444756,
        written_bytes_total=258916880384,
        write_time_seconds_total=63877.96,
        io_time_seconds_total=9653.88,
        io_weighted_seconds_total=82621.804,
        io_in_progress=3,
    )


def test_kernels_of_14_18_and_20_columns_give_what_they_count(tmp_path: Path) -> None:
    devices = read(write_tree(tmp_path, {"proc/diskstats": SDA + SDB + SDC}))

    counted = {
        name: (device.discards_completed_total, device.flush_requests_total)
        for name, device in devices.items()
    }
    assert counted == {"sda": (None, None), "sdb": (68851, None), "sdc": (18851, 1555)}


@pytest.mark.parametrize(
    "device",
    [
        "sda",
        "vda",
        "xvda",
        "nvme0n1",
        "nvme10n2",
        "mmcblk0",
        "mmcblk0boot0",
        "md127",
        "dm-0",
        "sr0",
        "nbd0",
        "dasda",
        "cciss/c0d0",
        "pmem0",
        "rbd0",
    ],
)
def test_a_whole_disk_is_known_by_its_name(device: str) -> None:
    assert is_whole_disk(device, None)


@pytest.mark.parametrize(
    "device",
    [
        "sda1",
        "sdaa12",
        "vda2",
        "xvda1",
        "nvme0n1p1",
        "mmcblk0p2",
        "md127p1",
        "nbd0p3",
        "cciss/c0d0p1",
        "loop0",
        "loop0p1",
        "ram15",
        "zram0",
        "fd0",
    ],
)
def test_partitions_and_memory_are_no_disks_by_name(device: str) -> None:
    assert not is_whole_disk(device, None)


def test_sysfs_decides_where_it_is_there() -> None:
    known = frozenset({"odd1", "cciss!c0d0", "loop0"})

    assert is_whole_disk("odd1", known)
    assert is_whole_disk("cciss/c0d0", known)
    assert not is_whole_disk("sda", known)
    assert not is_whole_disk("loop0", known)


def test_the_recorded_host_gives_its_whole_devices(linux_host_tree: Path) -> None:
    by_sysfs = read(linux_host_tree)
    root = HostRoot(procfs=linux_host_tree / "proc", sysfs=linux_host_tree / "none")
    by_name = {device.device for device in DiskCollector(root).read().devices}

    # The recorded sysfs knows other disks than the recorded diskstats, but for these two.
    assert list(by_sysfs) == ["sda", "dm-5"]
    assert by_sysfs["dm-5"].written_bytes_total == 1151688 * 512
    dm = {f"dm-{number}" for number in range(6)}
    assert by_name == dm | {"sda", "sdb", "sdc", "vda", "sr0", "mmcblk0", "nvme0n1"}


def test_this_machine_is_read_plausibly() -> None:
    reading = DiskCollector(HostRoot()).read()

    assert reading.absent == () or reading.devices == ()
    assert all(device.io_time_seconds_total >= 0 for device in reading.devices)
    assert not any(device.device.startswith("loop") for device in reading.devices)


def test_a_damaged_line_drops_its_device_alone(tmp_path: Path) -> None:
    tree = write_tree(
        tmp_path, {"proc/diskstats": "8 48 sdd 1 2 3\n8 64 sde 1 x 3 4 5 6 7 8 9 10 11\n" + SDA}
    )

    reading = DiskCollector(root_of(tree)).read()

    assert [device.device for device in reading.devices] == ["sda"]
    assert [absence.what for absence in reading.absent] == ["disk:sdd", "disk:sde"]


def test_a_host_without_disks_is_a_reading(tmp_path: Path) -> None:
    reading = DiskCollector(root_of(write_tree(tmp_path, {"proc/diskstats": ""}))).read()

    assert reading.devices == ()
    assert [absence.what for absence in reading.absent] == ["devices"]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        pytest.param({}, "diskstats does not exist", id="missing"),
        pytest.param({"proc/diskstats": FOLDER}, "is a folder", id="folder"),
        pytest.param({"proc/diskstats": "garbage\n\x00\n"}, "holds nothing of the form", id="bad"),
    ],
)
def test_without_counters_it_fails_in_one_line(
    tmp_path: Path, files: dict[str, str | None], reason: str
) -> None:
    with pytest.raises(CollectFailed, match=reason):
        DiskCollector(root_of(write_tree(tmp_path, files))).read()
