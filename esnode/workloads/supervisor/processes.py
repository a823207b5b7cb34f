"""The processes of a job, seen from its supervisor: becoming one, and finding all of them.

Its own file because what a child does between its fork and the job's program is delicate: whatever
fails there is told in a line, and the child ends. It must not know when this is done.
"""

import ctypes
import os
import resource
import signal
from typing import Any, NoReturn

PR_SET_NO_NEW_PRIVS = 38
"""Source: linux/prctl.h."""
EXIT_NOT_STARTED = 127


def start_ticks(pid: int) -> int:
    """When a process started, in the kernel's ticks; 0 for one that is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0


class Cgroup:
    """The job's cgroup, where there is one."""

    def __init__(self, launch: dict[str, Any]) -> None:
        self.kind = launch["cgroup"]["kind"]
        self.paths = launch["cgroup"]["paths"]

    def join(self) -> None:
        """Called in the child."""
        for path in self.paths:
            with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write("0")

    def pids(self) -> list[int]:
        """Everyone in it."""
        found: dict[int, None] = {}
        for path in self.paths:
            for folder, _, _ in os.walk(path):
                try:
                    with open(os.path.join(folder, "cgroup.procs"), encoding="ascii") as file:
                        found.update(dict.fromkeys(map(int, file.read().split())))
                except OSError:
                    continue  # it went away meanwhile
        return [pid for pid in found if pid > 0]

    def kill(self) -> None:
        """End all of it at once, where the kernel can."""
        for path in self.paths:
            try:
                with open(os.path.join(path, "cgroup.kill"), "w", encoding="ascii") as file:
                    file.write("1")
            except OSError:
                continue  # v1, or a kernel before 5.14: one by one


def descendants() -> list[int]:
    """All processes that descend from this one."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(name))
    found: dict[int, None] = {}
    open_pids = [os.getpid()]
    while open_pids:
        for pid in parents.get(open_pids.pop(), ()):
            if pid not in found:
                found[pid] = None
                open_pids.append(pid)
    return list(found)


def become_job(launch: dict[str, Any], cgroup: Cgroup, output: int, told: int) -> NoReturn:
    """In the child: become the job, or say why not and end."""
    where = ""
    try:
        _prepare(launch, cgroup, output)
        where = launch["argv"][0]
        os.execvpe(launch["argv"][0], launch["argv"], launch["environment"])
    except OSError as error:
        where = where or str(error.filename or "")
        line = f"{where}: {error.strerror}" if where else str(error.strerror)
        os.write(told, line.encode(errors="replace"))
    except BaseException as error:  # whatever it is, the child must not go on as a supervisor
        os.write(told, repr(error).encode(errors="replace")[:4000])
    finally:
        os._exit(EXIT_NOT_STARTED)


def _prepare(launch: dict[str, Any], cgroup: Cgroup, output: int) -> None:
    """Everything of a process that is the job's and not its supervisor's."""
    os.setsid()
    cgroup.join()
    if launch["cpus"]:
        os.sched_setaffinity(0, launch["cpus"])
    if launch["nice"]:
        os.nice(launch["nice"])
    null = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, null), (1, output), (2, output)):
        os.dup2(source, target)
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            try:
                signal.signal(number, signal.SIG_DFL)
            except (OSError, ValueError):
                continue  # one that libc keeps for itself
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.umask(0o077)
    if os.geteuid() == 0:
        os.setgroups(launch["groups"])
        os.setgid(launch["gid"])
        os.setuid(launch["uid"])
    if launch["uid"] != 0:
        ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    os.chdir(launch["workdir"])
