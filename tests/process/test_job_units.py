"""Under a real systemd: jobs outlive their agent's unit, which passes its group on to them."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents import REPOSITORY, needs_root, wait_until

SCRIPT = REPOSITORY.parent / "shared" / "bench" / "systemd_local.sh"
FOLDER = "/run/jobs"
pytestmark = [
    pytest.mark.process,
    needs_root,
    pytest.mark.skipif(
        any(Path(one).is_relative_to("/tmp") for one in (sys.executable, REPOSITORY)),
        reason="the machine has a /tmp of its own: it sees neither this Python nor this checkout",
    ),
    pytest.mark.skipif(not SCRIPT.is_file(), reason="no private systemd is beside this checkout"),
    pytest.mark.skipif(
        not Path("/lib/systemd/systemd").exists() or shutil.which("unshare") is None,
        reason="systemd is not installed",
    ),
]


class Machine:
    """A systemd of its own, over a copy of this machine's files that is thrown away."""

    def __init__(self, folder: Path) -> None:
        self.environment = {**os.environ, "SYSTEMD_LOCAL_DIR": str(folder)}

    def call(self, *arguments: str) -> str:
        done = subprocess.run(
            [str(SCRIPT), *arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, (arguments, done.stdout)
        return done.stdout

    def run(self, *command: str) -> str:
        return self.call("exec", *command)

    def report(self) -> dict[str, object]:
        document = json.loads(self.run("/bin/cat", f"{FOLDER}/report.json"))
        assert isinstance(document, dict)
        return document


@pytest.fixture
def machine(tmp_path):
    made = Machine(tmp_path / "systemd")
    started = made.call("start")
    if "running" not in started and "degraded" not in started:
        pytest.skip(f"systemd does not come up here: {started.strip()}")
    yield made
    with contextlib.suppress(AssertionError):
        made.run("/bin/systemctl", "kill", "--signal=KILL", "agent.service")
    made.call("stop")


def test_a_job_outlives_the_restart_of_its_agents_unit(machine):
    python = [sys.executable, "-m", "tests.job_unit", FOLDER]
    unit = ["--unit=agent", "-p", "Delegate=yes", "-p", "KillMode=process", "-p", "Restart=always"]
    place = [f"--working-directory={REPOSITORY}", f"--setenv=PYTHONPATH={REPOSITORY}"]
    machine.run("/usr/bin/systemd-run", *unit, *place, *python)
    wait_until(lambda: _has_report(machine), seconds=20, why="the job's start")
    first = machine.report()
    assert first["is_new"] is True
    machine.run("/bin/rm", f"{FOLDER}/report.json")

    machine.run("/bin/systemctl", "restart", "agent.service")
    wait_until(lambda: _has_report(machine), seconds=20, why="the second start of the agent")
    second = machine.report()

    assert second == {**first, "is_new": False, "memory_bytes": second["memory_bytes"]}
    assert second["running"] is True
    assert second["swept"] == []
    assert "system.slice/agent.service/esnode-jobs" in str(second["parents"])
    assert [second["main_pid"]] == second["pids"]
    machine.run("/bin/systemctl", "is-active", "agent.service")


def _has_report(machine: Machine) -> bool:
    with contextlib.suppress(AssertionError):
        return bool(machine.report())
    return False
