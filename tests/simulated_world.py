"""A host whose clock and boots a test sets by hand, for simulated machines."""

from dataclasses import dataclass
from pathlib import Path

from esnode.drivers.simulated.clocks import Clocks
from esnode.drivers.simulated.driver import SimulatedGpus
from esnode.drivers.simulated.machine import Event
from esnode.drivers.simulated.store import Store


@dataclass
class World:
    """The time and boot of one imagined host."""

    now_seconds: float = 100.0
    host_boot_id: str = "boot-a"

    def clocks(self) -> Clocks:
        return Clocks(
            now_seconds=lambda: self.now_seconds,
            wall_seconds=lambda: 1_800_000_000.0 + self.now_seconds,
            host_boot_id=lambda: self.host_boot_id,
        )

    def store(self, path: Path, spec: str = "h100x2") -> Store:
        store = Store(path, clocks=self.clocks())
        store.create(spec, make_seed=lambda: "seed")
        return store

    def gpus(self, path: Path, spec: str = "h100x2") -> SimulatedGpus:
        return SimulatedGpus(
            path, spec, clocks=self.clocks(), process_name=lambda pid: f"job-{pid}"
        )


def happen(store: Store, *events: Event) -> None:
    store.change(lambda machine: events, cause="test")
