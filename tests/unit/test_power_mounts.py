"""Whether a state folder outlives a reboot, by what is mounted."""

from pathlib import Path

import pytest

from esnode.powering.mounts import file_system_of, fleeting_line

LINES = [
    "22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw",
    "25 22 0:23 / /run rw,nosuid shared:5 - tmpfs tmpfs rw,size=100k",
    "30 22 0:40 / /var/lib/my\\040state rw - tmpfs none rw",
    "31 22 0:41 / /var/lib/esnode rw - xfs /dev/sdb1 rw",
    "a line that is none",
]
CONTAINER = ["500 400 0:99 / / rw,relatime master:3 - overlay overlay rw,lowerdir=/x"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/var/lib/other", "ext4", id="on the root"),
        pytest.param("/run/esnode", "tmpfs", id="below a mount point"),
        pytest.param("/run", "tmpfs", id="the mount point itself"),
        pytest.param("/runner", "ext4", id="a name that only begins alike"),
        pytest.param("/var/lib/my state/x", "tmpfs", id="with an escaped space"),
        pytest.param("/var/lib/esnode", "xfs", id="the deepest mount counts"),
    ],
)
def test_the_deepest_mount_above_a_path_says_its_type(path: str, expected: str) -> None:
    assert file_system_of(path, LINES) == expected


def test_the_writable_layer_of_a_container_is_fleeting(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text("\n".join(CONTAINER))

    line = fleeting_line(Path("/var/lib/esnode"), mounts)

    assert line == "state_dir /var/lib/esnode is on overlay, which does not survive a reboot"


def test_a_disk_stays_and_a_kernel_that_says_nothing_is_believed(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text("\n".join(LINES))

    assert fleeting_line(Path("/var/lib/esnode"), mounts) is None
    assert fleeting_line(Path("/var/lib/esnode"), tmp_path / "absent") is None
