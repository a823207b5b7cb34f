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
from esnode.workloads.supervisor.output import Output
from esnode.workloads.supervisor.processes import Cgroup, become_job, descendants, start_ticks

FENCE_SECONDS = 2.0
RETRY_SECONDS = 1.0
KILL_AGAIN_SECONDS = 0.5
READ_BYTES = 65536
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
        self.main_ticks = 0
        self.status: int | None = None
        self.pipe = -1
        self.stop_signal = signal.Signals["SIG" + launch["stop"]["signal"]]
        self.grace_seconds = float(launch["stop"]["grace_seconds"])
        self.asked = ""
        self.kill_at: float | None = None
        self.restart_at: float | None = None
        self.began = 0.0
        self.restarts = 0
        self.failures = 0
        self.fence_at = 0.0
        self.is_dirty = False
        self.pending: list[int] = []
        own = os.getpid()
        self.state = {
            "schema": "esnode.job_state/1",
            "job": launch["job"],
            "epoch": self.epoch,
            "phase": "starting",
            "supervisor": {
                "pid": own,
                "start_ticks": start_ticks(own),
                "boot_id": launch["boot_id"],
            },
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
        wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for heard in (signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1, signal.SIGCHLD):
            signal.signal(heard, lambda *_: None)
        for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(ignored, signal.SIG_IGN)
        self.keep()
        self.begin()
        while not (self.state["phase"] == "ended" and not self.is_dirty):
            ready, _, _ = select.select(self.streams(wake_read), [], [], self.wait_seconds())
            if wake_read in ready:
                for number in os.read(wake_read, 4096):
                    self.hear(number)
            if self.pipe in ready:
                self.read_output()
            self.reap()
            self.keep_time()

    def streams(self, wake: int) -> list[int]:
        """What is waited for."""
        return [wake] if self.pipe < 0 else [wake, self.pipe]

    def wait_seconds(self) -> float:
        """Until something is due."""
        now = monotonic_seconds()
        due = [self.fence_at, self.kill_at, self.restart_at]
        if self.is_dirty:
            due.append(now + RETRY_SECONDS)
        return max(0.0, min(one for one in due if one is not None) - now)

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
        if self.is_dirty:
            self.keep()

    # -- starting ---------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start the job's main process."""
        told_read, told_write = os.pipe2(os.O_CLOEXEC)
        self.pipe, written = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(written, True)
        pid = os.fork()
        if pid == 0:
            become_job(self.launch, self.cgroup, written, told_write)
        os.close(written)
        os.close(told_write)
        trouble = os.read(told_read, 4096).decode(errors="replace")
        os.close(told_read)
        self.status, self.asked, self.kill_at = None, "", None
        self.main_pid, self.main_ticks = pid, start_ticks(pid)
        self.began = monotonic_seconds()
        if trouble:
            self.asked = f"cannot start: {trouble}"
        self.state.update(
            phase="running",
            main={"pid": pid, "start_ticks": self.main_ticks},
            started_at=unix_seconds(),
            restarts=self.restarts,
        )
        if not trouble:
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
            self.signal_all(self.stop_signal)

    def kill(self) -> None:
        """End all of it, again and again until nobody is left."""
        if self.asked == "stopped":
            self.asked = "killed"
        self.cgroup.kill()
        self.signal_all(signal.SIGKILL)
        self.kill_at = monotonic_seconds() + KILL_AGAIN_SECONDS

    def signal_all(self, number: int) -> None:
        """A signal to everyone of the job."""
        for pid in dict.fromkeys((*descendants(), *self.cgroup.pids())):
            try:
                os.kill(pid, number)
            except OSError:
                continue  # gone, or not ours any more

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
            self.signal_all(self.stop_signal)

    def nobody_left(self) -> None:
        """Without any process the run is over."""
        if self.status is None:
            return
        if self.cgroup.pids():
            return  # somebody else's child, moved in by hand: killed when the grace is over
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
        policy = self.launch["restart"]["policy"]
        if monotonic_seconds() - self.began >= float(self.launch["restart"]["reset_after_seconds"]):
            self.failures = 0
        is_wanted = policy == "always" or (policy == "on-failure" and code != 0)
        return is_wanted and self.failures < int(self.launch["restart"]["maximum"])

    def wait_for_restart(self, code: int) -> None:
        """Longer each time."""
        restart = self.launch["restart"]
        pause = float(restart["backoff_seconds"]) * 2.0**self.failures
        self.failures += 1
        self.restart_at = monotonic_seconds() + min(pause, float(restart["backoff_seconds_max"]))
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
        """Take in what the job has written."""
        while self.pipe >= 0:
            try:
                data = os.read(self.pipe, READ_BYTES)
            except BlockingIOError:
                if not is_last:
                    return
                data = b""
            if not data:
                os.close(self.pipe)
                self.pipe = -1
                return
            self.output.write(data)
            if not is_last:
                return  # others want to be heard, too

    def keep(self) -> None:
        """Put the state on disk; a disk that refuses is tried again each second."""
        self.state["output_bytes_total"] = self.output.written_total
        self.state["output_lost_bytes_total"] = self.output.lost_total
        data = json.dumps(self.state).encode()
        try:
            file = os.open(".state.new", _STATE_FLAGS, 0o600)
            try:
                if os.write(file, data) < len(data):
                    raise OSError(errno.ENOSPC, "the disk is full")
                os.fsync(file)
            finally:
                os.close(file)
            os.replace(".state.new", "state.json")
            self.is_dirty = False
        except OSError:
            self.is_dirty = True
