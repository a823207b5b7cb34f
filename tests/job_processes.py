"""Real supervisors of real jobs without an agent, on every kind of control group."""

import contextlib
import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster.identity.files import replace_file
from esnode.clock import unix_seconds
from esnode.workloads import cgroups, processes
from esnode.workloads.adapters import Given, Seen
from esnode.workloads.book import Job, Owner, Phase
from esnode.workloads.cgroups import Cgroups
from esnode.workloads.ids import make_job_id
from esnode.workloads.launch import launch_document, launch_file
from esnode.workloads.local import SUPERVISOR, LocalProcesses
from esnode.workloads.remains import group_of
from esnode.workloads.spec_reading import spec_of
from tests.agents import wait_until

GIVEN = Given(boot_id="this-boot")
NOBODY = 65534
MACHINE_GROUPS = Path("/sys/fs/cgroup")


def groups_of_kind(kind: str, folder: Path) -> Cgroups:
    """Real groups of one kind only, seen through a folder that mounts nothing else."""
    root = folder / f"cgroup-{kind}"
    root.mkdir(exist_ok=True)
    if kind == "v2":
        unified = MACHINE_GROUPS / "unified"
        (root / "unified").symlink_to(unified if unified.is_dir() else MACHINE_GROUPS)
    elif kind == "v1":
        for name in cgroups.V1_CONTROLLERS:
            (root / name).symlink_to(MACHINE_GROUPS / name)
    return cgroups.probe(root)


@dataclass
class Bench:
    """Jobs in one folder; all of them are ended with the test."""

    folder: Path
    groups: Cgroups
    uid: int = field(default_factory=os.geteuid)
    jobs: list[Job] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.adapter = LocalProcesses(self.folder, self.groups)

    def job(self, *command: str, uid: int | None = None, epoch: int = 1, **spec: Any) -> Job:
        owner = self.uid if uid is None else uid
        job = Job(
            id=make_job_id(unix_seconds(), random.Random()),
            epoch=epoch,
            phase=Phase.RUNNING,
            spec=spec_of({"name": "work", "command": list(command), **spec}),
            owner=Owner(uid=owner, gid=owner, user="somebody"),
            attempt=1,
        )
        self.jobs.append(job)
        return job

    def start(self, *command: str, **more: Any) -> Job:
        job = self.job(*command, **more)
        self.adapter.start(job, GIVEN)
        return job

    def bash(self, script: str, **more: Any) -> Job:
        return self.start("bash", "-c", script, **more)

    def prepare(self, job: Job) -> None:
        """As before a start: its folder is there, and its fence says its epoch."""
        self.adapter._prepare(self.path(job), job)

    def supervisor_command(self, job: Job) -> list[str]:
        """What starts a job's supervisor, whose launch file is written by this."""
        made = (self.groups.kind, self.groups.make(group_of(job.id, job.epoch)))
        document = launch_document(job, GIVEN, self.path(job), "/", made)
        path = self.path(job, launch_file(job.epoch))
        replace_file(path, json.dumps(document).encode())
        return [sys.executable, "-I", "-S", str(SUPERVISOR), str(path)]

    def look(self, job: Job) -> Seen:
        return self.adapter.look(job)

    def path(self, job: Job, name: str = "") -> Path:
        return self.folder / job.id / name

    def state(self, job: Job) -> dict[str, Any]:
        document = json.loads(self.path(job, "state.json").read_text())
        assert isinstance(document, dict)
        return document

    def output(self, job: Job) -> str:
        return self.path(job, "output.log").read_text(errors="surrogateescape")

    def main_pid(self, job: Job) -> int:
        return int(self.state(job)["main"]["pid"])

    def supervisor_pid(self, job: Job) -> int:
        return int(self.state(job)["supervisor"]["pid"])

    def signal_supervisor(self, job: Job, number: signal.Signals) -> None:
        one = self.state(job)["supervisor"]
        assert processes.send(one["pid"], one["start_ticks"], number)

    def wait_for_phase(self, job: Job, phase: str, seconds: float = 10.0) -> None:
        wait_until(lambda: self.state(job)["phase"] == phase, seconds=seconds, why=phase)

    def wait_for_end(self, job: Job, seconds: float = 15.0) -> Seen:
        wait_until(lambda: self.look(job).is_ended, seconds=seconds, why=f"end, {self.look(job)}")
        return self.look(job)

    def wait_for_death(self, job: Job, seconds: float = 10.0) -> None:
        wait_until(
            lambda: not self.adapter.why_not_dead(job),
            seconds=seconds,
            why=self.adapter.why_not_dead(job),
        )

    def wait_for_text(self, path: Path, seconds: float = 10.0) -> str:
        wait_until(lambda: path.read_text().strip(), seconds=seconds, why=f"a text in {path}")
        return path.read_text().strip()


@contextlib.contextmanager
def bench(folder: Path, kind: str = "any", **more: Any) -> Iterator[Bench]:
    """A place for jobs; on this machine's own groups, or on one kind of them."""
    folder.mkdir(exist_ok=True)
    groups = cgroups.probe() if kind == "any" else groups_of_kind(kind, folder.parent)
    made = Bench(folder=folder, groups=groups, **more)
    try:
        yield made
    finally:
        for job in made.jobs:
            made.adapter.kill(job)
        made.adapter.sweep({})
        for job in made.jobs:
            made.wait_for_death(job)
            made.adapter.clean(job)


def is_alive(pid: int) -> bool:
    return processes.start_ticks(pid) is not None


def memory_kibibytes(pid: int) -> dict[str, int]:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    values = (line.split() for line in lines)
    return {name.rstrip(":"): int(value) for name, value, *_ in values}


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pause(seconds: float) -> None:
    time.sleep(seconds)
