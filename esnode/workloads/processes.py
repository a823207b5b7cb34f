"""Processes that cannot be mistaken: by their start, through a descriptor, never by a bare number.

Its own file because every signal that the agent sends goes through here. A pid may be another
process by the time one acts on it; a pidfd whose start was checked after it was opened may not.
Source: pidfd_open(2); proc_pid_stat(5), field 22.
"""

import contextlib
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from esnode.workloads.ids import JobId, is_job_id

PROC = Path("/proc")
JOB_VARIABLE = b"ESNODE_JOB_ID="
EPOCH_VARIABLE = b"ESNODE_JOB_EPOCH="


def start_ticks(pid: int, proc: Path = PROC) -> int | None:
    """When a process started, in ticks since the boot; None for one that is gone or a zombie.

    One whose first thread has ended while others run is no zombie, whatever its state letter says:
    that is how a process looks that is stuck in a driver.
    """
    try:
        fields = (proc / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        is_over = fields[0] in (b"Z", b"X") and int(fields[17]) <= 1
        return None if is_over else int(fields[19])
    except (OSError, IndexError, ValueError):
        return None


def is_alive(pid: int, ticks: int) -> bool:
    """Whether exactly this process lives."""
    return start_ticks(pid) == ticks


def send(pid: int, ticks: int, number: signal.Signals) -> bool:
    """Signal exactly this process; whether it was there to be signalled.

    Raises:
        PermissionError: it is another user's.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if start_ticks(pid) != ticks:
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def signal_all(pids: Iterable[tuple[int, int]], number: signal.Signals) -> None:
    """Signal each of these, given as (pid, start in ticks); those that are others' are left."""
    for pid, ticks in pids:
        with contextlib.suppress(PermissionError):
            send(pid, ticks, number)


def kill_all(pids: Iterable[tuple[int, int]]) -> None:
    """End each of these, given as (pid, start in ticks)."""
    signal_all(pids, signal.SIGKILL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A process that carries the name of a job in its environment."""

    job: JobId
    epoch: int
    pid: int
    start_ticks: int
    uid: int


def find_named(proc: Path = PROC) -> tuple[Named, ...]:
    """All processes that carry the name of a job, whoever gave it to them.

    Those of other users are not seen unless we are root; our own jobs are ours to see. A name that
    is no job's id is none: what is in an environment was written by whoever likes to.
    """
    found = []
    for folder in proc.iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            environment = (folder / "environ").read_bytes()
            uid = folder.stat().st_uid
        except OSError:
            continue
        if JOB_VARIABLE not in environment:
            continue
        values = environment.split(b"\0")
        job = _value(values, JOB_VARIABLE)
        epoch = _value(values, EPOCH_VARIABLE)
        ticks = start_ticks(int(folder.name), proc)
        if is_job_id(job) and ticks is not None:
            found.append(
                Named(
                    job=JobId(job),
                    epoch=int(epoch) if epoch.isdecimal() else 0,
                    pid=int(folder.name),
                    start_ticks=ticks,
                    uid=uid,
                )
            )
    return tuple(found)


def _value(values: list[bytes], name: bytes) -> str:
    for value in values:
        if value.startswith(name):
            return value[len(name) :].decode(errors="replace")
    return ""
