"""Jobs as documents, for the API and the command line.

Pure. Its own file because it is a contract with programs: keys are only added within a schema's
version, and what is not known is null. What may hold secrets (the command, the environment) stands
in a job's own document alone, which only those who may give orders can read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from esnode.status.times import utc_text
from esnode.workloads.adapters import Seen
from esnode.workloads.book import Job, Phase
from esnode.workloads.spec_reading import document_of

JOB_SCHEMA = "esnode.job/1"
JOBS_SCHEMA = "esnode.jobs/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One job with what is known of its run."""

    job: Job
    seen: Seen | None = None
    stage: str = ""
    trouble: str = ""
    waits: tuple[str, ...] = ()
    power_watts: float | None = None
    run_energy_joules: float | None = None
    run_tokens: float | None = None


def state_word(view: JobView) -> str:
    """The job in one word, for people."""
    job, seen = view.job, view.seen
    if job.phase is Phase.ENDED:
        return "ended" if job.result is None else str(job.result)
    if job.phase is Phase.STOPPING:
        return view.stage or "stopping"
    if job.phase is not Phase.RUNNING:
        return str(job.phase)
    if seen is None or not seen.is_supervised:
        return "starting"
    return "running" if seen.is_running else "restarting"


def summarize(view: JobView) -> dict[str, Any]:
    """What everybody may see of a job."""
    job, seen = view.job, view.seen
    energy = _sum(job.energy_joules, view.run_energy_joules)
    tokens = _sum(job.tokens, view.run_tokens)
    return {
        "id": job.id,
        "name": job.name,
        "epoch": job.epoch,
        "state": state_word(view),
        "phase": str(job.phase),
        "result": None if job.result is None else str(job.result),
        "reason": job.reason,
        "waits": list(view.waits),
        "trouble": view.trouble,
        "user": job.owner.user or str(job.owner.uid),
        "priority": None if job.spec is None else job.spec.priority,
        "is_preemptible": None if job.spec is None else job.spec.is_preemptible,
        "gpu_count": None if job.spec is None else job.spec.gpu_count,
        "gpus": list(job.gpus),
        "submitted_at": _time(job.submitted_unix_seconds or None),
        "started_at": _time(job.started_unix_seconds),
        "ended_at": _time(job.ended_unix_seconds),
        "promised_by": _time(job.promised_by_unix_seconds or None),
        "attempt": job.attempt,
        "restarts": None if seen is None else seen.restarts,
        "requeues": job.requeues_count,
        "exit_code": job.exit_code,
        "exit_signal": job.exit_signal,
        "main_pid": None if seen is None else seen.main_pid,
        "cpu_seconds": None if seen is None else seen.cpu_seconds,
        "memory_bytes": None if seen is None else seen.memory_bytes,
        "power_watts": view.power_watts,
        "energy_joules": energy,
        "tokens": tokens,
        "tokens_per_joule": tokens / energy if tokens is not None and energy else None,
        "output_bytes": None if seen is None else seen.output_bytes,
        "output_lost_bytes": None if seen is None else seen.output_lost_bytes,
        "from_node": job.from_node or None,
        "to_node": job.to_name or job.to_node or None,
    }


def describe_job(view: JobView) -> dict[str, Any]:
    """All of a job, for those who may give orders about it."""
    spec = view.job.spec
    return {
        "schema": JOB_SCHEMA,
        **summarize(view),
        "spec": None if spec is None else document_of(spec),
    }


def describe_jobs(views: Sequence[JobView], *, trouble: str) -> dict[str, Any]:
    """All jobs of a node."""
    return {"schema": JOBS_SCHEMA, "trouble": trouble, "jobs": [summarize(one) for one in views]}


def _time(unix_seconds: float | None) -> str | None:
    return None if unix_seconds is None else utc_text(unix_seconds)


def _sum(before: float | None, now: float | None) -> float | None:
    return before if now is None else (before or 0.0) + now
