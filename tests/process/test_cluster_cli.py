"""`esnode cluster` and real agents: from nothing to a cluster, and what operators do with it."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.agents import AgentProcess, run_esnode, running_agent, wait_until

pytestmark = pytest.mark.process

FLAGS = (
    "--cluster-bind", "127.0.0.1:0", "--hardware", "simulated:h100x2",
    "--enable-ipmi", "false",
)  # fmt: skip


class Rack:
    """Agents on loopback, and the operator who runs them."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack

    def start(self, name: str) -> AgentProcess:
        return self._stack.enter_context(running_agent(self.folder, *FLAGS, name=name))

    def run(self, agent: AgentProcess | Path, *words: str, code: int = 0, typed: str = "") -> str:
        """One command of the operator on the machine of an agent; its standard output."""
        state_dir = agent if isinstance(agent, Path) else agent.state_dir
        if typed:
            token = self.folder / "token"
            token.write_text(typed)
            words = (*words, "--token-file", str(token))
        done = run_esnode(self.folder, "cluster", *words, "--state-dir", str(state_dir))
        assert done.returncode == code, (words, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done.stdout

    def states(self, agent: AgentProcess) -> dict[str, str]:
        """The nodes as this agent sees them."""
        answer = agent.get("/v1/cluster")
        if answer.status != 200:
            return {}
        nodes: Any = answer.json()["nodes"]
        return {node["name"]: node["state"] for node in nodes}

    def wait_for(self, agent: AgentProcess, **expected: str) -> None:
        wanted = {name.replace("_", "-"): state for name, state in expected.items()}
        wait_until(
            lambda: self.states(agent) == wanted,
            seconds=20,
            why=f"{wanted} seen from {agent.state_dir.name}, not {self.states(agent)}",
        )


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[Rack]:
    with ExitStack() as stack:
        yield Rack(tmp_path, stack)


def test_three_machines_become_a_cluster_that_any_of_them_shows(rack: Rack) -> None:
    first, second = rack.start("a"), rack.start("b")

    rack.run(first, "init", "lab", "--name", "gpu-01")
    token = rack.run(first, "invite", "--rack", "r01")
    rack.run(second, "join", "--name", "gpu-02", typed=token)
    rack.run(rack.folder / "c-state", "join", "--name", "gpu-03", typed=token)
    third = rack.start("c")  # it was told to join while it was stopped

    for agent in (first, second, third):
        rack.wait_for(agent, gpu_01="alive", gpu_02="alive", gpu_03="alive")
    document = json.loads(rack.run(third, "status", "--json"))
    assert document["schema"] == "esnode.cluster_status/1"
    assert document["asked"]["name"] == "gpu-03"
    assert rack.run(second, "members").count(" alive ") == 3


def test_a_node_that_dies_is_told_followed_and_removed(rack: Rack) -> None:
    first, second = rack.start("a"), rack.start("b")
    rack.run(first, "init", "lab", "--name", "gpu-01")
    rack.run(second, "join", "--name", "gpu-02", typed=rack.run(first, "invite", "--rack", "r01"))
    rack.wait_for(first, gpu_01="alive", gpu_02="alive")

    os.kill(second.pid, signal.SIGKILL)
    rack.wait_for(first, gpu_01="alive", gpu_02="failed")
    shown = rack.run(first, "status", code=1)
    rack.run(first, "remove", "gpu-02", "--yes")
    rack.wait_for(first, gpu_01="alive", gpu_02="removed")

    assert "gpu-02: does not answer" in shown
    events = rack.run(first, "events")
    assert "gpu-02  suspect -> failed" in events
    assert "failed -> removed" in events
    assert "was removed" in rack.run(first, "log")


def test_a_node_leaves_in_good_order_and_comes_back(rack: Rack) -> None:
    first, second = rack.start("a"), rack.start("b")
    rack.run(first, "init", "lab", "--name", "gpu-01")
    rack.run(second, "join", "--name", "gpu-02", typed=rack.run(first, "invite", "--rack", "r01"))

    left = json.loads(rack.run(second, "leave", "--yes", "--json"))
    rack.wait_for(first, gpu_01="alive", gpu_02="left")
    rack.run(second, "status", code=2)
    rack.run(second, "join")

    assert left["informed"] == 1
    rack.wait_for(first, gpu_01="alive", gpu_02="alive")


def test_a_machine_that_needs_approval_comes_when_an_operator_says_so(rack: Rack) -> None:
    first, second = rack.start("a"), rack.start("b")
    rack.run(first, "init", "lab", "--name", "gpu-01")
    token = rack.run(first, "invite", "--rack", "r02", "--approve")

    joined = json.loads(rack.run(second, "join", "--name", "gpu-02", "--json", typed=token))
    before = rack.states(first)
    order = joined["detail"].rpartition("`esnode cluster ")[2].rstrip("`").split()
    rack.run(first, *order)

    assert not joined["admitted"]
    assert before == {"gpu-01": "alive"}
    rack.wait_for(first, gpu_01="alive", gpu_02="alive")


def test_a_reimaged_machine_comes_under_its_old_name_and_the_old_key_is_forgotten(
    rack: Rack,
) -> None:
    first, second = rack.start("a"), rack.start("b")
    rack.run(first, "init", "lab", "--name", "gpu-01")
    token = rack.run(first, "invite", "--rack", "r01")
    rack.run(second, "join", "--name", "gpu-02", typed=token)
    os.kill(second.pid, signal.SIGKILL)
    rack.wait_for(first, gpu_01="alive", gpu_02="failed")
    reimaged = rack.start("c")
    rack.run(reimaged, "join", "--name", "gpu-02", typed=token)

    refused = rack.run(first, "revoke", "gpu-02", "--yes", code=2)
    rack.run(first, "forget", "gpu-02", "--yes")

    assert refused == ""
    assert "the name gpu-02 no longer means" in rack.run(reimaged, "log")
