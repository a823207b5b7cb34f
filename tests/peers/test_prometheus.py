"""Prometheus' own programs take what the agent serves, and make sense of it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents import AgentProcess, run_esnode, running_agent, wait_until
from tests.peer_processes import find_program, prometheus

pytestmark = pytest.mark.peers

FLAGS = ("--hardware=simulated:h100x8", "--scrape-interval=1s")


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    folder = tmp_path_factory.mktemp("agent")
    with running_agent(folder, *FLAGS) as agent:
        wait_until(lambda: len(agent.samples("esnode_gpu_up")) == 8, seconds=10, why="GPUs")
        yield agent


def check(exposition: bytes) -> str:
    """What promtool says of an exposition."""
    done = subprocess.run(
        [find_program("promtool"), "check", "metrics"],
        input=exposition,
        capture_output=True,
        timeout=30,
        check=False,
    )
    return (done.stdout + done.stderr).decode()


def test_promtool_finds_nothing_to_say_of_our_names(agent: AgentProcess) -> None:
    exposition = agent.get("/metrics").body

    assert exposition.count(b"\nesnode_gpu_") > 300
    assert check(exposition) == ""


def test_promtool_can_read_every_alias_set(tmp_path: Path) -> None:
    flags = ("--metric-aliases=esnode-core,dcgm", "--k8s-mode=true", "--metrics-per-core=true")
    with running_agent(tmp_path, *FLAGS, *flags) as agent:
        wait_until(lambda: agent.samples("DCGM_FI_DEV_GPU_TEMP"), seconds=10, why="GPUs")

        said = check(agent.get("/metrics").body)

    # The predecessor's and DCGM's names break the naming rules, which is why they are aliases.
    assert "error while linting" not in said
    assert not [line for line in said.splitlines() if line.startswith("esnode_gpu_power_watts ")]


def test_prometheus_scrapes_and_its_sums_are_right(agent: AgentProcess, tmp_path: Path) -> None:
    loaded = run_esnode(
        agent.state_dir, f"--state-dir={agent.state_dir}", "simulated", "load", "all", "0.8"
    )
    assert loaded.returncode == 0, loaded.stderr
    wait_until(
        lambda: min(agent.samples("esnode_gpu_power_watts").values()) > 400,
        seconds=20,
        why="the load shows",
    )
    with prometheus(tmp_path, agent_port=agent.port) as server:
        wait_until(
            lambda: (server.one("sum(count_over_time(up[1m]))") or 0) >= 10,
            seconds=30,
            why="ten scrapes",
        )

        assert server.one("min_over_time(up[30s])") == 1
        assert server.target()["lastError"] == ""
        draw_watts = server.one("sum(esnode_gpu_power_watts)") or 0
        assert 8 * 400 < draw_watts < 8 * 700
        rate = server.one("sum(rate(esnode_gpu_energy_joules_total[8s]))")
        assert rate == pytest.approx(draw_watts, rel=0.03)
        assert server.one("count(esnode_gpu_up == 1)") == 8
        assert server.one("esnode_gpus_found") == 8
        # Identity joins on the UUID.
        joined = server.query("esnode_gpu_power_watts * on(uuid) group_left(name) esnode_gpu_info")
        assert len(joined) == 8
        assert all("H100" in dict(labels)["name"] for labels in joined)
        busy = server.one(
            "1 - sum(rate(esnode_cpu_seconds_total{mode='idle'}[8s])) / sum(esnode_cpus)"
        )
        assert busy is not None
        assert -0.05 <= busy <= 1.05
        scraped = server.one("scrape_samples_scraped")
        served = [line for line in agent.get().text.splitlines() if not line.startswith("#")]
        assert scraped == pytest.approx(len(served), abs=20)
        assert server.one("scrape_duration_seconds") < 0.5  # type: ignore[operator]  # it is there
    log = (tmp_path / "prometheus.log").read_text()
    assert "level=error" not in log
    assert "out of order" not in log


def test_prometheus_takes_openmetrics_by_its_own_accept_header(agent: AgentProcess) -> None:
    accept = (
        "application/openmetrics-text;version=1.0.0;q=0.75,"
        "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=0.0.4;q=0.25,*/*;q=0.1"
    )
    answer = agent.get("/metrics", Accept=accept)

    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.body.endswith(b"# EOF\n")
    text = agent.get("/metrics", Accept="text/plain;version=0.0.4")
    assert text.headers["content-type"].startswith("text/plain; version=0.0.4")


def test_a_lost_gpu_is_down_in_prometheus_and_its_series_end(tmp_path: Path) -> None:
    with running_agent(tmp_path, *FLAGS) as agent:
        wait_until(lambda: len(agent.samples("esnode_gpu_up")) == 8, seconds=10, why="GPUs")
        with prometheus(tmp_path, agent_port=agent.port) as server:
            wait_until(lambda: server.one("count(esnode_gpu_up)") == 8, seconds=20, why="a scrape")
            broken = run_esnode(
                tmp_path, f"--state-dir={agent.state_dir}", "simulated", "fault", "3", "lost"
            )
            assert broken.returncode == 0, broken.stderr

            wait_until(
                lambda: server.one("count(esnode_gpu_up == 0)") == 1, seconds=20, why="it is down"
            )
            wait_until(
                lambda: server.one("count(esnode_gpu_power_watts)") == 7,
                seconds=20,
                why="no stale draw is kept",
            )
            # The device says it at once, the driver's count at the next discovery.
            wait_until(lambda: server.one("esnode_gpus_lost") == 1, seconds=20, why="it is counted")
            assert server.one("up") == 1
