"""One fault at a time, at real agents of one rack: what each does to the rack, and what is said."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.agents import AgentProcess, needs_root, private_mounts, wait_until
from tests.power_racks import PowerRack
from tests.soak import disks
from tests.soak.faults import TORN_RECORD

pytestmark = pytest.mark.process

FIRST, OTHER, WORKER = "gpu-01", "gpu-02", "gpu-03"
FOLLOWED_SECONDS = 6.0
"""In which watts follow work."""
EACH_SECOND = "--scrape-interval=1s"
FULL = "No space left on device"
SHIFTS_MAX = 12


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[PowerRack]:
    with ExitStack() as stack:
        yield PowerRack(tmp_path, stack, flags=(EACH_SECOND,), is_apart=True)


def found(rack: PowerRack) -> int:
    """The rack under its budget, everybody with the same cap; how high that is."""
    rack.form()
    rack.found()
    return rack.cap(WORKER)


def let_watts_come(rack: PowerRack, even: int) -> None:
    """Work at one node, until it has the watts of the others."""
    rack.load(WORKER, 1.0)
    wait_until(
        lambda: rack.cap(WORKER) > even + 0.6 * (even - rack.floor_watts),
        seconds=25,
        why="the watts of idle nodes come to the one that works",
    )


def kill(rack: PowerRack, name: str) -> AgentProcess:
    agent = rack.agents.pop(name)
    agent.end(signal.SIGKILL)
    return agent


def receivers(rack: PowerRack, name: str) -> int:
    return len({line["to"] for line in rack.audit(name) if line["kind"] == "given"})


def state(rack: PowerRack, name: str) -> Any:
    return rack.power(name)["state"]


def alarms(agent: AgentProcess, words: str) -> list[str]:
    return [line for line in agent.log_path.read_text().splitlines() if words in line]


def test_a_torn_end_of_a_ledger_is_cut_and_told_and_nothing_is_lost(rack: PowerRack) -> None:
    even = found(rack)
    let_watts_come(rack, even)
    before = rack.cap(FIRST)
    kill(rack, FIRST)
    whole = rack.ledger_path(FIRST).read_bytes()
    rack.ledger_path(FIRST).write_bytes(whole + TORN_RECORD)

    agent = rack.start(FIRST)
    wait_until(lambda: state(rack, FIRST) == "enforcing", seconds=20, why="it is back")

    assert rack.ledger_path(FIRST).read_bytes().startswith(whole)
    assert len(alarms(agent, f"cut a damaged end of {len(TORN_RECORD)} bytes")) >= 1
    assert abs(rack.cap(FIRST) - before) <= 50
    assert rack.grade(OTHER) in ("A", "B")
    assert rack.verdict().over == 0


def test_an_old_copy_of_a_ledger_is_not_believed_and_its_node_never_raises(
    rack: PowerRack,
) -> None:
    even = found(rack)
    backup = rack.ledger_path(OTHER).read_bytes()
    for name in (FIRST, WORKER):
        rack.load(name, 1.0)
    wait_until(
        lambda: receivers(rack, OTHER) == 2, seconds=30, why="it has given watts to both others"
    )
    kill(rack, OTHER)
    rack.ledger_path(OTHER).write_bytes(backup)

    rack.start(OTHER)
    wait_until(lambda: state(rack, OTHER) == "quarantined", seconds=30, why="it is noticed")
    wait_until(
        lambda: rack.cap(OTHER) == rack.floor_watts, seconds=20, why="it holds its lowest cap"
    )
    said = rack.run("power", "status", on=OTHER, code=1)
    rack.load(OTHER, 1.0)
    rack.load(WORKER, 0.0)
    wait_until(lambda: rack.cap(WORKER) < even, seconds=30, why="watts go to who is believed")

    assert "quarantined" in said
    assert "old copy" in said
    assert rack.cap(OTHER) == rack.floor_watts
    assert rack.verdict().over == 0


def test_a_node_that_stands_still_keeps_its_cap_and_trades_again_when_it_goes_on(
    rack: PowerRack,
) -> None:
    even = found(rack)
    rack.agents[FIRST].process.send_signal(signal.SIGSTOP)
    rack.load(WORKER, 1.0)
    wait_until(lambda: rack.cap(WORKER) > even + 100, seconds=25, why="the others trade")
    reached = rack.cap(WORKER)
    silent = rack.verdict()

    rack.agents[FIRST].process.send_signal(signal.SIGCONT)
    wait_until(
        lambda: rack.cap(WORKER) > reached + 100, seconds=25, why="what it holds is traded again"
    )

    assert silent.over == 0
    assert rack.verdict().over == 0
    assert state(rack, FIRST) == "enforcing"


@needs_root
def test_a_full_disk_stops_no_agent_and_what_waits_for_it_comes_once_there_is_room(
    rack: PowerRack, tmp_path: Path
) -> None:
    if why := disks.why_none(tmp_path):
        pytest.skip(why)
    image, at = tmp_path / "disk.img", rack.state_dir(WORKER)
    disks.make_image(image)
    at.mkdir()
    rack.within[WORKER] = private_mounts(f"mount -o loop '{image}' '{at}'")
    even = found(rack)
    agent = rack.agents[WORKER]
    inside = Path(f"/proc/{agent.pid}/root{at}")
    disks.fill(inside)

    shift_until(rack, lambda: bool(alarms(agent, FULL)))
    rack.load(FIRST, 0.0)
    rack.load(WORKER, 1.0)
    time.sleep(FOLLOWED_SECONDS)
    told = [line["detail"] for line in agent.events("power_alarm") if FULL in str(line["detail"])]
    full = rack.verdict()

    disks.free(inside)
    wait_until(
        lambda: rack.cap(WORKER) > even + 0.6 * (even - rack.floor_watts),
        seconds=40,
        why="with room on the disk the watts come",
    )

    assert agent.process.poll() is None
    assert told
    assert len(told) == len(set(map(str, told)))
    assert full.over == 0
    assert rack.verdict().over == 0
    assert "Traceback" not in agent.log_path.read_text()


def shift_until(rack: PowerRack, is_so: Callable[[], bool]) -> None:
    """Let work move to and fro: each move is a few entries, and blocks have room for some."""
    for turn in range(SHIFTS_MAX):
        rack.load(FIRST, float(turn % 2))
        rack.load(WORKER, float(1 - turn % 2))
        end = time.perf_counter() + FOLLOWED_SECONDS
        while time.perf_counter() < end:
            if is_so():
                return
            time.sleep(0.1)
    raise AssertionError("the disk still takes what is written")
