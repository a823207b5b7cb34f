"""Memory and swap of the whole host.

It is its own file as one subject with one worker. It must not know NUMA nodes, which have a
collector of their own.
"""

from dataclasses import replace

from esnode.collectors.base import CollectFailed
from esnode.collectors.root import HostRoot, note_missing, read_section
from esnode.drivers.files import parse_count
from esnode.readings.host import Absence, MemoryReading

MEMINFO_WORDS = {
    "total_bytes": "MemTotal",
    "free_bytes": "MemFree",
    "available_bytes": "MemAvailable",
    "buffers_bytes": "Buffers",
    "cached_bytes": "Cached",
    "shared_bytes": "Shmem",
    "slab_reclaimable_bytes": "SReclaimable",
    "dirty_bytes": "Dirty",
    "swap_total_bytes": "SwapTotal",
    "swap_free_bytes": "SwapFree",
    "swap_cached_bytes": "SwapCached",
}
"""Our field to the kernel's line. Source: kernel documentation, filesystems/proc (meminfo)."""

VMSTAT_WORDS = {
    "page_in_bytes_total": "pgpgin",
    "page_out_bytes_total": "pgpgout",
    "swap_in_pages_total": "pswpin",
    "swap_out_pages_total": "pswpout",
    "page_faults_total": "pgfault",
    "major_page_faults_total": "pgmajfault",
    "oom_kills_total": "oom_kill",
}

_KIBIBYTE_COUNTERS = ("pgpgin", "pgpgout")
"""These two count KiB, not pages. Source: kernel, mm/vmstat.c (sectors halved on output)."""


def parse_meminfo(text: str) -> dict[str, int] | None:
    """Line name to bytes; lines in other units (counts of huge pages) are left out.

    ``None`` when there is no line of the form ``MemTotal: 3742148 kB``.
    """
    sizes: dict[str, int] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        kibibytes = parse_count(words[0]) if words else None
        if kibibytes is not None and words[1:] == ["kB"]:
            sizes[name.strip()] = kibibytes * 1024
    return sizes or None


def parse_vmstat(text: str) -> dict[str, int] | None:
    """Counter name to its value: bytes for the two paging counters, else as the kernel counts."""
    counters: dict[str, int] = {}
    for line in text.splitlines():
        words = line.split()
        value = parse_count(words[1]) if len(words) == 2 else None
        if value is not None:
            counters[words[0]] = value * 1024 if words[0] in _KIBIBYTE_COUNTERS else value
    return counters or None


class MemoryCollector:
    """Reads the memory of one host."""

    name = "memory"

    def __init__(self, root: HostRoot) -> None:
        self._root = root

    def read(self) -> MemoryReading:
        """Read everything once.

        Raises:
            CollectFailed: neither `/proc/meminfo` nor `/proc/vmstat` has anything to say.
        """
        absent: list[Absence] = []
        meminfo, vmstat = self._root.proc("meminfo"), self._root.proc("vmstat")
        sizes = read_section(meminfo, parse_meminfo, what="meminfo", absent=absent)
        counters = read_section(vmstat, parse_vmstat, what="vmstat", absent=absent)
        if sizes is None and counters is None:
            raise CollectFailed(absent[0].reason)
        sized, counted = sizes or {}, counters or {}
        found = MemoryReading(
            total_bytes=sized.get("MemTotal"),
            free_bytes=sized.get("MemFree"),
            available_bytes=sized.get("MemAvailable"),
            buffers_bytes=sized.get("Buffers"),
            cached_bytes=sized.get("Cached"),
            shared_bytes=sized.get("Shmem"),
            slab_reclaimable_bytes=sized.get("SReclaimable"),
            dirty_bytes=sized.get("Dirty"),
            swap_total_bytes=sized.get("SwapTotal"),
            swap_free_bytes=sized.get("SwapFree"),
            swap_cached_bytes=sized.get("SwapCached"),
            page_in_bytes_total=counted.get("pgpgin"),
            page_out_bytes_total=counted.get("pgpgout"),
            swap_in_pages_total=counted.get("pswpin"),
            swap_out_pages_total=counted.get("pswpout"),
            page_faults_total=counted.get("pgfault"),
            major_page_faults_total=counted.get("pgmajfault"),
            oom_kills_total=counted.get("oom_kill"),
        )
        if sizes is not None:
            note_missing(MEMINFO_WORDS, found, path=meminfo, absent=absent)
        if counters is not None:
            note_missing(VMSTAT_WORDS, found, path=vmstat, absent=absent)
        return replace(found, absent=tuple(absent))
