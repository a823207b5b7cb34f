"""The agent's listening sockets, and a line that helps when they cannot be had."""

import errno
import os
import socket

from esnode.config.values import Address

BACKLOG = 512

WRITE_STALL_SECONDS = 30
"""How long a client may leave what it asked for unread. Then the kernel drops the connection, so
clients that hang do not gather; one that is alive comes back."""


_NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""One address of a name that has several may be missing: ``localhost`` where IPv6 is off."""


class ListenError(Exception):
    """The address cannot be listened on; one line that says why and what to do."""


def open_sockets(address: Address) -> list[socket.socket]:
    """Listening sockets for every address that the host stands for.

    Raises:
        ListenError: the port is taken, needs privilege, or the host is not ours.
    """
    try:
        infos = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise ListenError(f"listen_address: {address.host}: {error.strerror}") from None
    except UnicodeError:
        raise ListenError(f"listen_address: {address.host}: is not a host name") from None
    opened: list[socket.socket] = []
    missing: list[OSError] = []
    try:
        for family, kind, protocol, _, where in dict.fromkeys(infos):
            try:
                opened.append(_open_one(family, kind, protocol, where))
            except OSError as error:
                if error.errno not in _NOT_HERE:
                    raise
                missing.append(error)
        if not opened:
            raise missing[0]
    except OSError as error:
        for one in opened:
            one.close()
        raise ListenError(explain(error, address)) from None
    return opened


def _open_one(family: int, kind: int, protocol: int, where: object) -> socket.socket:
    one = socket.socket(family, kind, protocol)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted connections inherit it.
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, WRITE_STALL_SECONDS * 1000)
        if family == socket.AF_INET6:
            # Both families for [::]: an operator who writes it means "everywhere".
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        one.bind(where)  # type: ignore[arg-type]  # as getaddrinfo gave it
        one.listen(BACKLOG)
        one.setblocking(False)
    except OSError:
        one.close()
        raise
    return one


def explain(error: OSError, address: Address) -> str:
    """The line about a socket that could not be opened."""
    if error.errno == errno.EADDRINUSE:
        holder = port_holder(address.port)
        who = f"is held by {holder}" if holder else "is in use by another process"
        free = Address(address.host, address.port + 1 if address.port < 65535 else 9101)
        return (
            f"listen_address: port {address.port} {who}; stop it, or move this agent with "
            f"--listen-address {free}"
        )
    if error.errno == errno.EACCES:
        return (
            f"listen_address: no permission for port {address.port}; use a port of 1024 or above, "
            "or grant CAP_NET_BIND_SERVICE"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return f"listen_address: {address.host} is not an address of this machine; use 0.0.0.0"
    return f"listen_address: {address}: {os.strerror(error.errno or 0)}"


def port_holder(port: int) -> str | None:
    """``NAME (pid N)`` of the process that listens on a TCP port, when we may know."""
    import psutil

    try:
        connections = psutil.net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return None
    for connection in connections:
        local = connection.laddr
        if connection.status != psutil.CONN_LISTEN or not local or local.port != port:
            continue
        if connection.pid is None:
            return "a process of another user (root can see which)"
        try:
            return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
        except psutil.Error:
            return f"pid {connection.pid}"
    return None
