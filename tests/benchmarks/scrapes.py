"""What scrapes cost: processor time, latency, memory after load."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.agents import ask, running_agent, wait_until
from tests.benchmarks.measuring import (
    Row,
    count_samples,
    cpu_seconds,
    latencies_ms,
    median,
    memory_mib,
    percentile,
    scraper,
)
from tests.peer_processes import node_exporter

LARGE = ("--hardware=simulated:h100x16", "--metric-aliases=esnode-core,dcgm")
"""About 2000 samples."""


def measure(*, is_quick: bool) -> Iterator[Row]:
    scrapes, rounds = (100, 3) if is_quick else (500, 7)
    with (
        tempfile.TemporaryDirectory() as name,
        node_exporter(Path(name)) as (peer_port, peer_pid),
        running_agent(Path(name), *LARGE) as agent,
    ):
        wait_until(lambda: len(agent.samples("esnode_gpu_up")) == 16, seconds=20, why="16 GPUs")
        wait_until(
            lambda: len(agent.samples("esnode_gpu_power_watts")) == 16, seconds=20, why="readings"
        )
        ours, peer = agent.get().body, ask(peer_port, "/metrics").body
        print(
            f"scrapes: ours {count_samples(ours)} samples in {len(ours) / 1000:.0f} kB, "
            f"peer {count_samples(peer)} samples in {len(peer) / 1000:.0f} kB"
        )
        servers = {"ours": (agent.port, agent.pid), "peer": (peer_port, peer_pid)}
        yield from _cpu(servers, scrapes, rounds)
        yield from _latency(servers, scrapes, rounds)
        for place, what, most in ((0, "RSS", 80), (1, "PSS", 65)):
            yield Row(
                what=f"memory after load, {what}",
                unit="MiB",
                digits=1,
                ours=memory_mib(agent.pid)[place],
                peer=memory_mib(peer_pid)[place],
                most=most,
            )


def _cpu(servers: dict[str, tuple[int, int]], scrapes: int, rounds: int) -> Iterator[Row]:
    found: dict[str, list[float]] = {name: [] for name in servers}
    for _ in range(rounds):
        for name, (port, pid) in servers.items():
            with scraper(port) as client:
                client.scrape()
                before = cpu_seconds(pid)
                for _ in range(scrapes):
                    client.scrape()
                found[name].append((cpu_seconds(pid) - before) * 1000 / scrapes)
    yield Row(
        what="CPU of 1000 scrapes, keep-alive, identity",
        unit="s",
        ours=median(found["ours"]),
        peer=median(found["peer"]),
        most=1.2,
        most_ratio=0.25,
    )


def _latency(servers: dict[str, tuple[int, int]], scrapes: int, rounds: int) -> Iterator[Row]:
    for clients, shares in ((1, (0.5, 0.99)), (10, (0.99,))):
        found: dict[str, list[list[float]]] = {name: [] for name in servers}
        for _ in range(rounds):
            for name, (port, _) in servers.items():
                found[name].append(latencies_ms(port, scrapes=scrapes, clients=clients))
        for share in shares:
            named = {
                name: median([percentile(one, share) for one in each])
                for name, each in found.items()
            }
            most = {(1, 0.5): 1.5, (1, 0.99): 8.0, (10, 0.99): 50.0}[clients, share]
            yield Row(
                what=f"scrape p{share * 100:.0f}, {clients} client{'s' if clients > 1 else ''}",
                unit="ms",
                ours=named["ours"],
                peer=named["peer"],
                most=most,
            )
