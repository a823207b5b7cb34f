"""Machines on which somebody types `esnode cluster ...` or `power ...`, with their folders."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cluster.credentials import load_node
from cluster.enrolment import NodeKeys
from esnode.cli import cli


class Machine:
    """One machine: a home folder, a state folder, and somebody who types."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir(parents=True, exist_ok=True)
        self.state = folder / "state"
        self.agent_url = "http://127.0.0.1:9"

    def run(self, *words: str, typed: str = "", **environment: str | None) -> Result:
        return self._type(("cluster", *words), typed, environment)

    def power(self, *words: str, typed: str = "", **environment: str | None) -> Result:
        return self._type(("power", *words), typed, environment)

    def _type(
        self, words: tuple[str, ...], typed: str, environment: dict[str, str | None]
    ) -> Result:
        known: dict[str, str | None] = {
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": None,
            "ESNODE_STATE_DIR": str(self.state),
            "ESNODE_AGENT": self.agent_url,
            **environment,
        }
        return CliRunner().invoke(cli, list(words), input=typed, env=known, prog_name="esnode")

    @property
    def keys(self) -> Path:
        return self.home / ".config" / "esnode" / "lab"

    def node(self) -> NodeKeys:
        return load_node(self.state / "identity")


def new_machine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine on which nothing configures an agent."""
    (folder / "empty.toml").touch()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ESNODE_CONFIG", str(folder / "empty.toml"))
    return Machine(folder / "first")


def found(machine: Machine) -> Machine:
    """The same, as the first node of a cluster."""
    result = machine.run("init", "lab", "--name", "gpu-01")
    assert result.exit_code == 0, result.output
    return machine


def token_of(machine: Machine, *words: str) -> str:
    """An invite to rack r01."""
    result = machine.run("invite", "--rack", "r01", "--seed", "10.0.0.1:7947", *words)
    assert result.exit_code == 0, result.output
    return result.stdout
