"""What a supervisor is told, and what it keeps of its job: two JSON files.

Its own file because both are contracts between two programs of maybe two versions: an agent that
was updated adopts jobs whose supervisors are old. It must not know how either is run.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esnode.workloads.adapters import Given, StartRefused
from esnode.workloads.book import Job
from esnode.workloads.spec import JobSpec

LAUNCH_SCHEMA = "esnode.job_launch/1"
STATE_SCHEMA = "esnode.job_state/1"
STATE = "state.json"
FENCE = "fence"
LOCK = "lock"
WORK = "work"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
RESTART_BACKOFF_SECONDS_MAX = 60.0
RESTART_RESET_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process that cannot be mistaken for another."""

    pid: int
    start_ticks: int
    boot_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the supervisor has kept."""

    epoch: int
    attempt: int | None
    """Which of the epoch's runs; None where an earlier version did not say."""
    phase: str
    """``starting``, ``running``, ``waiting``, ``stopping`` or ``ended``."""
    supervisor: Process
    main: Process | None
    restarts: int
    exit_code: int | None
    exit_signal: int | None
    exit_reason: str
    output_bytes: int | None
    output_lost_bytes: int | None
    is_proved_empty: bool
    trouble: str = ""


class StateUnreadable(Exception):
    """The file is none of a supervisor's, or of a later version's; one line."""


def launch_file(epoch: int) -> str:
    """The name of what the supervisor of an epoch is told."""
    return f"launch-{epoch}.json"


def launch_document(
    job: Job, given: Given, folder: Path, home: str, cgroups: tuple[str, Sequence[str]]
) -> dict[str, Any]:
    """What the supervisor of a job is told.

    Raises:
        StartRefused: the spec cannot be run.
    """
    spec = job.spec
    assert spec is not None
    workdir = str(folder / WORK) if spec.workdir is None else spec.workdir
    if not workdir.startswith("/"):
        raise StartRefused(f"workdir: {workdir!r} does not begin at /")
    kind, paths = cgroups
    return {
        "schema": LAUNCH_SCHEMA,
        "job": job.id,
        "epoch": job.epoch,
        "attempt": job.attempt,
        "name": spec.name,
        "folder": str(folder),
        "argv": list(spec.command),
        "environment": _environment(job, spec, given, home, workdir),
        "workdir": workdir,
        "uid": job.owner.uid,
        "gid": job.owner.gid,
        "groups": list(job.owner.groups) or [job.owner.gid],
        "boot_id": given.boot_id,
        "cgroup": {"kind": kind, "paths": list(paths)},
        "cpus": list(given.cpus),
        "nice": 0,
        "stop": {"signal": spec.stop_signal, "grace_seconds": spec.stop_grace_seconds},
        "restart": {
            "policy": spec.restart_policy,
            "backoff_seconds": spec.restart_backoff_seconds,
            "backoff_seconds_max": RESTART_BACKOFF_SECONDS_MAX,
            "maximum": spec.restarts_max,
            "reset_after_seconds": RESTART_RESET_SECONDS,
        },
        "logs": {"bytes_max": spec.log_bytes_max, "files": spec.log_files_count},
    }


def _environment(job: Job, spec: JobSpec, given: Given, home: str, workdir: str) -> dict[str, str]:
    """All that the job finds in its environment; nothing of the agent's."""
    return {
        "PATH": PATH,
        "HOME": home,
        "USER": job.owner.user or str(job.owner.uid),
        "LOGNAME": job.owner.user or str(job.owner.uid),
        "PWD": workdir,
        **dict(spec.environment),
        **dict(given.environment),
        "CUDA_VISIBLE_DEVICES": ",".join(given.gpus),
        "ESNODE_JOB_ID": job.id,
        "ESNODE_JOB_NAME": spec.name,
        "ESNODE_JOB_EPOCH": str(job.epoch),
        "ESNODE_JOB_ATTEMPT": str(job.attempt),
    }


def read_state(folder: Path) -> State | None:
    """What the supervisor has kept; None where it has kept nothing.

    Raises:
        StateUnreadable: what is there is none of its.
    """
    path = folder / STATE
    try:
        document = json.loads(path.read_bytes())
        _check_schema(path, document["schema"])
        return _state_of(document)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateUnreadable(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise StateUnreadable(f"{path}: is torn, or no state of a job; move it away") from None


def _check_schema(path: Path, schema: object) -> None:
    if schema == STATE_SCHEMA:
        return
    if str(schema).startswith(STATE_SCHEMA.partition("/")[0] + "/"):
        raise StateUnreadable(f"{path}: is {schema}, of a later version; run that one")
    raise StateUnreadable(f"{path}: is {schema!r}, no state of a job; move it away")


def _state_of(document: dict[str, Any]) -> State:
    supervisor, main = document["supervisor"], document["main"]
    boot_id = str(supervisor["boot_id"])
    end = document["exit"] or {}
    return State(
        epoch=int(document["epoch"]),
        attempt=document.get("attempt"),
        phase=str(document["phase"]),
        supervisor=_process(supervisor, boot_id),
        main=None if main is None else _process(main, boot_id),
        restarts=int(document["restarts"]),
        exit_code=end.get("code"),
        exit_signal=end.get("signal"),
        exit_reason=str(end.get("reason", "")),
        output_bytes=document.get("output_bytes_total"),
        output_lost_bytes=document.get("output_lost_bytes_total"),
        is_proved_empty=bool(document["is_proved_empty"]),
        trouble=str(document.get("trouble", "")),
    )


def _process(document: dict[str, Any], boot_id: str) -> Process:
    return Process(
        pid=int(document["pid"]), start_ticks=int(document["start_ticks"]), boot_id=boot_id
    )
