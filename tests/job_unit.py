"""The main process of a unit in a test: starts a job, or finds the one that it left."""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from esnode.workloads import cgroups
from esnode.workloads.book import Job, Owner, Phase
from esnode.workloads.local import LocalProcesses
from esnode.workloads.spec_reading import spec_of
from tests.job_processes import GIVEN, pause
from tests.job_records import JOB


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    groups = cgroups.probe()
    adapter = LocalProcesses(folder, groups)
    job = Job(
        id=JOB,
        epoch=1,
        phase=Phase.RUNNING,
        spec=spec_of({"name": "work", "command": ["sleep", "600"]}),
        owner=Owner(uid=65534, gid=65534, user="nobody"),
        attempt=1,
    )
    is_new = not adapter.look(job).is_supervised
    if is_new:
        adapter.start(job, GIVEN)
    swept = adapter.sweep({JOB: 1})
    seen = asdict(adapter.look(job))
    report = {"is_new": is_new, "swept": swept, "parents": [str(one) for one in groups.parents]}
    report |= {"kind": groups.kind, "main_pid": seen["main_pid"], "pids": seen["pids"]}
    report |= {"running": seen["is_running"], "memory_bytes": seen["memory_bytes"]}
    (folder / f"report-{os.getpid()}.json").write_text(json.dumps(report))
    (folder / "report.json").write_text(json.dumps(report))
    pause(600)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
