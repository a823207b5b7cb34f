"""`esnode cluster status`, `members`, `rack` and `events` against documents of an agent."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster_agents import NO_CLUSTER, PretendedAgent, pretended_agent
from tests.cluster_documents import node, rack, small_cluster, status_document
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


@pytest.mark.parametrize(
    ("state", "code"),
    [
        pytest.param("healthy", 0, id="healthy"),
        pytest.param("degraded", 1, id="degraded"),
        pytest.param("isolated", 5, id="isolated"),
    ],
)
def test_the_exit_code_says_how_the_cluster_is(
    machine: Machine, agent: PretendedAgent, state: str, code: int
) -> None:
    agent.answers["/v1/cluster"] = (200, status_document(node("n01"), state=state))

    assert machine.run("status").exit_code == code
    assert machine.run("status", "--json").exit_code == code
    assert machine.run("members").exit_code == code


def test_the_whole_screen_is_printed_in_full_where_no_terminal_is(
    machine: Machine, agent: PretendedAgent
) -> None:
    agent.answers["/v1/cluster"] = (200, small_cluster())

    result = machine.run("status")

    assert result.exit_code == 1
    assert result.stdout.startswith("CLUSTER prod-a (7c1e0000)  degraded")
    assert "stale,accused-by-2" in result.stdout
    assert "! critical: n09: no answer for 6 minutes (for 6m)" in result.stdout
    assert "\x1b" not in result.stdout


def test_the_json_is_the_agents_document(machine: Machine, agent: PretendedAgent) -> None:
    assert json.loads(machine.run("status", "--json").stdout) == HEALTHY


@pytest.mark.parametrize(
    ("words", "names"),
    [
        pytest.param(("--filter", "rack=r02"), ["n02"], id="filter"),
        pytest.param(("--sort", "-node"), ["n02", "n01"], id="sort"),
    ],
)
def test_filter_and_order_hold_for_json_too(
    machine: Machine, agent: PretendedAgent, words: tuple[str, ...], names: list[str]
) -> None:
    document = json.loads(machine.run("status", "--json", *words).stdout)

    assert [one["name"] for one in document["nodes"]] == names


def test_columns_parts_and_headers_are_as_asked(machine: Machine, agent: PretendedAgent) -> None:
    agent.answers["/v1/cluster"] = (200, small_cluster() | {"warnings": []})

    nodes = machine.run("status", "--nodes", "--columns", "node,draw,id", "--no-header")
    racks = machine.run("status", "--racks", "--columns", "rack,draw", "--units", "w")
    summary = machine.run("status", "--summary")

    assert nodes.stdout.split() == [
        "n01", "3.21k", "0000cf55", "n05", "2.90k?", "0000d355", "n09", "-", "0000d755",
    ]  # fmt: skip
    assert racks.stdout.split() == ["RACK", "DRAW", "r01", "12,900", "r02", "~9,800?"]
    assert len(summary.stdout.splitlines()) == 5


def test_one_node_is_shown_by_name_or_by_the_beginning_of_its_id(
    machine: Machine, agent: PretendedAgent
) -> None:
    by_name = machine.run("status", "--node", "n02")
    by_id = machine.run("status", "--node", HEALTHY["nodes"][1]["id"][:8])
    nobody = machine.run("status", "--node", "n77")

    assert by_name.stdout == by_id.stdout
    assert by_name.stdout.startswith("node         n02\n")
    assert (nobody.exit_code, nobody.stdout) == (2, "")


def test_every_member_is_asked_for_its_view_when_that_is_wanted(
    machine: Machine, agent: PretendedAgent
) -> None:
    view = {"id": "1", "name": "n02", "answered": False, "digest": None, "sees": {}}
    agent.answers["/v1/cluster?view=all"] = (200, HEALTHY | {"views": [view]})

    result = machine.run("status", "--view", "all")

    assert "VIEWS  0 of 1 members answered" in result.stdout


@pytest.mark.parametrize(
    ("words", "line"),
    [
        pytest.param(("status", "--filter", "draw"), "--filter at 'draw'", id="filter"),
        pytest.param(("status", "--sort", "colour"), "no column 'colour'", id="sort"),
        pytest.param(("status", "--columns", "node,x"), "no column 'x'", id="columns"),
        pytest.param(("status", "--fail-on", "sometimes"), "no condition 'sometimes'", id="fail"),
        pytest.param(("status", "--timeout", "soon"), "'soon' is not a duration", id="timeout"),
        pytest.param(("status", "--watch", "often"), "'often' is not a duration", id="watch"),
        pytest.param(("rack", "R 1"), "must be lower case", id="rack"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    machine: Machine, agent: PretendedAgent, words: tuple[str, ...], line: str
) -> None:
    result = machine.run(*words)

    assert result.exit_code == 2, result.output
    assert line in result.output
    assert len(result.output.splitlines()) == 1


EVERY_READER = [("status",), ("members",), ("rack", "r01"), ("events",), ("log",)]


@pytest.mark.parametrize("words", EVERY_READER, ids=lambda words: words[0])
def test_an_agent_without_a_cluster_is_exit_code_2_in_its_own_words(
    machine: Machine, agent: PretendedAgent, words: tuple[str, ...]
) -> None:
    for path in ("cluster", "racks/r01", "cluster/events", "cluster/operator-log"):
        agent.answers[f"/v1/{path}"] = NO_CLUSTER

    result = machine.run(*words)

    assert result.exit_code == 2
    assert result.output == "esnode: this agent is in no cluster; `esnode cluster join`\n"


@pytest.mark.parametrize("words", EVERY_READER, ids=lambda words: words[0])
def test_an_older_agent_is_exit_code_3_and_to_be_updated(
    machine: Machine, agent: PretendedAgent, words: tuple[str, ...]
) -> None:
    agent.answers.clear()

    result = machine.run(*words)

    assert result.exit_code == 3
    assert "it is of a version that knows no cluster: update it" in result.output
    assert len(result.output.splitlines()) == 1


@pytest.mark.parametrize("words", EVERY_READER, ids=lambda words: words[0])
def test_without_an_agent_readers_end_with_exit_code_3(
    machine: Machine, words: tuple[str, ...]
) -> None:
    result = machine.run(*words)

    assert result.exit_code == 3
    assert result.output.startswith("esnode: no agent answers at http://127.0.0.1:9 (")


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"schema": "other/1"}, id="another-program"),
        pytest.param({"schema": "esnode.cluster_status/1"}, id="nothing-in-it"),
        pytest.param(HEALTHY | {"nodes": 7}, id="nodes-that-are-none"),
        pytest.param(HEALTHY | {"nodes": [7]}, id="a-node-that-is-none"),
        pytest.param(HEALTHY | {"cluster": []}, id="a-cluster-that-is-none"),
    ],
)
def test_a_document_that_is_none_is_one_line(
    machine: Machine, agent: PretendedAgent, document: dict[str, object]
) -> None:
    agent.answers["/v1/cluster"] = (200, document)

    result = machine.run("status")

    assert result.exit_code == 3
    assert len(result.output.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "path", "schema"),
    [
        pytest.param(("members",), "cluster", "cluster_status", id="members"),
        pytest.param(("rack", "r01"), "racks/r01", "rack_status", id="rack"),
        pytest.param(("events",), "cluster/events", "cluster_events", id="events"),
        pytest.param(("log",), "cluster/operator-log", "operator_log", id="log"),
    ],
)
def test_an_answer_that_lacks_what_it_should_hold_is_one_line(
    machine: Machine, agent: PretendedAgent, words: tuple[str, ...], path: str, schema: str
) -> None:
    agent.answers[f"/v1/{path}"] = (200, {"schema": f"esnode.{schema}/1"})

    result = machine.run(*words)

    assert result.exit_code == 3
    assert result.output.endswith("cannot be read; is it of another version?\n")
    assert len(result.output.splitlines()) == 1


def test_members_are_sorted_by_rack_and_name(machine: Machine, agent: PretendedAgent) -> None:
    document = status_document(node("b", rack="r02"), node("c"), node("a", rack="r02"))
    agent.answers["/v1/cluster"] = (200, document)

    shown = json.loads(machine.run("members", "--json").stdout)
    text = machine.run("members").stdout

    assert shown["schema"] == "esnode.cluster_members/1"
    assert [one["name"] for one in shown["members"]] == ["c", "a", "b"]
    assert [line.split()[0] for line in text.splitlines()] == ["Node", "c", "a", "b"]


def test_a_rack_is_shown_with_its_nodes(machine: Machine, agent: PretendedAgent) -> None:
    document = {
        "schema": "esnode.rack_status/1",
        "rack": rack("r02", "alive", "failed", state="degraded"),
        "nodes": [node("n05", rack="r02"), node("n09", rack="r02", state="failed")],
        "warnings": [],
    }
    agent.answers["/v1/racks/r02"] = (200, document)
    agent.answers["/v1/racks/r77"] = (404, {"error": "no rack r77 here", "code": "no-rack"})

    shown = machine.run("rack", "r02", "--filter", "state=failed")
    missing = machine.run("rack", "r77")

    assert shown.exit_code == 1
    assert [line.split()[0] for line in shown.stdout.splitlines() if line] == [
        "RACK", "r02", "NODE", "n09",
    ]  # fmt: skip
    assert (missing.exit_code, missing.output) == (2, "esnode: no rack r77 here\n")


EVENTS = [
    {
        "id": 41,
        "at": "2026-11-30T12:04:31Z",
        "kind": "member",
        "subject": "n05",
        "subject_id": "5" * 32,
        "before": "alive",
        "after": "suspect",
        "reason": "no answer to n01",
    },
    {
        "id": 42,
        "at": "2026-11-30T12:04:33Z",
        "kind": "pause",
        "subject": "n03",
        "subject_id": None,
        "before": None,
        "after": None,
        "reason": "stood still for 3.2 s",
    },
]


def events_document() -> tuple[int, dict[str, object]]:
    return 200, {"schema": "esnode.cluster_events/1", "events": EVENTS}


def test_events_are_lines_that_say_when_whom_what_and_why(
    machine: Machine, agent: PretendedAgent
) -> None:
    agent.answers["/v1/cluster/events"] = events_document()

    result = machine.run("events")

    assert result.stdout.splitlines() == [
        "2026-11-30 12:04:31  n05  alive -> suspect  (no answer to n01)",
        "2026-11-30 12:04:33  n03  pause  (stood still for 3.2 s)",
    ]


def test_events_since_an_id_are_those_after_it(machine: Machine, agent: PretendedAgent) -> None:
    agent.answers["/v1/cluster/events"] = events_document()

    shown = json.loads(machine.run("events", "--since", "41", "--json").stdout)
    nothing = machine.run("events", "--since", "42")

    assert [one["id"] for one in shown["events"]] == [42]
    assert (nothing.exit_code, nothing.stdout) == (0, "")


def test_following_goes_on_where_it_was_when_the_agent_restarts(
    machine: Machine, agent: PretendedAgent
) -> None:
    first, second = (
        ["retry: 2000", "", f"id: {event['id']}", f"data: {json.dumps(event)}", "", ": still here"]
        for event in EVENTS
    )
    agent.streams = [first, ["data: not ours", "", *second]]

    result = machine.run("events", "--follow", "--json")

    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == [41, 42]
    assert agent.followed_from == [None, "41", "42"]
    assert "the agent ended the stream; waiting for it" in result.stderr
    assert "the agent answers again" in result.stderr
    assert result.exit_code == 2  # then it was in no cluster any more
