"""Agents that run jobs, and what tests want to know of them."""

import contextlib
import json
import os
import signal
from pathlib import Path

from tests.agents import AgentProcess, run_esnode, wait_until

ENDED = ("succeeded", "failed", "stopped", "interrupted")


def order(agent: AgentProcess, *arguments: str, code: int = 0) -> str:
    """One `esnode job` command at this agent; what it printed."""
    done = run_esnode(
        agent.state_dir.parent, "--state-dir", str(agent.state_dir), "job", *arguments
    )
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def write_spec(agent: AgentProcess, text: str) -> str:
    path = agent.state_dir.parent / "job.yaml"
    path.write_text(text)
    return str(path)


def submit(agent: AgentProcess, script: str, more: str = "") -> str:
    """Hand in a shell script as a job; its id."""
    text = f"name: work\ncommand: [bash, -c, {json.dumps(script)}]\n{more}"
    printed = order(agent, "submit", "--json", write_spec(agent, text))
    return str(json.loads(printed)["id"])


def jobs(agent: AgentProcess) -> dict[str, dict[str, object]]:
    document = agent.get("/v1/jobs").json()
    listed = document["jobs"]
    assert isinstance(listed, list)
    return {one["id"]: one for one in listed}


def state(agent: AgentProcess, job: str) -> str:
    return str(jobs(agent)[job]["state"])


def wait_for(agent: AgentProcess, job: str, *states: str, seconds: float = 15.0) -> None:
    wait_until(
        lambda: state(agent, job) in states,
        seconds=seconds,
        why=f"job {job} {' or '.join(states)}, it is {jobs(agent).get(job)}",
    )


def main_pid(agent: AgentProcess, job: str) -> int:
    pid = jobs(agent)[job]["main_pid"]
    assert isinstance(pid, int)
    return pid


def folder_of(agent: AgentProcess, job: str) -> Path:
    return agent.state_dir / "jobs" / job


def supervisor_pid(agent: AgentProcess, job: str) -> int:
    document = json.loads((folder_of(agent, job) / "state.json").read_text())
    return int(document["supervisor"]["pid"])


def output(agent: AgentProcess, job: str) -> str:
    return (folder_of(agent, job) / "output.log").read_text()


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def end_all(agent_state_dir: Path) -> None:
    """After a test: no supervisor and no job of this folder is left."""
    for path in (agent_state_dir / "jobs").glob("*/state.json"):
        document = json.loads(path.read_text())
        if document["phase"] != "ended":
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(document["supervisor"]["pid"]), signal.SIGQUIT)
