"""Network interfaces, and the TCP counters of the host's network namespace.

It is its own file as one subject with one worker. It must not know the agent's own traffic.
"""

from dataclasses import dataclass, replace

from esnode.collectors.base import CollectFailed
from esnode.collectors.root import HostRoot, note_missing, read_section
from esnode.drivers.files import (
    Unreadable,
    list_folder,
    parse_count,
    parse_whole,
    read_number,
    read_text,
)
from esnode.readings.host import Absence, InterfaceReading, NetworkReading

BYTES_PER_MEGABIT = 125_000.0

_UNKNOWN_SPEEDS = frozenset({65_535, 4_294_967_295})
"""-1 as older drivers print it, in 16 and 32 bits."""

_COLUMNS = 16
_TCP_WORDS = {
    "tcp_retransmitted_segments_total": "RetransSegs",
    "tcp_sent_segments_total": "OutSegs",
    "tcp_received_segments_total": "InSegs",
    "tcp_connections_established": "CurrEstab",
}
_EXTENDED_WORDS = {"tcp_listen_drops_total": "ListenDrops"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What sysfs says of an interface's link."""

    is_up: bool | None = None
    speed_bytes_per_second: float | None = None
    mtu_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interfaces:
    """What `/proc/net/dev` says."""

    counters: dict[str, list[int]]
    damaged: tuple[str, ...]


def parse_net_dev(text: str) -> Interfaces | None:
    """Interface to its 16 columns; ``None`` when there is no line of an interface.

    Source: proc(5), /proc/net/dev.
    """
    counters: dict[str, list[int]] = {}
    damaged: list[str] = []
    for line in text.splitlines():
        # Old aliases hold a colon in their name; the numbers never do, but may touch the last.
        name, colon, rest = line.rpartition(":")
        name = name.strip()
        if not colon or not name or "|" in line:
            continue
        counts = [count for word in rest.split() if (count := parse_count(word)) is not None]
        if len(counts) < _COLUMNS or len(counts) != len(rest.split()):
            damaged.append(name)
        else:
            counters[name] = counts
    if not counters and not damaged:
        return None
    return Interfaces(counters=counters, damaged=tuple(damaged))


def parse_protocol(text: str, protocol: str) -> dict[str, int] | None:
    """One protocol's counters of `/proc/net/snmp` or `netstat`: a line of names, one of values.

    ``None`` when the protocol has no such pair.
    """
    prefix = f"{protocol}:"
    lines = [line.split()[1:] for line in text.splitlines() if line.startswith(prefix)]
    if len(lines) < 2:
        return None
    values = ((name, parse_whole(word)) for name, word in zip(lines[0], lines[1], strict=False))
    counters = {name: value for name, value in values if value is not None and value >= 0}
    return counters or None


class NetworkCollector:
    """Reads the interfaces and TCP counters of one host."""

    name = "network"

    def __init__(self, root: HostRoot) -> None:
        self._root = root

    def read(self) -> NetworkReading:
        """Read everything once.

        Raises:
            CollectFailed: neither interfaces nor TCP counters could be read.
        """
        absent: list[Absence] = []
        net = self._find_net()
        interfaces = read_section(f"{net}/dev", parse_net_dev, what="interfaces", absent=absent)
        tcp = read_section(
            f"{net}/snmp", lambda text: parse_protocol(text, "Tcp"), what="tcp", absent=absent
        )
        extended = read_section(
            f"{net}/netstat",
            lambda text: parse_protocol(text, "TcpExt"),
            what="tcp_listen_drops_total",
            absent=absent,
        )
        if interfaces is None and tcp is None and extended is None:
            raise CollectFailed(absent[0].reason)
        segments, drops = tcp or {}, extended or {}
        found = NetworkReading(
            tcp_retransmitted_segments_total=segments.get("RetransSegs"),
            tcp_sent_segments_total=segments.get("OutSegs"),
            tcp_received_segments_total=segments.get("InSegs"),
            tcp_connections_established=segments.get("CurrEstab"),
            tcp_listen_drops_total=drops.get("ListenDrops"),
        )
        if tcp is not None:
            note_missing(_TCP_WORDS, found, path=f"{net}/snmp", absent=absent)
        if extended is not None:
            note_missing(_EXTENDED_WORDS, found, path=f"{net}/netstat", absent=absent)
        read = self._read_interfaces(interfaces, f"{net}/dev", absent) if interfaces else ()
        return replace(found, interfaces=read, absent=tuple(absent))

    def _find_net(self) -> str:
        """The folder of process 1, which is in the host's namespace, before our own.

        `<procfs>/net` follows the reader, so in a container it shows the container even when
        the host's `/proc` is mounted there.
        """
        first = self._root.proc("1/net")
        is_there = not isinstance(read_text(f"{first}/dev"), Unreadable)
        return first if is_there else self._root.proc("net")

    def _read_interfaces(
        self, interfaces: Interfaces, path: str, absent: list[Absence]
    ) -> tuple[InterfaceReading, ...]:
        absent.extend(
            Absence(what=f"interface:{name}", reason=f"{path} has a damaged line for {name!r}")
            for name in interfaces.damaged
        )
        listed = list_folder(self._root.sys("class/net"))
        if isinstance(listed, Unreadable):
            absent.append(Absence(what="links", reason=listed.reason))
            listed = ()
        readings: list[InterfaceReading] = []
        for name, counts in sorted(interfaces.counters.items()):
            link = self._read_link(name) if name in listed else Link()
            readings.append(
                InterfaceReading(
                    interface=name,
                    receive_bytes_total=counts[0],
                    receive_packets_total=counts[1],
                    receive_errors_total=counts[2],
                    receive_dropped_total=counts[3],
                    transmit_bytes_total=counts[8],
                    transmit_packets_total=counts[9],
                    transmit_errors_total=counts[10],
                    transmit_dropped_total=counts[11],
                    is_up=link.is_up,
                    speed_bytes_per_second=link.speed_bytes_per_second,
                    mtu_bytes=link.mtu_bytes,
                )
            )
        return tuple(readings)

    def _read_link(self, interface: str) -> Link:
        """Read the link's state.

        What it does not say is left out without an absence: the kernel refuses `speed` for every
        interface that is down or has no wire.
        """
        folder = self._root.sys(f"class/net/{interface}")
        state = read_text(f"{folder}/operstate")
        state = "" if isinstance(state, Unreadable) else state.strip()
        speed = read_number(f"{folder}/speed", parse_whole, read_text)
        mtu = read_number(f"{folder}/mtu", parse_count, read_text)
        has_speed = not isinstance(speed, Unreadable) and speed > 0
        return Link(
            is_up=None if state in ("", "unknown") else state == "up",
            speed_bytes_per_second=(
                speed * BYTES_PER_MEGABIT
                if not isinstance(speed, Unreadable) and has_speed and speed not in _UNKNOWN_SPEEDS
                else None
            ),
            mtu_bytes=None if isinstance(mtu, Unreadable) else mtu,
        )
