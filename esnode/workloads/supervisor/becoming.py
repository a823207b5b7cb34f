"""From a fork of the supervisor to the job's program.

Its own file because what a child does in between is delicate: whatever fails there is told in a
line, and the child ends. Nothing of the agent's is left to the job: its own session, groups, user,
priority, signals and environment. It must not know what is done about a failure.
"""

import ctypes
import os
import resource
import signal
from typing import Any, NoReturn

from esnode.workloads.supervisor.processes import Cgroup

PR_SET_NO_NEW_PRIVS = 38
"""Source: linux/prctl.h."""
EXIT_NOT_STARTED = 127
OOM_SCORE = "0"
"""As any program; the supervisor's own is lower."""
TOLD_BYTES_MAX = 4000
"""Less than a pipe takes at once."""


def become_job(launch: dict[str, Any], cgroup: Cgroup, output: int, told: int) -> NoReturn:
    """In the child, with all signals blocked: become the job, or say why not and end."""
    step = ""
    try:
        _reset_signals()
        os.setsid()
        cgroup.join()
        step = "its place (CPUs, streams)"
        _take_place(launch, output)
        step = f"user {launch['uid']}"
        _take_user(launch)
        step = str(launch["workdir"])
        os.chdir(launch["workdir"])
        step = launch["argv"][0]
        os.execvpe(launch["argv"][0], launch["argv"], launch["environment"])
    except OSError as error:
        where = step or str(error.filename or "")
        line = f"{where}: {error.strerror}" if where else str(error.strerror)
        os.write(told, line.encode(errors="replace")[:TOLD_BYTES_MAX])
    except BaseException as error:  # whatever it is, the child must not go on as a supervisor
        os.write(told, f"{step}: {error}".encode(errors="replace")[:TOLD_BYTES_MAX])
    finally:
        os._exit(EXIT_NOT_STARTED)


def _reset_signals() -> None:
    """As any program finds them; the wake-up pipe is the supervisor's alone."""
    signal.set_wakeup_fd(-1)
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            try:
                signal.signal(number, signal.SIG_DFL)
            except (OSError, ValueError):
                continue  # one that libc keeps for itself
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _take_place(launch: dict[str, Any], output: int) -> None:
    if launch["cpus"]:
        os.sched_setaffinity(0, launch["cpus"])
    _take_priority(int(launch["nice"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, null), (1, output), (2, output)):
        os.dup2(source, target)
    os.umask(0o077)


def _take_priority(nice: int) -> None:
    """As far as it is permitted: an agent that is nicer itself may not be able to go back."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write(OOM_SCORE)
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    except PermissionError:
        return


def _take_user(launch: dict[str, Any]) -> None:
    if os.geteuid() == 0:
        os.setgroups(launch["groups"])
        os.setgid(launch["gid"])
        os.setuid(launch["uid"])
    elif launch["uid"] != os.geteuid():
        raise PermissionError(0, "an agent that is not root runs jobs of its own user only")
    if launch["uid"] != 0:
        ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
