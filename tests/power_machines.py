"""An operator's machine and the agent of a rack that has no budget yet, for `esnode power ...`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster.credentials import load_operator
from cluster.identity.operator_records import Other
from cluster.rack.ledger.charter import Charter, read_charters
from cluster.rack.ledger.decrees import decode_decree
from tests.cluster_agents import PretendedAgent, of_cluster, pretended_agent
from tests.cluster_documents import status_document
from tests.cluster_machines import Machine, new_machine
from tests.power_documents import RACK, cluster_nodes, founded, power_document

FILE = """
rack = "r01"
budget = "20 kW"
margin = 0

[[slots]]
slot = "u01"
node = "gpu-01"
floor = 1000
[[slots]]
slot = "u02"
node = "gpu-02"
floor = 1000
[[slots]]
slot = "u03"
node = "gpu-03"
floor = 1000
[[slots]]
slot = "u40"
static = true
watts = 500
[[slots]]
slot = "u41"
floor = 1000
"""
UNDER_BUDGET = ("--wait", "0s", "--yes")


def operators_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with an operator's keys, and the file of a rack beside."""
    machine = new_machine(tmp_path, monkeypatch)
    assert machine.run("init", "lab", "--keys-only").exit_code == 0
    (tmp_path / "r01.toml").write_text(FILE)
    return machine


@contextmanager
def rack_agent(machine: Machine) -> Iterator[PretendedAgent]:
    """gpu-01 of four nodes of r01, which have no budget yet."""
    keys = load_operator(machine.keys).authority_keys
    assert keys is not None
    cluster = of_cluster(keys, status_document(*cluster_nodes(4)))
    with pretended_agent(
        machine.state,
        answers={"/v1/cluster": (200, cluster), "/v1/power": (200, power_document())},
        authority=keys.authority,
    ) as agent:
        machine.agent_url = agent.url
        yield agent


def found(machine: Machine, agent: PretendedAgent) -> None:
    """The rack under its budget, with the agent that says so."""
    result = machine.power("genesis", "--file", "r01.toml", *UNDER_BUDGET)
    assert result.exit_code == 0, result.output
    agent.answers["/v1/power"] = (200, power_document(founded()))


def change_nodes(agent: PretendedAgent, **states: str) -> None:
    answer = agent.answers["/v1/cluster"]
    assert not callable(answer)
    agent.answers["/v1/cluster"] = (200, answer[1] | {"nodes": cluster_nodes(4, **states)})


def last_decree(agent: PretendedAgent) -> object:
    statement = agent.log().records[-1].record.statement
    assert isinstance(statement, Other)
    return decode_decree(statement.kind, statement.body)


def charter(agent: PretendedAgent) -> Charter:
    return read_charters(agent.log().records)[RACK]
