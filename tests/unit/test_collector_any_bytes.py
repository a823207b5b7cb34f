"""Whatever bytes lie in a file, a collector gives a reading or fails in one line."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esnode.collectors.base import CollectFailed
from esnode.collectors.cpu import CpuCollector
from esnode.collectors.disk import DiskCollector
from esnode.collectors.filesystem import FilesystemCollector
from esnode.collectors.ipmi import IpmiCollector
from esnode.collectors.memory import MemoryCollector
from esnode.collectors.network import NetworkCollector
from esnode.collectors.numa import NumaCollector
from esnode.collectors.power import PowerCollector
from esnode.collectors.root import HostRoot
from esnode.drivers.ipmi import ProcessOutcome, parse_dcmi, parse_sensors
from esnode.readings.host import Absence
from tests.host_trees import root_of, write_tree

FILES = {
    "proc/stat": b"cpu  1 2 3 4 5\ncpu0 1 2 3 4 5\nintr 5 0\nctxt 1\nbtime 2\n",
    "proc/loadavg": b"0.21 0.37 0.39 1/719 19737\n",
    "proc/pressure/io": b"some avg10=0.18 avg60=0.34 avg300=0.10 total=159886802\n",
    "proc/meminfo": b"MemTotal: 3742148 kB\nMemFree: 225472 kB\n",
    "proc/vmstat": b"pgpgin 7344136\npgpgout 1541180581\n",
    "proc/diskstats": b"8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n",
    "proc/1/net/dev": b"eth0: 11 12 13 14 15 16 17 18 21 22 23 24 25 26 27 28\n",
    "proc/1/net/snmp": b"Tcp: InSegs OutSegs RetransSegs\nTcp: 1 2 3\n",
    "proc/1/net/netstat": b"TcpExt: ListenDrops\nTcpExt: 1\n",
    "sys/class/net/eth0/operstate": b"up\n",
    "sys/class/net/eth0/speed": b"1000\n",
    "sys/devices/system/node/node0/meminfo": b"Node 0 MemTotal: 5 kB\n",
    "sys/devices/system/node/node0/numastat": b"numa_hit 5\n",
    "sys/devices/system/node/node0/cpulist": b"0-3,5\n",
    "sys/devices/system/node/node0/distance": b"10\n",
    "sys/class/powercap/intel-rapl:0/name": b"package-0\n",
    "sys/class/powercap/intel-rapl:0/energy_uj": b"240422366267\n",
    "sys/class/powercap/intel-rapl:0/max_energy_range_uj": b"262143328850\n",
    "sys/class/hwmon/hwmon0/name": b"coretemp\n",
    "sys/class/hwmon/hwmon0/temp1_input": b"55000\n",
    "sys/class/hwmon/hwmon0/temp1_crit": b"100000\n",
    "sys/class/hwmon/hwmon0/temp1_label": b"Package id 0\n",
    "sys/class/hwmon/hwmon0/power1_input": b"45000000\n",
    "sys/class/hwmon/hwmon0/power1_enable": b"1\n",
    "sys/class/thermal/thermal_zone0/type": b"x86_pkg_temp\n",
    "sys/class/thermal/thermal_zone0/temp": b"12376\n",
}


class Reading(Protocol):
    @property
    def absent(self) -> tuple[Absence, ...]: ...


READERS: dict[str, tuple[str, Callable[[HostRoot], Reading]]] = {
    "cpu": ("stat loadavg pressure hwmon thermal", lambda root: CpuCollector(root).read()),
    "disk": ("diskstats", lambda root: DiskCollector(root).read()),
    "memory": ("proc/meminfo vmstat", lambda root: MemoryCollector(root).read()),
    "network": ("net/", lambda root: NetworkCollector(root).read()),
    "numa": ("node0", lambda root: NumaCollector(root).read()),
    "power": ("powercap hwmon", lambda root: PowerCollector(root).read()),
}
"""Subject to the words in the names of its files, and how it is read."""


def damaged_contents(content: bytes) -> st.SearchStrategy[bytes]:
    """What a file may hold instead of its content: cut, spliced, or anything at all."""
    inserted = st.one_of(
        st.binary(max_size=40),
        st.sampled_from(
            [b"-1", b"9" * 30, b"9" * 5000, b"\xc2\xb2", b"nan", b"1e999", b"\\000", b"\x1c", b"\n"]
        ),
    )
    return st.tuples(st.integers(0, len(content)), inserted, st.booleans()).map(
        lambda cut: content[: cut[0]] + cut[1] + (content[cut[0] :] if cut[2] else b"")
    )


def check(read: Callable[[], Reading]) -> None:
    try:
        reasons = [absence.reason for absence in read().absent]
    except CollectFailed as failed:
        reasons = [str(failed)]
    assert all(reason and "\n" not in reason for reason in reasons)


@pytest.mark.parametrize("subject", READERS)
def test_any_bytes_give_a_reading_or_one_line(subject: str, tmp_path: Path) -> None:
    words, read = READERS[subject]
    names = sorted(name for name in FILES if any(word in name for word in words.split()))
    tree = write_tree(tmp_path, dict(FILES))
    damages = st.sampled_from(names).flatmap(
        lambda name: st.tuples(st.just(name), damaged_contents(FILES[name]))
    )

    @settings(max_examples=200, deadline=None, database=None)
    @given(damage=damages)
    def read_damaged(damage: tuple[str, bytes]) -> None:
        name, content = damage
        (tree / name).write_bytes(content)
        try:
            check(lambda: read(root_of(tree)))
        finally:
            (tree / name).write_bytes(FILES[name])

    read_damaged()


def test_any_mount_list_gives_targets_that_read_or_fail_in_one_line(tmp_path: Path) -> None:
    name = "proc/1/mountinfo"
    line = b"29 1 259:2 / / rw,relatime shared:1 - ext4 /dev/dm-2 rw\n"
    tree = write_tree(tmp_path, {name: line})

    @settings(max_examples=200, deadline=None, database=None)
    @given(
        content=st.one_of(
            damaged_contents(line),
            st.binary(max_size=20).map(lambda at: b"1 1 8:1 / /" + at + b" rw - ext4 /dev/x rw\n"),
        )
    )
    def read_damaged(content: bytes) -> None:
        (tree / name).write_bytes(content)
        collector = FilesystemCollector(root_of(tree))
        for target in collector.discover().targets.values():
            target.mountpoint.encode()  # a label must be text that can be sent
            reason = ""
            try:
                collector.read(target)
            except CollectFailed as failed:
                reason = str(failed)
            assert "\n" not in reason

    read_damaged()


TABLE = "PS1 Input Power | 3Bh | ok | 10.1 | 230 Watts\nTemp | 30 degrees C | ok\n"


@settings(max_examples=200, deadline=None, database=None)
@given(
    output=st.one_of(
        st.text(max_size=200),
        st.text(alphabet="0123456789.-einfa| \nWatsdgrCRPM:h", max_size=200),
        st.integers(0, len(TABLE)).map(lambda at: TABLE[:at]),
    ),
    errors=st.text(max_size=50),
    exit_status=st.integers(-9, 1),
)
def test_any_output_of_the_controller_gives_a_reading_or_one_line(
    output: str, errors: str, exit_status: int
) -> None:
    outcome = ProcessOutcome(exit_status=exit_status, output=output, errors=errors)
    parse_dcmi(output)
    parse_sensors(output)

    check(lambda: IpmiCollector(run=lambda command, deadline_seconds: outcome).read())
