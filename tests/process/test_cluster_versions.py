"""Agents of two versions, of which one says more in everything, are one cluster."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cluster.gossip.messages import Address
from tests.agents import AgentProcess, clean_environment, running_agent, wait_until
from tests.hosts import Cluster
from tests.later_version import write_later_version

pytestmark = pytest.mark.process
FLAGS = (
    "--cluster-bind", "127.0.0.1:0", "--hardware", "simulated:h100x1", "--enable-ipmi", "false",
)  # fmt: skip


class Mixed:
    """Agents of both versions, the first of one of them."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._cluster = Cluster(folder)
        (folder / "later").mkdir()
        self._later = {"PYTHONPATH": write_later_version(folder / "later")}
        where = [sys.executable, "-c", "import cluster; print(cluster.__file__)"]
        environment = clean_environment(folder, **self._later)
        found = subprocess.check_output(where, cwd=folder, env=environment, text=True)
        assert found.startswith(str(folder / "later")), "the changed copy is not what would run"
        self.agents: dict[str, AgentProcess] = {}

    def start(self, name: str, *, rack: str, is_later: bool) -> None:
        seeds = tuple(Address(self.node(agent, "self")["address"]) for agent in self.agents)[:1]
        self._cluster.enrol(name, rack=rack, seeds=seeds, may_found=not seeds)
        self.agents[name] = self._stack.enter_context(
            running_agent(
                self._folder,
                *FLAGS,
                state_dir=self._folder / name,
                name=name,
                **(self._later if is_later else {}),
            )
        )
        wait_until(lambda: self.document(name), seconds=20, why=f"{name} takes part")

    def document(self, asked: str, query: str = "") -> dict[str, Any]:
        answer = self.agents[asked].get(f"/v1/cluster{query}")
        return answer.json() if answer.status == 200 else {}

    def node(self, asked: str, name: str) -> dict[str, Any]:
        nodes = self.document(asked)["nodes"]
        return next(one for one in nodes if one["name"] == (asked if name == "self" else name))

    def knows_all(self, asked: str) -> bool:
        """Whether it sees all of them, and what each of them draws."""
        nodes = self.document(asked).get("nodes", [])
        return len(nodes) == len(self.agents) and all(
            node["state"] == "alive" and node["power"]["draw_watts"]["value"] for node in nodes
        )


@pytest.fixture
def mixed(tmp_path: Path) -> Iterator[Mixed]:
    with ExitStack() as stack:
        yield Mixed(tmp_path, stack)


@pytest.mark.parametrize("is_founder_later", [False, True], ids=["old-first", "later-first"])
def test_agents_of_two_versions_see_each_other_and_what_each_draws(
    mixed: Mixed, is_founder_later: bool
) -> None:
    mixed.start("n1", rack="r01", is_later=is_founder_later)
    mixed.start("n2", rack="r01", is_later=not is_founder_later)
    mixed.start("n3", rack="r02", is_later=is_founder_later)
    mixed.start("n4", rack="r02", is_later=not is_founder_later)

    for name in mixed.agents:
        wait_until(partial(mixed.knows_all, name), seconds=20, why=f"{name} knows all")

    for name, agent in mixed.agents.items():
        document = mixed.document(name, "?view=all")
        view = document["cluster"]["view"]
        rejected = agent.samples("esnode_cluster_rejected_total")
        assert (view["agreeing"], view["asked"]) == (4, 4)
        assert {rack["source"] for rack in document["racks"]} == {"gossip", "detail"}
        assert not {label for label in rejected if "malformed" in label or "contradicts" in label}
        assert "Traceback" not in agent.log_path.read_text()
