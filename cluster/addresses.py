"""HOST:PORT texts and what the kernel calls the same places.

Its own file because datagrams, streams and whoever binds sockets must write one place in one way:
gossip compares addresses as texts. IPv4 over an IPv6 socket is written as IPv4, an IPv6 address in
its shortest form and in brackets. It must not know sockets, names of hosts (they are resolved
elsewhere), or who is at an address.
"""

import ipaddress
import re
import socket
from typing import TypeAlias

from cluster.errors import Malformed
from cluster.gossip.messages import Address

SocketAddress: TypeAlias = tuple[str, int] | tuple[str, int, int, int]
"""As `bind`, `sendto` and `recvfrom` of IPv4 and IPv6 sockets have it."""

_WRITTEN = re.compile(r"(?:\[([^\[\]]+)\]|([^\[\]:]+)):([0-9]{1,5})")
_MAPPED = "::ffff:"


def split_address(text: str) -> tuple[str, int]:
    """The host, without brackets, and the port.

    Raises:
        Malformed: it is not HOST:PORT.
    """
    match = _WRITTEN.fullmatch(text)
    port = int(match.group(3)) if match else 65_536
    if match is None or port > 65_535:
        shown = text if len(text) <= 60 else text[:57] + "..."
        raise Malformed(f"{shown!r} is not HOST:PORT, e.g. 10.0.0.17:7947 or [fd00::17]:7947")
    return match.group(1) or match.group(2), port


def join_address(host: str, port: int) -> Address:
    """The one text for a place; a host that is a name stays as it is."""
    if host.startswith(_MAPPED) and "." in host:
        host = host.removeprefix(_MAPPED)
    if ":" in host:
        try:
            host = f"[{ipaddress.IPv6Address(host)}]"
        except ValueError:
            host = f"[{host}]"
    return Address(f"{host}:{port}")


def read_socket_address(where: SocketAddress) -> Address:
    """The text for what a socket gave. A link-local address keeps the number of its link."""
    host, port = where[0], where[1]
    if len(where) == 4 and where[3] and "%" not in host:
        host = f"{host}%{where[3]}"
    return join_address(host, port)


def to_socket_address(address: Address, family: int) -> SocketAddress | None:
    """Where a socket of this family sends for an address; None if it cannot, or it is a name."""
    try:
        host, port = split_address(address)
        plain, _, link = host.partition("%")
        ip = ipaddress.ip_address(plain)
    except ValueError:
        return None
    except Malformed:
        return None
    if port == 0:
        return None
    if family == socket.AF_INET:
        return (plain, port) if ip.version == 4 else None
    if ip.version == 4:
        return (f"{_MAPPED}{ip}", port, 0, 0)
    if link and not link.isdecimal():
        return None
    return (str(ip), port, 0, int(link or 0))
