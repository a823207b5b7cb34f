"""Racks of real agents under a budget, and a witness whom nobody of them can mislead."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from esnode.cli.demo_witness import Verdict, Witness
from tests.agents import AgentProcess, run_esnode, running_agent, wait_until

GPU = "h100"
REST_WATTS = 600
"""All that such a machine draws beside its two GPUs: a figure that is too high would hide what is
too much."""
FLAGS = (
    "--cluster-bind", "127.0.0.1:0", "--hardware", f"simulated:{GPU}x2",
    "--enable-ipmi", "false", "--power-rest-watts", str(REST_WATTS),
)  # fmt: skip
MARGIN_RATIO = 0.03
NAMES = ("gpu-01", "gpu-02", "gpu-03")


class PowerRack:
    """Agents of one rack on loopback, each with a simulated machine."""

    def __init__(
        self,
        folder: Path,
        stack: ExitStack,
        names: Sequence[str] = NAMES,
        flags: Sequence[str] = (),
        *,
        is_apart: bool = False,
    ) -> None:
        self.folder = folder
        self.names = tuple(names)
        self._flags = (*FLAGS, *flags)
        self._is_apart = is_apart
        self._stack = stack
        self.within: dict[str, tuple[str, ...]] = {}
        """What agents of these names are started among, e.g. mounts of their own."""
        self.agents: dict[str, AgentProcess] = {}
        self.floor_watts = 0
        self.budget_watts = 0
        self.since_seconds = 0.0
        """Of the boot's clock: from then on the sum of all caps is to be below the budget."""

    def start(self, name: str, **more: object) -> AgentProcess:
        more = {"within": self.within.get(name, ())} | more
        agent = self._stack.enter_context(
            running_agent(self.folder, *self.flags_of(name), name=name, **more)
        )
        self.agents[name] = agent
        return agent

    def flags_of(self, name: str) -> tuple[str, ...]:
        return (*self._flags, f"--simulated-hardware-path={self.machine_path(name)}")

    def state_dir(self, name: str) -> Path:
        return self.folder / f"{name}-state"

    def machine_path(self, name: str) -> Path:
        """The file that is its machine; apart, where its state may be lost or stand still."""
        apart = self.folder / f"{name}-machine.json"
        return apart if self._is_apart else self.state_dir(name) / "simulated-hardware.json"

    def ledger_path(self, name: str) -> Path:
        return self.state_dir(name) / "power" / "ledger-rack:r01.log"

    def run(self, *words: str, on: str = NAMES[0], code: int = 0) -> str:
        among: tuple[str, ...] = ()
        if on in self.within and on in self.agents:
            among = ("nsenter", f"--mount=/proc/{self.agents[on].pid}/ns/mnt")
        done = run_esnode(
            self.folder,
            *words,
            "--state-dir",
            str(self.state_dir(on)),
            timeout_seconds=60,
            within=among,
            ESNODE_SIMULATED_HARDWARE_PATH=str(self.machine_path(on)),
        )
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout

    def form(self) -> None:
        """Members that see each other."""
        first, *others = self.names
        self.start(first)
        self.run("cluster", "init", "lab", "--name", first)
        token = self.folder / "token"
        token.write_text(self.run("cluster", "invite", "--rack", "r01"))
        for name in others:
            self.start(name)
            self.run("cluster", "join", "--name", name, "--token-file", str(token), on=name)
        wait_until(
            lambda: all(self._members(name) == len(self.names) for name in self.names),
            seconds=60,
            why="everybody sees everybody",
        )

    def _members(self, name: str) -> int:
        answer = self.agents[name].get("/v1/cluster")
        nodes: Any = answer.json().get("nodes", [])
        return sum(node["state"] == "alive" for node in nodes)

    def found(self, shared_ratio: float = 0.5) -> None:
        """Sign a budget that leaves this part of what all could draw above their floors."""
        cap: Any = self.power(self.names[0])["cap"]
        self.floor_watts = cap["lowest_watts"] + 20
        dynamic = shared_ratio * (cap["highest_watts"] - self.floor_watts)
        self.budget_watts = round(
            len(self.names) * (self.floor_watts + dynamic) / (1 - MARGIN_RATIO)
        )
        slots = "".join(
            f'[[slots]]\nslot = "u{place:02}"\nnode = "{name}"\nfloor = {self.floor_watts}\n'
            for place, name in enumerate(self.names, 1)
        )
        file = self.folder / "rack.toml"
        file.write_text(f'rack = "r01"\nbudget = {self.budget_watts}\nmargin = "3%"\n{slots}')
        self.run("power", "genesis", "--file", str(file), "--yes")
        wait_until(
            lambda: all(self.grade(name) in ("A", "B") for name in self.agents),
            seconds=30,
            why="the rack is protected",
        )
        self.since_seconds = boottime_seconds()

    def power(self, name: str) -> dict[str, Any]:
        return self.agents[name].get("/v1/power").json()

    def grade(self, name: str) -> str:
        currencies: Any = self.power(name)["currencies"]
        return str(currencies[0]["grade"]) if currencies else ""

    def cap(self, name: str) -> int:
        cap: Any = self.power(name)["cap"]
        return int(cap["in_force_watts"] or 0)

    @property
    def allowed_watts(self) -> float:
        """The budget less its margin: what the machines may draw at any instant."""
        return self.budget_watts * (1 - MARGIN_RATIO)

    def load(self, name: str, ratio: float) -> None:
        """Let its GPUs work; work that runs already does not ask the gate."""
        path = str(self.machine_path(name))
        done = run_esnode(self.folder, "simulated", "load", "all", str(ratio), "--path", path)
        assert done.returncode == 0, done.stderr

    def witness(self) -> Witness:
        """Somebody who believes the machines' files alone."""
        return Witness(
            [self.machine_path(name) for name in self.names],
            allowed_watts=self.allowed_watts,
            since_seconds=self.since_seconds,
        )

    def verdict(self) -> Verdict:
        """Every instant since the rack was protected."""
        verdict = self.witness().conclude()
        assert verdict.instants > 0
        return verdict

    def audit(self, name: str) -> list[dict[str, Any]]:
        path = self.state_dir(name) / "power" / "audit.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]


def boottime_seconds() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def all_of(what: Callable[[str], bool], names: Iterable[str] = NAMES) -> bool:
    return all(what(name) for name in names)


def kinds(audit: Sequence[dict[str, Any]]) -> set[str]:
    return {str(line["kind"]) for line in audit}
