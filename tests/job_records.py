"""Records of jobs as tests need them."""

from esnode.workloads.book import kept_spec
from esnode.workloads.ids import JobId
from esnode.workloads.records import (
    Declined,
    Ended,
    Handed,
    Purpose,
    Released,
    Reowned,
    Result,
    Starting,
    StopAsked,
    Stopped,
    Submitted,
)
from esnode.workloads.spec import JobSpec

JOB = JobId("01jd0000000000000000000000")
OTHER = JobId("01jd0000000000000000000001")
NOW = 1_700_000_000.0
SPEC = JobSpec(name="ticker", command=("true",), gpu_count=1)


def submitted(job=JOB, epoch=1, spec=SPEC, at=NOW, **more):
    return Submitted(
        job=job,
        epoch=epoch,
        at_unix_seconds=at,
        spec=kept_spec(spec),
        uid=1000,
        gid=1000,
        waits_since_unix_seconds=at,
        **more,
    )


def starting(job=JOB, epoch=1, attempt=1, gpus=("GPU-a",), at=NOW):
    return Starting(
        job=job, epoch=epoch, at_unix_seconds=at, attempt=attempt, gpus=gpus, boot_id="b1"
    )


def stop_asked(job=JOB, epoch=1, purpose=Purpose.CANCEL, at=NOW):
    return StopAsked(
        job=job, epoch=epoch, at_unix_seconds=at, purpose=purpose, by="alice", reason="enough"
    )


def stopped(job=JOB, epoch=1, at=NOW, **more):
    return Stopped(job=job, epoch=epoch, at_unix_seconds=at, reason="made room", **more)


def ended(job=JOB, epoch=1, result=Result.SUCCEEDED, at=NOW, **more):
    return Ended(job=job, epoch=epoch, at_unix_seconds=at, result=result, reason="exit 0", **more)


def handed(job=JOB, epoch=2, at=NOW):
    return Handed(job=job, epoch=epoch, at_unix_seconds=at, to_node="ab" * 16, to_name="n2")


def released(job=JOB, epoch=2, at=NOW):
    return Released(job=job, epoch=epoch, at_unix_seconds=at)


def reowned(job=JOB, epoch=3, at=NOW):
    return Reowned(job=job, epoch=epoch, at_unix_seconds=at, reason="it has no room")


def declined(job=JOB, epoch=2, at=NOW):
    return Declined(job=job, epoch=epoch, at_unix_seconds=at, reason="no room")
