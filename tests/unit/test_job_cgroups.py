"""Where control groups of jobs can be made, on the layouts that machines have."""

import pytest

from esnode.workloads import cgroups

UNIT = "0::/system.slice/esnode.service\n4:memory:/system.slice/esnode.service\n7:freezer:/\n"
NO_UNIT = "0::/\n4:memory:/\n7:freezer:/\n"
V1_FILES = {
    "freezer": ("freezer.state",),
    "cpu,cpuacct": ("cpu.shares", "cpuacct.usage"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes"),
}


def make_v2(mount, controllers="cpu memory", parent=cgroups.PARENT):
    (mount / parent).mkdir(parents=True)
    for folder in (mount, mount / parent):
        (folder / "cgroup.controllers").write_text(controllers)
        (folder / "cgroup.subtree_control").write_text(controllers)
        (folder / "cgroup.procs").write_text("")


def make_v1(root):
    for mount, files in V1_FILES.items():
        folder = root / mount / cgroups.PARENT
        folder.mkdir(parents=True)
        (root / mount / "cgroup.procs").write_text("")
        for name in files:
            (folder / name).write_text("")
    for name in ("cpu", "cpuacct"):
        (root / name).symlink_to(root / "cpu,cpuacct")


def add_files(path, **files):
    for name, text in files.items():
        (path / name.replace("__", ".")).write_text(text)


def test_version_2_alone_has_one_parent(tmp_path):
    make_v2(tmp_path)

    found = cgroups.probe(tmp_path, NO_UNIT)

    assert found == cgroups.Cgroups(kind="v2", parents=(tmp_path / "esnode-jobs",))


def test_version_1_alone_has_one_parent_for_each_mount(tmp_path):
    make_v1(tmp_path)

    found = cgroups.probe(tmp_path, NO_UNIT)

    mounts = ("freezer", "cpu,cpuacct", "memory")
    parents = tuple(tmp_path / mount / "esnode-jobs" for mount in mounts)
    assert found == cgroups.Cgroups(kind="v1", parents=parents)


def test_both_are_used_where_version_2_has_no_controllers(tmp_path):
    make_v1(tmp_path)
    make_v2(tmp_path / "unified", controllers="hugetlb")

    found = cgroups.probe(tmp_path, NO_UNIT)

    mounts = ("unified", "cpu,cpuacct", "memory")
    parents = tuple(tmp_path / mount / "esnode-jobs" for mount in mounts)
    assert found == cgroups.Cgroups(kind="v2", parents=parents)


def test_without_controllers_it_says_that_there_are_no_limits(tmp_path):
    make_v2(tmp_path, controllers="")

    found = cgroups.probe(tmp_path, NO_UNIT)

    assert (found.kind, found.reason) == ("v2", f"no limits: {tmp_path}/esnode-jobs has no cpu")


def test_in_a_unit_groups_are_made_below_it_and_its_controllers_are_left_alone(tmp_path):
    below = "system.slice/esnode.service/esnode-jobs"
    make_v2(tmp_path, parent=below)
    unit = tmp_path / "system.slice/esnode.service"
    (unit / "cgroup.subtree_control").write_text("")

    found = cgroups.probe(tmp_path, UNIT)

    assert found.parents == (tmp_path / below,)
    assert (unit / "cgroup.subtree_control").read_text() == ""


def test_version_1_without_a_freezer_is_of_no_use(tmp_path):
    make_v1(tmp_path)
    (tmp_path / "freezer" / "cgroup.procs").unlink()

    found = cgroups.probe(tmp_path, NO_UNIT)

    assert found == cgroups.Cgroups(
        kind="none", reason=f"no control group can be made below {tmp_path}"
    )


def test_groups_that_cannot_be_made_are_none(tmp_path):
    make_v2(tmp_path)
    (tmp_path / "esnode-jobs" / "cgroup.subtree_control").unlink()
    for name in ("cgroup.controllers", "cgroup.procs"):
        (tmp_path / "esnode-jobs" / name).unlink()
    (tmp_path / "esnode-jobs").rmdir()
    (tmp_path / "esnode-jobs").write_text("a file in its place")

    assert cgroups.probe(tmp_path, NO_UNIT).kind == "none"


@pytest.mark.parametrize(
    ("files", "written"),
    [
        pytest.param(
            {"memory.max": "", "cpu.weight": ""},
            {"memory.max": "4096", "cpu.weight": "300"},
            id="version 2",
        ),
        pytest.param(
            {"memory.limit_in_bytes": "", "cpu.shares": ""},
            {"memory.limit_in_bytes": "4096", "cpu.shares": "3072"},
            id="version 1",
        ),
        pytest.param({}, {}, id="without controllers"),
    ],
)
def test_limits_and_weights_are_written_where_there_is_a_controller(tmp_path, files, written):
    group = tmp_path / "a-1"
    group.mkdir()
    for name, text in files.items():
        (group / name).write_text(text)

    groups = cgroups.Cgroups(kind="v2", parents=(tmp_path,))
    paths = groups.make("a-1", memory_bytes=4096, cpu_count=3)

    assert paths == (str(group),)
    assert {path.name: path.read_text() for path in group.iterdir()} == written


def test_use_is_what_some_controller_counts_and_unknown_else(tmp_path):
    one, other, nothing = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    for folder in (one, other, nothing):
        folder.mkdir()
    add_files(one, cpu__stat="usage_usec 2500000\nuser_usec 1\n", memory__current="77\n")
    add_files(other, cpuacct__usage="3000000000\n", memory__usage_in_bytes="5\n")

    assert cgroups.use_of([one]) == cgroups.CgroupUse(cpu_seconds=2.5, memory_bytes=77)
    assert cgroups.use_of([other]) == cgroups.CgroupUse(cpu_seconds=3.0, memory_bytes=5)
    assert cgroups.use_of([nothing]) == cgroups.CgroupUse()


def test_everyone_in_a_group_and_below_it_is_found(tmp_path):
    (tmp_path / "a-1" / "below").mkdir(parents=True)
    add_files(tmp_path / "a-1", cgroup__procs="11\n0\n12\n")
    add_files(tmp_path / "a-1" / "below", cgroup__procs="13\n")

    assert cgroups.pids_in([tmp_path / "a-1", tmp_path / "gone"]) == (11, 12, 13)


def test_a_group_that_cannot_be_read_is_not_taken_for_empty(tmp_path):
    (tmp_path / "a-1" / "cgroup.procs").mkdir(parents=True)

    with pytest.raises(OSError, match="Is a directory"):
        cgroups.pids_in([tmp_path / "a-1"])


def test_freezing_and_killing_use_what_the_version_has(tmp_path):
    v2, v1 = tmp_path / "v2", tmp_path / "v1"
    v2.mkdir()
    v1.mkdir()
    add_files(v2, cgroup__kill="", cgroup__freeze="")
    add_files(v1, freezer__state="")

    assert cgroups.kill_groups([v2])
    assert not cgroups.kill_groups([v1])
    cgroups.freeze([v1, v2], is_frozen=True)

    assert (v2 / "cgroup.kill").read_text() == "1"
    assert (v2 / "cgroup.freeze").read_text() == "1"
    assert (v1 / "freezer.state").read_text() == "FROZEN"
