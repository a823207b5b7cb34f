"""How long one waits for the command line and for an agent."""

import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.agents import clean_environment, esnode_command, running_agent
from tests.benchmarks.measuring import Row, median
from tests.peer_processes import node_exporter


def measure(*, is_quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield Row(
            what="esnode --help",
            unit="ms",
            digits=0,
            ours=median([_help_ms(folder) for _ in range(11)]),
            most=150,
        )
        starts = [(_start_ms(folder), _peer_start_ms(folder)) for _ in range(3 if is_quick else 7)]
        yield Row(
            what="start to the first answer",
            unit="ms",
            digits=0,
            ours=median([ours for ours, _ in starts]),
            peer=median([peer for _, peer in starts]),
            most=700,
        )


def _help_ms(folder: Path) -> float:
    started = time.perf_counter()
    subprocess.run(
        esnode_command("--help"),
        env=clean_environment(folder),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return (time.perf_counter() - started) * 1000


def _start_ms(folder: Path) -> float:
    started = time.perf_counter()
    with running_agent(folder, "--hardware=simulated:h100x8"):
        return (time.perf_counter() - started) * 1000


def _peer_start_ms(folder: Path) -> float:
    started = time.perf_counter()
    with node_exporter(folder):
        return (time.perf_counter() - started) * 1000
