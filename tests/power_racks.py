"""Racks of real agents under a budget, and the physical truth that their claims must not exceed."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from esnode.drivers.simulated.clocks import Clocks
from esnode.drivers.simulated.parts import PARTS, SUPPLY_EFFICIENCY_RATIO
from esnode.drivers.simulated.store import Store
from esnode.drivers.simulated.truth import PhysicalTruth
from tests.agents import AgentProcess, run_esnode, running_agent, wait_until

GPU = "h100"
FLAGS = (
    "--cluster-bind", "127.0.0.1:0", "--hardware", f"simulated:{GPU}x2",
    "--enable-ipmi", "false", "--power-rest-watts", "700",
)  # fmt: skip
MARGIN_RATIO = 0.03
NAMES = ("gpu-01", "gpu-02", "gpu-03")


class PowerRack:
    """Three agents of one rack on loopback, each with a simulated machine."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self.agents: dict[str, AgentProcess] = {}
        self.floor_watts = 0
        self.budget_watts = 0
        self.since_seconds = 0.0
        """Of the boot's clock: from then on the sum of all caps is to be below the budget."""

    def start(self, name: str, **more: object) -> AgentProcess:
        agent = self._stack.enter_context(running_agent(self.folder, *FLAGS, name=name, **more))
        self.agents[name] = agent
        return agent

    def run(self, *words: str, on: str = NAMES[0], code: int = 0) -> str:
        state_dir = self.folder / f"{on}-state"
        done = run_esnode(self.folder, *words, "--state-dir", str(state_dir), timeout_seconds=60)
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout

    def form(self) -> None:
        """Three members that see each other."""
        first, *others = NAMES
        self.start(first)
        self.run("cluster", "init", "lab", "--name", first)
        token = self.folder / "token"
        token.write_text(self.run("cluster", "invite", "--rack", "r01"))
        for name in others:
            self.start(name)
            self.run("cluster", "join", "--name", name, "--token-file", str(token), on=name)
        wait_until(
            lambda: all(self._members(name) == len(NAMES) for name in NAMES),
            seconds=30,
            why="everybody sees everybody",
        )

    def _members(self, name: str) -> int:
        answer = self.agents[name].get("/v1/cluster")
        nodes: Any = answer.json().get("nodes", [])
        return sum(node["state"] == "alive" for node in nodes)

    def found(self, shared_ratio: float = 0.5) -> None:
        """Sign a budget that leaves this part of what all could draw above their floors."""
        cap: Any = self.power(NAMES[0])["cap"]
        self.floor_watts = cap["lowest_watts"] + 20
        dynamic = shared_ratio * (cap["highest_watts"] - self.floor_watts)
        self.budget_watts = round(len(NAMES) * (self.floor_watts + dynamic) / (1 - MARGIN_RATIO))
        slots = "".join(
            f'[[slots]]\nslot = "u{place:02}"\nnode = "{name}"\nfloor = {self.floor_watts}\n'
            for place, name in enumerate(NAMES, 1)
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

    def load(self, name: str, ratio: float) -> None:
        file = self.folder / f"{name}-state" / "simulated-hardware.json"
        done = run_esnode(self.folder, "simulated", "load", "all", str(ratio), "--path", str(file))
        assert done.returncode == 0, done.stderr

    def worst_watts(self) -> float:
        """The highest that all caps came to at any instant since the rack was protected."""
        truths = [truth_of(self.folder / f"{name}-state") for name in NAMES]
        now = boottime_seconds()
        instants = {self.since_seconds, now}
        for truth in truths:
            instants |= {at for at in truth.cap_instants(now) if at >= self.since_seconds}
        return max(sum(bound_watts(truth, at) for truth in truths) for at in instants)

    def audit(self, name: str) -> list[dict[str, Any]]:
        path = self.folder / f"{name}-state" / "power" / "audit.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]


def boottime_seconds() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def truth_of(state_dir: Path) -> PhysicalTruth:
    store = Store(state_dir / "simulated-hardware.json")
    return PhysicalTruth(store.history(), host_boot_id=Clocks().host_boot_id())


def bound_watts(truth: PhysicalTruth, at: float) -> float:
    """What a machine could draw at its inlet under the caps that its devices obeyed."""
    caps = truth.caps_in_force_watts(at)
    assert caps is not None
    rest = PARTS[GPU].chassis_share_watts * len(caps)
    return (sum(caps.values()) + rest) / SUPPLY_EFFICIENCY_RATIO


def all_of(what: Callable[[str], bool], names: Iterable[str] = NAMES) -> bool:
    return all(what(name) for name in names)


def kinds(audit: Sequence[dict[str, Any]]) -> set[str]:
    return {str(line["kind"]) for line in audit}
