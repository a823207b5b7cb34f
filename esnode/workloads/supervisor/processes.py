"""The processes of a job, seen from its supervisor: finding all of them, signalling, ending.

Its own file because a job is found in three ways, and none alone finds everybody: by its groups, by
descent, and by the name that it carries in its environment. It must not know when this is done.
"""

import errno
import os
import signal
import time
from collections.abc import Callable
from typing import Any

HOLD_ROUNDS = 10
"""Who forks is found again; more than so many times is a matter for the next call."""
FREEZE_SECONDS = 0.2
Found = dict[int, int]
"""Processes by pid, with their start in the kernel's ticks."""


def _stat(pid: int | str) -> list[bytes]:
    """The fields after the name: state, parent, ...; empty for one that is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def _is_over(fields: list[bytes]) -> bool:
    """Whether it is a zombie; one whose other threads still run is none. Source: proc_pid_stat."""
    return len(fields) < 20 or (fields[0] in b"ZX" and int(fields[17]) <= 1)


def start_ticks(pid: int) -> int:
    """When a process started; 0 for one that is gone or a zombie."""
    fields = _stat(pid)
    return 0 if _is_over(fields) else int(fields[19])


class Cgroup:
    """The job's groups, where there are any."""

    def __init__(self, launch: dict[str, Any]) -> None:
        self.kind = launch["cgroup"]["kind"]
        self.paths = [str(path) for path in launch["cgroup"]["paths"]]

    def join(self) -> None:
        """Called in the child."""
        for path in self.paths:
            with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write("0")

    def find(self) -> Found:
        """Everyone in them."""
        found: Found = {}
        for path in self.paths:
            for folder, _, _ in os.walk(path):
                try:
                    with open(os.path.join(folder, "cgroup.procs"), encoding="ascii") as file:
                        pids = file.read().split()
                except OSError:
                    continue  # it went away meanwhile
                found.update((int(pid), start_ticks(int(pid))) for pid in pids)
        return {pid: ticks for pid, ticks in found.items() if pid and ticks}

    def kill(self) -> None:
        """End all of it at once, where the kernel can (version 2 since 5.14)."""
        self._write("cgroup.kill", "1")

    def freeze(self) -> None:
        """Let nobody fork any more, on version 1."""
        if not self._write("freezer.state", "FROZEN"):
            return
        for _ in range(int(FREEZE_SECONDS / 0.01)):
            if "FREEZING" not in self._read("freezer.state"):
                return
            time.sleep(0.01)

    def thaw(self) -> None:
        """Let them go on, if only to their end."""
        self._write("freezer.state", "THAWED")

    def _write(self, name: str, text: str) -> bool:
        is_written = False
        for path in self.paths:
            try:
                file = os.open(os.path.join(path, name), os.O_WRONLY | os.O_CLOEXEC)
            except OSError:
                continue  # another version, another controller
            try:
                os.write(file, text.encode())
                is_written = True
            except OSError:
                continue
            finally:
                os.close(file)
        return is_written

    def _read(self, name: str) -> str:
        text = ""
        for path in self.paths:
            try:
                with open(os.path.join(path, name), encoding="ascii") as file:
                    text += file.read()
            except OSError:
                continue
        return text


def descendants() -> Found:
    """All processes that descend from this one."""
    parents: dict[int, list[tuple[int, int]]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            fields = _stat(name)
            if len(fields) >= 20:
                # A zombie is kept here: its children are the job's, too.
                ticks = 0 if _is_over(fields) else int(fields[19])
                parents.setdefault(int(fields[1]), []).append((int(name), ticks))
    found: Found = {}
    open_pids = [os.getpid()]
    while open_pids:
        for pid, ticks in parents.get(open_pids.pop(), ()):
            if pid not in found:
                found[pid] = ticks
                open_pids.append(pid)
    return {pid: ticks for pid, ticks in found.items() if ticks}


def named(job: str, epoch: int, uid: int) -> Found:
    """All processes of this user that carry the job's name, of this epoch or an earlier one.

    Only the user's: another's process may be stuck in a way that whoever reads it is stuck as well.
    """
    found: Found = {}
    own = os.getpid()
    for name in os.listdir("/proc"):
        if not name.isdecimal() or int(name) == own:
            continue
        try:
            if os.stat(f"/proc/{name}").st_uid != uid:
                continue
            with open(f"/proc/{name}/environ", "rb") as file:
                values = file.read().split(b"\0")
        except OSError:
            continue
        if b"ESNODE_JOB_ID=" + job.encode() not in values:
            continue
        of = [one[17:] for one in values if one.startswith(b"ESNODE_JOB_EPOCH=")]
        ticks = start_ticks(int(name))
        if ticks and not (of and of[0].isdigit() and int(of[0]) > epoch):
            found[int(name)] = ticks
    return found


def signal_each(found: Found, number: int) -> None:
    """Signal exactly these, not whoever has one of their pids by now. Source: pidfd_open(2)."""
    for pid, ticks in found.items():
        try:
            descriptor = os.pidfd_open(pid)
        except OSError as error:
            if error.errno == errno.ENOSYS and start_ticks(pid) == ticks:
                _signal_bare(pid, number)
            continue
        try:
            if start_ticks(pid) == ticks:
                signal.pidfd_send_signal(descriptor, number)
        except OSError:
            continue  # gone, or not ours any more
        finally:
            os.close(descriptor)


def _signal_bare(pid: int, number: int) -> None:
    """Before Linux 5.3 there are no descriptors; a descendant's pid is rarely free so soon."""
    try:
        os.kill(pid, number)
    except OSError:
        return


def kill_everyone(cgroup: Cgroup, find: Callable[[], Found]) -> None:
    """End all; first nobody may go on, so that nobody forks away in between."""
    cgroup.kill()
    cgroup.freeze()
    held: Found = {}
    for _ in range(HOLD_ROUNDS):
        new = {pid: ticks for pid, ticks in find().items() if held.get(pid) != ticks}
        if not new:
            break
        signal_each(new, signal.SIGSTOP)
        held.update(new)
    signal_each(held, signal.SIGKILL)
    cgroup.thaw()
