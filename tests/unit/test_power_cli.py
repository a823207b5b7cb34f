"""`esnode power genesis` and `budget set`: what is shown, signed and refused."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.identity.operator_records import OperatorAdded, Other
from cluster.rack.ledger.decrees import BudgetSet, Founded
from tests.cluster_agents import PretendedAgent
from tests.cluster_machines import Machine
from tests.power_documents import (
    RACK,
    currency_document,
    founded,
    power_document,
)
from tests.power_machines import (
    FILE,
    UNDER_BUDGET,
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


# -- genesis --------------------------------------------------------------------------------------


def test_a_genesis_is_shown_and_then_stands_in_the_log(
    machine: Machine, agent: PretendedAgent
) -> None:
    result = machine.power("genesis", "--file", "r01.toml", *UNDER_BUDGET)

    assert result.exit_code == 0, result.output
    assert "GENESIS of rack:r01" in result.stderr
    assert "u01   gpu-01             2,000  1,000  33.3 %      6,166" in result.stderr
    assert "u40   (static load)          -    500       -          -" in result.stderr
    assert "budget  20,000 W" in result.stderr
    assert "shared  15,500 W  held by nodes, and traded" in result.stderr
    assert "gpu-04: of this rack and in no slot" in result.stderr
    records = [type(one.record.statement) for one in agent.log().records]
    assert records == [OperatorAdded, Other]
    assert charter(agent).founded == founded()


def test_a_dry_run_signs_nothing(machine: Machine, agent: PretendedAgent) -> None:
    result = machine.power("genesis", "--file", "r01.toml", "--dry-run")

    assert (result.exit_code, agent.orders) == (0, [])
    assert "FIRST CAP" in result.stdout


def test_nothing_is_signed_where_nobody_can_be_asked(
    machine: Machine, agent: PretendedAgent
) -> None:
    result = machine.power("genesis", "--file", "r01.toml")

    assert (result.exit_code, agent.orders) == (2, [])
    assert "Sign the genesis of rack:r01? Nobody is there to ask: say --yes" in result.stderr


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("r.json", json.dumps({"rack": "r01", "budget": 9000, "slots": [
            {"slot": "a", "node": "gpu-01", "floor": 900}]}), id="json"),
        pytest.param("r.yaml", "rack: r01\nbudget: 9 kW\nslots:\n- {slot: a, node: gpu-01, "
                     "floor: 900}\n", id="yaml"),
    ],
)  # fmt: skip
def test_files_of_other_kinds_say_the_same(
    machine: Machine, agent: PretendedAgent, name: str, text: str
) -> None:
    if name.endswith("yaml"):
        pytest.importorskip("yaml", reason="YAML files need its library")
    Path(name).write_text(text)

    assert machine.power("genesis", "--file", name, *UNDER_BUDGET).exit_code == 0
    decree = last_decree(agent)
    assert isinstance(decree, Founded)
    assert (decree.budget_watts, decree.margin_ppm) == (9000, 30_000)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        pytest.param("no.toml", None, "no.toml: No such file", id="none"),
        pytest.param("bad.toml", "rack = ", "bad.toml: Invalid value", id="no-toml"),
        pytest.param("bad.json", "[", "bad.json: Expecting value", id="no-json"),
        pytest.param("list.json", "[]", "holds no rack, budget and slots", id="a-list"),
        pytest.param("bytes.toml", "\udcff", "is no text in UTF-8", id="bytes"),
    ],
)
def test_a_file_that_cannot_be_read_is_wrong_usage(
    machine: Machine, agent: PretendedAgent, name: str, text: str | None, says: str
) -> None:
    if text is not None:
        Path(name).write_bytes(text.encode("utf-8", "surrogateescape"))

    result = machine.power("genesis", "--file", name, "--yes")

    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("old", "new", "code", "says"),
    [
        pytest.param("20 kW", "3 kW", 1, "floors and static loads add up to 4,500 W", id="floors"),
        pytest.param('"gpu-02"', '"gpu-01"', 1, "stands in two slots", id="two-slots"),
        pytest.param('"r01"', '"r07"', 2, "unknown rack r07", id="rack"),
        pytest.param("watts = 500", "", 2, "a static load needs watts", id="static"),
        pytest.param(
            'node = "gpu-01"',
            'node = "gpu-01"\nshare = "1 %"',
            1,
            "each node needs one",
            id="share",
        ),
    ],
)
def test_what_does_not_add_up_is_not_signed(
    machine: Machine, agent: PretendedAgent, old: str, new: str, code: int, says: str
) -> None:
    Path("r01.toml").write_text(FILE.replace(old, new, 1))

    result = machine.power("genesis", "--file", "r01.toml", "--yes")

    assert (result.exit_code, agent.orders) == (code, [])
    assert says in result.stderr


def test_a_second_genesis_is_refused(machine: Machine, agent: PretendedAgent) -> None:
    found(machine, agent)

    result = machine.power("genesis", "--file", "r01.toml", "--yes")

    assert result.exit_code == 1
    assert "rack:r01 has had its genesis" in result.stderr
    assert len(agent.log().records) == 2


def test_a_proposal_can_be_founded_as_it_is(machine: Machine, agent: PretendedAgent) -> None:
    proposal = machine.power("genesis", "--propose", "--budget", "25kW")
    Path("proposed.toml").write_text(proposal.stdout)

    result = machine.power("genesis", "--file", "proposed.toml", *UNDER_BUDGET)

    assert proposal.exit_code == 0, proposal.output
    assert "floor = 2400  # by its own agent" in proposal.stdout
    assert result.exit_code == 0, result.output
    assert charter(agent).budget_watts == 25_000


@pytest.mark.parametrize(
    "words",
    [
        pytest.param((), id="nothing"),
        pytest.param(("--propose", "--wizard"), id="two"),
        pytest.param(("--file", "r01.toml", "--rack", "r01"), id="rack-beside-file"),
        pytest.param(("--wizard",), id="nobody-to-ask"),
        pytest.param(("--propose", "--budget", "lots"), id="budget"),
        pytest.param(("--propose", "--rack", "r09"), id="unknown-rack"),
    ],
)
def test_a_genesis_from_nowhere_is_wrong_usage(
    machine: Machine, agent: PretendedAgent, words: tuple[str, ...]
) -> None:
    assert machine.power("genesis", *words).exit_code == 2


# -- budget ---------------------------------------------------------------------------------------


def test_a_budget_is_shown_and_set(machine: Machine, agent: PretendedAgent) -> None:
    found(machine, agent)

    result = machine.power("budget", "set", "r01", "12.5kW", *UNDER_BUDGET)

    assert result.exit_code == 0, result.output
    assert "u01   gpu-01  1,000    6,166     3,666  -2,500  2,000" in result.stderr
    assert "budget  12,500 W  was 20,000 W (-7,500 W)" in result.stderr
    assert last_decree(agent) == BudgetSet(currency=RACK, budget_watts=12_500)
    assert charter(agent).budget_watts == 12_500


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        pytest.param(("r01", "4kW"), 1, "4,000 W are too few: floors", id="below-the-floors"),
        pytest.param(("r07", "9kW"), 2, "unknown rack r07; known are r01", id="unknown-rack"),
        pytest.param(("r01", "much"), 2, "WATTS is 'much'; write watts", id="no-watts"),
    ],
)
def test_a_budget_that_cannot_be_is_not_signed(
    machine: Machine, agent: PretendedAgent, words: tuple[str, ...], code: int, says: str
) -> None:
    found(machine, agent)

    result = machine.power("budget", "set", *words, "--yes")

    assert result.exit_code == code
    assert says in result.stderr
    assert len(agent.log().records) == 2


def test_who_would_be_parked_is_told_before_anything_is_signed(
    machine: Machine, agent: PretendedAgent
) -> None:
    found(machine, agent)

    result = machine.power("budget", "set", "r01", "6500", "--dry-run")

    assert "too little for all: u01 would be parked" in result.stdout


def test_a_fork_is_settled_by_the_next_budget_and_stays_settled(
    machine: Machine, agent: PretendedAgent
) -> None:
    found(machine, agent)
    before = list(agent.records)
    machine.power("budget", "set", "r01", "15kW", *UNDER_BUDGET)
    one_branch = list(agent.records)
    agent.records[:] = before
    machine.power("budget", "set", "r01", "11kW", *UNDER_BUDGET)
    agent.records += one_branch[len(before) :]

    assert (charter(agent).budget_watts, charter(agent).version.is_unanimous) == (11_000, False)
    result = machine.power("budget", "set", "r01", "14kW", *UNDER_BUDGET)
    machine.run("revoke", "gpu-04", "--yes")  # whatever is said next does not undo it

    assert "the lowest of its budgets holds" in result.stderr
    assert (charter(agent).budget_watts, charter(agent).version.is_unanimous) == (14_000, True)


def test_a_budget_for_a_rack_that_was_never_founded_says_how_to_begin(
    machine: Machine, agent: PretendedAgent
) -> None:
    result = machine.power("budget", "set", "r01", "20kW", "--yes")

    assert result.exit_code == 1
    assert "`esnode power genesis --propose > r01.toml` begins one" in result.stderr


def test_the_new_budget_is_watched_until_all_keep_it(
    machine: Machine, agent: PretendedAgent
) -> None:
    found(machine, agent)
    obeyed = currency_document(founded(), version=3)
    obeyed["slots"] = [
        slot | {"version": 3 if slot["version"] else None} for slot in obeyed["slots"]
    ]
    answers = [power_document(founded()), power_document(founded(), currencies=[obeyed])]
    agent.answers["/v1/power"] = lambda: (200, answers.pop(0) if len(answers) > 1 else answers[0])

    result = machine.power("budget", "set", "r01", "19kW", "--yes", "--wait", "5s")

    assert "3 of 3 nodes keep the new budget" in result.stderr
