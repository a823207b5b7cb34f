"""What `esnode diagnostics` looks at besides the collectors."""

import os
import socket
from pathlib import Path

import pytest

from esnode.checks import (
    check_cgroups,
    check_clock,
    check_energy_counters,
    check_nvidia_module,
    check_port,
    check_state_dir,
    clock_is_synchronised,
    filesystem_type,
    system_checks,
)
from esnode.config.values import Address
from tests.host_trees import write_tree

MOUNTS = (
    "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "23 22 0:20 / /run rw,nosuid - tmpfs tmpfs rw\n"
    "24 22 0:21 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n"
    "broken line\n"
)


def test_every_check_is_one_line_and_says_what_to_do_where_something_is_to_be_done(
    tmp_path: Path,
) -> None:
    checks = list(
        system_checks(
            procfs=tmp_path,
            sysfs=tmp_path,
            state_dir=tmp_path,
            listen=Address("127.0.0.1", 0),
            is_agent_up=False,
        )
    )

    assert [check.subject for check in checks] == [
        "user", "energy counters", "nvidia module", "baseboard controller", "port", "clock",
        "state_dir", "cgroups",
    ]  # fmt: skip
    for check in checks:
        assert check.detail
        assert "\n" not in check.detail + check.advice
        assert check.advice or check.state in ("ok", "note")


@pytest.mark.parametrize(
    ("files", "state"),
    [
        pytest.param({}, "missing", id="none"),
        pytest.param({"class/powercap/intel-rapl:0/energy_uj": "1\n"}, "ok", id="readable"),
    ],
)
def test_energy_counters_are_there_or_not(
    tmp_path: Path, files: dict[str, str], state: str
) -> None:
    assert check_energy_counters(write_tree(tmp_path / "sys", files)).state == state


def test_without_the_kernel_module_there_is_no_gpu(tmp_path: Path) -> None:
    check = check_nvidia_module(tmp_path)

    assert (check.state, check.detail) == ("missing", "the NVIDIA kernel module is not loaded")


def test_a_port_is_free_or_held() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        held = check_port(Address("127.0.0.1", taken.getsockname()[1]))
    free = check_port(Address("127.0.0.1", 0))

    assert (held.state, free.state) == ("broken", "ok")


def test_a_state_folder_that_does_not_exist_yet_is_judged_by_the_one_above(
    tmp_path: Path,
) -> None:
    procfs = write_tree(tmp_path / "proc", {"self/mountinfo": MOUNTS})

    check = check_state_dir(tmp_path / "a" / "b", procfs)

    assert (check.state, check.detail) == ("ok", f"{tmp_path}/a/b (ext4)")
    assert not (tmp_path / "a").exists()


def test_a_state_folder_that_does_not_survive_a_reboot_is_noted(tmp_path: Path) -> None:
    mounts = f"23 22 0:20 / {tmp_path} rw - tmpfs tmpfs rw\n"
    procfs = write_tree(tmp_path / "proc", {"self/mountinfo": mounts})

    check = check_state_dir(tmp_path / "state", procfs)

    assert check.state == "note"
    assert "lies on tmpfs" in check.detail


def test_a_file_in_place_of_the_state_folder_is_broken(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    check = check_state_dir(tmp_path / "file", tmp_path)

    assert check.state == "broken"
    assert check.advice == "name another with --state-dir"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every folder")
def test_a_state_folder_behind_a_locked_one_is_broken_and_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0)

    assert check_state_dir(tmp_path / "locked" / "state", tmp_path).state == "broken"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        pytest.param("/run/esnode", "tmpfs", id="inside"),
        pytest.param("/runner", "ext4", id="not-by-its-letters"),
    ],
)
def test_the_filesystem_is_that_of_the_nearest_mount(tmp_path: Path, path: str, kind: str) -> None:
    procfs = write_tree(tmp_path, {"self/mountinfo": MOUNTS})

    assert filesystem_type(Path(path), procfs) == kind


@pytest.mark.parametrize(
    ("mounts", "detail"),
    [
        pytest.param(MOUNTS, "version 2", id="version-2"),
        pytest.param("1 1 0:1 / /x rw - cgroup cgroup rw\n", "version 1", id="version-1"),
        pytest.param(
            MOUNTS + "1 1 0:1 / /x rw - cgroup cgroup rw\n", "version 1 and 2 (hybrid)", id="both"
        ),
        pytest.param("", "none mounted", id="none"),
    ],
)
def test_the_generation_of_cgroups_is_told(tmp_path: Path, mounts: str, detail: str) -> None:
    procfs = write_tree(tmp_path, {"self/mountinfo": mounts})

    assert check_cgroups(procfs).detail == detail


def test_the_clock_is_told_with_its_source(tmp_path: Path) -> None:
    name = "devices/system/clocksource/clocksource0/current_clocksource"
    sysfs = write_tree(tmp_path, {name: "tsc\n"})

    assert clock_is_synchronised() in (True, False, None)
    assert check_clock(sysfs).detail.startswith("source tsc; ")
