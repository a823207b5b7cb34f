"""Jobs that are processes of this machine, each under its own supervisor.

Its own file because it is one adapter among others. Everything blocks, and nothing is kept between
calls: what is true is in the job's folder, in its groups and in the process table, so an agent that
starts anew sees the same. It must not know why a job is started or ended.
"""

import json
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from cluster.identity.files import IdentityUnusable, replace_file
from esnode.clock import monotonic_seconds
from esnode.workloads import cgroups, launch, processes
from esnode.workloads.adapters import AdapterFailed, Given, Seen, StartRefused
from esnode.workloads.book import Job
from esnode.workloads.ids import JobId
from esnode.workloads.output import output_size
from esnode.workloads.remains import Remains, Runs, group_of, is_locked, read_state

SUPERVISOR = Path(__file__).with_name("supervisor") / "main.py"
START_SECONDS = 10.0
"""For the supervisor to say that it has begun; one that takes longer is looked at later."""
LOOK_SECONDS = 0.01
LEAVE_SECONDS = 2.0
"""For the supervisor of the run before to end: its end is kept a moment earlier."""


_FOLDER_MODE = 0o711
"""The submitter may read its own files in it, by their names."""


class LocalProcesses:
    """The adapter."""

    def __init__(self, folder: Path, groups: cgroups.Cgroups | None = None) -> None:
        """`folder` holds a folder for each job; without groups `prepare` looks for them."""
        self._folder = folder
        self._use(groups or cgroups.Cgroups(kind="none", reason="not looked for yet"))
        self._is_given = groups is not None

    def _use(self, groups: cgroups.Cgroups) -> None:
        self.groups = groups
        self._remains = Remains(self._folder, groups)

    def prepare(self) -> None:
        """Look where control groups can be made; makes the folder for them."""
        if not self._is_given:
            self._use(cgroups.probe())

    # -- starting ---------------------------------------------------------------------------------

    def start(self, job: Job, given: Given) -> Seen:
        """Start a job's supervisor, which starts the job.

        Raises:
            StartRefused: it can never be started like this.
            AdapterFailed: not now; nothing runs.
        """
        folder = self._folder / job.id
        ends = monotonic_seconds() + LEAVE_SECONDS
        while (left := self.why_not_dead(job)) and monotonic_seconds() < ends:
            time.sleep(LOOK_SECONDS)
        if left:
            raise AdapterFailed(f"something of it still runs: {left}")
        try:
            self._prepare(folder, job)
            spec = job.spec
            assert spec is not None
            paths = self.groups.make(
                group_of(job.id, job.epoch),
                memory_bytes=spec.memory_bytes,
                cpu_count=spec.cpu_count,
            )
            document = launch.launch_document(
                job, given, folder, _home(job), (self.groups.kind, paths)
            )
            path = folder / launch.launch_file(job.epoch)
            replace_file(path, json.dumps(document).encode())
        except IdentityUnusable as unusable:
            raise AdapterFailed(str(unusable)) from None
        except OSError as error:
            raise AdapterFailed(f"{error.filename or folder}: {error.strerror}") from None
        self._run_supervisor(path, document["environment"])
        return self._await_begin(job)

    def _prepare(self, folder: Path, job: Job) -> None:
        uid, gid = job.owner.uid, job.owner.gid
        work = folder / launch.WORK
        folder.mkdir(exist_ok=True)
        folder.chmod(_FOLDER_MODE)  # whatever the agent's umask is
        work.mkdir(mode=0o700, exist_ok=True)
        if os.geteuid() == 0:
            os.chown(work, uid, gid, follow_symlinks=False)
        (folder / launch.STATE).unlink(missing_ok=True)
        replace_file(folder / launch.FENCE, f"{job.epoch}\n".encode())

    def _run_supervisor(self, path: Path, environment: Mapping[str, str]) -> None:
        command = [sys.executable, "-I", "-S", str(SUPERVISOR), str(path)]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd="/",
                # By its name it is found, and its child before that is the job's program.
                env={name: environment[name] for name in ("ESNODE_JOB_ID", "ESNODE_JOB_EPOCH")},
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
        paths = self.groups.paths_of(group_of(job.id, job.epoch))
        is_supervised = True
        try:
            is_supervised = is_locked(folder / launch.LOCK)
            state = launch.read_state(folder)
            pids = cgroups.pids_in(paths)
        except (launch.StateUnreadable, OSError) as unreadable:
            return Seen(
                is_supervised=is_supervised,
                is_running=is_supervised,
                is_ended=False,
                trouble=str(unreadable),
            )
        use = cgroups.use_of(paths)
        if state is None or not _is_of_run(state, job):
            return Seen(is_supervised=is_supervised, is_running=False, is_ended=False)
        main = state.main
        return Seen(
            is_supervised=is_supervised,
            is_running=is_supervised and state.phase in ("running", "stopping"),
            is_ended=state.phase == "ended" and state.is_proved_empty,
            main_pid=None if main is None else main.pid,
            pids=pids,
            restarts=state.restarts,
            exit_code=state.exit_code,
            exit_signal=state.exit_signal,
            end=state.exit_reason if state.phase == "ended" else "",
            cpu_seconds=use.cpu_seconds,
            memory_bytes=use.memory_bytes,
            output_bytes=max(state.output_bytes or 0, output_size(folder)),
            output_lost_bytes=state.output_lost_bytes,
            trouble=state.trouble,
        )

    def checkpoint(self, job: Job) -> None:
        """Send the spec's signal to the main process; what it saved before does not count."""
        spec = job.spec
        assert spec is not None
        self._ready_path(job).unlink(missing_ok=True)
        state = read_state(self._folder / job.id)
        if state is not None and _is_of_run(state, job) and state.main is not None:
            number = signal.Signals[f"SIG{spec.checkpoint_signal}"]
            processes.signal_all([(state.main.pid, state.main.start_ticks)], number)

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
        state = read_state(self._folder / job.id)
        if state is not None and _is_of_run(state, job):
            one = state.supervisor
            processes.signal_all([(one.pid, one.start_ticks)], signal.SIGTERM)

    def kill(self, job: Job) -> None:
        """End all of it now, with its supervisor or without."""
        self._remains.kill(_runs(job))

    def why_not_dead(self, job: Job) -> str:
        """Empty once nothing of any run up to this one is left; else what is."""
        return self._remains.why_not_dead(_runs(job))

    def sweep(self, owned: Mapping[JobId, int]) -> tuple[str, ...]:
        """End whatever runs as a job without a right of this node."""
        return self._remains.sweep(owned)

    def clean(self, job: Job) -> None:
        """Take its groups away; its output and its working folder stay."""
        self._remains.clean(_runs(job))


def _runs(job: Job) -> Runs:
    return Runs(job=job.id, highest=job.epoch)


def _is_of_run(state: launch.State, job: Job) -> bool:
    """Whether it is the state of this run; the folder may still have that of the one before."""
    return state.epoch == job.epoch and state.attempt in (None, job.attempt)


def _home(job: Job) -> str:
    try:
        return pwd.getpwuid(job.owner.uid).pw_dir
    except KeyError:
        return "/"
