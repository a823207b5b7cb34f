"""`esnode cluster join`, `renew`, `leave` and `show-certificate`: one machine as a node."""

import json
import os
import tempfile
from pathlib import Path

import pytest

from esnode.state import StateFolder
from tests.cluster_agents import PretendedAgent, joined_answer, pretended_agent
from tests.cluster_machines import Machine, found, new_machine, token_of


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return new_machine(tmp_path, monkeypatch)


@pytest.fixture
def founded(machine: Machine) -> Machine:
    return found(machine)


@pytest.mark.parametrize("way", ["argument", "dash", "typed", "file"])
def test_a_stopped_machine_joins_by_a_token_from_anywhere(
    founded: Machine, tmp_path: Path, way: str
) -> None:
    token = token_of(founded)
    second = Machine(tmp_path / "second")
    file = tmp_path / "token"
    file.write_text(token)
    words = {
        "argument": [token.strip()],
        "dash": ["-"],
        "typed": [],
        "file": ["--token-file", str(file)],
    }[way]

    result = second.run(
        "join", *words, "--name", "gpu-02", typed=token if way in ("dash", "typed") else ""
    )

    assert result.exit_code == 0, result.output
    own = second.node()
    assert own.identity.name == "gpu-02"
    assert own.seeds == ("10.0.0.1:7947",)
    assert "no agent runs here: it joins when it starts" in result.output
    assert "esnode-invite" not in result.output


def test_a_machine_that_needs_approval_prints_what_the_operator_has_to_say(
    founded: Machine, tmp_path: Path
) -> None:
    token = token_of(founded, "--approve")
    second = Machine(tmp_path / "second")

    result = second.run("join", "--name", "gpu-02", typed=token)

    own = second.node().identity
    assert f"`esnode cluster approve {own.node_id} --invite {own.rights.serial:x}`" in result.output


def test_a_running_agent_joins_by_itself(founded: Machine, tmp_path: Path) -> None:
    token = token_of(founded)
    second = Machine(tmp_path / "second")
    answers = {"/v1/control/cluster/join": joined_answer("gpu-02")}
    with pretended_agent(second.state, answers=answers) as agent:
        result = second.run("join", "--name", "gpu-02", typed=token)

    assert result.exit_code == 0, result.output
    assert agent.orders[0][1] == {"token": token.strip(), "name": "gpu-02"}
    assert not (second.state / "identity").exists()


def test_an_agent_without_a_control_socket_is_not_written_under(
    founded: Machine, tmp_path: Path
) -> None:
    token = token_of(founded)
    second = Machine(tmp_path / "second")
    held = StateFolder(second.state)

    result = second.run("join", "--name", "gpu-02", typed=token)
    held.close()

    assert result.exit_code == 3
    assert "has no control socket" in result.output
    assert not (second.state / "identity").exists()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        pytest.param(("--name", "cpu-01"), "does not begin with 'gpu-'", id="prefix"),
        pytest.param(("--name", "gpu-01"), "is node gpu-01", id="allowed"),
    ],
)
def test_an_invite_for_some_names_refuses_others(
    founded: Machine, tmp_path: Path, words: tuple[str, ...], line: str
) -> None:
    token = token_of(founded, "--name-prefix", "gpu-")

    result = Machine(tmp_path / "second").run("join", *words, typed=token)

    assert line in result.output
    assert len(result.output.splitlines()) <= 2


def test_a_machine_that_is_a_node_does_not_join_again(founded: Machine) -> None:
    key = founded.node().signer.public_key

    result = founded.run("join", "--name", "gpu-09", typed=token_of(founded))

    assert result.exit_code == 2
    assert "this machine is gpu-01 of cluster lab (" in result.output
    assert founded.node().signer.public_key == key


def test_after_leave_a_machine_comes_back_under_its_key(founded: Machine) -> None:
    key = founded.node().signer.public_key
    (founded.state / "identity" / "left").touch()

    result = founded.run("join")

    assert result.exit_code == 0, result.output
    assert founded.node().signer.public_key == key
    assert not (founded.state / "identity" / "left").exists()


def test_after_leave_a_fresh_token_renews_what_the_machine_has(founded: Machine) -> None:
    before = founded.node()
    (founded.state / "identity" / "left").touch()

    result = founded.run("join", typed=token_of(founded))

    assert result.exit_code == 0, result.output
    after = founded.node()
    assert after.signer.public_key == before.signer.public_key
    assert after.identity.name == "gpu-01"
    assert after.identity.serial != before.identity.serial
    assert not (founded.state / "identity" / "left").exists()


def test_join_without_a_token_needs_something_to_come_back_to(machine: Machine) -> None:
    result = machine.run("join")

    assert result.exit_code == 2
    assert "this machine has left no cluster; join needs a TOKEN" in result.output


def test_a_stopped_node_is_renewed_and_keeps_its_key(founded: Machine) -> None:
    before = founded.node()

    result = founded.run("renew", typed=token_of(founded))

    assert result.exit_code == 0, result.output
    assert result.output.startswith("renewed until ")
    after = founded.node()
    assert after.signer.public_key == before.signer.public_key
    assert after.identity.serial != before.identity.serial


def test_an_invite_of_another_cluster_renews_nothing(founded: Machine, tmp_path: Path) -> None:
    other = Machine(tmp_path / "other")
    other.run("init", "lab", "--keys-only")

    result = founded.run("renew", typed=token_of(other))

    assert result.exit_code == 2
    assert "this node is of lab" in result.output


def leaving(agent: PretendedAgent) -> None:
    agent.answers["/v1/control/cluster/leave"] = (
        200,
        {"schema": "esnode.cluster_leave/1", "informed": 3},
    )


def test_leave_is_told_to_the_agent_and_says_who_knows(founded: Machine) -> None:
    with pretended_agent(founded.state) as agent:
        leaving(agent)
        result = founded.run("leave", "--yes")

    assert result.exit_code == 0, result.output
    assert "this machine has left; 3 members confirmed it" in result.output


def test_leave_is_not_done_where_nobody_can_be_asked(founded: Machine) -> None:
    with pretended_agent(founded.state) as agent:
        leaving(agent)
        result = founded.run("leave")

    assert result.exit_code == 2
    assert "say --yes" in result.output
    assert agent.orders == []


def test_leave_needs_an_agent_to_tell_the_others(founded: Machine) -> None:
    result = founded.run("leave", "--yes")

    assert result.exit_code == 3
    assert "only a running agent can tell the others" in result.output
    assert "esnode cluster remove NODE" in result.output


def test_an_order_to_an_agent_elsewhere_is_refused(founded: Machine) -> None:
    result = founded.run("leave", "--yes", "--agent", "http://gpu-09:9100")

    assert result.exit_code == 2
    assert "orders go through the socket of an agent on this machine" in result.output


@pytest.mark.parametrize(
    ("which", "kind", "name"),
    [
        pytest.param(("--node",), "node", "gpu-01", id="node"),
        pytest.param((), "node", "gpu-01", id="default"),
        pytest.param(("--operator",), "operator", "first", id="operator"),
        pytest.param(("--authority",), "authority", None, id="authority"),
    ],
)
def test_a_certificate_is_shown_by_its_files(
    founded: Machine, which: tuple[str, ...], kind: str, name: str | None
) -> None:
    document = json.loads(founded.run("show-certificate", *which, "--json").stdout)
    text = founded.run("show-certificate", *which).stdout
    pem = founded.run("show-certificate", *which, "--pem").stdout

    assert (document["schema"], document["kind"]) == ("esnode.certificate/1", kind)
    assert document.get("name") == name
    assert document["validity"] == "current"
    assert document["serial"] in text
    assert pem.startswith("-----BEGIN CERTIFICATE-----")
    assert "PRIVATE" not in pem


def test_a_machine_in_no_cluster_has_no_certificate_to_show(machine: Machine) -> None:
    result = machine.run("show-certificate")

    assert result.exit_code == 2
    assert "this machine is in no cluster" in result.output


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes as another user")
def test_root_writes_a_state_folder_as_its_owner(founded: Machine) -> None:
    # Folders of tests are closed to other users; this one is open.
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        second = Machine(Path(folder) / "second")
        second.state.mkdir(mode=0o700)
        os.chown(second.state, 12345, 12345)

        result = second.run("join", "--name", "gpu-02", typed=token_of(founded))

        assert result.exit_code == 0, result.output
        identity = second.state / "identity"
        assert {path.stat().st_uid for path in (identity, *identity.iterdir())} == {12345}
