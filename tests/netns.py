"""Machines of their own on one computer: network namespaces on a bridge, and agents in them.

Each place has an address of its own, and its own rules of what it does not hear. An agent in it is
asked over its control socket, which needs no network. Needs root, `ip` and `nft`; `missing()` says
what is not there.
"""

import http.client
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster.gossip.messages import Address
from tests.agents import AgentProcess, Answer, run_esnode, started_agent, wait_until
from tests.hosts import Cluster

PORT = 7947
FLAGS = (
    "--hardware", "simulated:h100x1", "--enable-ipmi", "false", "--log-level", "info",
)  # fmt: skip
WAIT_SECONDS = 25.0
HERE = ("alive", "degraded")
_numbers = itertools.count(1)


def missing() -> str:
    """Why there are no namespaces here; empty if there are."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    absent = [name for name in ("ip", "nft", "unshare") if shutil.which(name) is None]
    if absent:
        return f"no {', '.join(absent)} here"
    name = f"esnode-{os.getpid()}-try"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    if made.returncode != 0:
        return "this kernel makes no network namespaces"
    try:
        bridge = f"ip -n {name} link add b0 type bridge".split()
        rules = f"ip netns exec {name} nft add table inet t".split()
        done = [subprocess.run(one, capture_output=True, check=False) for one in (bridge, rules)]
        return "" if all(one.returncode == 0 for one in done) else "no bridge or no nftables here"
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False)


@dataclass
class Place:
    """One namespace."""

    namespace: str
    address: str

    @property
    def seed(self) -> Address:
        return Address(f"{self.address}:{PORT}")

    @property
    def within(self) -> tuple[str, ...]:
        """In front of a command that shall run here."""
        return ("ip", "netns", "exec", self.namespace)

    def ip(self, *words: str) -> None:
        _run("ip", "-n", self.namespace, *words)

    def connect(self) -> None:
        """Its network device is there now."""
        self.ip("addr", "add", f"{self.address}/24", "dev", "e0")
        self.ip("link", "set", "e0", "up")

    def deaf_to(self, *addresses: str, loss_percent: int = 100) -> None:
        """What these send does not arrive here any more, or not all of it."""
        chance = "" if loss_percent == 100 else f"numgen random mod 100 < {loss_percent} "
        rules = "\n".join(f"ip saddr {one} {chance}drop" for one in addresses)
        self._rules(f"chain input {{ type filter hook input priority 0;\n{rules}\n}}")

    def hears_all(self) -> None:
        self._rules("")

    def move(self, address: str) -> None:
        """The machine gets another address."""
        self.ip("addr", "flush", "dev", "e0")
        self.ip("addr", "add", f"{address}/24", "dev", "e0")
        self.address = address

    def _rules(self, chains: str) -> None:
        text = f"table inet test {{}}\ndelete table inet test\ntable inet test {{\n{chains}\n}}\n"
        self.apply(text)

    def apply(self, rules: str) -> None:
        """Hand rules to nftables."""
        subprocess.run(
            [*self.within, "nft", "-f", "-"], input=rules, text=True, check=True, timeout=10
        )


class Network:
    """A bridge, and the places that hang on it."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._prefix = f"esnode-{os.getpid()}-{next(_numbers)}"
        self._switch = self._namespace("switch")
        _run("ip", "-n", self._switch, "link", "add", "b0", "type", "bridge")
        _run("ip", "-n", self._switch, "link", "set", "b0", "up")
        self.places: list[Place] = []

    def place(self, *, is_on_bridge: bool = True) -> Place:
        number = len(self.places) + 1
        place = self._bare_place(f"10.88.0.{number}")
        if is_on_bridge:
            port = f"p{number}"
            pair = ("link", "add", "e0", "type", "veth", "peer", "name", port)
            place.ip(*pair, "netns", self._switch)
            _run("ip", "-n", self._switch, "link", "set", port, "master", "b0", "up")
            place.connect()
        return place

    def slow_line(
        self, one: Place, other: Place, program: Path, *words: str
    ) -> "subprocess.Popen[bytes]":
        """Join two places by a line on which packets take their time."""
        ends = [f"{place.namespace}:e0" for place in (one, other)]
        line = subprocess.Popen(
            [sys.executable, str(program), *ends, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._stack.callback(line.wait)
        self._stack.callback(line.kill)
        assert line.stdin is not None
        assert line.stdout is not None
        self._stack.callback(line.stdin.close)
        self._stack.callback(line.stdout.close)
        assert line.stdout.readline() == b"ready\n"
        for place in (one, other):
            place.connect()
        return line

    def _bare_place(self, address: str) -> Place:
        """One without a way to the others."""
        place = Place(namespace=self._namespace(str(len(self.places) + 1)), address=address)
        place.ip("link", "set", "lo", "up")
        self.places.append(place)
        return place

    def translated_place(self) -> tuple[Place, Place]:
        """One behind a router that translates addresses, and forwards the port to it: both."""
        router = self.place()
        inner = self._bare_place("192.168.9.2")
        router.ip(
            "link", "add", "i0", "type", "veth", "peer", "name", "e0", *("netns", inner.namespace)
        )
        for place, device, address in (
            (router, "i0", "192.168.9.1/24"),
            (inner, "e0", "192.168.9.2/24"),
        ):
            place.ip("addr", "add", address, "dev", device)
            place.ip("link", "set", device, "up")
        inner.ip("route", "add", "default", "via", "192.168.9.1")
        _run(*router.within, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        router.apply(
            "table ip translated {\n"
            "chain back { type nat hook prerouting priority -100;\n"
            f"iif e0 meta l4proto {{ tcp, udp }} th dport {PORT} dnat to 192.168.9.2\n}}\n"
            "chain out { type nat hook postrouting priority 100;\noif e0 masquerade\n}\n}\n"
        )
        return router, inner

    def cut(self, one_side: Sequence[Place], other_side: Sequence[Place]) -> None:
        """Neither side hears the other."""
        for here, there in ((one_side, other_side), (other_side, one_side)):
            for place in here:
                place.deaf_to(*(one.address for one in there))

    def heal(self) -> None:
        for place in self.places:
            place.hears_all()

    def _namespace(self, name: str) -> str:
        full = f"{self._prefix}-{name}"
        _run("ip", "netns", "add", full)
        self._stack.callback(_run, "ip", "netns", "del", full)
        return full


@dataclass
class Machine:
    """A computer in a place, with a disk, on which an agent may run."""

    name: str
    place: Place
    folder: Path
    within: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    running: ExitStack = field(default_factory=ExitStack)
    agent: AgentProcess | None = None

    @property
    def state(self) -> Path:
        return self.folder / self.name

    @property
    def process(self) -> AgentProcess:
        assert self.agent is not None, f"{self.name} runs no agent"
        return self.agent

    def start(self) -> None:
        """Run an agent until it is stopped, killed, or the test is over."""
        self.agent = self.running.enter_context(
            started_agent(
                self.folder,
                *FLAGS,
                *self.flags,
                state_dir=self.state,
                name=f"{self.name}-{next(_numbers)}",
                within=(*self.place.within, *self.within),
            )
        )
        wait_until(lambda: self.get("/v1/cluster"), seconds=30, why=f"agent of {self.name}")

    def kill(self) -> None:
        self.running.close()
        self.agent = None

    def get(self, path: str) -> Answer:
        """Ask the agent over its control socket; through its own eyes, if it has mounts."""
        return self._ask("GET", path, None)

    def post(self, path: str, order: dict[str, Any]) -> Answer:
        """Tell the agent to do something."""
        return self._ask("POST", path, json.dumps(order))

    def _ask(self, method: str, path: str, body: str | None) -> Answer:
        root = Path(f"/proc/{self.process.pid}/root")
        connection = _UnixConnection(root / str(self.state / "agent.sock").lstrip("/"))
        try:
            headers = {"Content-Type": "application/json"} if body else {}
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return Answer(status=response.status, headers={}, body=response.read())
        finally:
            connection.close()

    def metrics(self) -> str:
        """As a scraper on the machine itself is answered."""
        addresses = self.process.events("agent_started")[0]["addresses"]
        assert isinstance(addresses, list)
        url = addresses[0]
        script = f"import urllib.request as r; print(r.urlopen('{url}/metrics').read())"
        done = subprocess.run(
            [*self.place.within, sys.executable, "-c", script],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
        return done.stdout

    def cluster(self) -> dict[str, Any]:
        """The cluster as this agent sees it; empty while it is in none."""
        answer = self.get("/v1/cluster")
        return answer.json() if answer.status == 200 else {}

    def sees(self) -> dict[str, str]:
        return {node["name"]: node["state"] for node in self.cluster().get("nodes", ())}

    def node(self, name: str) -> dict[str, Any]:
        return next(node for node in self.cluster()["nodes"] if node["name"] == name)

    def warnings(self) -> dict[str, str]:
        return {one["code"]: one["text"] for one in self.cluster().get("warnings", ())}

    def changes(self, name: str) -> list[str]:
        """What a member has been to this agent, one after the other."""
        events: Any = self.get("/v1/cluster/events").json()["events"]
        return [one["after"] for one in events if one["subject"] == name and one["after"]]

    def run(self, *words: str) -> str:
        """One command of the operator on this machine."""
        done = run_esnode(
            self.folder, "cluster", *words, "--state-dir", str(self.state), within=self.place.within
        )
        assert done.returncode in (0, 1), (words, done.stdout, done.stderr)
        return done.stdout


def wait_for(machine: Machine, **expected: str) -> None:
    """Until an agent sees these members so; further ones may be anything.

    `here` is alive or, for one that was lately in doubt, degraded.
    """

    def is_so() -> bool:
        seen = {
            name: "here" if state in HERE and expected.get(name) == "here" else state
            for name, state in machine.sees().items()
        }
        return expected.items() <= seen.items()

    wait_until(
        is_so,
        seconds=WAIT_SECONDS,
        why=f"{expected} seen by {machine.name}",
    )


class Fleet:
    """Machines of one cluster, each in its place."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.stack = stack
        self.network = Network(stack)
        self.cluster = Cluster(folder)
        self.machines: list[Machine] = []

    def add(self, name: str, *, place: Place | None = None, **more: Any) -> Machine:
        """One more node, enrolled and not running."""
        place = place or self.network.place()
        first = self.machines[0].place.seed if self.machines else None
        self.cluster.enrol(name, seeds=(first,) if first else (), may_found=first is None)
        machine = Machine(name=name, place=place, folder=self.folder, **more)
        self.stack.callback(machine.kill)
        self.machines.append(machine)
        return machine

    def all_here(self) -> None:
        """Wait until every machine sees every machine."""
        machines = self.machines
        wanted = {machine.name: "here" for machine in machines}
        for machine in machines:
            wait_for(machine, **wanted)


@contextmanager
def fleet_of(count: int, folder: Path) -> Iterator[Fleet]:
    """A cluster that has come together."""
    with ExitStack() as stack:
        fleet = Fleet(folder, stack)
        for number in range(1, count + 1):
            fleet.add(f"n{number}").start()
        fleet.all_here()
        yield fleet


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("agent", timeout=5)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(5)
        try:
            self.sock.connect(str(self._path))
        except OSError:
            self.sock.close()
            raise


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, timeout=10)
