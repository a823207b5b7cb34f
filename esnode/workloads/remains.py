"""What is left of jobs on this machine: found, ended, proved to be gone.

Its own file because it is the agent's word that nothing of a job runs, on which a second start may
rest. A job is looked for in its groups and by the name in its environment; its supervisor by the
lock that it has while it lives. What cannot be looked at is never taken for gone. It must not know
why a job is started or ended.
"""

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from esnode.clock import monotonic_seconds
from esnode.workloads import cgroups, launch, processes
from esnode.workloads.ids import JobId, is_job_id

LOOK_SECONDS = 0.01
ASK_SECONDS = 1.0
"""For a supervisor to end its job by itself, which keeps how it ended."""
KILL_SECONDS = 2.0
"""One call takes at most so long after that; it is made again."""
HOLD_ROUNDS = 10
SHOWN_PIDS = 5
Identity = tuple[int, int]
"""A pid, and its start in ticks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Some runs of a job: those of these epochs."""

    job: JobId
    lowest: int = 0
    highest: int

    def has(self, job: str, epoch: int) -> bool:
        """Whether that is one of them."""
        return job == self.job and self.lowest <= epoch <= self.highest


class Remains:
    """What is left of jobs whose folders are in one folder."""

    def __init__(self, folder: Path, groups: cgroups.Cgroups) -> None:
        self._folder = folder
        self._groups = groups

    def why_not_dead(self, runs: Runs) -> str:
        """Empty once nothing of these runs is left; else what is."""
        try:
            if self._has_supervisor(runs):
                return "its supervisor still runs"
            left = self._find(runs)
        except OSError as error:
            return f"it cannot be looked at: {error.filename}: {error.strerror}"
        if not left:
            return ""
        shown = ", ".join(str(pid) for pid, _ in left[:SHOWN_PIDS])
        return f"{len(left)} of its processes are left ({shown})"

    def kill(self, runs: Runs) -> None:
        """End all of these runs now, by their supervisor or without.

        A supervisor that has ended its job, and only waits for the disk to take its end, is left.
        """
        spared = self._tell_supervisor(runs, signal.SIGQUIT, signal.SIGCONT)
        ends = monotonic_seconds() + ASK_SECONDS
        with contextlib.suppress(OSError):
            while self._has_supervisor(runs) and self._find(runs, spared):
                if monotonic_seconds() > ends:
                    break
                time.sleep(LOOK_SECONDS)
            self._end(runs, spared)

    def _tell_supervisor(self, runs: Runs, *numbers: signal.Signals) -> Identity | None:
        """Signal the supervisor; who it is, where that is known."""
        state = read_state(self._folder / runs.job)
        if state is None or not runs.has(runs.job, state.epoch):
            return None
        one = state.supervisor
        for number in numbers:
            processes.signal_all([(one.pid, one.start_ticks)], number)
        return one.pid, one.start_ticks

    def _has_supervisor(self, runs: Runs) -> bool:
        if not is_locked(self._folder / runs.job / launch.LOCK):
            return False
        state = read_state(self._folder / runs.job)
        return state is None or runs.has(runs.job, state.epoch)

    def _end(self, runs: Runs, spared: Identity | None) -> None:
        """Nobody may go on first, so that nobody forks away in between.

        Raises:
            OSError: it cannot be looked at who is left.
        """
        ends = monotonic_seconds() + KILL_SECONDS
        while (left := self._find(runs, spared)) and monotonic_seconds() < ends:
            paths = self._paths(runs)
            cgroups.kill_groups(paths)
            cgroups.freeze(paths, is_frozen=True)
            for _ in range(HOLD_ROUNDS):
                processes.signal_all(left, signal.SIGSTOP)
                known = set(left)
                new = [one for one in self._find(runs, spared) if one not in known]
                if not new:
                    break
                left += new
            processes.kill_all(left)
            cgroups.freeze(paths, is_frozen=False)
            time.sleep(LOOK_SECONDS)

    def _find(self, runs: Runs, spared: Identity | None = None) -> list[Identity]:
        """Whatever lives in their groups or carries their name.

        Raises:
            OSError: that cannot be looked at.
        """
        found = {pid: processes.start_ticks(pid) for pid in cgroups.pids_in(self._paths(runs))}
        found |= {
            one.pid: one.start_ticks
            for one in processes.find_named()
            if runs.has(one.job, one.epoch) and self._is_ours(one)
        }
        return [
            (pid, ticks)
            for pid, ticks in found.items()
            if ticks is not None and (pid, ticks) != spared
        ]

    def _paths(self, runs: Runs) -> Sequence[Path]:
        return [
            path
            for name in self._groups.names()
            if (known := split_group(name)) is not None and runs.has(*known)
            for path in self._groups.paths_of(name)
        ]

    def _is_ours(self, one: processes.Named) -> bool:
        """Whether it can be of a job of this agent: a name that somebody else carries is no sign.

        Root's are: what has not yet become its user, and what lets nobody look into it.
        """
        try:
            owner = (self._folder / one.job / launch.WORK).stat().st_uid
        except OSError:
            return False
        return one.uid in (owner, os.geteuid())

    def sweep(self, owned: Mapping[JobId, int]) -> tuple[str, ...]:
        """End whatever runs as a job without a right of this node; a line for each."""
        strangers = {key: None for key in self._running() if owned.get(key[0]) != key[1]}
        lines = []
        for job, epoch in sorted(strangers):
            runs = Runs(job=job, lowest=epoch, highest=epoch)
            self.kill(runs)
            left = self._end_supervisor(runs)
            line = f"ended what ran of job {job} as epoch {epoch}: not ours to run"
            lines.append(line + (f"; but {left}" if left else ""))
        for name in self._groups.names():
            known = split_group(name)
            if known is not None and owned.get(known[0]) != known[1] and self._is_known(known[0]):
                cgroups.remove(self._groups.paths_of(name))
        return tuple(lines)

    def _running(self) -> list[tuple[JobId, int]]:
        """All of which something seems to run, with its supervisor or without."""
        found = [(one.job, one.epoch) for one in processes.find_named() if self._is_ours(one)]
        for name in self._groups.names():
            known = split_group(name)
            if known is not None and self._is_known(known[0]):
                with contextlib.suppress(OSError):
                    if cgroups.pids_in(self._groups.paths_of(name)):
                        found.append(known)
        return found

    def _is_known(self, job: JobId) -> bool:
        """Other agents on this machine have jobs as well."""
        return (self._folder / job).is_dir()

    def _end_supervisor(self, runs: Runs) -> str:
        """Without a right there is nothing to keep: its end is not waited for long."""
        ends = monotonic_seconds() + ASK_SECONDS
        while (left := self.why_not_dead(runs)) and monotonic_seconds() < ends:
            time.sleep(LOOK_SECONDS)
        if left:
            with contextlib.suppress(OSError):
                self._end(runs, None)
            left = self.why_not_dead(runs)
        return left

    def clean(self, runs: Runs) -> None:
        """Take their groups away."""
        cgroups.remove(self._paths(runs))


def group_of(job: JobId, epoch: int) -> str:
    """How the group of a run is called."""
    return f"{job}-{epoch}"


def split_group(name: str) -> tuple[JobId, int] | None:
    """Whose group that is; None for one of somebody else."""
    job, _, epoch = name.rpartition("-")
    return (JobId(job), int(epoch)) if is_job_id(job) and epoch.isdecimal() else None


def read_state(folder: Path) -> launch.State | None:
    """What the supervisor has kept; None where that is nothing that can be read."""
    try:
        return launch.read_state(folder)
    except launch.StateUnreadable:
        return None


def is_locked(path: Path) -> bool:
    """Whether a supervisor has the job.

    Raises:
        OSError: it cannot be seen.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
