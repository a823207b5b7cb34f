"""Whether what is written in a folder is still there after a reboot.

Its own file because a ledger that a reboot forgets is worse than none: a node that trades must not
keep it in memory, nor in the writable layer of a container. It must not know what is kept.
"""

import os
from pathlib import Path

FLEETING = frozenset({"tmpfs", "ramfs", "overlay", "aufs", "devtmpfs", "squashfs", "rootfs"})
"""Types of file systems whose content ends with the boot or with the container."""
MOUNTS = Path("/proc/self/mountinfo")


def fleeting_line(folder: Path, mounts: Path = MOUNTS) -> str | None:
    """Why a folder does not survive a reboot, in one line; None where it does.

    Where the kernel does not tell what is mounted, it is taken to survive.
    """
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    found = file_system_of(os.path.realpath(folder), lines)
    if found not in FLEETING:
        return None
    return f"state_dir {folder} is on {found}, which does not survive a reboot"


def file_system_of(path: str, lines: list[str]) -> str | None:
    """The type of the file system that a path is on, by the lines of mountinfo.

    Source: proc_pid_mountinfo(5): fields 5 (mount point) and the first one after the hyphen.
    """
    best, found = -1, None
    for line in lines:
        fields = line.split(" ")
        if "-" not in fields[6:] or len(fields) < 10:
            continue
        point = _unescape(fields[4])
        kind = fields[fields.index("-", 6) + 1]
        is_above = path == point or path.startswith(point.rstrip("/") + "/")
        if is_above and len(point) >= best:  # of two at one point the later one is on top
            best, found = len(point), kind
    return found


def _unescape(text: str) -> str:
    for escape, meant in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(escape, meant)
    return text
