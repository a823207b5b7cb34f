"""The agents of a soak: a rack of them, killed and started again without waiting for them."""

import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from esnode.client import AgentRefused, AgentUnreachable, ask, socket_door
from esnode.control_socket import NAME as SOCKET_NAME
from esnode.drivers.simulated.machine import Load, LoadSet, Machine
from esnode.drivers.simulated.store import Store, StoreFailed
from tests.agents import started_agent
from tests.power_racks import PowerRack
from tests.soak import disks

FLAGS = ("--scrape-interval=1s", "--enable-app=false")


class SoakRack(PowerRack):
    """Agents that come and go."""

    def __init__(self, folder: Path, stack: ExitStack, nodes: int, *, has_disks: bool) -> None:
        names = [f"gpu-{number:02}" for number in range(1, nodes + 1)]
        super().__init__(folder, stack, names, FLAGS, is_apart=True)
        self._lives: dict[str, ExitStack] = {}
        self._logs = 0
        if has_disks:
            for name in names:
                image = folder / f"{name}.img"
                disks.make_image(image)
                disks.mount(image, self.state_dir(name))

    def kill(self, name: str) -> None:
        """As a power cut would; its log is kept."""
        agent = self.agents[name]
        agent.end(signal.SIGKILL)
        self._logs += 1
        agent.log_path.replace(self.folder / f"{name}.{self._logs}.log")

    def restart(self, name: str) -> None:
        """The same node again; it is not waited for."""
        agent = self._stack.enter_context(
            started_agent(self.folder, *self.flags_of(name), name=name)
        )
        self.agents[name] = agent

    def work(self, name: str, ratio: float) -> bool:
        """Let all GPUs of a machine work; whether it took that."""
        store = Store(self.machine_path(name))

        def plan(machine: Machine) -> list[LoadSet]:
            load = Load(kind="compute", ratio=ratio)
            return [LoadSet(gpu=gpu.uuid, load=load) for gpu in machine.gpus]

        try:
            store.change(plan, cause="soak")
        except StoreFailed:
            return False  # its agent was stopped in the middle of a change
        return True

    def told(self, name: str) -> dict[str, Any] | None:
        """What an agent says of its power; None while it says nothing."""
        door = socket_door(self.state_dir(name) / SOCKET_NAME)
        try:
            return ask(door, "/v1/power", schema="esnode.power/", timeout_seconds=2.0)
        except (AgentRefused, AgentUnreachable):
            return None

    def log_lines(self, words: str) -> int:
        """How many lines of all logs, of all lives, hold these words."""
        return sum(path.read_text().count(words) for path in self.folder.glob("*.log"))
