"""A log that cannot be written costs its lines and nothing else."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agents import AgentProcess, run_esnode, started_agent, wait_until

pytestmark = pytest.mark.process

FULL_DISK = "2>/dev/full"
CLOSED = "2>&-"
READER_LEFT = "2>left"
READER_HANGS = "2>hangs"


@contextmanager
def serving_agent(folder: Path, redirection: str, *flags: str) -> Iterator[AgentProcess]:
    """An agent that serves, whose log goes where a shell sends it."""
    within = ("sh", "-c", f'exec "$@" {redirection}', "sh")
    with started_agent(folder, *flags, within=within) as agent:
        announced = agent.state_dir / "agent.json"
        wait_until(announced.exists, seconds=20, why="the agent's word of where it listens")
        agent.address = json.loads(announced.read_text())["addresses"][0]
        wait_until(lambda: agent.get("/healthz").status == 200, seconds=10, why="first tick")
        yield agent


def make_full_pipe(path: Path) -> int:
    """A pipe that its reader has let fill up; gives the reader's handle."""
    os.mkfifo(path)
    handle = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        while True:
            os.write(handle, b"." * 4096)
    except BlockingIOError:
        return handle


@pytest.mark.parametrize("redirection", [FULL_DISK, CLOSED, READER_LEFT, READER_HANGS])
def test_an_agent_whose_log_takes_nothing_serves_reloads_and_ends(
    tmp_path: Path, redirection: str
) -> None:
    hanging_reader = make_full_pipe(tmp_path / "hangs")
    leaving_reader = make_full_pipe(tmp_path / "left")
    with serving_agent(tmp_path, redirection) as agent:
        os.close(leaving_reader)
        agent.process.send_signal(signal.SIGHUP)
        wait_until(
            lambda: agent.value("esnode_agent_config_reloads_total") == 1, seconds=5, why="reload"
        )
        assert agent.end(seconds=2) < 2
        assert agent.process.returncode == 0
    os.close(hanging_reader)


def test_the_first_line_after_lost_ones_says_how_many(tmp_path: Path) -> None:
    reader = make_full_pipe(tmp_path / "hangs")
    with serving_agent(tmp_path, READER_HANGS) as agent:
        os.read(reader, 1 << 20)  # all that filled it
        agent.end()
        told = [json.loads(line) for line in os.read(reader, 1 << 16).splitlines()]
    os.close(reader)

    assert [line["event"] for line in told] == ["agent_stopping", "agent_stopped"]
    assert told[0]["lines_lost_before"] >= 1
    assert "lines_lost_before" not in told[1]


def test_a_live_table_that_cannot_be_shown_does_not_end_the_agent(tmp_path: Path) -> None:
    flags = ("--live", "--scrape-interval=200ms")
    with serving_agent(tmp_path, "1>/dev/full", *flags) as agent:
        wait_until(lambda: agent.status()["cpu_util_percent"] is not None, seconds=5, why="rates")
        time.sleep(1.5)  # another tick: the table comes after its document
        assert agent.get("/healthz").status == 200
        assert agent.end(seconds=2) < 2
        assert agent.process.returncode == 0


def test_a_live_table_whose_terminal_is_closed_ends_its_agent(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    within = ("setsid", "sh", "-c", f'exec "$@" >{os.ttyname(theirs)}', "sh")
    with started_agent(tmp_path, "--live", within=within) as agent:
        assert os.read(ours, 100).startswith(b"\x1b[2J")
        os.close(theirs)
        os.close(ours)
        assert agent.process.wait(5) == 0


def test_a_command_whose_output_has_no_room_says_so_in_one_line(tmp_path: Path) -> None:
    within = ("sh", "-c", 'exec "$@" >/dev/full', "sh")
    done = run_esnode(tmp_path, "config", "show", within=within)
    assert done.stderr == "esnode: the output cannot be written: No space left on device\n"
    assert done.returncode == 1
