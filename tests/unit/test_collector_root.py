import errno
import os
import stat
from pathlib import Path

import pytest

from esnode.collectors.base import CollectFailed
from esnode.collectors.root import HostRoot, read_section, require_sysfs
from esnode.drivers.files import (
    MAX_FILE_BYTES,
    Unreadable,
    explain_error,
    list_folder,
    parse_count,
    parse_whole,
    read_number,
    read_text,
)
from esnode.readings.host import Absence


@pytest.mark.parametrize(
    ("text", "count"),
    [
        pytest.param("0", 0, id="zero is a value"),
        pytest.param(" 42\n", 42, id="with a line end"),
        pytest.param("18446744073709551615", 2**64 - 1, id="largest of 64 bits"),
        pytest.param("18446744073709551616", None, id="one more"),
        pytest.param("9" * 5000, None, id="longer than python converts"),
        pytest.param("-1", None, id="negative"),
        pytest.param("1_000", None, id="underscore"),
        pytest.param("\N{SUPERSCRIPT TWO}", None, id="a digit that is no number"),
        pytest.param("1.5", None, id="fraction"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_a_count_is_a_whole_number_of_64_bits(text: str, count: int | None) -> None:
    assert parse_count(text) == count


@pytest.mark.parametrize(("text", "number"), [("-5", -5), ("7", 7), ("--5", None), ("-", None)])
def test_a_whole_number_may_be_negative(text: str, number: int | None) -> None:
    assert parse_whole(text) == number


def test_a_file_longer_than_one_read_comes_whole(tmp_path: Path) -> None:
    long = tmp_path / "long"
    long.write_text("line\n" * 50_000)

    assert read_text(str(long)) == "line\n" * 50_000


def test_a_file_without_end_is_refused() -> None:
    answer = read_text("/dev/zero")

    assert answer == Unreadable(reason=f"/dev/zero is longer than {MAX_FILE_BYTES} bytes")


def test_bytes_that_are_not_text_come_out_printable(tmp_path: Path) -> None:
    (tmp_path / "label").write_bytes(b"core \xff\n")

    assert read_text(str(tmp_path / "label")) == "core \\xff\n"


def test_a_missing_file_and_a_folder_say_which_path(tmp_path: Path) -> None:
    missing, folder = read_text(f"{tmp_path}/none"), read_text(str(tmp_path))

    assert missing == Unreadable(
        reason=f"{tmp_path}/none does not exist", error_number=errno.ENOENT
    )
    assert folder == Unreadable(
        reason=f"{tmp_path} is a folder, not a file", error_number=errno.EISDIR
    )


def test_an_impossible_name_is_a_reason_and_no_crash() -> None:
    assert isinstance(read_text("/proc/\0"), Unreadable)


def test_a_refused_file_says_which_privilege_helps() -> None:
    refused = explain_error("/sys/x", PermissionError(errno.EACCES, "Permission denied"))

    assert refused.reason == "/sys/x permission denied: needs root or CAP_DAC_READ_SEARCH"


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every file")
def test_a_file_without_read_permission_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("1")
    secret.chmod(stat.S_IWUSR)

    answer = read_text(str(secret))

    assert isinstance(answer, Unreadable)
    assert answer.error_number == errno.EACCES


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("1")
    before = len(os.listdir("/proc/self/fd"))

    for _ in range(20):
        read_text(str(tmp_path / "file"))
        read_text(str(tmp_path))

    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param("", "holds nothing where a number belongs", id="empty"),
        pytest.param("max\n", "holds 'max' where a number belongs", id="word"),
    ],
)
def test_a_file_without_a_number_says_what_it_holds(
    tmp_path: Path, content: str, reason: str
) -> None:
    path = tmp_path / "value"
    path.write_text(content)

    answer = read_number(str(path), parse_count, read_text)

    assert answer == Unreadable(reason=f"{path} {reason}")


def test_a_folder_is_listed_in_order_or_says_why_not(tmp_path: Path) -> None:
    (tmp_path / "b").touch()
    (tmp_path / "a").touch()

    assert list_folder(str(tmp_path)) == ("a", "b")
    assert isinstance(list_folder(f"{tmp_path}/none"), Unreadable)


@pytest.mark.parametrize(
    ("rootfs", "mountpoint", "path"),
    [
        pytest.param("/", "/", "/", id="the host itself"),
        pytest.param("/", "/boot", "/boot", id="the host's boot"),
        pytest.param("/host", "/", "/host/", id="a container's view of root"),
        pytest.param("/host/", "/boot", "/host/boot", id="trailing slash"),
    ],
)
def test_a_mount_is_reached_below_rootfs(rootfs: str, mountpoint: str, path: str) -> None:
    assert HostRoot(rootfs=rootfs).within(mountpoint) == path


def test_paths_may_be_strings_or_paths() -> None:
    assert HostRoot(procfs=Path("/host/proc")).proc("stat") == "/host/proc/stat"
    assert HostRoot(sysfs="/host/sys").sys("block") == "/host/sys/block"


def test_a_section_that_fails_is_one_absence(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "garbage").write_text("?")
    absent: list[Absence] = []

    values = [
        read_section(f"{tmp_path}/{name}", parse_count, what=name, absent=absent)
        for name in ("none", "empty", "garbage")
    ]

    assert values == [None, None, None]
    assert absent == [
        Absence(what="none", reason=f"{tmp_path}/none does not exist"),
        Absence(what="empty", reason=f"{tmp_path}/empty is empty"),
        Absence(
            what="garbage",
            reason=f"{tmp_path}/garbage holds nothing of the form the kernel documents",
        ),
    ]


def test_a_wrong_sysfs_path_fails_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(CollectFailed, match=r"^no sysfs: .*/none does not exist$"):
        require_sysfs(HostRoot(sysfs=tmp_path / "none"))
    with pytest.raises(CollectFailed, match=r"^no sysfs: .* is empty; is it mounted there\?$"):
        require_sysfs(HostRoot(sysfs=tmp_path))
