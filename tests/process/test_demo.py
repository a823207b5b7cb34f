"""`esnode demo`: it shows a settled machine, or ends in one line, and leaves nothing."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents import REPOSITORY, clean_environment, wait_until
from tests.programs import dies

pytestmark = pytest.mark.process


def started_demo(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "esnode", "demo", "--once", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        env=clean_environment(folder, TMPDIR=str(folder)),
    )


def test_once_prints_the_settled_state_and_leaves_nothing(tmp_path: Path) -> None:
    output, errors = started_demo(tmp_path, "--hardware", "h100x2", "--json").communicate(
        timeout=60
    )

    document = json.loads(output)
    assert errors == ""
    assert [gpu["util_percent"] for gpu in document["gpus"]] == [100.0, 80.0]
    assert all(gpu["power_watts"] > 100 for gpu in document["gpus"])
    assert document["node_power"]["source"] == "simulated"
    assert list(tmp_path.iterdir()) == []


def agent_under_load(folder: Path) -> int:
    """The process of the demo's agent, once its GPUs have been given work."""

    def has_load() -> bool:
        histories = folder.glob("esnode-demo-*/*.history")
        return any('"cause": "demo"' in history.read_text() for history in histories)

    wait_until(has_load, seconds=20, why="the demo has put load on its GPUs")
    (announced,) = folder.glob("esnode-demo-*/agent.json")
    return int(json.loads(announced.read_text())["pid"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_with_its_agent(tmp_path: Path, number: signal.Signals) -> None:
    demo = started_demo(tmp_path)
    agent = agent_under_load(tmp_path)

    demo.send_signal(number)
    demo.communicate(timeout=20)

    assert dies(agent)
    assert list(tmp_path.iterdir()) == []


def test_an_agent_that_is_killed_ends_it_in_one_line(tmp_path: Path) -> None:
    demo = started_demo(tmp_path)
    os.kill(agent_under_load(tmp_path), signal.SIGKILL)
    _, errors = demo.communicate(timeout=60)

    assert demo.returncode == 1
    assert len(errors.splitlines()) == 1
    assert errors.startswith("esnode: the demo ends early: no agent answers at http://127.0.0.1:")
    assert list(tmp_path.iterdir()) == []
