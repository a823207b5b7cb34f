"""The unix socket in the state folder through which this machine's operators give orders.

Its own file because who may give orders is decided here, by the kernel's word about the caller:
root, the agent's own user, or a member of the group `esnode`. It must not know what is ordered.
"""

import contextlib
import grp
import os
import pwd
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

NAME = "agent.sock"
GROUP = "esnode"
_MODE = 0o660
_BACKLOG = 32
_CREDENTIALS = struct.Struct("=iII")
"""Source: unix(7), SO_PEERCRED: pid, uid, gid."""
_PATH_BYTES_MAX = 107
"""Source: unix(7), sun_path."""


class ControlSocketUnusable(Exception):
    """The socket cannot be had; one line."""


def open_control_socket(folder: Path) -> socket.socket:
    """A listening socket in a folder that this process holds; what an agent before left goes.

    Raises:
        ControlSocketUnusable: it cannot be made.
    """
    path = folder / NAME
    if len(os.fsencode(path)) > _PATH_BYTES_MAX:
        raise ControlSocketUnusable(
            f"{path}: is longer than a unix socket's name may be ({_PATH_BYTES_MAX} bytes); choose "
            "a shorter --state-dir"
        )
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        opened.bind(str(path))
        path.chmod(_MODE)
        with contextlib.suppress(KeyError, PermissionError):
            os.chown(path, -1, grp.getgrnam(GROUP).gr_gid)
        opened.listen(_BACKLOG)
        opened.setblocking(False)
    except OSError as error:
        opened.close()
        raise ControlSocketUnusable(f"{path}: {error.strerror}") from None
    return opened


def close_control_socket(opened: socket.socket, folder: Path) -> None:
    """Close it and take its name away."""
    opened.close()
    with contextlib.suppress(OSError):
        (folder / NAME).unlink()


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who is at the other end, by the kernel's word."""

    pid: int
    uid: int
    gid: int


def caller_of(connection: socket.socket) -> Caller:
    """Who opened a connection."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, gid = _CREDENTIALS.unpack(data)
    return Caller(pid=pid, uid=uid, gid=gid)


def is_allowed(connection: socket.socket) -> bool:
    """Whether whoever is at the other end may give orders."""
    caller = caller_of(connection)
    return caller.uid in (0, os.geteuid()) or _is_in_group(caller.uid, caller.gid)


def _is_in_group(user_id: int, group_id: int) -> bool:
    try:
        group = grp.getgrnam(GROUP)
        user = pwd.getpwuid(user_id)
    except KeyError:
        return False
    return group.gr_gid in (group_id, user.pw_gid) or user.pw_name in group.gr_mem
