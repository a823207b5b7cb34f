from pathlib import Path

import pytest

from esnode.collectors.base import CollectFailed
from esnode.collectors.network import NetworkCollector, parse_net_dev, parse_protocol
from esnode.collectors.root import HostRoot
from esnode.readings.host import InterfaceReading
from tests.host_trees import FOLDER, root_of, write_tree

HEADER = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
"""  # noqa: E501
ETH0 = "  eth0: 11 12 13 14 15 16 17 18 21 22 23 24 25 26 27 28\n"
LO = "    lo: 1 2 0 0 0 0 0 0 1 2 0 0 0 0 0 0\n"
SNMP = """\
Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: RtoAlgorithm MaxConn CurrEstab InSegs OutSegs RetransSegs InErrs
Tcp: 1 -1 4 57252008 54915039 227 5
"""
NETSTAT = """\
TcpExt: SyncookiesSent ListenOverflows ListenDrops
TcpExt: 0 7 9
IpExt: InOctets
IpExt: 5
"""
PROC: dict[str, str | bytes | None] = {
    "proc/1/net/dev": HEADER + LO + ETH0,
    "proc/1/net/snmp": SNMP,
    "proc/1/net/netstat": NETSTAT,
    "sys/class/net/eth0/operstate": "up\n",
    "sys/class/net/eth0/speed": "100000\n",
    "sys/class/net/eth0/mtu": "9000\n",
    "sys/class/net/lo/operstate": "unknown\n",
    "sys/class/net/lo/mtu": "65536\n",
    "sys/class/net/lo/speed": FOLDER,
}


def test_counters_and_link_of_an_interface(tmp_path: Path) -> None:
    reading = NetworkCollector(root_of(write_tree(tmp_path, PROC))).read()

    assert reading.interfaces[0] == InterfaceReading(
        interface="eth0",
        receive_bytes_total=11,
        receive_packets_total=12,
        receive_errors_total=13,
        receive_dropped_total=14,
        transmit_bytes_total=21,
        transmit_packets_total=22,
        transmit_errors_total=23,
        transmit_dropped_total=24,
        is_up=True,
        speed_bytes_per_second=12_500_000_000.0,
        mtu_bytes=9000,
    )
    assert reading.absent == ()


def test_loopback_has_neither_speed_nor_state(tmp_path: Path) -> None:
    lo = NetworkCollector(root_of(write_tree(tmp_path, PROC))).read().interfaces[1]

    assert lo.interface == "lo"
    assert (lo.is_up, lo.speed_bytes_per_second, lo.mtu_bytes) == (None, None, 65536)


def test_tcp_counters_come_from_the_named_columns(tmp_path: Path) -> None:
    reading = NetworkCollector(root_of(write_tree(tmp_path, PROC))).read()

    assert reading.tcp_retransmitted_segments_total == 227
    assert reading.tcp_sent_segments_total == 54915039
    assert reading.tcp_received_segments_total == 57252008
    assert reading.tcp_connections_established == 4
    assert reading.tcp_listen_drops_total == 9


@pytest.mark.parametrize(
    ("speed", "bytes_per_second"),
    [
        pytest.param("1000\n", 125_000_000.0, id="gigabit"),
        pytest.param("-1\n", None, id="no speed"),
        pytest.param("65535\n", None, id="no speed in 16 bits"),
        pytest.param("4294967295\n", None, id="no speed in 32 bits"),
        pytest.param("0\n", None, id="zero"),
        pytest.param("fast\n", None, id="garbage"),
        pytest.param("", None, id="empty"),
        pytest.param(FOLDER, None, id="unreadable"),
    ],
)
def test_an_unknown_speed_is_absent_and_not_a_number(
    tmp_path: Path, speed: str | None, bytes_per_second: float | None
) -> None:
    files = {**PROC, "sys/class/net/eth0/speed": speed}

    reading = NetworkCollector(root_of(write_tree(tmp_path, files))).read()

    assert reading.interfaces[0].speed_bytes_per_second == bytes_per_second


@pytest.mark.parametrize(
    ("state", "is_up"),
    [
        ("up", True),
        ("down", False),
        ("dormant", False),
        ("lowerlayerdown", False),
        ("unknown", None),
        ("", None),
    ],
)
def test_a_link_is_up_only_when_the_kernel_says_up(
    tmp_path: Path, state: str, is_up: bool | None
) -> None:
    files = {**PROC, "sys/class/net/eth0/operstate": f"{state}\n"}

    assert (
        NetworkCollector(root_of(write_tree(tmp_path, files))).read().interfaces[0].is_up is is_up
    )


def test_the_namespace_of_process_1_goes_before_our_own(tmp_path: Path) -> None:
    own = {"proc/net/dev": HEADER + LO, "proc/net/snmp": SNMP, "proc/net/netstat": NETSTAT}
    both = NetworkCollector(root_of(write_tree(tmp_path / "both", {**PROC, **own}))).read()
    only_own = NetworkCollector(root_of(write_tree(tmp_path / "own", own))).read()

    assert [i.interface for i in both.interfaces] == ["eth0", "lo"]
    assert [i.interface for i in only_own.interfaces] == ["lo"]


def test_the_recorded_host_has_tcp_counters_but_no_interfaces(linux_host_tree: Path) -> None:
    reading = NetworkCollector(root_of(linux_host_tree)).read()

    assert reading.interfaces == ()
    assert reading.tcp_retransmitted_segments_total == 227
    assert reading.tcp_sent_segments_total == 54915039
    assert reading.tcp_received_segments_total == 57252008
    assert reading.tcp_connections_established == 0
    assert reading.tcp_listen_drops_total == 0
    assert [absence.what for absence in reading.absent] == ["interfaces"]


def test_links_of_the_recorded_host(linux_host_tree: Path, tmp_path: Path) -> None:
    zeros = " 0" * 16
    lines = "".join(f"{name}:{zeros}\n" for name in ("bond0", "eth0", "bonding_masters"))
    tree = write_tree(tmp_path, {"proc/net/dev": HEADER + lines})
    root = HostRoot(procfs=tree / "proc", sysfs=linux_host_tree / "sys")

    interfaces = {i.interface: i for i in NetworkCollector(root).read().interfaces}

    assert interfaces["eth0"].speed_bytes_per_second == 125_000_000.0
    assert interfaces["eth0"].mtu_bytes == 1500
    assert (interfaces["bond0"].is_up, interfaces["bond0"].speed_bytes_per_second) == (True, None)
    assert interfaces["bonding_masters"].is_up is None


def test_this_machine_is_read_plausibly() -> None:
    reading = NetworkCollector(HostRoot()).read()

    assert "lo" in [i.interface for i in reading.interfaces]
    assert reading.tcp_sent_segments_total is not None
    assert reading.tcp_listen_drops_total is not None


@pytest.mark.parametrize("content", [FOLDER, "", "\x00\xff garbage\n"])
@pytest.mark.parametrize(
    ("damaged", "what"),
    [("snmp", "tcp"), ("netstat", "tcp_listen_drops_total")],
)
def test_one_unreadable_file_drops_only_itself(
    tmp_path: Path, damaged: str, what: str, content: str | None
) -> None:
    files = {**PROC, f"proc/1/net/{damaged}": content}

    reading = NetworkCollector(root_of(write_tree(tmp_path, files))).read()

    assert [absence.what for absence in reading.absent] == [what]
    assert len(reading.interfaces) == 2


def test_a_host_without_sysfs_still_has_counters(tmp_path: Path) -> None:
    files = {name: text for name, text in PROC.items() if name.startswith("proc")}

    reading = NetworkCollector(root_of(write_tree(tmp_path, files))).read()

    assert [i.receive_bytes_total for i in reading.interfaces] == [11, 1]
    assert [absence.what for absence in reading.absent] == ["links"]


def test_a_damaged_line_drops_its_interface_alone(tmp_path: Path) -> None:
    files = {**PROC, "proc/1/net/dev": HEADER + LO + ETH0 + "eth1: 1 2 3\n"}

    reading = NetworkCollector(root_of(write_tree(tmp_path, files))).read()

    assert [i.interface for i in reading.interfaces] == ["eth0", "lo"]
    assert [absence.what for absence in reading.absent] == ["interface:eth1"]


def test_nothing_at_all_fails_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(CollectFailed, match=r"^.*/proc/net/dev does not exist$"):
        NetworkCollector(root_of(tmp_path)).read()


def test_numbers_may_touch_the_colon_and_names_may_hold_one() -> None:
    values = " ".join(["5"] * 15)
    found = parse_net_dev(f"eth0:1{' '}{values}\neth0:9:7 {values}\n")

    assert found is not None
    assert list(found.counters) == ["eth0", "eth0:9"]
    assert found.counters["eth0:9"][0] == 7


@pytest.mark.parametrize(
    "text", ["", "Tcp: InSegs\n", "Udp: InDatagrams\nUdp: 5\n", "Tcp: InSegs\nTcp: x\n"]
)
def test_a_protocol_without_its_pair_of_lines_is_absent(text: str) -> None:
    assert parse_protocol(text, "Tcp") is None
