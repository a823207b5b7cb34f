"""Where this node is to be found, and where its seeds are: names looked up, again and again.

Its own file because names and routes change while an agent runs: a seed's DNS name may point to a
new machine, an address may be given by DHCP after the start. Looking up waits, so it happens in a
thread, and what it finds is handed in. It must not know who is at an address.
"""

import fcntl
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import trio

from cluster.addresses import join_address, split_address
from cluster.errors import Malformed
from cluster.gossip.messages import Address

LookUp: TypeAlias = Callable[[Sequence[str]], Awaitable[tuple[Address, ...]]]
"""All addresses of HOST:PORT texts."""

LOOKUP_SECONDS = 5.0
ADDRESSES_PER_NAME_MAX = 8
_SIOCGIFADDR = 0x8915
"""Source: linux/sockios.h; the answer is a `struct ifreq` (linux/if.h), 40 bytes on 64-bit."""
_IFREQ_BYTES = 40
_PROBES = ("192.0.2.1", "2001:db8::1")
"""Addresses of documentation (RFC 5737, RFC 3849): nothing is sent, only the route is asked for."""


async def look_up(names: Sequence[str]) -> tuple[Address, ...]:
    """All addresses of HOST:PORT texts; a name that is not found is left out for now."""
    found: dict[Address, None] = {}
    for name in names:
        try:
            host, port = split_address(name)
        except Malformed:
            continue
        for address in await _addresses(host):
            found[join_address(address, port)] = None
    return tuple(found)


async def _addresses(host: str) -> tuple[str, ...]:
    if _is_ip(host):
        return (host,)
    answers: list[tuple[object, object, object, str, tuple[object, ...]]] = []
    with trio.move_on_after(LOOKUP_SECONDS):
        try:
            answers = list(await trio.socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM))
        except (OSError, UnicodeError):
            return ()
    hosts = dict.fromkeys(str(answer[4][0]) for answer in answers)
    return tuple(hosts)[:ADDRESSES_PER_NAME_MAX]


def own_address(bound: Address, advertised: Address | None, seeds: Sequence[Address]) -> Address:
    """Where others find us: as announced, as bound, or as the route to a seed says.

    A socket that is bound to every address says nothing; then the first address on the way to a
    seed, else on the way out, else of any network interface (a rack's network may lead nowhere),
    else of this machine alone.
    """
    if advertised is not None:
        return advertised
    host, port = split_address(bound)
    if not ipaddress.ip_address(host.partition("%")[0]).is_unspecified:
        return bound
    targets = [split_address(seed)[0] for seed in seeds if seed != bound]
    for target in (*targets, *_PROBES):
        source = _source_towards(target)
        if source is not None:
            return join_address(source, port)
    return join_address(next(iter(_interface_addresses()), "127.0.0.1"), port)


class Announced:
    """Where a node says that it is: where its operator says, else as `own_address` finds out."""

    def __init__(self, bound: Address, wanted: str | None, *, find: LookUp = look_up) -> None:
        """`wanted` is HOST or HOST:PORT; without a port it is that of the socket."""
        self._look_up = find
        self._bound = bound
        self._wanted = wanted if wanted is None or _has_port(wanted) else _with_port(wanted, bound)
        self._latest: Address | None = None
        self.trouble: str | None = None
        """Why the operator's word cannot be followed now, in one line."""

    async def find(self, seeds: Sequence[Address]) -> Address:
        """Where that is now.

        A name that is not found for a while does not move the node; of the addresses of a name the
        one before is kept while it is among them, since answers come in any order.
        """
        if self._wanted is None:
            return own_address(self._bound, None, seeds)
        found = await self._look_up((self._wanted,))
        self.trouble = None
        if found and self._latest not in found:
            self._latest = found[0]
        if not found:
            self.trouble = f"cluster_advertise: {self._wanted} is not found; check the name"
        return own_address(self._bound, self._latest, seeds)


def is_own_host(host: str) -> bool:
    """Whether this is an address of this machine: then nobody translates it on the way."""
    if not _is_ip(host):
        return False
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as asking:
        try:
            asking.bind((host, 0))
        except (OSError, UnicodeError):  # a peer has written what stands behind a `%`
            return False
    return True


def _has_port(text: str) -> bool:
    try:
        split_address(text)
    except Malformed:
        return False
    return True


def _with_port(host: str, bound: Address) -> str:
    return f"{host}:{split_address(bound)[1]}"


def _source_towards(host: str) -> str | None:
    """Which address of this machine is used on the way to another."""
    plain = host.partition("%")[0]
    if not _is_ip(plain):
        return None
    family = socket.AF_INET6 if ":" in plain else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect((plain, 9))  # nothing is sent: the kernel only chooses a route
            return str(asking.getsockname()[0])
        except OSError:
            return None


def _interface_addresses() -> list[str]:
    """The first IPv4 address of each network interface that has one, loopback aside."""
    found: list[str] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(asking, _SIOCGIFADDR, name.encode().ljust(_IFREQ_BYTES, b"\0"))
            except OSError:  # it has none
                continue
            address = ipaddress.IPv4Address(answer[20:24])
            if not address.is_loopback:
                found.append(str(address))
    return found


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
