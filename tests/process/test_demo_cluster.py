"""`esnode demo --nodes`: real agents meet, share a budget, are killed, and nothing remains."""

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
    budgets = [rack["power"]["budget_watts"]["value"] for rack in document["racks"]]
    assert budgets[0] == budgets[1] > 2000
    assert demo.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_once_shows_a_rack_under_a_budget_and_what_its_machines_files_say(tmp_path: Path) -> None:
    demo = started_demo(tmp_path, "--nodes", "3", "--once", "--budget", "2.6kW")
    output, errors = demo.communicate(timeout=120)

    assert demo.returncode == 0, errors
    assert "RACK:R01  grade A" in output
    assert " budget    2.60 kW" in output
    assert "of 2,600 W" in output
    assert ", 0 over" in output
    assert "; 0 of " in errors.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_a_budget_holds_under_chaos_and_the_last_word_is_the_files(tmp_path: Path) -> None:
    demo = started_demo(tmp_path, "--nodes", "4", "--chaos", "--seconds", "30")
    output, errors = demo.communicate(timeout=150)

    assert demo.returncode == 0, errors
    *_, faults, verdict = errors.splitlines()
    assert int(faults.split()[0]) >= 1
    assert verdict.startswith("rack r01: at most ")
    assert verdict.endswith(" instants were over")
    assert "; 0 of " in verdict
    assert "Traceback" not in output + errors
    assert list(tmp_path.iterdir()) == []


def test_a_budget_for_one_agent_is_refused_in_a_line(tmp_path: Path) -> None:
    demo = started_demo(tmp_path, "--once", "--budget", "9kW")
    _, errors = demo.communicate(timeout=30)

    assert demo.returncode == 2
    assert errors == "esnode: --budget is of a rack of several agents: give --nodes as well\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("wish", "code", "words"),
    [
        pytest.param(
            ("--budget", "much"), 2, "--budget ", id="a budget that is no number of watts"
        ),
        pytest.param(("--budget", "9kW", "--no-budget"), 2, "choose one", id="a budget and none"),
        pytest.param(
            ("--budget", "500W"),
            1,
            "floors and static loads add up to",
            id="a budget below what is always drawn",
        ),
    ],
)
def test_a_budget_that_makes_no_sense_ends_it_in_a_line(
    tmp_path: Path, wish: tuple[str, ...], code: int, words: str
) -> None:
    demo = started_demo(tmp_path, "--nodes", "2", "--once", *wish)
    output, errors = demo.communicate(timeout=90)

    assert demo.returncode == code
    assert words in errors.splitlines()[-1]
    assert "Traceback" not in output + errors
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
