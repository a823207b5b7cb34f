"""Our host values and node_exporter's, of one machine at one time."""

from collections.abc import Iterator, Mapping

import pytest

from tests.agents import AgentProcess, ask, running_agent, samples, wait_until
from tests.peer_processes import node_exporter

pytestmark = pytest.mark.peers


class Both:
    """One scrape of each, made right after one another."""

    def __init__(self, ours: str, theirs: str) -> None:
        self._ours = ours
        self._theirs = theirs

    def ours(self, name: str) -> dict[str, float]:
        return samples(self._ours, name)

    def theirs(self, name: str) -> dict[str, float]:
        return samples(self._theirs, name)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("both")
    with (
        node_exporter(folder) as (port, _),
        running_agent(folder, "--scrape-interval=200ms", "--enable-gpu=false") as agent,
    ):
        wait_until(lambda: agent.samples("esnode_filesystem_size_bytes"), seconds=10, why="a read")
        yield Both(*_scrape(agent, port))


def _scrape(agent: AgentProcess, port: int) -> tuple[str, str]:
    theirs = ask(port, "/metrics", timeout_seconds=20).text
    # A tick later, so that ours is not older than theirs.
    ticked = agent.value("esnode_agent_cpu_seconds_total")
    wait_until(
        lambda: agent.value("esnode_agent_cpu_seconds_total") != ticked, seconds=5, why="a tick"
    )
    return agent.get("/metrics").text, theirs


def label(labels: str, name: str) -> str:
    return labels.partition(f'{name}="')[2].partition('"')[0]


def by(series: Mapping[str, float], name: str) -> dict[str, float]:
    """Summed by one label."""
    summed: dict[str, float] = {}
    for labels, value in series.items():
        key = label(labels, name)
        summed[key] = summed.get(key, 0.0) + value
    return summed


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("esnode_memory_total_bytes", "node_memory_MemTotal_bytes"),
        ("esnode_swap_total_bytes", "node_memory_SwapTotal_bytes"),
        ("esnode_boot_time_seconds", "node_boot_time_seconds"),
    ],
)
def test_what_does_not_change_is_equal(both: Both, ours: str, theirs: str) -> None:
    assert both.ours(ours)[""] == both.theirs(theirs)[""]


@pytest.mark.parametrize(
    ("ours", "theirs", "tolerance_ratio"),
    [
        ("esnode_memory_available_bytes", "node_memory_MemAvailable_bytes", 0.05),
        ("esnode_memory_free_bytes", "node_memory_MemFree_bytes", 0.2),
        ("esnode_cpu_context_switches_total", "node_context_switches_total", 0.02),
        ("esnode_cpu_interrupts_total", "node_intr_total", 0.02),
        ("esnode_cpu_forks_total", "node_forks_total", 0.02),
        ("esnode_memory_page_faults_total", "node_vmstat_pgfault", 0.05),
        ("esnode_memory_major_page_faults_total", "node_vmstat_pgmajfault", 0.05),
        ("esnode_cpu_load1", "node_load1", 0.3),
    ],
)
def test_what_changes_slowly_is_close(
    both: Both, ours: str, theirs: str, tolerance_ratio: float
) -> None:
    assert both.ours(ours)[""] == pytest.approx(
        both.theirs(theirs)[""], rel=tolerance_ratio, abs=0.1
    )


def test_cpu_seconds_agree_by_mode(both: Both) -> None:
    ours = by(both.ours("esnode_cpu_seconds_total"), "mode")
    theirs = by(both.theirs("node_cpu_seconds_total"), "mode")

    assert set(theirs) <= set(ours)
    for mode, seconds in theirs.items():
        assert ours[mode] == pytest.approx(seconds, rel=0.01, abs=10), mode
    assert both.ours("esnode_cpus")[""] == len(by(both.theirs("node_cpu_seconds_total"), "cpu"))


def test_filesystems_have_the_same_sizes(both: Both) -> None:
    ours = by(both.ours("esnode_filesystem_size_bytes"), "mountpoint")
    theirs = by(both.theirs("node_filesystem_size_bytes"), "mountpoint")

    shared = ours.keys() & theirs.keys()
    assert "/" in shared
    assert {point: ours[point] for point in shared} == {point: theirs[point] for point in shared}


def test_disks_and_interfaces_agree(both: Both) -> None:
    for ours, theirs, name, slack in (
        ("esnode_network_rx_bytes_total", "node_network_receive_bytes_total", "iface", 2e6),
        ("esnode_network_tx_bytes_total", "node_network_transmit_bytes_total", "iface", 2e6),
        ("esnode_network_mtu_bytes", "node_network_mtu_bytes", "iface", 0),
        ("esnode_disk_read_bytes_total", "node_disk_read_bytes_total", "device", 4e6),
        ("esnode_disk_reads_completed_total", "node_disk_reads_completed_total", "device", 500),
        ("esnode_disk_written_bytes_total", "node_disk_written_bytes_total", "device", 4e7),
    ):
        mine = by(both.ours(ours), name)
        other = by(both.theirs(theirs), "device")
        if not other:
            continue  # the host's node_exporter has no such device
        leading = {key: value for key, value in other.items() if key in mine}
        assert leading, (ours, theirs)
        for key, value in leading.items():
            # lo carries the tests' own scrapes.
            assert mine[key] == pytest.approx(value, rel=0.03, abs=slack), (ours, key)


def test_tcp_and_pressure_agree(both: Both) -> None:
    mine = both.ours("esnode_tcp_sent_segments_total")[""]
    assert mine == pytest.approx(both.theirs("node_netstat_Tcp_OutSegs")[""], rel=0.05, abs=500)
    stalled = both.theirs("node_pressure_cpu_waiting_seconds_total")
    if stalled:
        ours = both.ours("esnode_pressure_stalled_seconds_total")
        cpu = next(v for k, v in ours.items() if 'resource="cpu"' in k and 'kind="some"' in k)
        assert cpu == pytest.approx(stalled[""], rel=0.02, abs=2)
