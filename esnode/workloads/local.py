"""Jobs that are processes of this machine, each under its own supervisor.

Its own file because it is one adapter among others. Everything blocks, and nothing is kept between
calls: what is true is in the job's folder, in its groups and in the process table, so an agent that
starts anew sees the same. It must not know why a job is started or ended.
"""

import fcntl
import json
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from esnode.clock import monotonic_seconds
from esnode.workloads import cgroups, launch, processes
from esnode.workloads.adapters import AdapterFailed, Given, Seen, StartRefused
from esnode.workloads.book import Job
from esnode.workloads.ids import JobId
from esnode.workloads.output import output_size

SUPERVISOR = Path(__file__).with_name("supervisor") / "main.py"
START_SECONDS = 10.0
"""For the supervisor to say that it has begun; one that takes longer is looked at later."""
LOOK_SECONDS = 0.01
KILL_SECONDS = 2.0
"""A call of `kill` takes at most so long; it is made again."""
EXIT_TAKEN = 75
EXIT_FENCED = 76


class LocalProcesses:
    """The adapter."""

    def __init__(self, folder: Path, groups: cgroups.Cgroups) -> None:
        """`folder` holds a folder for each job."""
        self._folder = folder
        self.groups = groups

    # -- starting ---------------------------------------------------------------------------------

    def start(self, job: Job, given: Given) -> Seen:
        """Start a job's supervisor, which starts the job.

        Raises:
            StartRefused: it can never be started like this.
            AdapterFailed: not now; nothing runs.
        """
        folder = self._folder / job.id
        left = self.why_not_dead(job)
        if left:
            raise AdapterFailed(f"something of it still runs: {left}")
        try:
            self._prepare(folder, job)
            spec = job.spec
            assert spec is not None
            paths = self.groups.make(
                _group(job), memory_bytes=spec.memory_bytes, cpu_count=spec.cpu_count
            )
            document = launch.launch_document(
                job, given, folder, _home(job), (self.groups.kind, paths)
            )
            path = folder / launch.launch_file(job.epoch)
            launch.write_whole(path, json.dumps(document).encode())
        except OSError as error:
            raise AdapterFailed(f"{error.filename or folder}: {error.strerror}") from None
        self._run_supervisor(path)
        return self._await_begin(job)

    def _prepare(self, folder: Path, job: Job) -> None:
        uid, gid = job.owner.uid, job.owner.gid
        work = folder / launch.WORK
        folder.mkdir(mode=0o711, exist_ok=True)
        work.mkdir(mode=0o700, exist_ok=True)
        if os.geteuid() == 0:
            os.chown(work, uid, gid)
        (folder / launch.STATE).unlink(missing_ok=True)
        launch.write_whole(folder / launch.FENCE, f"{job.epoch}\n".encode())

    def _run_supervisor(self, path: Path) -> None:
        command = [sys.executable, "-I", "-S", str(SUPERVISOR), str(path)]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd="/",
                env={},
                timeout=START_SECONDS,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return  # it is looked at again and again
        except OSError as error:
            raise AdapterFailed(f"{sys.executable}: {error.strerror}") from None
        if done.returncode:
            line = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise AdapterFailed(line or f"its supervisor ended with {done.returncode}")

    def _await_begin(self, job: Job) -> Seen:
        ends = monotonic_seconds() + START_SECONDS
        while True:
            seen = self.look(job)
            if seen.end.startswith("cannot start: ") and seen.is_ended:
                raise StartRefused(seen.end.removeprefix("cannot start: "))
            if seen.is_running or seen.is_ended or monotonic_seconds() > ends:
                return seen
            time.sleep(LOOK_SECONDS)

    # -- looking ----------------------------------------------------------------------------------

    def look(self, job: Job) -> Seen:
        """How a job is now."""
        folder = self._folder / job.id
        is_supervised = _is_locked(folder / launch.LOCK)
        try:
            state = launch.read_state(folder)
        except launch.StateUnreadable as unreadable:
            return Seen(
                is_supervised=is_supervised,
                is_running=is_supervised,
                is_ended=False,
                trouble=str(unreadable),
            )
        paths = self.groups.paths_of(_group(job))
        use = cgroups.use_of(paths)
        if state is None or state.epoch != job.epoch:
            return Seen(is_supervised=is_supervised, is_running=False, is_ended=False)
        main = state.main
        return Seen(
            is_supervised=is_supervised,
            is_running=is_supervised and state.phase in ("running", "stopping"),
            is_ended=state.phase == "ended" and state.is_proved_empty,
            main_pid=None if main is None else main.pid,
            pids=cgroups.pids_in(paths),
            restarts=state.restarts,
            exit_code=state.exit_code,
            exit_signal=state.exit_signal,
            end=state.exit_reason if state.phase == "ended" else "",
            cpu_seconds=use.cpu_seconds,
            memory_bytes=use.memory_bytes,
            output_bytes=max(state.output_bytes or 0, output_size(folder)),
            output_lost_bytes=state.output_lost_bytes,
        )

    def checkpoint(self, job: Job) -> None:
        """Send the spec's signal to the main process; what it saved before does not count."""
        spec = job.spec
        assert spec is not None
        self._ready_path(job).unlink(missing_ok=True)
        state = _read_state(self._folder / job.id)
        if state is not None and state.main is not None:
            number = signal.Signals[f"SIG{spec.checkpoint_signal}"]
            processes.send(state.main.pid, state.main.start_ticks, number)

    def is_saved(self, job: Job) -> bool:
        """Whether the file that it writes last is there again; also true once it has ended."""
        return self._ready_path(job).exists() or self.look(job).is_ended

    def _ready_path(self, job: Job) -> Path:
        spec = job.spec
        assert spec is not None
        workdir = self._folder / job.id / launch.WORK
        return Path(spec.workdir or workdir) / spec.checkpoint_ready

    # -- ending -----------------------------------------------------------------------------------

    def stop(self, job: Job) -> None:
        """Ask the supervisor to end the job with its own grace."""
        self._tell_supervisor(job, signal.SIGTERM)

    def kill(self, job: Job) -> None:
        """End all of it now, with its supervisor or without."""
        self._tell_supervisor(job, signal.SIGQUIT)
        self._end(_group(job), job.id, job.epoch)

    def _tell_supervisor(self, job: Job, number: signal.Signals) -> None:
        state = _read_state(self._folder / job.id)
        if state is not None and state.epoch == job.epoch:
            processes.send(state.supervisor.pid, state.supervisor.start_ticks, number)

    def _end(self, group: str, job: str, epoch: int) -> None:
        paths = self.groups.paths_of(group)
        ends = monotonic_seconds() + KILL_SECONDS
        while monotonic_seconds() < ends:
            left = self._left(group, job, epoch)
            if not left:
                break
            if not cgroups.kill_groups(paths):
                cgroups.freeze(paths, is_frozen=True)
            processes.kill_all(left)
            cgroups.freeze(paths, is_frozen=False)
            time.sleep(LOOK_SECONDS)

    def why_not_dead(self, job: Job) -> str:
        """Empty once nothing of any run up to this one is left; else what is."""
        left = self._left(_group(job), job.id, job.epoch)
        if not left:
            return ""
        shown = ", ".join(str(pid) for pid, _ in left[:5])
        return f"{len(left)} of its processes are left ({shown})"

    def _left(self, group: str, job: str, epoch: int) -> list[tuple[int, int]]:
        """(pid, start in ticks) of whatever lives in its group or carries its name."""
        found = {pid: processes.start_ticks(pid) for pid in self._pids(group)}
        found |= {
            one.pid: one.start_ticks
            for one in processes.find_named()
            if one.job == job and one.epoch <= epoch and one.uid == self._uid_of(job)
        }
        return [(pid, ticks) for pid, ticks in found.items() if ticks is not None]

    def _uid_of(self, job: str) -> int | None:
        """As whom it runs: a name that somebody else carries is no sign of it."""
        try:
            return (self._folder / job / launch.WORK).stat().st_uid
        except OSError:
            return None

    def _pids(self, group: str) -> tuple[int, ...]:
        return cgroups.pids_in(self.groups.paths_of(group))

    def sweep(self, owned: Mapping[JobId, int]) -> tuple[str, ...]:
        """End whatever runs as a job without a right of this node."""
        lines = []
        rights = {f"{job}-{epoch}" for job, epoch in owned.items()}
        named = {(one.job, one.epoch) for one in processes.find_named() if self._is_ours(one)}
        for job, epoch in sorted(named):
            if owned.get(JobId(job)) != epoch:
                self._end(f"{job}-{epoch}", job, epoch)
                lines.append(f"ended what ran of job {job} as epoch {epoch}: not ours to run")
        for name in self.groups.names():
            job, _, epoch_text = name.rpartition("-")
            if name in rights or not (self._folder / job).is_dir():
                continue
            if self._pids(name):
                self._end(name, job, int(epoch_text) if epoch_text.isdecimal() else 0)
                lines.append(f"ended what ran in group {name}: not ours to run")
            cgroups.remove(self.groups.paths_of(name))
        return tuple(lines)

    def _is_ours(self, one: processes.Named) -> bool:
        """Whether it can be a process of a job of this agent, not of another on the machine."""
        return one.uid == self._uid_of(one.job)

    def clean(self, job: Job) -> None:
        """Take its groups away; its output and its working folder stay."""
        cgroups.remove(self.groups.paths_of(_group(job)))


def _group(job: Job) -> str:
    return f"{job.id}-{job.epoch}"


def _home(job: Job) -> str:
    try:
        return pwd.getpwuid(job.owner.uid).pw_dir
    except KeyError:
        return "/"


def _read_state(folder: Path) -> launch.State | None:
    try:
        return launch.read_state(folder)
    except launch.StateUnreadable:
        return None


def _is_locked(path: Path) -> bool:
    """Whether a supervisor has the job."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
