"""Three machines and the commands of the README, from the first day to a stolen key."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.agents import AgentProcess, wait_until
from tests.process.test_cluster_cli import Rack

pytestmark = pytest.mark.process


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[Rack]:
    with ExitStack() as stack:
        yield Rack(tmp_path, stack)


def certificate(rack: Rack, agent: AgentProcess, name: str) -> dict[str, Any]:
    document = json.loads(rack.run(agent, "status", "--json"))
    (node,) = (one for one in document["nodes"] if one["name"] == name)
    return {"id": node["id"], **node["certificate"]}


def test_a_cluster_lives_through_all_that_its_operator_does(rack: Rack) -> None:
    first, second = rack.start("a"), rack.start("b")
    rack.run(first, "init", "lab", "--name", "gpu-01")
    token = rack.run(first, "invite", "--rack", "r01")
    rack.run(second, "join", "--name", "gpu-02", typed=token)
    rack.run(rack.folder / "c-state", "join", "--name", "gpu-03", typed=token)
    third = rack.start("c")
    agents = (first, second, third)
    for agent in agents:
        rack.wait_for(agent, gpu_01="alive", gpu_02="alive", gpu_03="alive")
        assert "healthy" in rack.run(agent, "status")

    rack.run(second, "leave", "--yes")
    rack.wait_for(first, gpu_01="alive", gpu_02="left", gpu_03="alive")
    rack.run(second, "join")
    rack.wait_for(third, gpu_01="alive", gpu_02="alive", gpu_03="alive")

    before = certificate(rack, first, "gpu-03")
    rack.run(third, "renew", typed=rack.run(first, "invite", "--rack", "r01", "--uses", "1"))
    wait_until(
        lambda: certificate(rack, first, "gpu-03")["serial"] != before["serial"],
        seconds=20,
        why="everybody has the new certificate",
    )
    assert certificate(rack, first, "gpu-03")["id"] == before["id"]

    stolen = certificate(rack, first, "gpu-02")["id"]
    rack.run(first, "revoke", "gpu-02", "--yes")
    rack.wait_for(third, gpu_01="alive", gpu_02="removed", gpu_03="alive")
    wait_until(lambda: second.get("/v1/cluster").status == 409, seconds=20, why="it knows")
    assert second.get("/v1/cluster").json()["code"] == "withdrawn"
    assert rack.run(second, "status", code=2) == ""

    rack.run(second, "join", "--name", "gpu-02", typed=rack.run(first, "invite", "--rack", "r01"))
    wait_until(
        lambda: rack.states(second) == {"gpu-01": "alive", "gpu-02": "alive", "gpu-03": "alive"},
        seconds=20,
        why="it has come back under a new key",
    )
    assert json.loads(rack.run(second, "status", "--json"))["asked"]["id"] != stolen
