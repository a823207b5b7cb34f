"""Real agents of one rack hold its budget: from the genesis on, through load, kill and return."""

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.agents import samples, wait_until
from tests.power_racks import NAMES, PowerRack, all_of, boottime_seconds, kinds

pytestmark = pytest.mark.process


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[PowerRack]:
    with ExitStack() as stack:
        yield PowerRack(tmp_path, stack)


def test_a_rack_keeps_its_budget_while_work_moves_and_agents_die(rack: PowerRack) -> None:
    rack.form()
    before = rack.power("gpu-01")
    assert before["state"] == "ungoverned"
    assert before["gate"]["is_open"]

    rack.found()
    assert all_of(lambda name: rack.power(name)["state"] == "enforcing")
    assert all_of(lambda name: rack.power(name)["gate"]["is_open"])
    even = rack.cap("gpu-01")

    rack.load("gpu-03", 1.0)
    wait_until(
        lambda: rack.cap("gpu-03") > even + 0.6 * (even - rack.floor_watts),
        seconds=20,
        why="the watts of idle nodes come to the one that works",
    )
    assert rack.verdict().over == 0

    killed = rack.agents.pop("gpu-03")
    killed.end(signal.SIGKILL)
    for name in NAMES[:2]:
        rack.load(name, 1.0)
    wait_until(
        lambda: "silent" in json.dumps(rack.power("gpu-02")["currencies"]),
        seconds=20,
        why="the others notice",
    )
    stranded = rack.power("gpu-02")["currencies"][0]["stranded_watts"]
    assert stranded > 0
    assert rack.verdict().over == 0

    rack.load("gpu-03", 0.0)
    rack.start("gpu-03")
    wait_until(
        lambda: all(rack.cap(name) > even + 30 for name in NAMES[:2]),
        seconds=30,
        why="what the killed node held is traded again",
    )
    assert rack.verdict().over == 0
    assert {"cap", "given", "gate"} <= kinds(rack.audit("gpu-03"))
    assert {"taken", "complied", "opened"} <= kinds(rack.audit("gpu-02"))
    page = rack.agents["gpu-02"].get("/metrics").text
    assert samples(page, "esnode_rack_power_budget_watts") == {
        '{currency="rack:r01"}': rack.budget_watts
    }
    cluster = rack.agents["gpu-02"].get("/v1/cluster").json()
    assert cluster["racks"][0]["power"]["budget_watts"]["value"] == rack.budget_watts  # type: ignore[index]
    for agent in rack.agents.values():
        assert "Traceback" not in agent.log_path.read_text()


def test_a_rack_obeys_a_lower_budget_and_a_machine_that_starts_anew_waits(
    rack: PowerRack,
) -> None:
    rack.form()
    rack.found(shared_ratio=0.8)
    for name in NAMES:
        rack.load(name, 1.0)
    before = {name: rack.cap(name) for name in NAMES}

    lower = rack.budget_watts - 600
    rack.run("power", "budget", "set", "r01", f"{lower}W", "--yes")
    wait_until(
        lambda: all(rack.power(name)["currencies"][0]["caps_watts"] <= lower for name in NAMES),
        seconds=20,
        why="everybody obeys the cut",
    )
    rack.budget_watts, rack.since_seconds = lower, boottime_seconds()
    assert rack.verdict().over == 0
    assert all_of(lambda name: rack.cap(name) < before[name])

    rack.run("simulated", "reboot", on="gpu-03")
    refused = rack.run("simulated", "load", "all", "1.0", on="gpu-03", code=1)
    wait_until(lambda: rack.power("gpu-03")["gate"]["is_open"], seconds=20, why="its cap is set")

    assert refused == ""
    assert rack.cap("gpu-03") < before["gpu-03"]
    rack.load("gpu-03", 1.0)
    assert {"gate", "alarm"} <= kinds(rack.audit("gpu-03"))
