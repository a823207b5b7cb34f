"""The simulated machine outlives every process that uses it, however that process ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from esnode.drivers.simulated.clocks import read_boottime_seconds, read_host_boot_id
from esnode.drivers.simulated.codec import HistoryLine
from esnode.drivers.simulated.driver import SimulatedGpus
from esnode.drivers.simulated.machine import LimitSet, Load, LoadSet, Repaired
from esnode.drivers.simulated.store import Store
from esnode.drivers.simulated.truth import PhysicalTruth
from tests.simulated_world import happen

pytestmark = pytest.mark.process

REPOSITORY = Path(__file__).resolve().parents[2]

TRADER = """
import sys
from pathlib import Path
from esnode.drivers.simulated.machine import LimitSet
from esnode.drivers.simulated.store import Store

# Moves 1 W at a time from one GPU to the other, both in one change, so that the sum is constant.
store = Store(Path(sys.argv[1]))
one, other = (gpu.uuid for gpu in store.read().gpus)

def swap(machine):
    watts = machine.gpus[0].limit_requested_watts
    moved = watts - 1 if watts > 250 else 550
    return [LimitSet(gpu=one, watts=moved), LimitSet(gpu=other, watts=800 - moved)]

while True:
    store.change(swap, cause="trade")
    print(".", end="", flush=True)
"""

AGENT = """
import sys
from pathlib import Path
from esnode.drivers.simulated.driver import SimulatedGpus

driver = SimulatedGpus(Path(sys.argv[1]), "h100x1")
gpu = driver.discover().gpus[0]
driver.set_load(gpu.uuid, 1.0)
driver.set_power_limit(gpu, 350)
print("set", flush=True)
while True:
    driver.read(gpu)
"""


def start(program: str, path: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", program, str(path)], cwd=REPOSITORY, stdout=subprocess.PIPE
    )


def kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def wait_for_output(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    assert process.stdout.read(1), "the process ended before it did anything"


def requested_sums(lines: Sequence[HistoryLine], watts: list[int]) -> list[int]:
    """The sum of both requested limits after each trade of two lines."""
    sums = []
    trades = [line.event for line in lines if isinstance(line.event, LimitSet)]
    for one, other in zip(trades[::2], trades[1::2], strict=True):
        watts = [one.watts, other.watts]
        sums.append(sum(watts))
    return sums


def test_a_writer_killed_at_any_instant_leaves_one_consistent_machine(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    store = Store(path)
    one, other = (gpu.uuid for gpu in store.create("h100x2").gpus)
    happen(store, LimitSet(gpu=one, watts=400), LimitSet(gpu=other, watts=400))
    changes = 0

    for attempt in range(12):
        trader = start(TRADER, path)
        wait_for_output(trader)
        time.sleep(0.003 * attempt + 0.001)
        kill(trader)

        fresh = Store(path)
        gpus = fresh.read().gpus
        lines = fresh.history()
        assert sum(gpu.limit_requested_watts for gpu in gpus) == 800
        last = [line.event for line in lines if isinstance(line.event, LimitSet)][-2:]
        assert [event.watts for event in last] == [gpu.limit_requested_watts for gpu in gpus]
        assert [line.sequence for line in lines] == list(range(1, len(lines) + 1))
        assert len(lines) > changes
        changes = len(lines)

    lines = Store(path).history()
    assert set(requested_sums(lines, [400, 400])) == {800}
    repairs = [line.event for line in lines if isinstance(line.event, Repaired)]
    assert all(event.what.startswith("cut ") for event in repairs)


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    store = Store(path)
    one, other = (gpu.uuid for gpu in store.create("h100x2").gpus)
    happen(store, LimitSet(gpu=one, watts=400), LimitSet(gpu=other, watts=400))

    traders = [start(TRADER, path) for _ in range(3)]
    try:
        for trader in traders:
            wait_for_output(trader)
        time.sleep(0.5)
    finally:
        for trader in traders:
            kill(trader)

    lines = Store(path).history()
    writers = {line.actor_pid for line in lines} - {os.getpid()}
    assert writers == {trader.pid for trader in traders}
    assert set(requested_sums(lines, [400, 400])) == {800}


def test_a_writer_without_a_pause_lets_another_have_its_turn(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    store = Store(path)
    one, other = (gpu.uuid for gpu in store.create("h100x2").gpus)
    happen(store, LimitSet(gpu=one, watts=400), LimitSet(gpu=other, watts=400))
    trader = start(TRADER, path)
    try:
        wait_for_output(trader)
        for load in range(20):
            happen(store, LoadSet(gpu=one, load=Load(ratio=load / 20)))
    finally:
        kill(trader)

    mine = [line for line in Store(path).history() if line.actor_pid == os.getpid()]
    assert sum(isinstance(line.event, LoadSet) for line in mine) == 20


def test_a_gpu_keeps_its_cap_and_draws_on_when_its_writer_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    agent = start(AGENT, path)
    wait_for_output(agent)
    kill(agent)

    store = Store(path)
    (gpu,) = store.read().gpus
    killed = store.read_now().gpus[0]
    time.sleep(1.4)
    later = store.read_now().gpus[0]

    assert (later.limit_requested_watts, later.limit_in_force_watts) == (350, 350)
    assert later.load == Load(ratio=1.0)
    assert later.energy_joules - killed.energy_joules > 1.4 * 340
    truth = PhysicalTruth(store.history(), host_boot_id=read_host_boot_id())
    now = truth.at(read_boottime_seconds())
    assert now is not None
    assert now.gpus[0].draw_watts == 350
    lines = store.history()
    (limit,) = [line for line in lines if isinstance(line.event, LimitSet)]
    assert any(isinstance(line.event, LoadSet) for line in lines)
    assert truth.caps_in_force_watts(limit.at_seconds + 1.1) == {gpu.uuid: 700}
    assert truth.caps_in_force_watts(limit.at_seconds + 1.3) == {gpu.uuid: 350}

    successor = SimulatedGpus(path, "h100x1")
    reading = successor.read(successor.discover().gpus[0])
    assert reading.power_limit_enforced_watts == 350
    assert reading.power_instant_watts == 350
