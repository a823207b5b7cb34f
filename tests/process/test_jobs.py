"""Jobs of real agents: they run once, outlive the agent, and their ends are kept."""

import json
import os
import signal
import time

import pytest

from tests.agents import running_agent, wait_until
from tests.job_agents import (
    ENDED,
    end_all,
    folder_of,
    is_alive,
    jobs,
    main_pid,
    order,
    output,
    state,
    submit,
    supervisor_pid,
    wait_for,
)

pytestmark = pytest.mark.process

HARDWARE = "--hardware=simulated:h100x4"


@pytest.fixture
def place(tmp_path):
    yield tmp_path
    end_all(tmp_path / "agent-state")


def test_a_job_runs_with_its_gpus_and_its_end_and_output_are_kept(place):
    with running_agent(place, HARDWARE) as agent:
        job = submit(
            agent, "echo $CUDA_VISIBLE_DEVICES $ESNODE_JOB_EPOCH; exit 3", "devices: {gpu: 2}"
        )
        wait_for(agent, job, "failed")

        ended = jobs(agent)[job]
        printed = order(agent, "logs", job)

    assert (ended["exit_code"], ended["reason"]) == (3, "ended with code 3")
    gpus = ended["gpus"]
    assert isinstance(gpus, list)
    assert len(gpus) == 2
    assert printed == f"{','.join(gpus)} 1\n"


def test_the_smallest_file_runs_and_is_followed_by_name(place):
    with running_agent(place, HARDWARE) as agent:
        path = place / "ticker.yaml"
        path.write_text('name: ticker\ncommand: [bash, -c, "while date; do sleep 0.1; done"]\n')
        order(agent, "submit", str(path))
        wait_until(lambda: "ticker  running" in order(agent, "list"), seconds=10, why="running")

        order(agent, "stop", "ticker")
        wait_until(lambda: "stopped" in order(agent, "list", "--all"), seconds=10, why="stopped")

        assert order(agent, "explain", "ticker").startswith("ticker (")


def test_jobs_outlive_a_killed_agent_and_are_adopted_and_none_runs_twice(place):
    with running_agent(place, HARDWARE) as agent:
        ids = [submit(agent, f"echo begun >> {place}/{n}; sleep 600") for n in range(5)]
        for job in ids:
            wait_for(agent, job, "running")
        pids = {job: main_pid(agent, job) for job in ids}
        agent.end(signal.SIGKILL)
    assert all(map(is_alive, pids.values()))

    with running_agent(place, HARDWARE) as agent:
        for job in ids:
            wait_for(agent, job, "running", seconds=5)

        assert {job: main_pid(agent, job) for job in ids} == pids
        assert [(place / str(n)).read_text() for n in range(5)] == ["begun\n"] * 5
        for job in ids:
            order(agent, "cancel", job)
        for job in ids:
            wait_for(agent, job, "stopped")
    assert not any(map(is_alive, pids.values()))


def test_an_end_while_no_agent_runs_is_known_afterwards(place):
    with running_agent(place, HARDWARE) as agent:
        job = submit(agent, "sleep 1; echo done; exit 0", "devices: {gpu: 1}")
        wait_for(agent, job, "running")
        agent.end(signal.SIGKILL)
    time.sleep(1.5)

    with running_agent(place, HARDWARE) as agent:
        wait_for(agent, job, "succeeded", seconds=5)

        assert output(agent, job) == "done\n"
        wait_until(lambda: submit(agent, "true"), seconds=5, why="another job")


@pytest.mark.parametrize(
    ("more", "states"),
    [
        pytest.param("", ("interrupted",), id="that may not run again"),
        pytest.param("idempotent: true", ("running",), id="that may run again"),
    ],
)
def test_a_job_whose_supervisor_is_killed_is_ended_and_told(place, more, states):
    with running_agent(place, HARDWARE) as agent:
        job = submit(agent, f"echo begun >> {place}/begun; (setsid sleep 600 &) ; sleep 600", more)
        wait_for(agent, job, "running")
        first = main_pid(agent, job)
        os.kill(supervisor_pid(agent, job), signal.SIGKILL)

        wait_until(lambda: not is_alive(first), seconds=15, why="the end of what it left")
        wait_for(agent, job, *states, seconds=15)

        if states == ("running",):
            assert main_pid(agent, job) != first
            assert jobs(agent)[job]["requeues"] == 1


def test_a_job_that_is_killed_has_failed_by_that_signal(place):
    with running_agent(place, HARDWARE) as agent:
        job = submit(agent, "sleep 600")
        wait_for(agent, job, "running")

        os.kill(main_pid(agent, job), signal.SIGKILL)
        wait_for(agent, job, "failed")

        assert jobs(agent)[job]["exit_signal"] == 9


def test_a_job_that_ignores_its_signal_is_killed_after_its_grace_with_all_it_forked(place):
    forks = 'trap "" TERM; echo $$ > $PID_FILE; sleep 600'
    script = f"trap '' TERM; export PID_FILE={place}/pid; (setsid bash -c '{forks}' &); sleep 600"
    script += "; sleep 600"
    with running_agent(place, HARDWARE) as agent:
        job = submit(agent, script, "stop: {grace: 500ms}")
        wait_for(agent, job, "running")
        wait_until(lambda: (place / "pid").read_text().strip(), seconds=5, why="the other one")
        forked = int((place / "pid").read_text())

        order(agent, "stop", job)
        wait_for(agent, job, "stopped", seconds=5)

    assert not is_alive(forked)


def test_a_job_waits_for_gpus_that_another_has_and_says_so(place):
    with running_agent(place, HARDWARE) as agent:
        first = submit(agent, "sleep 600", "devices: {gpu: 3}")
        wait_for(agent, first, "running")
        second = submit(agent, "sleep 600", "devices: {gpu: 2}")
        wait_until(lambda: jobs(agent)[second]["waits"], seconds=5, why="a reason")
        assert "GPU" in order(agent, "explain", second)

        order(agent, "cancel", first)
        wait_for(agent, second, "running")
        order(agent, "cancel", second)


def test_the_same_id_is_the_same_job_and_never_another(place):
    from esnode.client import AgentRefused, ask, socket_door

    with running_agent(place, HARDWARE) as agent:
        door = socket_door(agent.state_dir / "agent.sock")
        job = "01jd0000000000000000000000"
        spec = {"name": "once", "command": ["bash", "-c", f"echo begun >> {place}/begun"]}
        for _ in range(3):
            ask(door, "/v1/jobs", schema="esnode.job/", order={"job": job, "spec": spec})
        wait_for(agent, job, "succeeded")
        ask(door, "/v1/jobs", schema="esnode.job/", order={"job": job, "spec": spec})
        other = {**spec, "name": "other"}
        with pytest.raises(AgentRefused, match="another spec"):
            ask(door, "/v1/jobs", schema="esnode.job/", order={"job": job, "spec": other})

    assert (place / "begun").read_text() == "begun\n"


def test_a_flood_of_output_fills_no_more_than_its_files(place):
    with running_agent(place, HARDWARE) as agent:
        job = submit(
            agent, "head -c 50000000 /dev/zero | tr '\\0' x", "logs: {size: 1MiB, files: 2}"
        )
        wait_for(agent, job, "succeeded", seconds=30)

        kept = sum(path.stat().st_size for path in folder_of(agent, job).glob("output.log*"))

    assert 0 < kept <= 2 << 20
    document = json.loads((folder_of(agent, job) / "state.json").read_text())
    assert document["output_bytes_total"] == 50_000_000


def test_a_command_that_is_none_has_failed_with_its_reason(place):
    with running_agent(place, HARDWARE) as agent:
        (place / "bad.yaml").write_text("name: bad\ncommand: [/nowhere/program]\n")
        order(agent, "submit", "--wait", str(place / "bad.yaml"), code=1)

        assert "/nowhere/program: No such file" in order(agent, "list", "--all")


def test_nobody_takes_orders_about_jobs_over_tcp(place):
    from tests.agents import ask

    with running_agent(place, HARDWARE) as agent:
        assert ask(agent.port, "/v1/jobs", method="POST").status in (404, 405)


def test_a_torn_journal_loses_only_what_was_not_answered(place):
    with running_agent(place, HARDWARE) as agent:
        job = submit(agent, "sleep 600")
        wait_for(agent, job, "running")
        agent.end(signal.SIGKILL)
    journal = place / "agent-state" / "jobs" / "journal.log"
    journal.write_bytes(journal.read_bytes() + b"\0\0\1")

    with running_agent(place, HARDWARE) as agent:
        wait_for(agent, job, "running", seconds=5)

        assert agent.events("jobs_note")
        order(agent, "cancel", job)
        wait_for(agent, job, *ENDED)


def test_what_runs_without_a_right_is_ended_before_anything_is_started(place):
    with running_agent(place, HARDWARE) as agent:
        job = submit(agent, "sleep 600")
        wait_for(agent, job, "running")
        pid = main_pid(agent, job)
        agent.end(signal.SIGKILL)
    (place / "agent-state" / "jobs" / "journal.log").unlink()

    with running_agent(place, HARDWARE) as agent:
        wait_until(lambda: not is_alive(pid), seconds=10, why="the end of a job without a right")
        wait_until(lambda: agent.events("jobs_note"), seconds=10, why="a line about it")
        assert jobs(agent) == {}
        assert state(agent, submit(agent, "sleep 1")) in ("queued", "starting", "running")
