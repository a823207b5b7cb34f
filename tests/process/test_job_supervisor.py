"""Supervisors of jobs: what they start, how they end it, and that nothing is left."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise

import pytest

from esnode.workloads.adapters import AdapterFailed
from esnode.workloads.local import SUPERVISOR
from esnode.workloads.processes import find_named
from tests.agents import wait_until
from tests.job_processes import GIVEN, bench, is_alive

pytestmark = pytest.mark.process

KINDS = [
    pytest.param("v2", id="ended by the kernel"),
    pytest.param("v1", id="ended by the freezer"),
    pytest.param("none", id="without groups"),
]
FORKED_AWAY = """
trap '' TERM
python3 - <<'END'
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("away", "w").write(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
END
sleep 600; sleep 600
"""


@pytest.fixture
def place(tmp_path):
    with bench(tmp_path / "jobs") as made:
        yield made


@pytest.mark.parametrize(
    ("script", "code", "by_signal"),
    [
        pytest.param("exit 0", 0, None, id="well"),
        pytest.param("exit 7", 7, None, id="with a code"),
        pytest.param("kill -SEGV $$", None, 11, id="by a signal"),
        pytest.param("kill -KILL $$", None, 9, id="killed"),
    ],
)
def test_how_a_job_ended_is_kept(place, script, code, by_signal):
    job = place.bash(script)

    seen = place.wait_for_end(job)

    assert (seen.exit_code, seen.exit_signal, seen.end) == (code, by_signal, "exited")
    assert place.state(job)["is_proved_empty"]
    wait_until(lambda: not place.look(job).is_supervised, seconds=3, why="the supervisor's end")


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_forked_away_and_ignores_the_signal_is_killed(tmp_path, kind):
    with bench(tmp_path / "jobs", kind) as place:
        assert place.groups.kind == kind
        job = place.bash(FORKED_AWAY, stop={"grace": "300ms"})
        away = int(place.wait_for_text(place.path(job, "work/away")))
        begun = time.monotonic()  # noqa: TID251  # a test's own watch

        place.adapter.stop(job)
        seen = place.wait_for_end(job, seconds=5)

        assert time.monotonic() - begun > 0.25  # noqa: TID251  # a test's own watch
        assert (seen.exit_signal, seen.end) == (9, "killed")
        assert not is_alive(away)
        place.wait_for_death(job)


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_whose_supervisor_was_killed_is_seen_and_killed(tmp_path, kind):
    with bench(tmp_path / "jobs", kind) as place:
        job = place.bash(FORKED_AWAY)
        away = int(place.wait_for_text(place.path(job, "work/away")))
        main = place.main_pid(job)
        place.signal_supervisor(job, signal.SIGKILL)
        wait_until(lambda: not place.look(job).is_supervised, seconds=3, why="its end")
        assert is_alive(main)
        assert place.adapter.why_not_dead(job).endswith(")")

        with pytest.raises(AdapterFailed, match="still runs"):
            place.adapter.start(job, GIVEN)
        place.adapter.kill(job)

        assert place.adapter.why_not_dead(job) == ""
        assert [is_alive(main), is_alive(away)] == [False, False]


@pytest.mark.parametrize("kind", KINDS)
def test_who_forks_all_the_time_is_ended(tmp_path, kind):
    script = "fork() { while :; do sleep 0.01 & done; }; trap '' TERM; fork & fork"
    with bench(tmp_path / "jobs", kind) as place:
        job = place.bash(f"ulimit -u 4000; {script}", stop={"grace": "100ms"})
        time.sleep(0.3)

        place.adapter.stop(job)

        assert place.wait_for_end(job, seconds=15).end == "killed"


def test_what_the_main_process_leaves_behind_is_asked_to_end_and_then_killed(place):
    job = place.bash(
        '(setsid bash -c \'trap "echo asked > asked" TERM; echo $$ > pid; while :; do sleep 0.1; '
        "done' &) ; while [ ! -s pid ]; do sleep 0.01; done; exit 4",
        stop={"grace": "500ms"},
    )

    seen = place.wait_for_end(job)

    assert (seen.exit_code, seen.end) == (4, "exited")
    assert place.path(job, "work/asked").read_text() == "asked\n"
    assert not is_alive(int(place.path(job, "work/pid").read_text()))


def test_a_stopped_job_hears_its_signal(place):
    job = place.bash("trap 'exit 5' USR2; kill -STOP $$; sleep 600", stop={"signal": "USR2"})
    time.sleep(0.2)

    place.adapter.stop(job)

    seen = place.wait_for_end(job, seconds=5)
    assert (seen.exit_code, seen.end) == (5, "stopped")


def test_quit_ends_it_at_once(place):
    job = place.bash("trap '' TERM; sleep 600")

    place.adapter.kill(job)

    assert place.wait_for_end(job, seconds=2).end == "killed"


def test_the_second_supervisor_of_a_job_refuses(place):
    job = place.bash("sleep 600")

    done = subprocess.run(
        place.supervisor_command(job), capture_output=True, text=True, check=False
    )

    assert done.returncode == 75
    assert done.stderr == "esnode supervisor: this job has another supervisor\n"
    assert place.look(job).is_running


def test_a_supervisor_of_an_earlier_epoch_refuses(place):
    job = place.bash("true", epoch=2)
    place.wait_for_end(job)
    place.wait_for_death(job)

    command = place.supervisor_command(replace(job, epoch=1))
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, "later epoch" in done.stderr) == (76, True)
    assert place.state(job)["epoch"] == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("", "no launch file", id="empty"),
        pytest.param("{}", "no launch file", id="without anything"),
        pytest.param('{"schema": "esnode.job_launch/2"}', "another version", id="later"),
    ],
)
def test_a_launch_file_that_is_none_starts_nothing(tmp_path, text, words):
    path = tmp_path / "launch-1.json"
    path.write_text(text)

    command = [sys.executable, "-I", "-S", str(SUPERVISOR), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 65
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("is_told", [pytest.param(True, id="told"), pytest.param(False, id="not")])
def test_a_raised_fence_ends_the_job(place, is_told):
    job = place.bash("trap '' TERM; sleep 600")
    place.path(job, "fence").write_text("2\n")

    if is_told:
        place.signal_supervisor(job, signal.SIGUSR1)

    assert place.wait_for_end(job, seconds=1.0 if is_told else 4.0).end == "fenced"


def test_a_job_is_run_again_with_longer_and_longer_pauses(place):
    job = place.bash(
        "date +%s.%N >> began; exit 3",
        restart={"policy": "on-failure", "maximum": 3, "backoff": "200ms"},
    )

    seen = place.wait_for_end(job, seconds=15)

    began = [float(line) for line in place.path(job, "work/began").read_text().split()]
    pauses = [after - before for before, after in pairwise(began)]
    assert (seen.exit_code, seen.restarts) == (3, 3)
    assert pauses == pytest.approx([0.2, 0.4, 0.8], abs=0.15)


def test_a_job_that_waits_for_its_restart_ends_at_once_and_is_not_dead_before(place):
    job = place.bash("exit 3", restart={"policy": "always", "maximum": 3, "backoff": "60s"})
    place.wait_for_phase(job, "waiting")
    assert place.adapter.why_not_dead(job) == "its supervisor still runs"
    assert not place.look(job).is_running

    place.adapter.stop(job)

    assert place.wait_for_end(job, seconds=2).end == "stopped"
    place.wait_for_death(job, seconds=2)


@pytest.mark.parametrize(
    ("phase", "script"),
    [
        pytest.param("running", "sleep 600", id="running"),
        pytest.param("waiting", "exit 1", id="waiting for a restart"),
        pytest.param("stopping", "trap '' TERM; sleep 600; sleep 600", id="stopping"),
    ],
)
def test_a_supervisor_killed_in_any_phase_leaves_nothing_that_cannot_be_ended(place, phase, script):
    policy = "always" if phase == "waiting" else "never"
    job = place.bash(script, restart={"policy": policy, "maximum": 3, "backoff": "60s"})
    if phase == "stopping":
        place.adapter.stop(job)
    place.wait_for_phase(job, phase)
    place.signal_supervisor(job, signal.SIGKILL)

    place.adapter.kill(job)

    place.wait_for_death(job, seconds=3)
    assert not place.look(job).is_ended


@pytest.mark.parametrize("kind", KINDS)
def test_a_supervisor_killed_while_it_starts_its_job_leaves_nothing(tmp_path, kind):
    with bench(tmp_path / "jobs", kind) as place:
        for delay in range(0, 40, 4):
            job = place.job("bash", "-c", "echo $$ >> pids; exec sleep 600")
            place.prepare(job)
            subprocess.run(place.supervisor_command(job), check=True, env=_names(job))
            time.sleep(delay / 1000)
            for one in find_named():
                if one.job == job.id and b"main.py" in _command_line(one.pid):
                    os.kill(one.pid, signal.SIGKILL)

            place.adapter.kill(job)

            assert place.adapter.why_not_dead(job) == ""
            time.sleep(0.05)
            pids = place.path(job, "work/pids")
            started = pids.read_text().split() if pids.exists() else []
            assert not any(is_alive(int(pid)) for pid in started)


def _command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _names(job):
    return {"ESNODE_JOB_ID": job.id, "ESNODE_JOB_EPOCH": str(job.epoch)}


def test_a_later_attempt_does_not_take_the_end_of_the_one_before(place):
    job = place.bash("exit 0")
    place.wait_for_end(job)

    seen = place.look(replace(job, attempt=2))

    assert (seen.is_ended, seen.exit_code) == (False, None)


def test_what_has_no_right_is_swept_and_what_has_stays(place):
    kept = place.bash("sleep 600")
    later = place.bash("sleep 600", epoch=2)
    waiting = place.bash("exit 1", restart={"policy": "always", "maximum": 9, "backoff": "1s"})
    orphan = place.bash("sleep 600")
    pids = {job.id: place.main_pid(job) for job in (kept, later, orphan)}
    place.wait_for_phase(waiting, "waiting")
    place.signal_supervisor(orphan, signal.SIGKILL)

    lines = place.adapter.sweep({kept.id: 1, later.id: 1})

    assert len(lines) == 3
    assert all(line.endswith("not ours to run") for line in lines)
    assert place.look(kept).is_running
    assert [is_alive(pids[job.id]) for job in (kept, later, orphan)] == [True, False, False]
    assert [place.adapter.why_not_dead(job) for job in (later, waiting, orphan)] == [""] * 3
