"""NUMA nodes: their memory, their CPUs, and how far they are from each other.

It is its own file as one subject with one worker. It must not know which GPU hangs on which
node; the GPU's driver says that.
"""

import re

from esnode.collectors.base import CollectFailed
from esnode.collectors.memory import parse_meminfo, parse_vmstat
from esnode.collectors.root import HostRoot, read_section, require_sysfs
from esnode.drivers.files import Unreadable, list_folder, parse_count
from esnode.readings.host import Absence, NumaNodeReading, NumaReading

MAX_CPU = 65_535
"""Eight times the largest CONFIG_NR_CPUS of any architecture: beyond it a list is damaged."""

_NODE_FOLDER = re.compile(r"node(\d{1,5})")
_MEMINFO_PREFIX = re.compile(r"^Node\s+\d+\s+", re.MULTILINE)


def parse_cpu_list(text: str) -> tuple[int, ...] | None:
    """The CPUs of ``0-3,8,10-11``; ``()`` for an empty list, ``None`` for a damaged one."""
    cpus: set[int] = set()
    for part in text.strip().split(",") if text.strip() else []:
        first, dash, last = part.partition("-")
        low, high = parse_count(first), parse_count(last if dash else first)
        if low is None or high is None or not low <= high <= MAX_CPU:
            return None
        cpus.update(range(low, high + 1))
    return tuple(sorted(cpus))


def parse_node_meminfo(text: str) -> dict[str, int] | None:
    """A node's meminfo, whose lines start with ``Node 0``, in bytes."""
    return parse_meminfo(_MEMINFO_PREFIX.sub("", text))


def parse_distances(text: str) -> tuple[int, ...] | None:
    """The row of the distance table; ``None`` when it is damaged or empty."""
    row = [parse_count(word) for word in text.split()]
    known = tuple(distance for distance in row if distance is not None)
    return known if known and len(known) == len(row) else None


class NumaCollector:
    """Reads the NUMA nodes of one host."""

    name = "numa"

    def __init__(self, root: HostRoot) -> None:
        self._root = root

    def read(self) -> NumaReading:
        """Read every node once.

        Raises:
            CollectFailed: there is no sysfs, or every node is unreadable.
        """
        require_sysfs(self._root)
        base = self._root.sys("devices/system/node")
        names = list_folder(base)
        if isinstance(names, Unreadable):
            reason = f"{names.reason}: a kernel with CONFIG_NUMA has it"
            return NumaReading(absent=(Absence(what="numa", reason=reason),))
        numbers = sorted(
            {int(match[1]) for name in names if (match := _NODE_FOLDER.fullmatch(name))}
        )
        if not numbers:
            reason = f"{base} lists no node"
            return NumaReading(absent=(Absence(what="numa", reason=reason),))
        absent: list[Absence] = []
        nodes = [self._read_node(f"{base}/node{node}", node, numbers, absent) for node in numbers]
        found = tuple(node for node in nodes if node is not None)
        if not found:
            raise CollectFailed(absent[0].reason)
        return NumaReading(nodes=found, absent=tuple(absent))

    def _read_node(
        self, folder: str, node: int, nodes: list[int], absent: list[Absence]
    ) -> NumaNodeReading | None:
        missing: list[Absence] = []
        sizes = read_section(
            f"{folder}/meminfo", parse_node_meminfo, what=f"node{node}:meminfo", absent=missing
        )
        counters = read_section(
            f"{folder}/numastat", parse_vmstat, what=f"node{node}:numastat", absent=missing
        )
        cpus = read_section(
            f"{folder}/cpulist", parse_cpu_list, what=f"node{node}:cpulist", absent=missing
        )
        row = read_section(
            f"{folder}/distance", parse_distances, what=f"node{node}:distance", absent=missing
        )
        if row is not None and len(row) != len(nodes):
            reason = f"{folder}/distance has {len(row)} values for {len(nodes)} online nodes"
            missing.append(Absence(what=f"node{node}:distance", reason=reason))
            row = None
        absent.extend(missing)
        if sizes is None and counters is None and cpus is None and row is None:
            return None
        sizes, counters = sizes or {}, counters or {}
        return NumaNodeReading(
            node=node,
            cpus=cpus or (),
            memory_total_bytes=sizes.get("MemTotal"),
            memory_free_bytes=sizes.get("MemFree"),
            memory_used_bytes=sizes.get("MemUsed"),
            memory_file_bytes=sizes.get("FilePages"),
            numa_hit_total=counters.get("numa_hit"),
            numa_miss_total=counters.get("numa_miss"),
            numa_foreign_total=counters.get("numa_foreign"),
            interleave_hit_total=counters.get("interleave_hit"),
            local_node_total=counters.get("local_node"),
            other_node_total=counters.get("other_node"),
            # The row has one value for each online node, in their order.
            distances=tuple(zip(nodes, row, strict=True)) if row is not None else (),
        )
