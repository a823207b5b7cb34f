"""Real programs that stand for those of the host: shell scripts in a test's own folder."""

import os
from pathlib import Path


def write_program(folder: Path, script: str, name: str = "ipmitool") -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def is_running(pid: int) -> bool:
    """Whether a process is there and more than a zombie that nobody has waited for yet."""
    if not os.path.exists(f"/proc/{pid}"):
        return False
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")
