"""Operators' orders: what is signed is what members accept, and nothing is done by mistake."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.credentials import load_operator
from cluster.enrolment import AuthorityKeys
from cluster.identity.operator_records import (
    CertificateRevoked,
    NameForgotten,
    NodeApproved,
    NodeRemoved,
    NodeRevoked,
    OperatorAdded,
    OperatorRecord,
    log_root,
    sign_record,
)
from cluster.ids import NodeId, OperatorId
from tests.cluster_agents import PretendedAgent, of_cluster, pretended_agent
from tests.cluster_documents import node, status_document
from tests.cluster_machines import Machine, new_machine

OLD, NEW = "aaaaaa00" + "1" * 24, "aaaaaa99" + "2" * 24
GONE = node("gpu-09", state="failed", id="bbbbbb00" + "3" * 24)
NODES = (
    node("gpu-01", is_asked=True, id="cccccc00" + "4" * 24),
    node("gpu-05", state="failed", id=OLD),
    node("gpu-05", id=NEW),
    GONE,
)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = new_machine(tmp_path, monkeypatch)
    assert machine.run("init", "lab", "--keys-only").exit_code == 0
    return machine


def authority_of(machine: Machine) -> AuthorityKeys:
    keys = load_operator(machine.keys).authority_keys
    assert keys is not None
    return keys


@pytest.fixture
def agent(machine: Machine) -> Iterator[PretendedAgent]:
    """One of the machine's cluster, that takes records as a real one does."""
    keys = authority_of(machine)
    document = of_cluster(keys, status_document(*NODES))
    with pretended_agent(
        machine.state, answers={"/v1/cluster": (200, document)}, authority=keys.authority
    ) as agent:
        machine.agent_url = agent.url
        yield agent


ORDERS = [
    pytest.param(
        ("remove", "gpu-09"),
        NodeRemoved(
            node_id=NodeId.parse(GONE["id"]), serial=int(GONE["certificate"]["serial"], 16)
        ),
        id="remove",
    ),
    pytest.param(
        ("revoke", "bbbbbb", "--note", "stolen"),
        NodeRevoked(node_id=NodeId.parse(GONE["id"]), note="stolen"),
        id="revoke-node",
    ),
    pytest.param(
        ("revoke", "--certificate", "0x1A:C2"), CertificateRevoked(serial=0x1AC2), id="revoke-one"
    ),
    pytest.param(
        ("forget", "gpu-05"), NameForgotten(name="gpu-05", node_id=NodeId.parse(OLD)), id="forget"
    ),
    pytest.param(
        ("forget", "gpu-05", "--id", NEW[:8]),
        NameForgotten(name="gpu-05", node_id=NodeId.parse(NEW)),
        id="forget-by-id",
    ),
    pytest.param(
        ("approve", "d" * 32, "--invite", "ff"),
        NodeApproved(node_id=NodeId.parse("d" * 32), invite_serial=0xFF),
        id="approve",
    ),
]


@pytest.mark.parametrize(("words", "statement"), ORDERS)
def test_an_order_stands_in_the_log_of_every_member(
    machine: Machine, agent: PretendedAgent, words: tuple[str, ...], statement: object
) -> None:
    result = machine.run(*words, *(() if words[0] == "approve" else ("--yes",)))

    assert result.exit_code == 0, result.output
    log = agent.log()
    assert [type(one.record.statement) for one in log.records] == [OperatorAdded, type(statement)]
    assert log.records[-1].record.statement == statement
    assert (log.refused, log.waiting, log.forks) == ((), (), ())


def test_an_operator_is_introduced_once_and_each_order_follows_the_one_before(
    machine: Machine, agent: PretendedAgent
) -> None:
    machine.run("revoke", "gpu-09", "--yes")
    machine.run("forget", "gpu-05", "--yes")

    records = agent.log().records
    assert [one.record.sequence for one in records] == [1, 2, 3]
    assert records[2].record.previous == records[1].hash
    own = load_operator(machine.keys).operator_keys
    assert own is not None
    assert {one.record.signed_by for one in records} == {own.operator.operator_id}


def test_nothing_is_said_where_nobody_can_be_asked(machine: Machine, agent: PretendedAgent) -> None:
    result = machine.run("revoke", "gpu-09")

    assert result.exit_code == 2
    assert "Never believe the key of gpu-09 (bbbbbb00, rack r01) again?" in result.output
    assert "say --yes" in result.output
    assert agent.orders == []


def test_a_node_that_works_is_not_removed_without_a_word(
    machine: Machine, agent: PretendedAgent
) -> None:
    result = machine.run("remove", "gpu-01")

    assert "gpu-01 (cccccc00, rack r01) is alive, and it works" in result.output


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        pytest.param(
            ("revoke", "gpu-05"), (OLD, NEW, "'gpu-05' is ambiguous, say the id"), id="name"
        ),
        pytest.param(("revoke", "aaaaaa"), (OLD, NEW, "ambiguous"), id="prefix"),
        pytest.param(("revoke", "bbbbb"), ("of an id, at least 6 digits",), id="short"),
        pytest.param(("remove", "gpu-77"), ("no node 'gpu-77'; `esnode cluster members`",), id="?"),
        pytest.param(("forget", "gpu-77"), ("no node is called gpu-77",), id="forget-nobody"),
        pytest.param(("revoke", "gpu-09", "--certificate", "1"), ("say whom",), id="both"),
        pytest.param(("revoke",), ("say whom",), id="neither"),
        pytest.param(("revoke", "--certificate", "xyz"), ("'xyz' is no serial",), id="serial"),
        pytest.param(("revoke", "gpu-09", "--note", "a\nb"), ("--note is one line",), id="note"),
        pytest.param(("approve", "gpu-09"), ("by which invite did gpu-09 come?",), id="approve"),
        pytest.param(("approve", "gpu-77"), ("--invite SERIAL",), id="approve-one-that-waits"),
    ],
)
def test_what_is_not_clear_is_asked_back_in_one_line(
    machine: Machine, agent: PretendedAgent, words: tuple[str, ...], lines: tuple[str, ...]
) -> None:
    result = machine.run(*words, *(() if words[0] == "approve" else ("--yes",)))

    assert result.exit_code == 2, result.output
    assert len(result.output.splitlines()) == 1
    for line in lines:
        assert line in result.output
    assert agent.orders == []


def test_an_agent_that_knows_the_invite_of_a_node_spares_naming_it(
    machine: Machine, agent: PretendedAgent
) -> None:
    waiting = node("gpu-20", certificate={"serial": "1", "invite": "beef"})
    document = of_cluster(authority_of(machine), status_document(waiting))
    agent.answers["/v1/cluster"] = (200, document)

    machine.run("approve", "gpu-20")

    statement = agent.log().records[-1].record.statement
    assert statement == NodeApproved(node_id=NodeId.parse(waiting["id"]), invite_serial=0xBEEF)


def test_an_agent_of_another_cluster_is_told_nothing(
    machine: Machine, agent: PretendedAgent
) -> None:
    agent.answers["/v1/cluster"] = (200, status_document(*NODES))

    result = machine.run("revoke", "gpu-09", "--yes")

    assert result.exit_code == 2
    assert "the agent is in cluster prod-a (7c1e0000)" in result.output
    assert agent.orders == []


def test_without_an_agent_an_order_goes_nowhere(machine: Machine) -> None:
    result = machine.run("revoke", "gpu-09", "--yes")

    assert result.exit_code == 3
    assert f"no agent answers at {machine.state}/agent.sock" in result.output


def test_a_caller_whom_the_agent_does_not_allow_gets_exit_code_4(
    machine: Machine, agent: PretendedAgent
) -> None:
    agent.authority = None
    agent.answers["/v1/cluster/operator-log"] = (
        200,
        {"schema": "esnode.operator_log/1", "records": [], "forks": [], "waiting": 0},
    )
    agent.answers["/v1/control/cluster/records"] = (
        403,
        {"error": "only root, the agent's user and the group esnode", "code": "not-allowed"},
    )

    result = machine.run("revoke", "gpu-09", "--yes")

    assert result.exit_code == 4
    assert result.output == "esnode: only root, the agent's user and the group esnode\n"


def test_an_operator_without_the_authoritys_key_gives_orders_but_revokes_no_operator(
    machine: Machine, agent: PretendedAgent, tmp_path: Path
) -> None:
    added = machine.run("operator", "add", "ada", "--to", str(tmp_path / "ada"))
    ada = ("--operator-dir", str(tmp_path / "ada"), "--yes")
    serial = f"{load_operator(machine.keys).operator_keys.operator.serial:x}"  # type: ignore[union-attr]  # it has one
    machine.run("revoke", "gpu-09", "--yes")

    removed = machine.run("remove", "gpu-09", *ada)
    revoked = machine.run("revoke", "--certificate", serial, *ada)

    assert added.exit_code == removed.exit_code == 0, removed.output
    assert revoked.exit_code == 2
    assert "the authority's key alone may do this" in revoked.output
    assert sorted(path.name for path in (tmp_path / "ada").iterdir()) == [
        "authority.crt",
        "operator.crt",
        "operator.key",
    ]


def test_a_removed_operators_orders_are_refused_before_they_are_sent(
    machine: Machine, agent: PretendedAgent, tmp_path: Path
) -> None:
    machine.run("operator", "add", "ada", "--to", str(tmp_path / "ada"))
    removed = machine.run("operator", "remove", "ada", "--yes")
    count = len(agent.orders)

    result = machine.run("revoke", "gpu-09", "--yes", "--operator-dir", str(tmp_path / "ada"))

    assert removed.exit_code == 0, removed.output
    assert result.exit_code == 2
    assert "members would refuse it: operator record" in result.output
    assert "is by a revoked operator" in result.output
    assert len(agent.orders) == count


def test_an_operator_made_while_no_agent_runs_is_introduced_later(
    machine: Machine, tmp_path: Path
) -> None:
    result = machine.run("operator", "add", "ada", "--to", str(tmp_path / "ada"))

    assert result.exit_code == 0, result.output
    assert "the first order introduces its keys" in result.output
    assert load_operator(tmp_path / "ada").authority_keys is None


@pytest.mark.parametrize(
    "name", [pytest.param("ada", id="in-the-log"), pytest.param("first", id="our-own")]
)
def test_two_operators_do_not_have_one_name(
    machine: Machine, agent: PretendedAgent, tmp_path: Path, name: str
) -> None:
    machine.run("operator", "add", "ada", "--to", str(tmp_path / "ada"))
    count = len(agent.orders)

    result = machine.run("operator", "add", name, "--to", str(tmp_path / "another"))

    assert result.exit_code == 2
    assert f"there is an operator {name} already" in result.output
    assert len(result.output.splitlines()) == 1
    assert not (tmp_path / "another").exists()
    assert len(agent.orders) == count


def test_the_name_of_a_removed_operator_is_free_again(
    machine: Machine, agent: PretendedAgent, tmp_path: Path
) -> None:
    machine.run("operator", "add", "ada", "--to", str(tmp_path / "ada"))
    machine.run("operator", "remove", "ada", "--yes")

    result = machine.run("operator", "add", "ada", "--to", str(tmp_path / "ada-again"))

    assert result.exit_code == 0, result.output


def test_the_operators_that_count_are_listed(
    machine: Machine, agent: PretendedAgent, tmp_path: Path
) -> None:
    machine.run("operator", "add", "ada", "--to", str(tmp_path / "ada"))
    machine.run("revoke", "gpu-09", "--yes")

    document = json.loads(machine.run("operator", "list", "--json").stdout)
    text = machine.run("operator", "list").stdout

    assert document["schema"] == "esnode.cluster_operators/1"
    assert [(one["name"], one["is_own"], one["records"]) for one in document["operators"]] == [
        ("ada", False, 0),
        ("first", True, 2),
    ]
    assert text.splitlines()[2].split()[0] == "first"
    assert text.splitlines()[2].endswith("you")


def test_the_log_is_shown_and_a_fork_is_told_and_is_exit_code_1(
    machine: Machine, agent: PretendedAgent
) -> None:
    machine.run("revoke", "gpu-09", "--yes")
    calm = machine.run("log")
    authority = authority_of(machine)
    cluster_id = authority.authority.cluster_id
    other = OperatorRecord(
        cluster_id=cluster_id,
        sequence=1,
        previous=log_root(cluster_id),
        statement=NodeRevoked(node_id=NodeId.parse(NEW)),
        signed_by=OperatorId(cluster_id),
        written_unix_seconds=agent.records[0].record.written_unix_seconds,
    )
    agent.records.append(sign_record(other, authority.signer))
    forked = machine.run("log")
    next_order = machine.run("forget", "gpu-05", "--yes")

    assert (calm.exit_code, calm.stdout) == (0, "record 1\nrecord 2\n")
    assert forked.exit_code == 1
    assert "! operator log forks at record 1" in forked.stderr
    assert next_order.exit_code == 0
    assert "note: operator log forks at record 1" in next_order.stderr


def test_records_that_cannot_be_read_end_in_one_line(
    machine: Machine, agent: PretendedAgent
) -> None:
    agent.authority = None
    agent.answers["/v1/cluster/operator-log"] = (
        200,
        {"schema": "esnode.operator_log/1", "records": [{"payload": "?", "signature": "?"}]},
    )

    result = machine.run("revoke", "gpu-09", "--yes")

    assert result.exit_code == 3
    assert "the agent's operator log cannot be read" in result.output
