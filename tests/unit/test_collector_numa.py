from pathlib import Path

import pytest

from esnode.collectors.base import CollectFailed
from esnode.collectors.numa import NumaCollector, parse_cpu_list, parse_distances
from esnode.collectors.root import HostRoot
from esnode.readings.host import NumaNodeReading
from tests.host_trees import FOLDER, root_of, write_tree

NODES = "sys/devices/system/node"
NUMASTAT = """\
numa_hit 100
numa_miss 2
numa_foreign 3
interleave_hit 4
local_node 95
other_node 7
"""


def node_files(node: int, cpus: str, distance: str) -> dict[str, str | bytes | None]:
    meminfo = (
        f"Node {node} MemTotal:       1000 kB\nNode {node} MemFree:        400 kB\n"
        f"Node {node} MemUsed:        600 kB\nNode {node} FilePages:      200 kB\n"
        f"Node {node} HugePages_Total:     0\n"
    )
    return {
        f"{NODES}/node{node}/meminfo": meminfo,
        f"{NODES}/node{node}/numastat": NUMASTAT,
        f"{NODES}/node{node}/cpulist": f"{cpus}\n",
        f"{NODES}/node{node}/distance": f"{distance}\n",
    }


def test_two_sockets_are_read_whole(tmp_path: Path) -> None:
    tree = write_tree(
        tmp_path, {**node_files(0, "0-1,4", "10 21"), **node_files(1, "2-3", "21 10")}
    )

    reading = NumaCollector(root_of(tree)).read()

    assert reading.nodes[0] == NumaNodeReading(
        node=0,
        cpus=(0, 1, 4),
        memory_total_bytes=1024000,
        memory_free_bytes=409600,
        memory_used_bytes=614400,
        memory_file_bytes=204800,
        numa_hit_total=100,
        numa_miss_total=2,
        numa_foreign_total=3,
        interleave_hit_total=4,
        local_node_total=95,
        other_node_total=7,
        distances=((0, 10), (1, 21)),
    )
    assert reading.nodes[1].cpus == (2, 3)
    assert reading.nodes[1].distances == ((0, 21), (1, 10))
    assert reading.absent == ()


def test_a_memory_only_node_has_no_cpus_and_is_no_fault(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, {**node_files(0, "0-1", "10 14"), **node_files(1, "", "14 10")})

    reading = NumaCollector(root_of(tree)).read()

    assert reading.nodes[1].cpus == ()
    assert reading.nodes[1].memory_total_bytes == 1024000
    # The kernel writes a line end for an empty list.
    assert reading.absent == ()


def test_a_node_without_meminfo_keeps_its_cpus(tmp_path: Path) -> None:
    files = node_files(0, "0-1", "10")
    del files[f"{NODES}/node0/meminfo"]

    reading = NumaCollector(root_of(write_tree(tmp_path, files))).read()

    assert reading.nodes[0].cpus == (0, 1)
    assert reading.nodes[0].memory_total_bytes is None
    assert [absence.what for absence in reading.absent] == ["node0:meminfo"]


def test_distances_follow_the_online_nodes_and_not_their_numbers(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, {**node_files(0, "0", "10 80"), **node_files(8, "1", "80 10")})

    reading = NumaCollector(root_of(tree)).read()

    assert [(node.node, node.distances) for node in reading.nodes] == [
        (0, ((0, 10), (8, 80))),
        (8, ((0, 80), (8, 10))),
    ]


def test_a_row_of_another_length_is_absent(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, node_files(0, "0", "10 20 30"))

    reading = NumaCollector(root_of(tree)).read()

    assert reading.nodes[0].distances == ()
    assert reading.absent[0].what == "node0:distance"
    assert reading.absent[0].reason.endswith("has 3 values for 1 online nodes")


def test_36_nodes_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    files: dict[str, str | bytes | None] = {f"{NODES}/possible": "0-35\n"}
    for node in range(36):
        row = " ".join("10" if other == node else "32" for other in range(36))
        files |= node_files(node, f"{node * 8}-{node * 8 + 7}", row)

    reading = NumaCollector(root_of(write_tree(tmp_path, files))).read()

    assert [node.node for node in reading.nodes] == list(range(36))
    assert reading.nodes[35].cpus == tuple(range(280, 288))
    assert dict(reading.nodes[10].distances)[9] == 32


def test_the_recorded_host_has_three_nodes_of_which_one_is_memory_only(
    linux_host_tree: Path,
) -> None:
    reading = NumaCollector(root_of(linux_host_tree)).read()

    assert [(node.node, node.cpus) for node in reading.nodes] == [(0, (0, 1)), (1, (2, 3)), (2, ())]
    assert reading.nodes[0].memory_total_bytes == 134182340 * 1024
    assert reading.nodes[0].memory_file_bytes == 70170916 * 1024
    assert reading.nodes[1].numa_miss_total == 59858626709
    assert reading.nodes[2].numa_foreign_total == 2624528
    assert [absence.what for absence in reading.absent] == [
        "node0:distance",
        "node1:distance",
        "node2:distance",
    ]


def test_this_machine_is_read_plausibly() -> None:
    reading = NumaCollector(HostRoot()).read()

    assert reading.nodes or reading.absent
    for node in reading.nodes:
        if node.memory_total_bytes is not None and node.memory_free_bytes is not None:
            assert node.memory_free_bytes <= node.memory_total_bytes


@pytest.mark.parametrize("content", [FOLDER, "", "\x00garbage\n"])
@pytest.mark.parametrize("damaged", ["meminfo", "numastat", "distance"])
def test_one_unreadable_file_drops_only_itself(
    tmp_path: Path, damaged: str, content: str | None
) -> None:
    files = {**node_files(0, "0", "10"), f"{NODES}/node0/{damaged}": content}

    reading = NumaCollector(root_of(write_tree(tmp_path, files))).read()

    assert [absence.what for absence in reading.absent] == [f"node0:{damaged}"]
    assert reading.nodes[0].cpus == (0,)


def test_a_node_that_went_offline_while_reading_hides_no_other(tmp_path: Path) -> None:
    files = {**node_files(0, "0", "10 20"), f"{NODES}/node1": FOLDER}

    reading = NumaCollector(root_of(write_tree(tmp_path, files))).read()

    assert [node.node for node in reading.nodes] == [0]
    assert "node1:meminfo" in [absence.what for absence in reading.absent]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        pytest.param({"sys/class/x": ""}, "CONFIG_NUMA", id="no folder"),
        pytest.param({f"{NODES}/online": "0\n"}, "lists no node", id="no node"),
    ],
)
def test_a_kernel_without_numa_is_a_reading(
    tmp_path: Path, files: dict[str, str], reason: str
) -> None:
    reading = NumaCollector(root_of(write_tree(tmp_path, files))).read()

    assert reading.nodes == ()
    assert reason in reading.absent[0].reason


@pytest.mark.parametrize("files", [{}, {f"{NODES}/node0": FOLDER}])
def test_nothing_at_all_fails(tmp_path: Path, files: dict[str, str | None]) -> None:
    with pytest.raises(CollectFailed):
        NumaCollector(root_of(write_tree(tmp_path, files))).read()


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        pytest.param("\n", (), id="none"),
        pytest.param("0\n", (0,), id="one"),
        pytest.param("0-2,8,10-11\n", (0, 1, 2, 8, 10, 11), id="ranges"),
        pytest.param("3-1\n", None, id="backwards"),
        pytest.param("0-99999999999\n", None, id="more than any machine has"),
        pytest.param("0,,1", None, id="empty part"),
        pytest.param("0-", None, id="open end"),
        pytest.param("a", None, id="word"),
    ],
)
def test_a_list_of_cpus(text: str, cpus: tuple[int, ...] | None) -> None:
    assert parse_cpu_list(text) == cpus


@pytest.mark.parametrize(("text", "row"), [("10 21\n", (10, 21)), ("10 x\n", None), ("", None)])
def test_a_row_of_distances(text: str, row: tuple[int, ...] | None) -> None:
    assert parse_distances(text) == row
