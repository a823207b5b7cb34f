"""The supervisor of one job: `python -I -S main.py LAUNCH_FILE`. Starts it, keeps its end, ends.

Its own program because a job outlives the agent. It imports little: one of these stays in memory
for every job. It is nobody's child and the parent of everything that the job leaves behind (a
subreaper), so it knows when nothing of the job is left: when it has no child any more.

Signals: TERM ends the job with its own grace, QUIT at once, USR1 reads the fence again.
Exit codes: 0 the end is kept in state.json, or another process goes on; 65 the launch file is none;
71 the machine refuses (no process, no file); 75 another supervisor has this job; 76 a later right
to it is known. It must not know why a job is started or ended.
"""

import ctypes
import fcntl
import json
import os
import sys
import time

ROOT = os.path.dirname(os.path.abspath(__file__))
for _ in "supervisor", "workloads", "esnode":
    ROOT = os.path.dirname(ROOT)
sys.path.append(ROOT)  # isolated, Python knows no other place of this package

from esnode.workloads.supervisor.keeper import Keeper, read_fence  # noqa: E402  # needs the path

LAUNCH_SCHEMA = "esnode.job_launch/1"
EXIT_BAD_LAUNCH = 65
EXIT_NOT_NOW = 71
EXIT_TAKEN = 75
EXIT_FENCED = 76
LOCK_ATTEMPTS = 10
LOCK_SECONDS = 0.05
PARENT_ATTEMPTS = 1000
PARENT_SECONDS = 0.001
PR_SET_CHILD_SUBREAPER = 36
"""Source: linux/prctl.h."""
OOM_SCORE = "-500"
"""The kernel ends the job before its supervisor."""


def main(arguments: list[str]) -> int:
    """Keep one job until its end; the exit code."""
    try:
        path = arguments[1]
        with open(path, encoding="utf-8") as file:
            launch = json.load(file)
        if launch["schema"] != LAUNCH_SCHEMA:
            _say(f"{path}: is {launch['schema']}, not {LAUNCH_SCHEMA}: another version wrote it")
            return EXIT_BAD_LAUNCH
        keeper = Keeper(launch)
        os.chdir(launch["folder"])
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        _say(f"no launch file: {error!r}")
        return EXIT_BAD_LAUNCH
    try:
        if not take_lock():
            _say("this job has another supervisor")
            return EXIT_TAKEN
        if read_fence() > keeper.epoch:
            _say(f"this job has a later epoch than {keeper.epoch}")
            return EXIT_FENCED
        first = os.getpid()
        if os.fork():
            return 0  # whoever started us waits for this; the other is nobody's child
    except OSError as error:
        _say(f"cannot begin: {error.strerror}")
        return EXIT_NOT_NOW
    os.setsid()
    wait_for_end_of(first)
    detach()
    keeper.run()
    return 0


def take_lock() -> bool:
    """Have the job to ourselves, for as long as this process lives.

    Tried a few times: whoever looks whether there is a supervisor has it for a moment.
    """
    lock = os.open("lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for attempt in range(LOCK_ATTEMPTS):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt + 1 < LOCK_ATTEMPTS:
                time.sleep(LOCK_SECONDS)
            continue
        return True
    return False


def wait_for_end_of(parent: int) -> None:
    """It carries the job's name as well: what ends the job must not find it."""
    for _ in range(PARENT_ATTEMPTS):
        if os.getppid() != parent:
            return
        time.sleep(PARENT_SECONDS)


def detach() -> None:
    """Be the parent of orphans, hold no stream of the agent's, be ended last."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.close(null)
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write(OOM_SCORE)
    except OSError:
        return  # not permitted: it is as likely to be ended as any other


def _say(line: str) -> None:
    sys.stderr.write(f"esnode supervisor: {line}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
