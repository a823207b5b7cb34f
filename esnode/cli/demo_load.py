"""What the demos let simulated GPUs do. Its own file because one agent and a cluster share it."""

from pathlib import Path
from typing import Any

SCENES: tuple[tuple[str, dict[str, tuple[str, float]]], ...] = (
    ("all GPUs idle", {}),
    ("training on half of them", {"half": ("compute", 1.0)}),
    ("decoding on the other half", {"half": ("compute", 1.0), "rest": ("decode", 0.8)}),
    ("full load on all", {"half": ("compute", 1.0), "rest": ("compute", 1.0)}),
)
"""What the demo lets the GPUs do, one after the other."""

MACHINE_FILE = "simulated-hardware.json"
"""Where an agent keeps its simulated machine, in its state folder."""
IDLE, FULL = SCENES[0][1], SCENES[3][1]


def play(folder: Path, scene: dict[str, tuple[str, float]]) -> None:
    """Put the simulated GPUs under the load of one scene."""
    from esnode.drivers.simulated.machine import Load, LoadSet
    from esnode.drivers.simulated.store import Store

    store = Store(folder / MACHINE_FILE)

    def plan(machine: Any) -> list[LoadSet]:
        events = []
        for gpu in machine.gpus:
            kind, ratio = scene.get("half" if gpu.index % 2 == 0 else "rest", ("compute", 0.0))
            events.append(LoadSet(gpu=gpu.uuid, load=Load(kind=kind, ratio=ratio)))
        return events

    store.change(plan, cause="demo")
