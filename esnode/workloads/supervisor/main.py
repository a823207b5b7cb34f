"""The supervisor of one job: `python -I -S main.py LAUNCH_FILE`. Starts it, keeps its end, ends.

Its own program because a job outlives the agent. It imports little: one of these stays in memory
for every job. It is nobody's child and the parent of everything that the job leaves behind (a
subreaper), so it knows when nothing of the job is left: when it has no child any more.

Signals: TERM ends the job with its own grace, QUIT at once, USR1 reads the fence again.
Exit codes: 0 the end is kept in state.json, or another process goes on; 65 the launch file is none;
75 another supervisor has this job; 76 a later right to it is known. It must not know why a job is
started or ended.
"""

import ctypes
import fcntl
import json
import os
import sys

ROOT = os.path.dirname(os.path.abspath(__file__))
for _ in "supervisor", "workloads", "esnode":
    ROOT = os.path.dirname(ROOT)
sys.path.insert(0, ROOT)  # isolated, Python knows no other place of this package

from esnode.workloads.supervisor.keeper import Keeper, read_fence  # noqa: E402  # needs the path

EXIT_BAD_LAUNCH = 65
EXIT_TAKEN = 75
EXIT_FENCED = 76
PR_SET_CHILD_SUBREAPER = 36
"""Source: linux/prctl.h."""
OOM_SCORE = "-500"
"""The kernel ends the job before its supervisor."""


def main(arguments: list[str]) -> int:
    """Keep one job until its end; the exit code."""
    try:
        with open(arguments[1], encoding="utf-8") as file:
            launch = json.load(file)
        os.chdir(launch["folder"])
        epoch = int(launch["epoch"])
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        _say(f"no launch file: {error!r}")
        return EXIT_BAD_LAUNCH
    lock = os.open("lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        _say("this job has another supervisor")
        return EXIT_TAKEN
    if read_fence() > epoch:
        _say(f"this job has a later epoch than {epoch}")
        return EXIT_FENCED
    if os.fork():
        return 0  # whoever started us waits for this; the other is nobody's child
    os.setsid()
    detach()
    Keeper(launch).run()
    return 0


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
