"""What a supervisor is told, and what it keeps: two documents between two versions."""

import json
from dataclasses import replace

import pytest

from esnode.workloads.adapters import Given, StartRefused
from esnode.workloads.book import Job, Owner, Phase
from esnode.workloads.launch import (
    LAUNCH_SCHEMA,
    Process,
    StateUnreadable,
    launch_document,
    read_state,
)
from esnode.workloads.spec import JobSpec
from tests.job_records import JOB

SPEC = JobSpec(name="work", command=("python", "train.py"), environment=(("A", "b"),))
JOB_HERE = Job(
    id=JOB,
    epoch=2,
    phase=Phase.RUNNING,
    spec=SPEC,
    owner=Owner(uid=1000, gid=100, groups=(100, 44), user="alice"),
    attempt=3,
)
GIVEN = Given(gpus=("GPU-a", "GPU-b"), cpus=(0, 1), boot_id="b1")
STATE = {
    "schema": "esnode.job_state/1",
    "job": JOB,
    "epoch": 2,
    "attempt": 3,
    "phase": "ended",
    "supervisor": {"pid": 10, "start_ticks": 100, "boot_id": "b1"},
    "main": {"pid": 11, "start_ticks": 101},
    "restarts": 1,
    "exit": {"code": 3, "signal": None, "reason": "exited"},
    "output_bytes_total": 5,
    "output_lost_bytes_total": 0,
    "is_proved_empty": True,
    "trouble": "",
}


def told(folder, **spec):
    job = replace(JOB_HERE, spec=replace(SPEC, **spec))
    return launch_document(job, GIVEN, folder, "/home/alice", ("v2", ("/groups/a",)))


def test_a_supervisor_is_told_everything_and_as_plain_json(tmp_path):
    document = told(tmp_path)

    assert json.loads(json.dumps(document)) == document
    assert document["schema"] == LAUNCH_SCHEMA
    assert (document["job"], document["epoch"], document["attempt"]) == (JOB, 2, 3)
    assert document["argv"] == ["python", "train.py"]
    assert (document["uid"], document["gid"], document["groups"]) == (1000, 100, [100, 44])
    assert document["cgroup"] == {"kind": "v2", "paths": ["/groups/a"]}
    assert document["workdir"] == str(tmp_path / "work")


def test_a_job_cannot_give_itself_another_name_or_other_gpus(tmp_path):
    forged = (("ESNODE_JOB_ID", "x"), ("ESNODE_JOB_EPOCH", "9"), ("CUDA_VISIBLE_DEVICES", "0"))

    environment = told(tmp_path, environment=forged)["environment"]

    assert environment["ESNODE_JOB_ID"] == JOB
    assert environment["ESNODE_JOB_EPOCH"] == "2"
    assert environment["CUDA_VISIBLE_DEVICES"] == "GPU-a,GPU-b"


def test_a_workdir_that_is_not_absolute_is_refused(tmp_path):
    with pytest.raises(StartRefused, match="workdir: 'here' does not begin at /"):
        told(tmp_path, workdir="here")


def test_a_state_is_read_as_it_was_kept(tmp_path):
    (tmp_path / "state.json").write_text(json.dumps(STATE))

    state = read_state(tmp_path)

    assert state is not None
    assert (state.epoch, state.attempt, state.phase) == (2, 3, "ended")
    assert state.supervisor == Process(pid=10, start_ticks=100, boot_id="b1")
    assert state.main == Process(pid=11, start_ticks=101, boot_id="b1")
    assert (state.exit_code, state.exit_signal, state.exit_reason) == (3, None, "exited")


def test_a_state_of_an_earlier_version_is_read_with_what_it_says(tmp_path):
    earlier = {key: value for key, value in STATE.items() if key not in ("attempt", "trouble")}
    (tmp_path / "state.json").write_text(json.dumps(earlier))

    state = read_state(tmp_path)

    assert state is not None
    assert (state.attempt, state.trouble) == (None, "")


def test_where_nothing_is_kept_there_is_no_state(tmp_path):
    assert read_state(tmp_path) is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"", "is torn", id="empty"),
        pytest.param(json.dumps(STATE).encode()[:80], "is torn", id="torn"),
        pytest.param(b"\xff\xfe", "is torn", id="no text"),
        pytest.param(b"[]", "is torn", id="a list"),
        pytest.param(json.dumps(STATE | {"main": 7}).encode(), "is torn", id="a wrong field"),
        pytest.param(b'{"schema": "esnode.job_state/2"}', "later version", id="later"),
        pytest.param(b'{"schema": "esnode.job_launch/1"}', "no state of a job", id="alien"),
    ],
)
def test_a_state_that_cannot_be_believed_is_told_in_one_line(tmp_path, content, words):
    path = tmp_path / "state.json"
    path.write_bytes(content)

    with pytest.raises(StateUnreadable, match=words) as told:
        read_state(tmp_path)

    assert str(told.value).startswith(f"{path}: ")
    assert "\n" not in str(told.value)
