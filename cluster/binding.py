"""The sockets of a node: one for datagrams and one for streams, on the same port number.

Its own file because what a socket needs before its first use is the same knowledge for both: which
family, who else may use the port, how much the kernel keeps, that refusals are to be told. It must
not know what is sent, nor how the operator writes an address.
"""

import contextlib
import errno
import os
import socket

from cluster.addresses import SocketAddress

RECEIVE_BUFFER_BYTES = 1024 * 1024
"""About 900 datagrams as the kernel counts: what 70 peers send in a pause of a second."""
STREAM_BACKLOG = 128
WRITE_STALL_MILLISECONDS = 30_000
"""How long the kernel keeps what a peer does not acknowledge."""

IP_RECVERR = 11
IPV6_RECVERR = 25
_SO_RCVBUFFORCE = 33
"""Source: linux/in.h, linux/in6.h, asm-generic/socket.h; the socket module lacks their names."""
_PORT_TRIES = 32


class BindError(Exception):
    """A socket cannot be had; one line that says why and what to do."""

    def __init__(self, line: str, *, errno_number: int = 0) -> None:
        super().__init__(line)
        self.errno_number = errno_number


def open_udp_socket(host: str, port: int) -> socket.socket:
    """A non-blocking socket for datagrams that is told of refused ports.

    Port 0 is any free one. The host `::` stands for every address of both families.

    Raises:
        BindError: the port is taken, needs privilege, or the host is not ours.
    """
    opened = _open(host, port, socket.SOCK_DGRAM)
    try:
        # Over an IPv6 socket, refusals of IPv4 destinations are asked for separately.
        opened.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
        if opened.family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVERR, 1)
        _raise_buffer(opened)
    except OSError as error:
        opened.close()
        raise _explain(error, host, port, "UDP") from None
    return opened


def open_tcp_socket(host: str, port: int) -> socket.socket:
    """A non-blocking listening socket for streams.

    Raises:
        BindError: as for datagrams.
    """
    opened = _open(host, port, socket.SOCK_STREAM)
    try:
        opened.listen(STREAM_BACKLOG)
    except OSError as error:
        opened.close()
        raise _explain(error, host, port, "TCP") from None
    return opened


def open_both_sockets(host: str, port: int) -> tuple[socket.socket, socket.socket]:
    """For datagrams and for streams, on one port number; with port 0 on one that is free for both.

    Raises:
        BindError: as for either.
    """
    for attempt in range(_PORT_TRIES):
        datagrams = open_udp_socket(host, port)
        try:
            return datagrams, open_tcp_socket(host, datagrams.getsockname()[1])
        except BindError as error:
            datagrams.close()
            is_taken = error.errno_number == errno.EADDRINUSE
            if port != 0 or not is_taken or attempt == _PORT_TRIES - 1:
                raise
    raise AssertionError("the loop returns or raises")


def _open(host: str, port: int, kind: socket.SocketKind) -> socket.socket:
    protocol = "UDP" if kind == socket.SOCK_DGRAM else "TCP"
    try:
        found = socket.getaddrinfo(host or None, port, type=kind, flags=socket.AI_PASSIVE)
    except UnicodeError:
        raise BindError(f"{host!r} is not a host name") from None
    except OSError as error:
        raise BindError(f"cannot bind {host}: {error.strerror or error}") from None
    family, _, _, _, where = found[0]
    try:
        return _bind(family, kind, where)  # type: ignore[arg-type]  # of IPv4 or IPv6, by its flags
    except OSError as error:
        raise _explain(error, host, port, protocol) from None


def _bind(family: int, kind: socket.SocketKind, where: SocketAddress) -> socket.socket:
    opened = socket.socket(family, kind)
    try:
        if kind == socket.SOCK_STREAM:
            # For datagrams the same option would let a second process take the port as well.
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Accepted connections inherit it.
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, WRITE_STALL_MILLISECONDS)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        opened.bind(where)
        opened.setblocking(False)
    except OSError:
        opened.close()
        raise
    return opened


def _raise_buffer(opened: socket.socket) -> None:
    """Past the machine's limit where that is allowed, else up to it."""
    with contextlib.suppress(OSError):
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    with contextlib.suppress(OSError):
        opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)


def _explain(error: OSError, host: str, port: int, protocol: str) -> BindError:
    number = error.errno or 0
    if number == errno.EADDRINUSE:
        line = f"{protocol} port {port} is in use; stop what holds it, or choose another port"
    elif number == errno.EACCES:
        line = f"no permission for {protocol} port {port}; choose a port of 1024 or above"
    elif number == errno.EADDRNOTAVAIL:
        line = f"{host} is not an address of this machine; bind 0.0.0.0 or [::] for all of them"
    else:
        line = f"cannot bind {protocol} port {port} of {host}: {os.strerror(number)}"
    return BindError(line, errno_number=number)
