"""`python -m tests.benchmarks.jobs`: what jobs cost, and how soon things happen to them.

Twenty jobs at one real agent: memory and CPU of their supervisors, how long after its start an
agent that was killed has adopted them all, and how soon a job of high priority gets the GPU of
another on a full machine (whose victim ends at once when asked).
"""

import os
import signal
import statistics
import tempfile
import time
from pathlib import Path

from tests.agents import running_agent, wait_until
from tests.job_agents import end_all, jobs, main_pid, submit, supervisor_pid, wait_for

COUNT = 20
IDLE_SECONDS = 20.0
RUNS = 5
LOW = "devices: {gpu: 1}\npriority: 2\npreemptible: true\nidempotent: true\n"


def rollup_kib(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def many_jobs(place: Path) -> None:
    with running_agent(place, "--hardware=simulated:h100x8") as agent:
        ids = [submit(agent, "sleep 600") for _ in range(COUNT)]
        for job in ids:
            wait_for(agent, job, "running")
        pids = [main_pid(agent, job) for job in ids]
        supervisors = [supervisor_pid(agent, job) for job in ids]
        for name in ("Rss", "Pss"):
            kib = statistics.median(rollup_kib(pid, name) for pid in supervisors)
            print(f"supervisor, {name}: {kib / 1024:.1f} MiB (median of {COUNT})")
        before = sum(map(cpu_seconds, supervisors)), cpu_seconds(agent.pid)
        time.sleep(IDLE_SECONDS)
        used = sum(map(cpu_seconds, supervisors)) - before[0]
        agent_used = cpu_seconds(agent.pid) - before[1]
        print(f"supervisors, all {COUNT}: {used:.2f} s of CPU in {IDLE_SECONDS:g} s")
        print(f"agent with {COUNT} jobs: {agent_used / IDLE_SECONDS:.1%} of a core")
        agent.end(signal.SIGKILL)
    with running_agent(place, "--hardware=simulated:h100x8") as agent:
        began = time.perf_counter()
        wait_until(
            lambda: all(jobs(agent)[job]["state"] == "running" for job in ids),
            seconds=30,
            why="adoption",
        )
        took = time.perf_counter() - began
        is_same = [main_pid(agent, job) for job in ids] == pids
        print(
            f"adopted {COUNT} jobs {took:.2f} s after the agent serves; same processes: {is_same}"
        )


def high_priority(place: Path) -> float:
    with running_agent(
        place, "--hardware=simulated:h100x2", "--control-preemption=enforce"
    ) as agent:
        for job in [submit(agent, "sleep 600", LOW) for _ in range(2)]:
            wait_for(agent, job, "running")
        time.sleep(3)
        began = time.perf_counter()
        job = submit(agent, "sleep 600", "devices: {gpu: 1}\npriority: 8\n")
        wait_for(agent, job, "running", seconds=60)
        return time.perf_counter() - began


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        many_jobs(Path(folder))
        end_all(Path(folder) / "agent-state")
    took = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as folder:
            took.append(high_priority(Path(folder)))
            end_all(Path(folder) / "agent-state")
    print(
        f"high priority on a full node: {statistics.median(took):.2f} s"
        f" ({min(took):.2f}-{max(took):.2f}, {RUNS} runs) from the command to its start"
    )


if __name__ == "__main__":
    main()
