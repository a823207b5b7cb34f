"""Processes are told apart by their start, and found by the name of their job."""

import os
import signal
import subprocess
import sys

import pytest

from esnode.workloads import processes
from esnode.workloads.supervisor import processes as seen_by_supervisor
from tests.agents import wait_until

JOB = "01jd0000000000000000000000"
FIRST_THREAD_ENDS = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
print("begun", flush=True)
ctypes.CDLL(None).syscall(60, 0)
"""
"""60 is exit(2) on x86-64: of the calling thread alone."""


@pytest.fixture
def sleeper():
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def stat_line(state, threads, ticks):
    fields = [state, "1", *["0"] * 15, str(threads), "0", str(ticks), "0"]
    return f"7 (a) b ({' '.join(fields)}".replace("a) b (", "a ) b) ", 1)


def make_process(proc, pid, *, state="S", threads=1, ticks=500, environment=b""):
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    (folder / "stat").write_text(stat_line(state, threads, ticks))
    (folder / "environ").write_bytes(environment)


def test_a_signal_reaches_exactly_its_process(sleeper):
    ticks = processes.start_ticks(sleeper.pid)

    assert ticks is not None
    assert processes.send(sleeper.pid, ticks, signal.SIGTERM)
    assert sleeper.wait() == -signal.SIGTERM


def test_another_process_with_its_pid_is_left_alone(sleeper):
    ticks = processes.start_ticks(sleeper.pid)
    assert ticks is not None

    assert not processes.send(sleeper.pid, ticks - 1, signal.SIGKILL)
    seen_by_supervisor.signal_each({sleeper.pid: ticks - 1}, signal.SIGKILL)

    assert not processes.is_alive(sleeper.pid, ticks - 1)
    assert sleeper.poll() is None


def test_a_zombie_does_not_live(sleeper):
    ticks = processes.start_ticks(sleeper.pid)
    assert ticks is not None
    os.kill(sleeper.pid, signal.SIGKILL)
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)

    assert not processes.is_alive(sleeper.pid, ticks)
    assert seen_by_supervisor.start_ticks(sleeper.pid) == 0


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the number of a system call")
def test_a_process_whose_first_thread_has_ended_lives_while_another_does():
    command = [sys.executable, "-c", FIRST_THREAD_ENDS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()

        def letter():
            with open(f"/proc/{process.pid}/stat") as file:
                return file.read().rpartition(")")[2].split()[0]

        wait_until(lambda: letter() == "Z", seconds=5, why="the end of its first thread")
        try:
            assert processes.start_ticks(process.pid) is not None
            assert seen_by_supervisor.start_ticks(process.pid) > 0
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("state", "threads", "ticks"),
    [
        pytest.param("S", 1, 500, id="sleeping"),
        pytest.param("D", 1, 500, id="stuck"),
        pytest.param("Z", 1, None, id="zombie"),
        pytest.param("Z", 2, 500, id="first thread ended"),
        pytest.param("X", 1, None, id="dead"),
    ],
)
def test_when_a_process_started_is_read_whatever_its_name_is(tmp_path, state, threads, ticks):
    make_process(tmp_path, 7, state=state, threads=threads)

    assert processes.start_ticks(7, tmp_path) == ticks
    assert processes.start_ticks(8, tmp_path) is None


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        pytest.param(f"A=b\0ESNODE_JOB_ID={JOB}\0ESNODE_JOB_EPOCH=3\0", [(JOB, 3)], id="named"),
        pytest.param(f"ESNODE_JOB_ID={JOB}\0", [(JOB, 0)], id="without an epoch"),
        pytest.param(f"ESNODE_JOB_ID={JOB}\0ESNODE_JOB_EPOCH=x\0", [(JOB, 0)], id="bad epoch"),
        pytest.param("ESNODE_JOB_ID=../../x\0ESNODE_JOB_EPOCH=1\0", [], id="a path"),
        pytest.param(f"ESNODE_JOB_ID={JOB}/..\0", [], id="an id and more"),
        pytest.param(f"XESNODE_JOB_ID={JOB}\0", [], id="another variable"),
        pytest.param("ESNODE_JOB_ID=\udcff\0", [], id="odd bytes"),
        pytest.param("", [], id="a kernel thread"),
    ],
)
def test_who_carries_the_name_of_a_job_is_found(tmp_path, environment, found):
    make_process(tmp_path, 7, environment=environment.encode(errors="surrogateescape"))
    (tmp_path / "self").mkdir()
    (tmp_path / "9").mkdir()  # went away between two looks

    named = processes.find_named(tmp_path)

    assert [(one.job, one.epoch) for one in named] == found
    assert all((one.pid, one.start_ticks, one.uid) == (7, 500, os.getuid()) for one in named)


def test_the_supervisor_finds_who_carries_its_name_but_no_later_epoch():
    def run(epoch):
        return subprocess.Popen(
            ["sleep", "600"], env={"ESNODE_JOB_ID": JOB, "ESNODE_JOB_EPOCH": str(epoch)}
        )

    with run(1) as first, run(2) as second, run(3) as third:
        try:

            def found():
                return seen_by_supervisor.named(JOB, 2, os.getuid())

            wait_until(lambda: len(found()) == 2, seconds=5, why="both")
            assert sorted(found()) == sorted((first.pid, second.pid))
            assert {first.pid, second.pid, third.pid} <= set(seen_by_supervisor.descendants())
        finally:
            for process in (first, second, third):
                process.kill()
