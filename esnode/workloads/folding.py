"""What follows for a job from what is seen of it: still running, over, to be queued again.

Pure. Its own file because here it is decided what an end means, and the rule is short: nothing ends
for the journal before it is proved that nothing of it runs. It must not know processes.
"""

from dataclasses import dataclass

from esnode.workloads.book import Job
from esnode.workloads.records import AnyRecord, Ended, Purpose, Result, Stopped

MACHINE_RESTARTED = "its machine started anew"
SUPERVISOR_GONE = "its supervisor was killed"
AGAIN_SECONDS = 10.0
"""Before another try to start what the machine refused to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a run has ended; nothing of it runs any more."""

    reason: str
    """In one line."""
    is_own: bool
    """It ended by itself: what it returned is its result."""
    is_refused: bool = False
    """It can never be started as it is."""
    has_run: bool = True
    """Something of it may have run; if not, nothing is lost by starting it later."""
    is_fenced: bool = False
    """Another node has a later right to it."""
    exit_code: int | None = None
    exit_signal: int | None = None
    energy_joules: float | None = None
    tokens: float | None = None


def fold_end(job: Job, end: End, *, now_unix_seconds: float) -> AnyRecord:
    """The record of an end."""
    result = _result(job, end)
    if result is None:
        return Stopped(
            job=job.id,
            epoch=job.epoch,
            at_unix_seconds=now_unix_seconds,
            reason=_why_again(job, end),
            not_before_unix_seconds=now_unix_seconds + (0.0 if end.has_run else AGAIN_SECONDS),
            promised_by_unix_seconds=0.0 if job.stop is None else job.stop.promised_by_unix_seconds,
            energy_joules=end.energy_joules,
            tokens=end.tokens,
        )
    return Ended(
        job=job.id,
        epoch=job.epoch,
        at_unix_seconds=now_unix_seconds,
        result=result,
        reason=_why_over(job, end),
        exit_code=end.exit_code,
        exit_signal=end.exit_signal,
        energy_joules=end.energy_joules,
        tokens=end.tokens,
    )


def _result(job: Job, end: End) -> Result | None:
    """How the job is over; None where it is to be queued again."""
    stop = job.stop
    if end.is_fenced:
        return Result.STOPPED
    if end.is_refused:
        return Result.FAILED
    if end.is_own and end.exit_code == 0:
        return Result.SUCCEEDED  # also when it was asked to stop: it had done all that it had to
    if stop is not None and stop.purpose is Purpose.REQUEUE:
        return None
    if stop is not None:
        return Result.STOPPED
    if end.is_own:
        return Result.FAILED
    if not end.has_run:
        return None
    return None if may_go_on(job) else Result.INTERRUPTED


def may_go_on(job: Job) -> bool:
    """Whether a run that was ended from outside is followed by another."""
    assert job.spec is not None
    return job.spec.may_run_again or job.spec.restart_policy != "never"


def _why_again(job: Job, end: End) -> str:
    return end.reason if job.stop is None else job.stop.reason


def _why_over(job: Job, end: End) -> str:
    if job.stop is None or (end.is_own and end.exit_code == 0):
        return end.reason
    return f"{job.stop.reason} ({job.stop.by})" if job.stop.by else job.stop.reason
