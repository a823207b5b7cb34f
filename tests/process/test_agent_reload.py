"""SIGHUP: a new file is taken whole or refused whole, and what needs a restart is named."""

import json
import signal
from pathlib import Path

import pytest

from tests.agents import AgentProcess, run_esnode, running_agent, started_agent, wait_until

pytestmark = pytest.mark.process


def hang_up(agent: AgentProcess) -> None:
    agent.process.send_signal(signal.SIGHUP)


def test_a_good_file_is_applied(tmp_path: Path) -> None:
    file = tmp_path / "esnode.toml"
    file.write_text('scrape_interval = "1s"\n')
    with running_agent(tmp_path, "--hardware=simulated:h100x2") as agent:
        wait_until(lambda: len(agent.samples("esnode_gpu_up")) == 2, seconds=5, why="two GPUs")
        assert agent.value("esnode_agent_config_last_reload_successful") is None
        assert not agent.samples("DCGM_FI_DEV_GPU_TEMP")

        file.write_text(
            'scrape_interval = "250ms"\n'
            'metric_aliases = ["dcgm"]\n'
            "enable_numa = false\n"
            'tags = { row = "7" }\n'
        )
        hang_up(agent)

        assert agent.wait_for_event("reload_applied")["file"] == str(file)
        wait_until(
            lambda: len(agent.samples("DCGM_FI_DEV_GPU_TEMP")) == 2,
            seconds=5,
            why="the alias families",
        )
        disabled = agent.samples("esnode_agent_collector_disabled")
        assert disabled['{collector="numa"}'] == 1
        assert not agent.samples("esnode_numa_memory_total_bytes")
        assert agent.value("esnode_agent_config_reloads_total") == 1
        assert agent.value("esnode_agent_config_last_reload_successful") == 1
        sources = agent.status()["sources"]
        assert isinstance(sources, list)
        assert {s["interval_seconds"] for s in sources if s["collector"] != "ipmi"} == {0.25}
        assert agent.status()["tags"] == {"row": "7"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("scrape_interval = \n", "is not valid TOML", id="not TOML"),
        pytest.param(
            "scrape_intervall = '1s'\n",
            "unknown key 'scrape_intervall'; did you mean scrape_interval?",
            id="an unknown key",
        ),
        pytest.param("scrape_interval = '1ms'\n", "below the floor of 100ms", id="a bad value"),
    ],
)
def test_a_bad_file_is_refused_whole_and_counted(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "esnode.toml"
    file.write_text('scrape_interval = "500ms"\n')
    with running_agent(tmp_path) as agent:
        file.write_text(f"enable_cpu = false\n{text}")
        hang_up(agent)

        assert problem in str(agent.wait_for_event("reload_refused")["problem"])
        wait_until(
            lambda: agent.value("esnode_agent_config_reload_failures_total") == 1,
            seconds=5,
            why="the refusal is counted",
        )
        assert agent.value("esnode_agent_config_last_reload_successful") == 0
        assert agent.value("esnode_agent_config_reloads_total") == 0
        assert agent.value("esnode_cpu_load1") is not None

        file.write_text('scrape_interval = "500ms"\n')
        hang_up(agent)

        agent.wait_for_event("reload_applied")
        wait_until(
            lambda: agent.value("esnode_agent_config_last_reload_successful") == 1,
            seconds=5,
            why="the mended file is taken",
        )


def test_keys_that_need_a_restart_are_named_and_keep_their_values(tmp_path: Path) -> None:
    file = tmp_path / "esnode.toml"
    with running_agent(tmp_path) as agent:
        file.write_text('rootfs_path = "/elsewhere"\nlog_format = "text"\nenable_disk = false\n')
        hang_up(agent)

        agent.wait_for_event("reload_applied")
        named = [event["key"] for event in agent.events("reload_needs_restart")]
        # log_format is given as a flag to every agent of these tests, and flags win.
        assert named == ["rootfs_path"]
        wait_until(
            lambda: agent.samples("esnode_agent_collector_disabled").get('{collector="disk"}') == 1,
            seconds=5,
            why="the rest of the file is applied",
        )


def test_a_reload_lets_the_gpus_go(tmp_path: Path) -> None:
    file = tmp_path / "esnode.toml"
    with running_agent(tmp_path, "--hardware=simulated:h100x2", "--scrape-interval=200ms") as agent:
        wait_until(lambda: len(agent.samples("esnode_gpu_up")) == 2, seconds=5, why="two GPUs")

        changed = run_esnode(tmp_path, "disable-metric-set", "gpu")
        assert changed.returncode == 0, changed.stderr
        assert file.is_file()
        hang_up(agent)

        wait_until(lambda: not agent.samples("esnode_gpu_up"), seconds=5, why="no GPU is served")
        assert agent.status()["gpus"] == []

        assert run_esnode(tmp_path, "enable-metric-set", "gpu").returncode == 0
        hang_up(agent)
        wait_until(lambda: len(agent.samples("esnode_gpu_up")) == 2, seconds=5, why="they are back")


def test_many_reloads_at_once_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "esnode.toml").write_text('scrape_interval = "100ms"\n')
    with running_agent(tmp_path, "--hardware=simulated:h100x8") as agent:
        for _ in range(50):
            hang_up(agent)

        wait_until(
            lambda: (agent.value("esnode_agent_config_reloads_total") or 0) >= 1,
            seconds=10,
            why="a reload",
        )
        wait_until(
            lambda: (
                agent.samples("esnode_gpu_up").values()
                and set(agent.samples("esnode_gpu_up").values()) == {1.0}
            ),
            seconds=10,
            why="all GPUs are up",
        )
        agent.end()
        assert agent.process.returncode == 0
        assert "Traceback" not in agent.log_path.read_text()


def test_a_reload_does_not_let_log_lines_into_a_live_table(tmp_path: Path) -> None:
    with started_agent(tmp_path, "--live") as agent:
        announced = agent.state_dir / "agent.json"
        wait_until(announced.exists, seconds=20, why="the agent's word of where it listens")
        agent.address = json.loads(announced.read_text())["addresses"][0]

        hang_up(agent)
        wait_until(
            lambda: agent.value("esnode_agent_config_reloads_total") == 1, seconds=5, why="reload"
        )
        agent.end()

    assert agent.events() == []
