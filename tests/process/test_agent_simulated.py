"""An agent over simulated GPUs: a device that breaks is down, and nothing else is late."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents import AgentProcess, run_esnode, running_agent, wait_until

pytestmark = pytest.mark.process

FLAGS = ("--hardware=simulated:h100x8", "--scrape-interval=200ms", "--collect-deadline=400ms")
FRESH_SECONDS = 1.5
"""A tick is 1 s, a reading 200 ms."""


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[AgentProcess]:
    with running_agent(tmp_path, *FLAGS) as agent:
        wait_until(lambda: set(up(agent)) == set(range(8)), seconds=10, why="eight GPUs")
        yield agent


def by_index(agent: AgentProcess, name: str) -> dict[int, float]:
    """The series of a GPU family by the GPU's index."""
    status = agent.status()["gpus"]
    assert isinstance(status, list)
    index = {gpu["uuid"]: int(gpu["gpu"]) for gpu in status}
    return {
        index[labels.partition('uuid="')[2].partition('"')[0]]: value
        for labels, value in agent.samples(name).items()
    }


def up(agent: AgentProcess) -> dict[int, float]:
    return by_index(agent, "esnode_gpu_up")


def simulate(agent: AgentProcess, *arguments: str) -> None:
    done = run_esnode(agent.state_dir, f"--state-dir={agent.state_dir}", "simulated", *arguments)
    assert done.returncode == 0, done.stderr


def reason(agent: AgentProcess, index: int) -> str:
    gpus = agent.status()["gpus"]
    assert isinstance(gpus, list)
    return next(str(gpu["reason"]) for gpu in gpus if gpu["gpu"] == str(index))


def test_eight_gpus_are_served(agent: AgentProcess) -> None:
    assert up(agent) == dict.fromkeys(range(8), 1.0)
    assert agent.value("esnode_gpus_found") == 8
    assert agent.value("esnode_gpus_lost") == 0
    assert len(agent.samples("esnode_gpu_info")) == 8
    idle = agent.samples("esnode_gpu_power_watts")
    assert all(40 <= watts <= 120 for watts in idle.values())

    simulate(agent, "load", "all", "1.0")

    wait_until(
        lambda: min(agent.samples("esnode_gpu_power_watts").values()) > 500,
        seconds=10,
        why="the load shows",
    )
    assert max(agent.samples("esnode_gpu_power_watts").values()) <= 700


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        pytest.param("lost", "has fallen off the bus", id="lost"),
        pytest.param("hang", "no answer within 0.4 s", id="hang"),
    ],
)
def test_one_broken_gpu_is_down_and_the_others_stay_on_time(
    agent: AgentProcess, fault: str, why: str
) -> None:
    simulate(agent, "fault", "3", fault)

    wait_until(lambda: up(agent)[3] == 0, seconds=10, why="the broken GPU is down")
    assert up(agent) == dict.fromkeys(range(8), 1.0) | {3: 0.0}
    assert 3 not in by_index(agent, "esnode_gpu_power_watts")
    assert why in reason(agent, 3)
    for _ in range(5):
        ages = by_index(agent, "esnode_gpu_reading_age_seconds")
        assert set(ages) >= {0, 1, 2, 4, 5, 6, 7}
        assert all(age < FRESH_SECONDS for index, age in ages.items() if index != 3)
        assert agent.get("/healthz").json()["status"] == "ok"
        assert agent.get("/readyz").status == 200
        assert (agent.value("esnode_agent_tick_lateness_seconds") or 0) < FRESH_SECONDS

    simulate(agent, "fault", "3", "clear")

    wait_until(lambda: up(agent)[3] == 1, seconds=10, why="the mended GPU is up")
    assert set(up(agent).values()) == {1.0}
    assert agent.status()["healthy"] is True


def test_all_gpus_hang_and_the_agent_does_not(agent: AgentProcess) -> None:
    simulate(agent, "fault", "all", "hang")

    wait_until(lambda: set(up(agent).values()) == {0.0}, seconds=10, why="all GPUs are down")
    threads = len(list(Path(f"/proc/{agent.pid}/task").iterdir()))
    assert agent.get("/healthz").json()["status"] == "ok"
    assert agent.value("esnode_cpu_load1") is not None
    # One thread waits in each hung call, and no second call is ever made.
    assert threads < 8 + 12
    assert agent.end() < 2
    assert agent.process.returncode == 0


def test_faults_that_are_not_silence_show_as_what_they_are(agent: AgentProcess) -> None:
    simulate(agent, "fault", "1", "ecc", "uncorrected", "2")
    simulate(agent, "fault", "2", "refuse-limit")
    simulate(agent, "fault", "4", "sensor-stuck")

    def errors() -> float:
        series = agent.samples("esnode_gpu_ecc_errors_total")
        return sum(v for k, v in series.items() if "uncorrected" in k and "volatile" in k)

    wait_until(lambda: errors() == 2, seconds=5, why="the errors are counted")
    assert up(agent) == dict.fromkeys(range(8), 1.0)
    assert (agent.value("esnode_degradation_score") or 0) >= 1
    assert any("ecc" in labels for labels in agent.samples("esnode_degradation_flag"))


def test_the_exit_code_of_status_tells_a_broken_gpu(agent: AgentProcess) -> None:
    where = f"--state-dir={agent.state_dir}"
    assert run_esnode(agent.state_dir, where, "status").returncode == 0

    simulate(agent, "fault", "0", "lost")
    wait_until(lambda: up(agent)[0] == 0, seconds=10, why="the broken GPU is down")
    done = run_esnode(agent.state_dir, where, "status", "--json")

    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert [gpu["gpu"] for gpu in document["gpus"] if not gpu["up"]] == ["0"]
