from pathlib import Path

import pytest

from esnode.collectors.base import CollectFailed
from esnode.collectors.memory import MemoryCollector, parse_meminfo, parse_vmstat
from esnode.collectors.root import HostRoot
from tests.host_trees import FOLDER, root_of, write_tree

MEMINFO = """\
MemTotal:        3742148 kB
MemFree:          225472 kB
MemAvailable:     900000 kB
Buffers:           22040 kB
Cached:           930888 kB
SwapCached:       192504 kB
SwapTotal:       4194300 kB
SwapFree:        3155360 kB
Dirty:              1052 kB
Shmem:            593840 kB
SReclaimable:      44772 kB
HugePages_Total:       7
"""
VMSTAT = """\
pgpgin 7344136
pgpgout 1541180581
pswpin 1476
pswpout 35045
pgfault 2320168809
pgmajfault 507162
oom_kill 3
"""
PROC = {"proc/meminfo": MEMINFO, "proc/vmstat": VMSTAT}


def test_sizes_are_in_bytes_and_nothing_is_absent(tmp_path: Path) -> None:
    reading = MemoryCollector(root_of(write_tree(tmp_path, PROC))).read()

    assert reading.total_bytes == 3742148 * 1024
    assert reading.free_bytes == 225472 * 1024
    assert reading.available_bytes == 900000 * 1024
    assert reading.buffers_bytes == 22040 * 1024
    assert reading.cached_bytes == 930888 * 1024
    assert reading.shared_bytes == 593840 * 1024
    assert reading.slab_reclaimable_bytes == 44772 * 1024
    assert reading.dirty_bytes == 1052 * 1024
    assert reading.swap_total_bytes == 4194300 * 1024
    assert reading.swap_free_bytes == 3155360 * 1024
    assert reading.swap_cached_bytes == 192504 * 1024
    assert reading.absent == ()


def test_paging_counters_are_in_bytes_and_swap_counters_in_pages(tmp_path: Path) -> None:
    reading = MemoryCollector(root_of(write_tree(tmp_path, PROC))).read()

    assert reading.page_in_bytes_total == 7344136 * 1024
    assert reading.page_out_bytes_total == 1541180581 * 1024
    assert reading.swap_in_pages_total == 1476
    assert reading.swap_out_pages_total == 35045
    assert reading.page_faults_total == 2320168809
    assert reading.major_page_faults_total == 507162
    assert reading.oom_kills_total == 3


def test_the_recorded_host_lacks_only_the_line_that_its_kernel_lacks(
    linux_host_tree: Path,
) -> None:
    reading = MemoryCollector(root_of(linux_host_tree)).read()

    assert reading.total_bytes == 3831959552
    assert reading.available_bytes is None
    assert reading.oom_kills_total == 0
    assert [absence.what for absence in reading.absent] == ["available_bytes"]
    assert reading.absent[0].reason.endswith("/proc/meminfo has no usable value for MemAvailable")


def test_this_machine_is_read_plausibly() -> None:
    reading = MemoryCollector(HostRoot()).read()

    assert reading.total_bytes is not None
    assert reading.available_bytes is not None
    assert 0 < reading.available_bytes <= reading.total_bytes
    assert reading.page_faults_total


@pytest.mark.parametrize("content", [FOLDER, "", "\x00\xff:\n:::\nkB"])
@pytest.mark.parametrize("damaged", ["meminfo", "vmstat"])
def test_one_unreadable_file_drops_only_itself(
    tmp_path: Path, damaged: str, content: str | None
) -> None:
    files: dict[str, str | bytes | None] = {**PROC, f"proc/{damaged}": content}

    reading = MemoryCollector(root_of(write_tree(tmp_path, files))).read()

    assert [absence.what for absence in reading.absent] == [damaged]
    assert (reading.total_bytes is None) == (damaged == "meminfo")
    assert (reading.page_faults_total is None) == (damaged == "vmstat")


def test_no_file_at_all_fails_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(CollectFailed, match=r"^.*/proc/meminfo does not exist$"):
        MemoryCollector(root_of(tmp_path)).read()


def test_a_damaged_line_is_absent_and_not_zero(tmp_path: Path) -> None:
    files = {**PROC, "proc/meminfo": MEMINFO.replace("225472 kB", "kB").replace(" 22040 kB", "-1")}

    reading = MemoryCollector(root_of(write_tree(tmp_path, files))).read()

    assert reading.free_bytes is None
    assert reading.buffers_bytes is None
    assert [absence.what for absence in reading.absent] == ["free_bytes", "buffers_bytes"]


def test_lines_in_other_units_are_left_out() -> None:
    assert parse_meminfo("HugePages_Total:  7\nHugepagesize:  2048 kB\n") == {
        "Hugepagesize": 2097152
    }
    assert parse_vmstat("nr_free_pages 5\nbroken\nalso broken 1 2\n") == {"nr_free_pages": 5}
