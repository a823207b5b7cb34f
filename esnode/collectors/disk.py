"""Counters of the whole block devices.

It is its own file as one subject with one worker. It must not know filesystems, which lie on
these devices but are counted elsewhere.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from esnode.collectors.base import CollectFailed
from esnode.collectors.root import HostRoot
from esnode.drivers.files import Unreadable, list_folder, parse_count, read_text
from esnode.readings.host import Absence, BlockDeviceReading, DiskReading

SECTOR_BYTES = 512
"""Of the statistics, whatever the device's own sector is. Source: kernel doc, block/stat."""

_NOT_A_DISK = re.compile(r"(loop|ram|zram|fd)\d+(p\d+)?")
_PARTITION = re.compile(
    r"(?:(?:sd|hd|vd|xvd|dasd)[a-z]+|(?:nvme\d+(?:c\d+)?n|mmcblk|md|nbd|rbd|cciss/c\d+d)\d+p)\d+"
)
"""Names of partitions, for when sysfs cannot say: a letter then a number, or a number, a ``p``
and a number. Source: kernel, block/genhd.c (disk_name)."""

_FEWEST_COLUMNS = 14
_DISCARDS, _FLUSHES = 14, 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Diskstats:
    """What `/proc/diskstats` says of the devices that were asked for."""

    devices: tuple[BlockDeviceReading, ...]
    damaged: tuple[str, ...]
    """Devices whose line is too short or holds something else than numbers."""


def is_whole_disk(device: str, known: frozenset[str] | None) -> bool:
    """Whether a line of `/proc/diskstats` is a disk of its own.

    `known` are the names in `/sys/block`, which has no partitions; without it the name decides.
    """
    if _NOT_A_DISK.fullmatch(device):
        return False
    if known is not None:
        return device.replace("/", "!") in known
    return not _PARTITION.fullmatch(device)


def parse_diskstats(text: str, is_wanted: Callable[[str], bool]) -> Diskstats | None:
    """Read `/proc/diskstats`, whose lines have 14, 18 or 20 columns by age of the kernel.

    ``None`` when no line has a device's name. Source: kernel documentation, iostats.
    """
    devices: list[BlockDeviceReading] = []
    damaged: list[str] = []
    is_known_form = False
    for line in text.splitlines():
        words = line.split()
        if len(words) < 3 or parse_count(words[0]) is None:
            continue
        is_known_form = True
        if is_wanted(words[2]):
            device = _parse_device(words)
            if device is None:
                damaged.append(words[2])
            else:
                devices.append(device)
    if not is_known_form:
        return None
    return Diskstats(devices=tuple(devices), damaged=tuple(damaged))


def _parse_device(words: list[str]) -> BlockDeviceReading | None:
    counts = [count for word in words[3:] if (count := parse_count(word)) is not None]
    if len(words) < _FEWEST_COLUMNS or len(counts) != len(words) - 3:
        return None
    return BlockDeviceReading(
        device=words[2],
        reads_completed_total=counts[0],
        read_bytes_total=counts[2] * SECTOR_BYTES,
        read_time_seconds_total=counts[3] / 1000,
        writes_completed_total=counts[4],
        written_bytes_total=counts[6] * SECTOR_BYTES,
        write_time_seconds_total=counts[7] / 1000,
        io_in_progress=counts[8],
        io_time_seconds_total=counts[9] / 1000,
        io_weighted_seconds_total=counts[10] / 1000,
        discards_completed_total=counts[11] if len(words) > _DISCARDS else None,
        flush_requests_total=counts[15] if len(words) > _FLUSHES else None,
    )


class DiskCollector:
    """Reads the block devices of one host."""

    name = "disk"

    def __init__(self, root: HostRoot) -> None:
        self._root = root

    def read(self) -> DiskReading:
        """Read everything once.

        Raises:
            CollectFailed: `/proc/diskstats` cannot be read, or is not one.
        """
        path = self._root.proc("diskstats")
        text = read_text(path)
        if isinstance(text, Unreadable):
            raise CollectFailed(text.reason)
        names = list_folder(self._root.sys("block"))
        known = None if isinstance(names, Unreadable) or not names else frozenset(names)
        stats = parse_diskstats(text, lambda device: is_whole_disk(device, known))
        if stats is None and text.strip():
            raise CollectFailed(f"{path} holds nothing of the form the kernel documents")
        if stats is None:  # a kernel without block devices gives an empty file
            reason = f"{path} is empty: this host has no block device"
            return DiskReading(absent=(Absence(what="devices", reason=reason),))
        return DiskReading(
            devices=stats.devices,
            absent=tuple(
                Absence(what=f"disk:{device}", reason=f"{path} has a damaged line for {device}")
                for device in stats.damaged
            ),
        )
