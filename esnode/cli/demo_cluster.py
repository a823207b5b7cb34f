"""`esnode demo --nodes N`: several real agents on this machine become one cluster.

Nothing in it is played: keys, invites and certificates are made as `esnode cluster init` and
`invite` make them, each agent is a process with a state folder, ports and simulated GPUs of its
own, they talk over UDP and TLS on loopback, and what is shown is what `esnode cluster status` says.
"""

import math
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.credentials import save_operator
from cluster.enrolment import (
    AuthorityKeys,
    InviteWish,
    add_operator,
    found_cluster,
    issue_invite,
    open_invite,
)
from cluster.entry import enter
from cluster.identity.files import node_folder
from cluster.ids import ClusterName, NodeName, RackId
from esnode.cli.demo_load import MACHINE_FILE, SCENES, play
from esnode.client import AgentRefused, AgentUnreachable, Door, ask, socket_door
from esnode.clock import monotonic_seconds, unix_seconds
from esnode.control_socket import NAME as SOCKET_NAME

START_SECONDS = 30.0
STOP_SECONDS = 5.0
SETTLE_SECONDS = 60.0
INVITE_SECONDS = 3600
SCHEMA = "esnode.cluster_status/"


class DemoFailed(Exception):
    """The demo cannot go on; one line."""


@dataclass(slots=True, kw_only=True)
class Machine:
    """One agent of the demo."""

    name: str
    rack: str
    folder: Path
    hardware: str
    rest_watts: int
    """What all but its GPUs draws at most."""
    process: "subprocess.Popen[bytes] | None" = None
    is_frozen: bool = False

    @property
    def is_running(self) -> bool:
        """Whether its process lives."""
        return self.process is not None and self.process.poll() is None

    @property
    def door(self) -> Door:
        """Where it takes orders."""
        return socket_door(self.folder / SOCKET_NAME)

    @property
    def hardware_path(self) -> Path:
        """The file that is its machine."""
        return self.folder / MACHINE_FILE

    def start(self) -> None:
        """Start its agent; the same state folder makes it the same node."""
        command = [
            sys.executable, "-m", "esnode", "agent", "--listen-address", "127.0.0.1:0",
            "--cluster-bind", "127.0.0.1:0", "--state-dir", str(self.folder),
            "--hardware", f"simulated:{self.hardware}", "--scrape-interval", "1s",
            "--enable-ipmi", "false", "--enable-app", "false",
            "--power-rest-watts", str(self.rest_watts),
        ]  # fmt: skip
        kept = {name: text for name, text in os.environ.items() if not name.startswith("ESNODE_")}
        with (self.folder / "agent.log").open("ab") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=output, env=kept, cwd=self.folder
            )

    def kill(self) -> None:
        """As a power cut would."""
        self.is_frozen = False
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def freeze(self) -> None:
        """Stop its process where it stands; its hardware goes on."""
        if self.process is not None and self.is_running:
            self.is_frozen = True
            self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        if self.process is not None and self.is_frozen:
            self.is_frozen = False
            self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Ask it to end; `reap` waits for that."""
        self.thaw()
        if self.process is not None and self.is_running:
            self.process.terminate()

    def reap(self) -> None:
        """Wait for its end, for a while."""
        if self.process is None:
            return
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def ask(self, path: str = "/v1/cluster", schema: str = SCHEMA) -> dict[str, Any] | None:
        """The cluster as this agent knows it; None while it does not answer."""
        if self.is_frozen:
            return None
        try:
            return ask(self.door, path, schema=schema)
        except (AgentUnreachable, AgentRefused):
            return None

    def last_words(self) -> str:
        """The end of its log, for a line that says why it did not start."""
        try:
            lines = (self.folder / "agent.log").read_text(errors="replace").strip().splitlines()
        except OSError:
            return "no log"
        return lines[-1] if lines else "nothing in its log"


class Demo:
    """The machines of one demo, and who is asked."""

    def __init__(self, folder: Path, *, nodes: int, racks: int, hardware: str) -> None:
        self.machines = [
            Machine(
                name=f"n{number + 1}",
                rack=f"r{number % racks + 1:02}",
                folder=folder / f"n{number + 1}",
                hardware=hardware,
                rest_watts=rest_watts(hardware),
            )
            for number in range(nodes)
        ]
        self.operator_folder = folder / "operator"

    def begin(self, tell: Callable[[str], None]) -> None:
        """Make the cluster and start everybody.

        Raises:
            DemoFailed: an agent does not start.
        """
        now = int(unix_seconds())
        keys = found_cluster(
            ClusterName("demo"), now_unix_seconds=now, random_bytes=secrets.token_bytes
        )
        operator = add_operator(
            keys, NodeName("first"), now_unix_seconds=now, random_bytes=secrets.token_bytes
        )
        save_operator(self.operator_folder, keys, operator)
        first, *others = self.machines
        for machine in self.machines:
            machine.folder.mkdir(parents=True)
        _enrol(keys, first, seeds=(), may_found=True)
        first.start()
        tell(f"{first.name} founds cluster demo")
        address = self._address_of(first)
        for machine in others:
            _enrol(keys, machine, seeds=(address,), may_found=False)
            machine.start()
            tell(f"{machine.name} comes to rack {machine.rack} by an invite, to {address}")
        for number, machine in enumerate(self.machines):
            self._address_of(machine)
            play(machine.folder, SCENES[1 + number % 3][1])

    def _address_of(self, machine: Machine) -> str:
        """Where its peers find it."""

        def asked() -> dict[str, Any] | None:
            if not machine.is_running:
                raise DemoFailed(f"{machine.name} did not start: {machine.last_words()}")
            return machine.ask()

        document = wait_for(asked, START_SECONDS, f"{machine.name} does not answer")
        return next(str(node["address"]) for node in document["nodes"] if node["is_asked"])

    def settled(self, *, has_budget: bool = False) -> dict[str, Any]:
        """The cluster once everybody sees everybody and has told how it is, budgets included.

        Raises:
            DemoFailed: that did not come about.
        """

        def asked() -> dict[str, Any] | None:
            for machine in self.machines:
                if not machine.is_running:
                    raise DemoFailed(f"{machine.name} has ended: {machine.last_words()}")
            document = self.machines[0].ask()
            if document is None or not self._is_complete(document):
                return None
            budgets = [rack["power"]["budget_watts"]["value"] for rack in document["racks"]]
            return None if has_budget and None in budgets else document

        return wait_for(asked, SETTLE_SECONDS, "the nodes did not all meet")

    def _is_complete(self, document: dict[str, Any]) -> bool:
        nodes = document["nodes"]
        return len(nodes) == len(self.machines) and all(
            node["state"] == "alive" and node["power"]["draw_watts"]["value"] is not None
            for node in nodes
        )

    def document(self) -> tuple[str, dict[str, Any]] | None:
        """What any of those that run says, and who was asked."""
        for machine in self.machines:
            if machine.is_running and (document := machine.ask()) is not None:
                return machine.name, document
        return None

    def racks(self) -> dict[str, list[Machine]]:
        """The machines of each rack."""
        racks: dict[str, list[Machine]] = {}
        for machine in self.machines:
            racks.setdefault(machine.rack, []).append(machine)
        return racks

    def end(self) -> None:
        """Stop everybody."""
        for machine in self.machines:
            machine.stop()
        for machine in self.machines:
            machine.reap()


@contextmanager
def running_demo(
    folder: Path, *, nodes: int, racks: int, hardware: str, tell: Callable[[str], None]
) -> Iterator[Demo]:
    """A cluster in a folder that is gone afterwards, whatever ends it."""
    demo = Demo(folder, nodes=nodes, racks=racks, hardware=hardware)
    try:
        demo.begin(tell)
        yield demo
    finally:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C leaves none behind
        demo.end()
        shutil.rmtree(folder, ignore_errors=True)
        signal.signal(signal.SIGINT, before)


def _enrol(
    keys: AuthorityKeys, machine: Machine, *, seeds: tuple[str, ...], may_found: bool
) -> None:
    now = int(unix_seconds())
    token = issue_invite(
        keys,
        InviteWish(
            rack=RackId(machine.rack),
            ttl_seconds=INVITE_SECONDS,
            may_found=may_found,
            uses=1,
        ),
        seeds=seeds,
        now_unix_seconds=now,
        random_bytes=secrets.token_bytes,
    )
    enter(
        node_folder(machine.folder),
        open_invite(token),
        NodeName(machine.name),
        now_unix_seconds=now,
        random_bytes=secrets.token_bytes,
    )


def rest_watts(hardware: str) -> int:
    """What such a machine draws at most beside its GPUs."""
    from esnode.drivers.simulated.parts import parse_spec

    return math.ceil(sum(part.chassis_share_watts for part in parse_spec(hardware)))


def wait_for(
    look: Callable[[], dict[str, Any] | None], seconds: float, complaint: str
) -> dict[str, Any]:
    """What `look` finds once it finds something.

    Raises:
        DemoFailed: it does not in time.
    """
    deadline = monotonic_seconds() + seconds
    while (found := look()) is None:
        if monotonic_seconds() > deadline:
            raise DemoFailed(f"{complaint} within {seconds:g} s")
        time.sleep(0.1)
    return found
