"""The agent's state folder: one agent at a time, and where to find it.

The lock is the kernel's (flock), so it is gone with the process however that ends.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Sequence
from pathlib import Path

LOCK_NAME = "agent.lock"
ADDRESS_NAME = "agent.json"
SCHEMA = "esnode.agent/1"


class StateInUse(Exception):
    """Another agent holds the folder; one line that says which and what to do."""


class StateUnusable(Exception):
    """The folder cannot be made or written; one line."""


class StateFolder:
    """A folder that this process holds."""

    def __init__(self, path: Path) -> None:
        """Make the folder if need be and take its lock.

        Others may pass through it (0711), since jobs of other users have their folders in it;
        each file in it is closed to them by itself.

        Raises:
            StateInUse: another agent has it.
            StateUnusable: it cannot be made or written.
        """
        self.path = path
        try:
            path.mkdir(mode=0o711, parents=True, exist_ok=True)
            self._lock = os.open(path / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateUnusable(f"{path}: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(self._lock, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(self._lock)
            raise StateInUse(
                f"another agent (pid {holder}) uses {path}; stop it, or give this one a folder of "
                "its own with --state-dir"
            ) from None
        with contextlib.suppress(OSError):  # a full disk: the lock holds without the note in it
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def announce(self, addresses: Sequence[str], version: str) -> None:
        """Leave word of where this agent listens, for commands that are given the folder.

        Raises:
            StateUnusable: it cannot be written.
        """
        document = {
            "schema": SCHEMA,
            "pid": os.getpid(),
            "version": version,
            "addresses": list(addresses),
        }
        temporary = self.path / f".{ADDRESS_NAME}.new"
        try:
            temporary.write_text(json.dumps(document) + "\n")
            temporary.replace(self.path / ADDRESS_NAME)
        except OSError as error:
            # What an agent before this one left there would send commands astray.
            for left in (temporary, self.path / ADDRESS_NAME):
                with contextlib.suppress(OSError):
                    left.unlink()
            raise StateUnusable(f"{self.path}: {error.strerror}") from None

    def close(self) -> None:
        """Give the folder back."""
        with contextlib.suppress(OSError):  # the folder may be gone, or read-only by now
            (self.path / ADDRESS_NAME).unlink()
        os.close(self._lock)


def announced_address(path: Path) -> str | None:
    """Where the agent of a folder listens; ``None`` when none is running there."""
    try:
        document = json.loads((path / ADDRESS_NAME).read_text())
        address = str(document["addresses"][0])
        if not _is_held(path / LOCK_NAME):
            return None  # killed before it could take its word back
    except (OSError, ValueError, KeyError, IndexError, TypeError, OverflowError):
        return None
    return address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def _is_held(lock: Path) -> bool:
    """Whether a process has the lock. Its pid would not do: another may have it by now."""
    try:
        handle = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        return True  # an agent of another user, as far as we may see
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False
