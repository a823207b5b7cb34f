"""Nothing is taken for gone that cannot be looked at, and nothing of others is taken for ours."""

import fcntl
import json

import pytest

from esnode.workloads.cgroups import Cgroups
from esnode.workloads.remains import Remains, Runs, is_locked, split_group
from tests.job_records import JOB, OTHER

NO_GROUPS = Cgroups(kind="none")
RUNS = Runs(job=JOB, highest=2)


def group(parent, job=JOB, epoch=1, pids=""):
    path = parent / f"{job}-{epoch}"
    path.mkdir(parents=True)
    (path / "cgroup.procs").write_text(pids)
    return path


@pytest.mark.parametrize(
    ("name", "whose"),
    [
        pytest.param(f"{JOB}-3", (JOB, 3), id="a job's"),
        pytest.param(JOB, None, id="without an epoch"),
        pytest.param(f"{JOB}-x", None, id="a bad epoch"),
        pytest.param(f"{JOB[:-1]}-3", None, id="too short"),
        pytest.param("../system.slice-1", None, id="a path"),
        pytest.param(".probe-123", None, id="our own trial"),
    ],
)
def test_groups_that_are_not_named_for_a_job_are_nobodys(name, whose):
    assert split_group(name) == whose


def test_a_group_that_cannot_be_read_is_no_proof(tmp_path):
    parent = tmp_path / "groups"
    path = group(parent)
    (path / "cgroup.procs").unlink()
    (path / "cgroup.procs").mkdir()
    remains = Remains(tmp_path / "jobs", Cgroups(kind="v2", parents=(parent,)))

    line = remains.why_not_dead(RUNS)

    assert line == f"it cannot be looked at: {path}/cgroup.procs: Is a directory"


def test_empty_groups_of_any_epoch_so_far_are_a_proof_and_are_taken_away(tmp_path):
    parent = tmp_path / "groups"
    for epoch in (1, 2, 3):
        group(parent, epoch=epoch)
        (parent / f"{JOB}-{epoch}" / "cgroup.procs").unlink()  # a real group's cannot be in the way
    group(parent, OTHER)
    remains = Remains(tmp_path / "jobs", Cgroups(kind="v2", parents=(parent,)))

    assert remains.why_not_dead(RUNS) == ""
    remains.clean(RUNS)

    assert sorted(one.name for one in parent.iterdir()) == [f"{JOB}-3", f"{OTHER}-1"]


@pytest.mark.parametrize(
    ("state", "line"),
    [
        pytest.param(None, "its supervisor still runs", id="that has kept nothing yet"),
        pytest.param("torn", "its supervisor still runs", id="whose state cannot be read"),
        pytest.param({"epoch": 2}, "its supervisor still runs", id="of these runs"),
        pytest.param({"epoch": 3}, "", id="of a later run"),
    ],
)
def test_a_supervisor_that_has_the_job_is_in_the_way_of_a_proof(tmp_path, state, line):
    folder = tmp_path / JOB
    folder.mkdir()
    if isinstance(state, dict):
        one = {"pid": 1, "start_ticks": 0, "boot_id": "b"}
        document = {"phase": "running", "supervisor": one, "main": None, "restarts": 0}
        document |= {"schema": "esnode.job_state/1", "exit": None, "is_proved_empty": False}
        (folder / "state.json").write_text(json.dumps(document | state))
    elif state:
        (folder / "state.json").write_text(state)

    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert Remains(tmp_path, NO_GROUPS).why_not_dead(RUNS) == line

    assert Remains(tmp_path, NO_GROUPS).why_not_dead(RUNS) == ""


def test_groups_of_jobs_that_are_another_agents_are_left(tmp_path):
    parent = tmp_path / "groups"
    group(parent, OTHER)

    lines = Remains(tmp_path / "jobs", Cgroups(kind="v2", parents=(parent,))).sweep({})

    assert lines == ()
    assert (parent / f"{OTHER}-1").is_dir()


def test_a_lock_is_nobodys_where_there_is_no_file(tmp_path):
    assert not is_locked(tmp_path / "nothing" / "lock")
