"""`esnode power join`, `retire`, `status`, `explain`, `gate`, and agents that cannot answer."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.credentials import load_operator
from cluster.rack.ledger.decrees import BudgetSet, Joined, Retired
from cluster.rack.units import FIRST_EPOCH
from esnode.cli.cluster_operator import Speaker
from esnode.cli.power_speaker import look_around, sign
from esnode.client import socket_door
from tests.cluster_agents import NO_CLUSTER, PretendedAgent
from tests.cluster_documents import node, rack, status_document
from tests.cluster_machines import Machine
from tests.power_documents import (
    RACK,
    currency_document,
    founded,
    node_id,
    power_document,
)
from tests.power_machines import (
    UNDER_BUDGET,
    change_nodes,
    charter,
    found,
    last_decree,
    operators_machine,
    rack_agent,
)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return operators_machine(tmp_path, monkeypatch)


@pytest.fixture
def agent(machine: Machine) -> Iterator[PretendedAgent]:
    with rack_agent(machine) as agent:
        yield agent


# -- join and retire ------------------------------------------------------------------------------


def test_a_node_joins_a_slot(machine: Machine, agent: PretendedAgent) -> None:
    found(machine, agent)

    result = machine.power("join", "gpu-04", "--slot", "u41", *UNDER_BUDGET)

    assert result.exit_code == 0, result.output
    assert last_decree(agent) == Joined(
        currency=RACK, node_id=node_id(4), slot="u41", epoch=FIRST_EPOCH
    )


def test_a_machine_that_is_off_is_retired_and_replaced(
    machine: Machine, agent: PretendedAgent
) -> None:
    found(machine, agent)
    change_nodes(agent, gpu_03="failed")

    result = machine.power(
        "retire", "gpu-03", "--powered-off", "--evidence", "outlet 3 is off", "--replace-with",
        "gpu-04", *UNDER_BUDGET,
    )  # fmt: skip

    assert result.exit_code == 0, result.output
    assert "comes     gpu-04 into slot u03" in result.stderr
    decree = last_decree(agent)
    assert isinstance(decree, Retired)
    assert (decree.out, decree.added) == ((node_id(3),), ((node_id(4), "u03"),))


RETIREMENTS = [
    pytest.param(("gpu-03",), 2, "say --powered-off; silence proves nothing", id="no-word"),
    pytest.param(("gpu-02", "--powered-off"), 1, "gpu-02 is alive, heard", id="alive"),
    pytest.param(("gpu-02", "--powered-off", "--insist"), 1, "is alive", id="alive-and-insisting"),
    pytest.param(("gpu-09", "--powered-off"), 2, "unknown node 'gpu-09'", id="unknown"),
    pytest.param(("gpu-04", "--powered-off"), 2, "is no member of rack:r01", id="no-member"),
    pytest.param(
        ("gpu-03", "--powered-off", "--slot", "u03"), 2, "of --replace-with stands", id="slot-alone"
    ),
    pytest.param(
        ("gpu-03", "--powered-off", "--replace-with", "gpu-02"), 1, "is a member", id="a-member"
    ),
]


@pytest.mark.parametrize(("words", "code", "says"), RETIREMENTS)
def test_a_retirement_that_would_break_the_promise_is_refused(
    machine: Machine, agent: PretendedAgent, words: tuple[str, ...], code: int, says: str
) -> None:
    found(machine, agent)
    change_nodes(agent, gpu_03="failed", **({} if "gpu-04" not in words else {"gpu_04": "failed"}))

    result = machine.power("retire", *words, "--yes")

    assert result.exit_code == code, result.output
    assert says in result.stderr
    assert len(agent.log().records) == 2


def test_an_absent_signer_is_named_and_an_operator_may_insist(
    machine: Machine, agent: PretendedAgent
) -> None:
    found(machine, agent)
    change_nodes(agent, gpu_02="failed", gpu_03="failed")

    refused = machine.power("retire", "gpu-03", "--powered-off", "--yes")
    insisted = machine.power("retire", "gpu-03", "--powered-off", "--insist", *UNDER_BUDGET)

    assert refused.exit_code == 1
    assert "not heard within 60 s: gpu-02 (0 s ago)" in refused.stderr
    assert insisted.exit_code == 0, insisted.output


# -- keys and agents ------------------------------------------------------------------------------


def test_a_key_of_another_cluster_signs_nothing(
    machine: Machine, agent: PretendedAgent, tmp_path: Path
) -> None:
    found(machine, agent)
    other = tmp_path / "other"
    assert (
        machine.run("init", "elsewhere", "--keys-only", "--operator-dir", str(other)).exit_code == 0
    )

    result = machine.power("budget", "set", "r01", "9kW", "--yes", "--operator-dir", str(other))

    assert result.exit_code == 2
    assert "holds the keys of elsewhere" in result.stderr


def test_without_an_operators_key_nothing_is_signed(
    machine: Machine, agent: PretendedAgent, tmp_path: Path
) -> None:
    result = machine.power("budget", "set", "r01", "9kW", "--yes", XDG_CONFIG_HOME=str(tmp_path))

    assert result.exit_code == 2
    assert "no keys of an operator in" in result.stderr


@pytest.mark.parametrize(
    ("answer", "code", "says"),
    [
        pytest.param((404, {"error": "no such route"}), 3, "knows no rack power", id="older"),
        pytest.param(NO_CLUSTER, 2, "this agent is in no cluster", id="no-cluster"),
        pytest.param((200, {"schema": "esnode.power/1"}), 3, "cannot be read", id="another"),
    ],
)
def test_an_agent_that_cannot_answer_is_told_in_a_line(
    machine: Machine, agent: PretendedAgent, answer: Any, code: int, says: str
) -> None:
    agent.answers["/v1/power"] = answer

    for words in (("status",), ("explain",), ("budget", "set", "r01", "9kW", "--yes")):
        result = machine.power(*words)
        assert result.exit_code == code, result.output
        assert says in result.stderr


def test_without_an_agent_nothing_is_known(machine: Machine) -> None:
    assert machine.power("status").exit_code == 3
    assert machine.power("budget", "set", "r01", "9kW", "--yes").exit_code == 3


def test_an_order_is_not_signed_after_records_that_nobody_looked_at(
    machine: Machine, agent: PretendedAgent, capsys: pytest.CaptureFixture[str]
) -> None:
    found(machine, agent)
    speaks = Speaker(
        door=socket_door(agent.socket_path), path=machine.keys, folder=load_operator(machine.keys)
    )
    looked = look_around(speaks)
    machine.run("revoke", "gpu-04", "--yes")

    with pytest.raises(SystemExit) as ended:
        sign(speaks, looked, BudgetSet(currency=RACK, budget_watts=9000))

    assert ended.value.code == 1
    assert "an operator has said something meanwhile" in capsys.readouterr().err
    assert charter(agent).budget_watts == 20_000


# -- status, explain, gate ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "code"),
    [
        pytest.param({}, 0, id="protected"),
        pytest.param({"state": "parked"}, 1, id="parked"),
        pytest.param(
            {"cap": {"floor_watts": 1000, "demand_watts": 1000}}, 0, id="idle at its floor"
        ),
        pytest.param({"alarms": ["the disk refuses"]}, 1, id="alarm"),
        pytest.param(
            {"currencies": [currency_document(founded(), grade="C", missing_slots=["u02"])]}, 1,
            id="unprotected",
        ),
    ],
)  # fmt: skip
def test_the_exit_code_says_whether_the_rack_is_protected(
    machine: Machine, agent: PretendedAgent, more: dict[str, Any], code: int
) -> None:
    agent.answers["/v1/power"] = (200, power_document(founded(), **more))

    assert machine.power("status").exit_code == code
    assert machine.power("status", "--json").exit_code == code


@pytest.fixture
def other(agent: PretendedAgent) -> PretendedAgent:
    """An agent of r01 that knows of a rack r02."""
    nodes = (node("gpu-01", is_asked=True), node("gpu-09", rack="r02"))
    document = status_document(*nodes, racks=[rack("r01", "alive"), rack("r02", "alive")])
    document["asked"] = {"id": "a" * 32, "name": "gpu-01", "rack": "r01"}
    agent.answers["/v1/cluster"] = (200, document)
    return agent


def rack_power(**more: Any) -> dict[str, Any]:
    described = {
        "schema": "esnode.power_rack/1",
        "rack": "r02",
        "is_answered": True,
        "is_governed": True,
        "currencies": [],
    }
    return described | more


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        pytest.param((404, {"error": "no such route"}), "ask a node of it", id="earlier-version"),
        pytest.param((200, rack_power(is_answered=False)), "no node of it answers", id="silent"),
    ],
)
def test_of_a_rack_that_tells_nothing_the_totals_are_shown(
    machine: Machine, other: PretendedAgent, answer: tuple[int, dict[str, Any]], says: str
) -> None:
    other.answers["/v1/racks/r02/power"] = answer

    result = machine.power("status", "--rack", "r02")

    assert result.exit_code == 0
    assert f"RACK r02, as rack r01 knows it: totals only; {says}" in result.stdout
    assert " budget    14.0 kW" in result.stdout


def test_another_rack_is_shown_by_its_slots(machine: Machine, other: PretendedAgent) -> None:
    other.answers["/v1/racks/r02/power"] = (
        200,
        rack_power(currencies=[currency_document(founded(), grade="C", missing_slots=["u02"])]),
    )

    result = machine.power("status", "--rack", "r02")
    document = json.loads(machine.power("status", "--rack", "r02", "--json").stdout)

    assert result.exit_code == 1
    assert "RACK r02, as its nodes told rack r01" in result.stdout
    assert " missing   u02" in result.stdout
    assert "SLOT" in result.stdout
    assert document["rack"]["power"]["currencies"][0]["missing_slots"] == ["u02"]


def test_a_rack_without_a_budget_says_so_and_an_unknown_one_is_refused(
    machine: Machine, other: PretendedAgent
) -> None:
    other.answers["/v1/racks/r02/power"] = (200, rack_power(is_governed=False))

    shown = machine.power("status", "--rack", "r02")
    unknown = machine.power("status", "--rack", "r09")

    assert "rack r02 has no power budget" in shown.stdout
    assert (unknown.exit_code, "known are r01, r02" in unknown.stderr) == (2, True)


def test_explain_says_it_in_sentences_and_as_json(machine: Machine, agent: PretendedAgent) -> None:
    agent.answers["/v1/power"] = (200, power_document(founded()))

    text = machine.power("explain", "gpu-01").stdout
    document = json.loads(machine.power("explain", "--json").stdout)

    assert "gpu-01 may draw 6,166 W by rack:r01: 1,000 W are the floor of slot u01" in text
    assert document["schema"] == "esnode.power_explanation/1"
    assert machine.power("explain", "gpu-77").exit_code == 2


GATES = [
    pytest.param(power_document(founded()), 0, "open: enforcing", id="open"),
    pytest.param(power_document(), 0, "open: ungoverned", id="no-budget"),
    pytest.param(
        power_document(founded(), gate={"is_open": False, "reason": "the cap is being set"}), 1,
        "the cap is being set", id="closed",
    ),
    pytest.param(
        power_document(founded(), cap={"is_settled": False}), 1, "has not settled", id="unsettled"
    ),
    pytest.param({"schema": "esnode.power/1"}, 1, "of another version", id="another"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "code", "says"), GATES)
def test_the_gate_ends_with_0_only_when_it_is_open_beyond_doubt(
    machine: Machine, agent: PretendedAgent, document: dict[str, Any], code: int, says: str
) -> None:
    agent.answers["/v1/power"] = (200, document)

    result = machine.power("gate", "--timeout", "300ms")

    assert result.exit_code == code, result.output
    assert says in result.output


def test_the_gate_waits_until_it_opens(machine: Machine, agent: PretendedAgent) -> None:
    closed = power_document(founded(), gate={"is_open": False, "reason": "settling"})
    answers = [closed, closed, power_document(founded())]
    agent.answers["/v1/power"] = lambda: (200, answers.pop(0) if len(answers) > 1 else answers[0])

    assert machine.power("gate", "--timeout", "10s").exit_code == 0


def test_without_an_agent_the_gate_is_closed(machine: Machine) -> None:
    result = machine.power("gate", "--timeout", "100ms", "--json")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["is_open"] is False
    assert "no agent answers" in result.stderr
