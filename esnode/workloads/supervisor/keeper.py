"""One job from its start to its kept end: the loop of a supervisor.

Its own file because it is the supervisor's whole behaviour: what ends a run, what is asked before
it is killed, when it is run once more, and that its end is on disk before the supervisor ends. The
run is over when no child is left, however its processes forked away.
"""

import errno
import json
import os
import select
import signal
from typing import Any

from esnode.clock import monotonic_seconds, unix_seconds
from esnode.workloads.supervisor.becoming import become_job
from esnode.workloads.supervisor.output import Output
from esnode.workloads.supervisor.processes import (
    Cgroup,
    Found,
    descendants,
    kill_everyone,
    named,
    signal_each,
    start_ticks,
)

STATE_SCHEMA = "esnode.job_state/1"
FENCE_SECONDS = 2.0
RETRY_SECONDS = 1.0
KILL_AGAIN_SECONDS = 0.5
KEEP_OUTPUT_SECONDS = 10.0
"""How old the kept count of output may be."""
READ_BYTES = 65536
LAST_READS_MAX = 64
"""More than a pipe holds: somebody outside of the job goes on writing."""
_STATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC


def read_fence() -> int:
    """The highest epoch that is known of the job; 0 where the file says nothing."""
    try:
        with open("fence", encoding="ascii") as file:
            return int(file.read().strip() or 0)
    except (OSError, ValueError):
        return 0  # a folder that is away for a while takes no right


class Keeper:
    """One job."""

    def __init__(self, launch: dict[str, Any]) -> None:
        self.launch = launch
        self.epoch = int(launch["epoch"])
        self.output = Output(launch)
        self.cgroup = Cgroup(launch)
        self.main_pid = 0
        self.status: int | None = None
        self.pipe = -1
        """What the job writes."""
        self.told = -1
        """Closed by the kernel once the job's program runs; before that, why it does not."""
        self.stop_signal = signal.Signals["SIG" + launch["stop"]["signal"]]
        self.grace_seconds = float(launch["stop"]["grace_seconds"])
        self.restart = dict(launch["restart"])
        self.asked = ""
        self.kill_at: float | None = None
        self.restart_at: float | None = None
        self.began = 0.0
        self.restarts = 0
        self.failures = 0
        self.fence_at = 0.0
        self.keep_at: float | None = None
        """When a disk that refused is tried again."""
        self.kept_at = 0.0
        self.state: dict[str, Any] = {
            "schema": STATE_SCHEMA,
            "job": launch["job"],
            "epoch": self.epoch,
            "attempt": launch["attempt"],
            "phase": "starting",
            "supervisor": None,
            "main": None,
            "started_at": None,
            "ended_at": None,
            "restarts": 0,
            "exit": None,
            "output_bytes_total": 0,
            "output_lost_bytes_total": 0,
            "is_proved_empty": False,
            "trouble": "",
        }

    # -- life -------------------------------------------------------------------------------------

    def run(self) -> None:
        """From the start to the kept end."""
        own = os.getpid()
        self.state["supervisor"] = {
            "pid": own,
            "start_ticks": start_ticks(own),
            "boot_id": self.launch["boot_id"],
        }
        wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for heard in (signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1, signal.SIGCHLD):
            signal.signal(heard, lambda *_: None)
        for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(ignored, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        self.begin()
        while not (self.state["phase"] == "ended" and self.keep_at is None):
            streams = [one for one in (wake_read, self.told, self.pipe) if one >= 0]
            ready, _, _ = select.select(streams, [], [], self.wait_seconds())
            if wake_read in ready:
                for number in os.read(wake_read, 4096):
                    self.hear(number)
            if self.told in ready:
                self.begun()
            if self.pipe in ready:
                self.read_output()
            self.reap()
            self.keep_time()

    def wait_seconds(self) -> float:
        """Until something is due."""
        due = [self.fence_at, self.kill_at, self.restart_at, self.keep_at]
        return max(0.0, min(one for one in due if one is not None) - monotonic_seconds())

    def hear(self, number: int) -> None:
        """A signal to the supervisor."""
        if number == signal.SIGTERM:
            self.end("stopped")
        elif number == signal.SIGQUIT:
            self.end("killed")
        elif number == signal.SIGUSR1:
            self.fence_at = 0.0

    def keep_time(self) -> None:
        """Whatever is due."""
        now = monotonic_seconds()
        if now >= self.fence_at:
            self.fence_at = now + FENCE_SECONDS
            if read_fence() > self.epoch:
                self.end("fenced")
            is_old = now - self.kept_at >= KEEP_OUTPUT_SECONDS
            if is_old and self.state["output_bytes_total"] != self.output.written_total:
                self.keep()
        if self.kill_at is not None and now >= self.kill_at:
            self.kill()
        if self.restart_at is not None and now >= self.restart_at:
            self.restart_at = None
            self.restarts += 1
            if read_fence() > self.epoch:
                self.asked = "fenced"
                self.over(None)
            else:
                self.begin()
        if self.keep_at is not None and now >= self.keep_at:
            self.keep()

    # -- starting ---------------------------------------------------------------------------------

    def begin(self) -> None:
        """Fork what becomes the job's main process."""
        self.status, self.asked, self.kill_at = None, "", None
        try:
            pid = self.fork()
        except OSError as error:
            self.asked = f"cannot start: {error.strerror}"
            self.over(None)
            return
        self.main_pid, self.began = pid, monotonic_seconds()
        self.state.update(
            phase="starting",
            main={"pid": pid, "start_ticks": start_ticks(pid)},
            started_at=unix_seconds(),
            restarts=self.restarts,
        )
        self.keep()

    def fork(self) -> int:
        """The child's pid; in the child this does not return."""
        self.told, told = os.pipe2(os.O_CLOEXEC)
        self.pipe, written = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(written, True)
        # What is sent to the child while it still has our handlers would be heard by us.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            pid = os.fork()
            if pid == 0:
                become_job(self.launch, self.cgroup, written, told)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            os.close(written)
            os.close(told)
        return pid

    def begun(self) -> None:
        """The main process has become the job's program, or says why it has not."""
        trouble = os.read(self.told, 4096).decode(errors="replace")
        os.close(self.told)
        self.told = -1
        if trouble:
            self.asked = f"cannot start: {trouble}"
        elif self.state["phase"] == "starting":
            self.state["phase"] = "running"
            self.keep()

    # -- ending -----------------------------------------------------------------------------------

    def end(self, how: str) -> None:
        """Have the job end: asked first, or killed at once."""
        if self.state["phase"] == "ended" or self.asked in ("killed", "fenced"):
            return
        if self.state["phase"] == "waiting":
            self.restart_at = None
            self.asked = how
            self.over(None)
            return
        is_first = not self.asked
        self.asked = how
        if how != "stopped":
            self.kill_at = monotonic_seconds()
        elif is_first:
            self.state["phase"] = "stopping"
            self.kill_at = monotonic_seconds() + self.grace_seconds
            self.keep()
            self.ask_all()

    def everyone(self) -> Found:
        """All processes of the job, however they are known."""
        launch = self.launch
        return {
            **named(str(launch["job"]), self.epoch, int(launch["uid"])),
            **self.cgroup.find(),
            **descendants(),
        }

    def ask_all(self) -> None:
        """Have all of the job end by themselves; what is stopped must go on for that."""
        found = self.everyone()
        signal_each(found, self.stop_signal)
        signal_each(found, signal.SIGCONT)

    def kill(self) -> None:
        """End all of it, again and again until nobody is left."""
        if self.asked == "stopped":
            self.asked = "killed"
        kill_everyone(self.cgroup, self.everyone)
        self.kill_at = monotonic_seconds() + KILL_AGAIN_SECONDS

    def reap(self) -> None:
        """Take in whoever has ended; the run is over once nobody is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.nobody_left()
                return
            if pid == 0:
                return
            if pid == self.main_pid and self.status is None:
                self.main_ended(status)

    def main_ended(self, status: int) -> None:
        """The main process is over; what it left behind is asked to end as well."""
        self.status = status
        if not self.asked:
            self.asked = "exited"
        if self.kill_at is None:
            self.kill_at = monotonic_seconds() + self.grace_seconds
            self.ask_all()

    def nobody_left(self) -> None:
        """Without any child the run is over, unless somebody else's child belongs to it."""
        if self.status is None or self.everyone():
            return  # who is left is killed when the grace is over
        if self.told >= 0:
            self.begun()
        self.read_output(is_last=True)
        status, self.kill_at = self.status, None
        code = os.waitstatus_to_exitcode(status)
        if self.asked == "exited" and self.wants_restart(code):
            self.wait_for_restart(code)
            return
        if self.state["phase"] != "ended":
            self.over(code)

    def wants_restart(self, code: int) -> bool:
        """Whether the job is to be run once more."""
        policy = self.restart["policy"]
        if monotonic_seconds() - self.began >= float(self.restart["reset_after_seconds"]):
            self.failures = 0
        is_wanted = policy == "always" or (policy == "on-failure" and code != 0)
        return is_wanted and self.failures < int(self.restart["maximum"])

    def wait_for_restart(self, code: int) -> None:
        """Longer each time."""
        longest = float(self.restart["backoff_seconds_max"])
        pause = float(self.restart["backoff_seconds"]) * 2.0 ** min(self.failures, 30)
        self.failures += 1
        self.restart_at = monotonic_seconds() + min(pause, longest)
        self.status = None
        self.state.update(phase="waiting", main=None, exit=self.exit_of(code))
        self.keep()

    def over(self, code: int | None) -> None:
        """The end, proved."""
        self.state.update(
            phase="ended",
            main=None,
            ended_at=unix_seconds(),
            exit=self.exit_of(code),
            is_proved_empty=True,
        )
        self.keep()

    def exit_of(self, code: int | None) -> dict[str, Any]:
        """How the run ended, for the state."""
        if self.asked.startswith("cannot start"):
            code = None
        return {
            "code": code if code is not None and code >= 0 else None,
            "signal": -code if code is not None and code < 0 else None,
            "reason": self.asked or "exited",
        }

    # -- keeping ----------------------------------------------------------------------------------

    def read_output(self, *, is_last: bool = False) -> None:
        """Take in what the job has written: one piece, or all that is left."""
        for _ in range(LAST_READS_MAX if is_last else 1):
            if self.pipe < 0:
                return
            try:
                data = os.read(self.pipe, READ_BYTES)
            except BlockingIOError:
                break
            if not data:
                is_last = True
                break
            self.output.write(data)
        if is_last:
            os.close(self.pipe)
            self.pipe = -1

    def keep(self) -> None:
        """Put the state on disk; a disk that refuses is tried again each second."""
        self.state["output_bytes_total"] = self.output.written_total
        self.state["output_lost_bytes_total"] = self.output.lost_total
        self.state["trouble"] = self.output.trouble
        data = json.dumps(self.state).encode()
        self.keep_at, self.kept_at = None, monotonic_seconds()
        try:
            file = os.open(".state.new", _STATE_FLAGS, 0o600)
            try:
                if os.write(file, data) < len(data):
                    raise OSError(errno.ENOSPC, "the disk is full")
                os.fsync(file)
            finally:
                os.close(file)
            os.replace(".state.new", "state.json")
            if self.state["phase"] == "ended":
                _sync_folder()
        except OSError:
            if os.stat(".").st_nlink:  # else the job's folder is gone: nobody asks any more
                self.keep_at = self.kept_at + RETRY_SECONDS


def _sync_folder() -> None:
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
