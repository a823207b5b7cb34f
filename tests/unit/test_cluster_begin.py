"""`esnode cluster init` and `invite`: how a cluster begins, and who is let in."""

import json
import re
import stat
from pathlib import Path

import pytest

from cluster.credentials import load_operator
from cluster.enrolment import open_invite
from cluster.identity.files import OPERATOR_KEY
from cluster.identity.tokens import parse_token
from tests.cluster_agents import joined_answer, of_cluster, pretended_agent
from tests.cluster_documents import node, status_document
from tests.cluster_machines import Machine, found, new_machine


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return new_machine(tmp_path, monkeypatch)


@pytest.fixture
def founded(machine: Machine) -> Machine:
    return found(machine)


def test_init_makes_the_keys_and_this_machine_the_first_node(machine: Machine) -> None:
    result = machine.run("init", "lab", "--rack", "r07", "--name", "gpu-01")

    assert result.exit_code == 0, result.output
    operator = load_operator(machine.keys)
    own = machine.node()
    assert operator.authority_keys is not None
    assert operator.operator_keys is not None
    assert own.authority.cluster_id == operator.authority.cluster_id
    assert (own.identity.name, own.identity.rack) == ("gpu-01", "r07")
    assert own.identity.rights.terms.may_found
    assert f"cluster lab ({operator.authority.cluster_id.short}) is made" in result.output
    assert "  esnode cluster invite --rack r07 --ttl 24h" in result.output


def test_what_init_prints_as_json_names_the_cluster_and_the_node(machine: Machine) -> None:
    document = json.loads(machine.run("init", "lab", "--name", "gpu-01", "--json").stdout)

    assert document["schema"] == "esnode.cluster_init/1"
    assert document["node"]["id"] == str(machine.node().identity.node_id)
    assert document["operator_folder"] == str(machine.keys)


def test_keys_are_for_their_owner_alone(founded: Machine) -> None:
    for folder in (founded.keys, founded.state / "identity"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


def test_a_second_init_says_what_exists_and_changes_nothing(founded: Machine) -> None:
    before = {path: path.read_bytes() for path in founded.keys.iterdir()}

    again = founded.run("init", "lab", "--name", "gpu-01")
    other = founded.run("init", "lab2", "--name", "gpu-01")

    assert again.exit_code == other.exit_code == 2
    assert "this machine is gpu-01 of cluster lab (" in again.output
    assert "this machine is gpu-01 of cluster lab (" in other.output
    assert {path: path.read_bytes() for path in founded.keys.iterdir()} == before
    assert not (founded.home / ".config" / "esnode" / "lab2").exists()


def test_a_cluster_whose_nodes_were_lost_is_founded_again_with_its_keys(founded: Machine) -> None:
    (founded.state / "identity").rename(founded.state / "lost")
    cluster_id = load_operator(founded.keys).authority.cluster_id

    refused = founded.run("init", "lab", "--name", "gpu-02")
    result = founded.run("init", "lab", "--name", "gpu-02", "--found-again")

    assert refused.exit_code == 1
    assert "`esnode cluster init lab --found-again` makes a new first node" in refused.output
    assert result.exit_code == 0, result.output
    assert founded.node().identity.cluster_id == cluster_id


def test_an_init_whose_node_cannot_be_written_leaves_no_keys(machine: Machine) -> None:
    machine.state.write_text("a file where a folder should be")

    result = machine.run("init", "lab", "--name", "gpu-01")

    assert result.exit_code == 1
    assert len(result.output.splitlines()) == 1
    assert str(machine.state) in result.output
    assert not machine.keys.exists()


def test_an_init_that_the_agent_refuses_leaves_no_keys(machine: Machine) -> None:
    refusal = (409, {"error": "this agent is a node already", "code": "is-node"})
    with pretended_agent(machine.state, answers={"/v1/control/cluster/join": refusal}):
        result = machine.run("init", "lab", "--name", "gpu-01")

    assert (result.exit_code, result.output) == (1, "esnode: this agent is a node already\n")
    assert not machine.keys.exists()


def test_an_init_of_which_nobody_knows_how_it_ended_keeps_the_keys(machine: Machine) -> None:
    broken = (500, {"error": "the disk is full", "code": "failed"})
    with pretended_agent(machine.state, answers={"/v1/control/cluster/join": broken}):
        result = machine.run("init", "lab", "--name", "gpu-01")

    assert result.exit_code == 1
    assert "`esnode cluster status` shows whether it is a node now" in result.output
    assert (machine.keys / OPERATOR_KEY).exists()


def test_a_running_agent_is_told_to_join_by_a_founding_invite(machine: Machine) -> None:
    answers = {"/v1/control/cluster/join": joined_answer()}
    with pretended_agent(machine.state, answers=answers) as agent:
        result = machine.run("init", "lab", "--name", "gpu-01")

    assert result.exit_code == 0, result.output
    ((path, order),) = agent.orders
    rights = open_invite(parse_token(order["token"])).rights
    assert (path, order["name"]) == ("/v1/control/cluster/join", "gpu-01")
    assert rights.terms.may_found
    assert rights.terms.uses == 1
    assert not (machine.state / "identity").exists()
    assert order["token"] not in result.output


def test_keys_alone_are_made_for_a_first_node_elsewhere(machine: Machine) -> None:
    result = machine.run("init", "lab", "--keys-only")
    founding = machine.run("invite", "--rack", "r01", "--founding")

    assert result.exit_code == 0, result.output
    assert not machine.state.exists()
    terms = open_invite(parse_token(founding.stdout)).rights.terms
    assert (terms.may_found, terms.uses) == (True, 1)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        pytest.param(("init", "Lab"), "must be lower case: 'lab'", id="cluster"),
        pytest.param(("init", "lab", "--rack", "r_1"), "rack 'r_1' must be letters", id="rack"),
        pytest.param(("init", "lab", "--name", "a..b"), "node name 'a..b' must be", id="node"),
        pytest.param(
            ("init", "lab", "--keys-only", "--found-again"), "choose one", id="contradiction"
        ),
        pytest.param(("invite", "--rack", "r01", "--ttl", "24"), "has no unit", id="ttl"),
        pytest.param(
            ("invite", "--rack", "r01", "--ttl", "99999d"),
            "--ttl: '99999d' is more than ten years (3650d)",
            id="ttl-for-ever",
        ),
        pytest.param(("invite", "--rack", "r01"), "no keys of an operator in", id="no-keys"),
        pytest.param(("join", "hello"), "this is no invite token", id="token"),
        pytest.param(("join", "-"), "standard input holds no token", id="nothing-typed"),
        pytest.param(("join", "--token-file", "nowhere"), "No such file", id="no-token-file"),
        pytest.param(("renew",), "renew needs the TOKEN of a fresh invite", id="renew"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    machine: Machine, words: tuple[str, ...], line: str
) -> None:
    result = machine.run(*words)

    assert result.exit_code == 2, result.output
    assert line in result.output
    assert len(result.output.splitlines()) == 1


def test_without_a_home_folder_one_is_told_what_to_say(machine: Machine) -> None:
    result = machine.run("init", "lab", "--name", "a", HOME="", XDG_CONFIG_HOME="/proc/nowhere")

    assert result.exit_code == 1
    assert len(result.output.splitlines()) == 1
    assert "/proc/nowhere" in result.output


def test_a_relative_folder_in_the_environment_is_ignored(machine: Machine) -> None:
    result = machine.run("init", "lab", "--keys-only", XDG_CONFIG_HOME="here")

    assert result.exit_code == 0, result.output
    assert machine.keys.is_dir()


def test_an_invite_prints_the_token_alone_and_its_terms_beside_it(founded: Machine) -> None:
    result = founded.run(
        "invite", "--rack", "r02", "--ttl", "2h", "--uses", "16", "--name-prefix", "gpu-",
        "--approve", "--seed", "10.0.0.1:7947", "--seed", "[fd00::1]:7947",
    )  # fmt: skip

    assert re.fullmatch(r"esnode-invite-1\.[A-Za-z0-9_-]+\n", result.stdout)
    opened = open_invite(parse_token(result.stdout))
    terms = opened.rights.terms
    assert opened.seeds == ("10.0.0.1:7947", "[fd00::1]:7947")
    assert opened.rights.racks == ("r02",)
    assert (terms.uses, terms.name_prefix, terms.needs_approval) == (16, "gpu-", True)
    assert f"invite {opened.rights.serial:x} to rack r02 of lab: 16 machines named gpu-..." in (
        result.stderr
    )


def test_an_invite_names_the_members_that_the_agent_knows_itself_first(founded: Machine) -> None:
    keys = load_operator(founded.keys).authority_keys
    assert keys is not None
    document = of_cluster(
        keys,
        status_document(
            node("b", address="10.0.0.2:7947"),
            node("c", state="failed", address="10.0.0.3:7947"),
            node("d", is_asked=True, address="10.0.0.4:7947"),
            node("e", address=None),
            node("a", address="10.0.0.1:7947"),
        ),
    )
    with pretended_agent(founded.state, answers={"/v1/cluster": (200, document)}) as agent:
        result = founded.run("invite", "--rack", "r01", ESNODE_AGENT=agent.url)

    assert parse_token(result.stdout).seeds == ("10.0.0.4:7947", "10.0.0.1:7947", "10.0.0.2:7947")


@pytest.mark.parametrize(
    ("nodes", "is_ours", "line"),
    [
        pytest.param([node("a")], False, "the agent is in cluster prod-a (7c1e", id="foreign"),
        pytest.param([node("a", address=None)], True, "knows no member's address", id="unknown"),
    ],
)
def test_an_invite_without_a_member_to_name_says_to_pass_a_seed(
    founded: Machine, nodes: list[dict[str, object]], is_ours: bool, line: str
) -> None:
    document = status_document(*nodes)
    keys = load_operator(founded.keys).authority_keys
    assert keys is not None
    served = of_cluster(keys, document) if is_ours else document
    with pretended_agent(founded.state, answers={"/v1/cluster": (200, served)}) as agent:
        result = founded.run("invite", "--rack", "r01", ESNODE_AGENT=agent.url)

    assert (result.exit_code, result.stdout) == (2, "")
    assert line in result.stderr
    assert "--seed HOST:PORT" in result.stderr


def test_an_invite_without_the_authoritys_key_says_what_is_missing(founded: Machine) -> None:
    (founded.keys / "authority.key").unlink()

    result = founded.run("invite", "--rack", "r01", "--seed", "a:1")

    assert result.exit_code == 2
    assert f"{founded.keys}: authority.key is not here" in result.output


def test_with_keys_of_two_clusters_one_has_to_choose(founded: Machine) -> None:
    founded.run("init", "other", "--keys-only")

    unsaid = founded.run("invite", "--rack", "r01", "--seed", "a:1")
    said = founded.run("invite", "--rack", "r01", "--seed", "a:1", "--cluster", "other")

    assert unsaid.exit_code == 2
    assert "keys of several clusters" in unsaid.output
    assert "lab, other; choose with --cluster" in unsaid.output
    assert open_invite(parse_token(said.stdout)).authority.name == "other"
