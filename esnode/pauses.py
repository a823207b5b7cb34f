"""The kill switch: files in the state folder that stop what this node does by itself.

Its own file because the agent and commands use it alike, with the agent up or down. `PAUSED` stops
everything, `PAUSED.FEATURE` one feature. An empty file that a person touched counts, and so does
one that cannot be read. It must not know what is stopped.
"""

import contextlib
import json
import os
import pwd
import re
from pathlib import Path

from esnode.acting.rules import EVERYTHING, Pause

NAME = "PAUSED"
_FEATURE = re.compile(rf"{NAME}\.([a-z][a-z0-9-]*)")
_BYTES_MAX = 4096


def pause_file(folder: Path, feature: str) -> Path:
    """The file that stops a feature, or `EVERYTHING`."""
    return folder / (f"{NAME}.{feature}" if feature else NAME)


def read_pauses(folder: Path) -> dict[str, Pause]:
    """All pauses that there are. A folder that cannot be read pauses everything."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return {}
    except OSError as error:
        reason = f"{folder} cannot be read: {error.strerror}"
        return {EVERYTHING: Pause(reason=reason, by="agent", at_unix_seconds=0.0)}
    found: dict[str, Pause] = {}
    for name in names:
        match = _FEATURE.fullmatch(name)
        if name == NAME:
            found[EVERYTHING] = _read(folder / name)
        elif match is not None:
            found[match[1]] = _read(folder / name)
    return found


def make_pause(folder: Path, feature: str, pause: Pause) -> str:
    """Make the file; returns trouble in one line, or nothing. A full disk still takes its name."""
    path = pause_file(folder, feature)
    words = {"by": pause.by, "reason": pause.reason, "at_unix_seconds": pause.at_unix_seconds}
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600
        )
        try:
            with contextlib.suppress(OSError):  # empty it counts, too
                os.ftruncate(descriptor, 0)
                os.write(descriptor, json.dumps(words).encode() + b"\n")
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        return "" if os.path.lexists(path) else f"{path}: cannot be made: {error.strerror}"
    return ""


def end_pause(folder: Path, feature: str) -> str:
    """Remove the file; returns trouble in one line, or nothing."""
    path = pause_file(folder, feature)
    try:
        path.unlink(missing_ok=True)
    except NotADirectoryError:
        return ""
    except OSError as error:
        return f"{path}: cannot be removed: {error.strerror}"
    return ""


def _read(path: Path) -> Pause:
    """Who stopped it and why, as far as the file says."""
    by, at, text = "somebody", 0.0, ""
    try:
        status = path.lstat()
        at = status.st_mtime
        with contextlib.suppress(KeyError):
            by = pwd.getpwuid(status.st_uid).pw_name
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            text = os.read(descriptor, _BYTES_MAX).decode("utf-8", "replace").strip()
        finally:
            os.close(descriptor)
        words = json.loads(text)
        return Pause(
            reason=str(words["reason"]),
            by=str(words["by"]),
            at_unix_seconds=float(words["at_unix_seconds"]),
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        reason = text.partition("\n")[0][:200] or f"{path} is there"
        return Pause(reason=reason, by=by, at_unix_seconds=at)
