"""`esnode cluster status --watch`, as a process: on a terminal, and into a pipe."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from esnode.clock import monotonic_seconds
from esnode.state import StateFolder
from tests.agents import REPOSITORY, clean_environment
from tests.cluster_agents import NO_CLUSTER, PretendedAgent, pretended_agent
from tests.cluster_documents import node, status_document
from tests.cluster_machines import Machine, new_machine

HEALTHY = status_document(node("n01"), node("n02", rack="r02"))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return new_machine(tmp_path, monkeypatch)


@pytest.fixture
def agent(machine: Machine) -> Iterator[PretendedAgent]:
    with pretended_agent(machine.state, answers={"/v1/cluster": (200, HEALTHY)}) as agent:
        machine.agent_url = agent.url
        yield agent


def started(machine: Machine, *words: str, **options: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "esnode", "cluster", *words],
        cwd=REPOSITORY,
        env=clean_environment(machine.home, ESNODE_AGENT=machine.agent_url, PYTHONUNBUFFERED="1"),
        text=True,
        **options,  # type: ignore[call-overload]  # pipes or a terminal
    )


def test_watching_prints_one_document_a_line_and_ends_well_with_ctrl_c(
    machine: Machine, agent: PretendedAgent
) -> None:
    watching = started(
        machine, "status", "--watch", "0.2", "--json", stdout=subprocess.PIPE, stderr=None
    )
    assert watching.stdout is not None
    lines = [watching.stdout.readline() for _ in range(3)]

    watching.send_signal(signal.SIGINT)
    watching.communicate(timeout=10)

    assert [json.loads(line)["seq"] for line in lines] == [1, 2, 3]
    assert watching.returncode == 0


def test_watching_goes_on_while_the_agent_restarts(machine: Machine, tmp_path: Path) -> None:
    with pretended_agent(tmp_path / "a", answers={"/v1/cluster": (200, HEALTHY)}) as agent:
        machine.agent_url = agent.url
        watching = started(
            machine, "status", "--watch", "0.2", stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert watching.stdout is not None
        assert watching.stderr is not None
        first = watching.stdout.readline()
    silence = watching.stderr.readline()
    watching.send_signal(signal.SIGINT)
    watching.communicate(timeout=10)

    assert first.startswith("CLUSTER prod-a")
    assert silence.startswith(f"esnode: no agent answers at {machine.agent_url}")
    assert watching.returncode == 0


def test_an_agent_that_comes_back_on_another_port_is_found_by_its_folder(
    machine: Machine, tmp_path: Path
) -> None:
    folder = StateFolder(machine.state)
    words = ("status", "--watch", "0.2", "--json", "--state-dir", str(machine.state))
    machine.agent_url = ""
    with pretended_agent(tmp_path / "a", answers={"/v1/cluster": (200, HEALTHY)}) as agent:
        folder.announce([agent.url], "0.1.0")
        watching = started(machine, *words, stdout=subprocess.PIPE)
        assert watching.stdout is not None
        watching.stdout.readline()
    with pretended_agent(tmp_path / "b", answers={"/v1/cluster": (200, HEALTHY)}) as agent:
        folder.announce([agent.url], "0.1.0")
        schemas = [json.loads(watching.stdout.readline())["schema"] for _ in range(12)]
    watching.send_signal(signal.SIGINT)
    watching.communicate(timeout=10)
    folder.close()

    assert schemas[-1] == "esnode.cluster_status/1"


def test_watching_an_agent_without_a_cluster_ends_at_once(
    machine: Machine, agent: PretendedAgent
) -> None:
    agent.answers["/v1/cluster"] = NO_CLUSTER

    assert machine.run("status", "--watch").exit_code == 2


def test_on_a_terminal_the_screen_is_drawn_in_place_and_clipped_to_it(
    machine: Machine, agent: PretendedAgent
) -> None:
    agent.answers["/v1/cluster"] = (
        200,
        status_document(*(node(f"n{i:02}") for i in range(60)), state="degraded"),
    )
    ours, theirs = pty.openpty()
    watching = started(machine, "status", "--watch", "0.2", stdout=theirs, stderr=theirs)
    os.close(theirs)
    drawn = b""
    ends_at = monotonic_seconds() + 20
    while drawn.count(b"\x1b[H") < 2 and monotonic_seconds() < ends_at:
        if select.select([ours], [], [], 0.5)[0]:
            drawn += os.read(ours, 65536)
    watching.send_signal(signal.SIGINT)
    watching.wait(10)
    os.close(ours)

    screen = drawn.split(b"\x1b[H")[1].decode()
    assert watching.returncode == 0
    assert "(and " in screen
    assert "lines more)" in screen
    assert screen.count("\n") <= 24
    assert all(len(re.sub(r"\x1b\[[0-9;]*[mKJ]", "", line)) <= 81 for line in screen.split("\r\n"))
