"""`esnode demo --nodes`: real agents meet, one is killed and comes back, and nothing remains."""

import json
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
        [sys.executable, "-m", "esnode", "demo", "--hardware", "h100x1", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        env=clean_environment(folder, TMPDIR=str(folder)),
    )


def agents_of(folder: Path) -> list[int]:
    return [
        int(json.loads(announced.read_text())["pid"])
        for announced in folder.glob("esnode-demo-*/*/agent.json")
    ]


def test_six_agents_in_two_racks_settle_and_leave_nothing(tmp_path: Path) -> None:
    demo = started_demo(tmp_path, "--nodes", "6", "--racks", "2", "--once", "--json")
    output, _ = demo.communicate(timeout=120)

    document = json.loads(output)
    assert document["schema"] == "esnode.cluster_status/1"
    assert document["cluster"]["nodes"]["alive"] == 6
    assert [rack["nodes"]["alive"] for rack in document["racks"]] == [3, 3]
    assert all(node["power"]["draw_watts"]["value"] > 0 for node in document["nodes"])
    assert document["cluster"]["state"] == "healthy"
    assert demo.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_more_racks_than_nodes_and_other_wishes_end_in_a_line_or_work(tmp_path: Path) -> None:
    demo = started_demo(tmp_path, "--nodes", "0")
    _, errors = demo.communicate(timeout=30)

    assert demo.returncode == 2
    assert "--nodes" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_of_its_agents(tmp_path: Path, number: signal.Signals) -> None:
    demo = started_demo(tmp_path, "--nodes", "3")
    wait_until(lambda: len(agents_of(tmp_path)) == 3, seconds=60, why="three agents run")
    agents = agents_of(tmp_path)

    demo.send_signal(number)
    demo.communicate(timeout=30)

    assert all(dies(agent) for agent in agents)
    assert list(tmp_path.iterdir()) == []
