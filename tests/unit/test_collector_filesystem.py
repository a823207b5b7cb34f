import errno
import os
import threading
from pathlib import Path

import pytest

from esnode.collectors.base import CollectFailed
from esnode.collectors.filesystem import FilesystemCollector, parse_mountinfo
from esnode.collectors.root import HostRoot
from esnode.readings.host import FilesystemReading, Mount
from tests.host_trees import FOLDER, root_of, write_tree

KUBELET = "/var/lib/kubelet/plugins/kubernetes.io/vsphere-volume/mounts"


def a_mount(mountpoint: str, **changes: object) -> Mount:
    values = {"device": "/dev/sda1", "filesystem_type": "ext4", "read_only": False, **changes}
    return Mount(
        mountpoint=mountpoint,
        device=str(values["device"]),
        filesystem_type=str(values["filesystem_type"]),
        read_only=bool(values["read_only"]),
    )


def a_line(mountpoint: str, kind: str = "ext4", device: str = "/dev/sda1") -> str:
    return f"29 1 259:2 / {mountpoint} rw,relatime shared:1 - {kind} {device} rw\n"


def statfs_result(blocks: int, free: int, available: int) -> os.statvfs_result:
    # bsize, frsize, blocks, bfree, bavail, files, ffree, favail, flag, namemax
    return os.statvfs_result((65536, 4096, blocks, free, available, 1000, 900, 800, 0, 255))


def test_sizes_are_blocks_times_the_fragment_size() -> None:
    asked: list[str] = []

    def statfs(path: str) -> os.statvfs_result:
        asked.append(path)
        return statfs_result(100, 50, 40)

    collector = FilesystemCollector(HostRoot(rootfs="/host"), statfs=statfs)
    reading = collector.read(a_mount("/boot"))

    assert asked == ["/host/boot"]
    assert reading == FilesystemReading(
        mount=a_mount("/boot"),
        size_bytes=409600,
        free_bytes=204800,
        available_bytes=163840,
        inodes_total=1000,
        inodes_free=900,
    )


def test_a_filesystem_that_does_not_count_inodes_has_none() -> None:
    sizes = os.statvfs_result((4096, 4096, 100, 50, 40, 0, 0, 0, 0, 255))

    reading = FilesystemCollector(HostRoot(), statfs=lambda path: sizes).read(a_mount("/data"))

    assert (reading.inodes_total, reading.inodes_free) == (None, None)


def test_the_recorded_host_has_only_real_filesystems(linux_host_tree: Path) -> None:
    found = FilesystemCollector(root_of(linux_host_tree)).discover()

    assert [(m.mountpoint, m.device, m.filesystem_type) for m in found.part] == [
        ("/", "/dev/dm-2", "ext4"),
        ("/boot", "/dev/sda3", "ext2"),
        ("/run", "tmpfs", "tmpfs"),
        ("/run/lock", "tmpfs", "tmpfs"),
        ("/run/user/1000", "tmpfs", "tmpfs"),
        (
            f"{KUBELET}/[vsanDatastore]\tbafb9e5a-8856-7e6c-699c-801844e77a4a/"
            "kubernetes-dynamic-pvc-3eba5bba-48a3-11e8-89ab-005056b92113.vmdk",
            "/dev/sda",
            "ext4",
        ),
        (
            f"{KUBELET}/[vsanDatastore] bafb9e5a-8856-7e6c-699c-801844e77a4a/"
            "kubernetes-dynamic-pvc-3eba5bba-48a3-11e8-89ab-005056b92113.vmdk",
            "/dev/sda",
            "ext4",
        ),
    ]
    assert found.targets["/"] == found.part[0]


def test_this_machine_has_a_root_with_room(tmp_path: Path) -> None:
    # A root on an overlay, as in a container, is left out: then there may be nothing to read.
    collector = FilesystemCollector(HostRoot())

    for mount in collector.discover().targets.values():
        reading = collector.read(mount)
        assert 0 <= reading.available_bytes <= reading.free_bytes <= reading.size_bytes


@pytest.mark.parametrize(
    ("mountpoint", "kind"),
    [
        pytest.param("/dev/shm", "tmpfs", id="below dev"),
        pytest.param("/sys/fs/cgroup", "cgroup2", id="cgroup"),
        pytest.param("/proc", "proc", id="proc"),
        pytest.param("/run/credentials/x.service", "ramfs", id="credentials"),
        pytest.param("/var/lib/docker/overlay2/ab/merged", "xfs", id="docker layer"),
        pytest.param("/var/lib/containers/storage/overlay", "xfs", id="podman layer"),
        pytest.param("/run/containerd/io/rootfs", "xfs", id="containerd layer"),
        pytest.param("/anywhere", "overlay", id="overlay"),
        pytest.param("/snap/core/1", "squashfs", id="squashfs"),
        pytest.param(
            "/var/lib/kubelet/pods/ab/volumes/kubernetes.io~projected/token",
            "tmpfs",
            id="a pod's token",
        ),
    ],
)
def test_pseudo_filesystems_and_container_layers_are_left_out(mountpoint: str, kind: str) -> None:
    assert parse_mountinfo(a_line(mountpoint, kind)) == ()


@pytest.mark.parametrize(
    "mountpoint", ["/devices", "/system", "/var/lib/docker", "/data/dev", "/run/credentials"]
)
def test_names_that_only_begin_alike_are_kept(mountpoint: str) -> None:
    assert parse_mountinfo(a_line(mountpoint)) == (a_mount(mountpoint),)


def test_of_two_mounts_on_one_point_the_later_is_seen() -> None:
    text = a_line("/data", "xfs", "/dev/sdb") + a_line("/data", "nfs4", "server:/export")

    assert parse_mountinfo(text) == (
        a_mount("/data", filesystem_type="nfs4", device="server:/export"),
    )


def test_a_pseudo_filesystem_over_a_real_one_hides_it() -> None:
    text = a_line("/data", "xfs", "/dev/sdb") + a_line("/data", "overlay", "overlay")

    assert parse_mountinfo(text) == ()


def test_one_device_on_two_points_is_two_mounts() -> None:
    text = a_line("/b") + a_line("/a")

    assert parse_mountinfo(text) == (a_mount("/a"), a_mount("/b"))


@pytest.mark.parametrize(
    ("options", "super_options"), [("ro,relatime", "rw"), ("rw,relatime", "ro,errors=remount-ro")]
)
def test_read_only_may_be_set_on_the_mount_or_the_filesystem(
    options: str, super_options: str
) -> None:
    line = f"29 1 8:1 / / {options} shared:1 master:2 - ext4 /dev/sda1 {super_options}\n"

    assert parse_mountinfo(line) == (a_mount("/", read_only=True),)


def test_escaped_names_and_missing_optional_fields_are_understood() -> None:
    line = r"29 1 8:1 / /my\040disk\134x rw - ext4 /dev/my\040dev rw" + "\n"

    assert parse_mountinfo(line) == (a_mount("/my disk\\x", device="/dev/my dev"),)


@pytest.mark.parametrize(
    "text",
    ["", "\n", "29 1 8:1 / /x rw\n", "a - b c\n", " - \n", r"1 1 8:1 / /a\000b rw - ext4 d rw"],
)
def test_damaged_lines_are_left_out(text: str) -> None:
    assert parse_mountinfo(text) == ()


def test_without_process_1_our_own_list_is_cut_to_the_host(tmp_path: Path) -> None:
    tree = write_tree(
        tmp_path,
        {
            "proc/1/mountinfo": FOLDER,
            "proc/self/mountinfo": a_line("/host") + a_line("/host/boot") + a_line("/config"),
        },
    )
    root = HostRoot(procfs=tree / "proc", rootfs="/host")

    found = FilesystemCollector(root).discover()

    assert found.part == (a_mount("/"), a_mount("/boot"))


def test_our_own_list_is_the_host_s_where_rootfs_is_the_root(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, {"proc/self/mountinfo": a_line("/")})

    found = FilesystemCollector(HostRoot(procfs=tree / "proc")).discover()

    assert found.part == (a_mount("/"),)


def test_no_list_at_all_fails_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(CollectFailed, match=r"1/mountinfo does not exist; .*self/mountinfo does"):
        FilesystemCollector(root_of(tmp_path)).discover()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param(OSError(errno.ESTALE, "Stale file handle"), "Stale file handle", id="stale"),
        pytest.param(OSError(errno.EACCES, "x"), "permission denied", id="fuse of a user"),
        pytest.param(ValueError("embedded null byte"), "not a possible file name", id="nul"),
    ],
)
def test_a_mount_that_fails_says_so_in_one_line(error: Exception, reason: str) -> None:
    def statfs(path: str) -> os.statvfs_result:
        raise error

    collector = FilesystemCollector(HostRoot(), statfs=statfs)

    with pytest.raises(CollectFailed) as failed:
        collector.read(a_mount("/two\nlines"))

    assert reason in str(failed.value)
    assert "\n" not in str(failed.value)


def test_a_mount_that_hangs_hides_no_other(tmp_path: Path) -> None:
    released = threading.Event()

    def statfs(path: str) -> os.statvfs_result:
        if path == "/dead":
            released.wait(30)
        return statfs_result(1, 1, 1)

    tree = write_tree(tmp_path, {"proc/1/mountinfo": a_line("/dead") + a_line("/live")})
    collector = FilesystemCollector(HostRoot(procfs=tree / "proc"), statfs=statfs)
    stuck = threading.Thread(target=collector.read, args=(a_mount("/dead"),))
    stuck.start()

    found = collector.discover()
    reading = collector.read(found.targets["/live"])

    assert stuck.is_alive()
    assert list(found.targets) == ["/dead", "/live"]
    assert reading.size_bytes == 4096
    released.set()
    stuck.join()
