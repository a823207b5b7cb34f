"""Real programs that stand for those of the host: shell scripts in a test's own folder."""

import time
from pathlib import Path


def write_program(folder: Path, script: str, name: str = "ipmitool") -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def dies(pid: int) -> bool:
    """Whether a process ends within 10 s: a signal takes effect a little after it is sent."""
    for _ in range(1000):
        if not _is_running(pid):
            return True
        time.sleep(0.01)
    return False


def _is_running(pid: int) -> bool:
    """Whether a process is there and more than a zombie that nobody has waited for yet."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")
