"""What the agent costs when nobody hurries it."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from tests.agents import running_agent, wait_until
from tests.benchmarks.measuring import Row, Scraper, cpu_seconds
from tests.peer_processes import node_exporter

SCRAPE_SECONDS = 5.0
SETTLE_SECONDS = 3.0


def measure(*, is_quick: bool) -> Iterator[Row]:
    """All at once, so that they meet the same machine; they are idle nearly all the time."""
    span_seconds = 20.0 if is_quick else 90.0
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        peer_port, peer_pid = running.enter_context(node_exporter(folder))
        host = running.enter_context(
            running_agent(folder, "--enable-gpu=false", "--enable-power=false", name="host")
        )
        whole = running.enter_context(
            running_agent(folder, "--hardware=simulated:h100x8", name="whole")
        )
        fast = running.enter_context(
            running_agent(
                folder, "--hardware=simulated:h100x8", "--scrape-interval=1s", name="fast"
            )
        )
        for agent in (whole, fast):
            wait_until(lambda a=agent: len(a.samples("esnode_gpu_up")) == 8, seconds=20, why="GPUs")  # type: ignore[misc]
        scraped = [Scraper(port) for port in (peer_port, host.port, whole.port)]
        for client in scraped:
            client.scrape()
        time.sleep(SETTLE_SECONDS)
        pids = {"peer": peer_pid, "host": host.pid, "whole": whole.pid, "fast": fast.pid}
        started = time.perf_counter()
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        while time.perf_counter() - started < span_seconds:
            for client in scraped:
                client.scrape()
            time.sleep(SCRAPE_SECONDS)
        span_seconds = time.perf_counter() - started
        percents = {
            name: (cpu_seconds(pid) - before[name]) / span_seconds * 100
            for name, pid in pids.items()
        }
        for client in scraped:
            client.close()
    print(f"idle: over {span_seconds:.0f} s")
    yield Row(
        what="CPU, 5 s collection, 1 scrape per 5 s, host only",
        unit="%",
        ours=percents["host"],
        peer=percents["peer"],
        most_ratio=3,
    )
    yield Row(
        what="CPU, the same with 8 simulated GPUs",
        unit="%",
        ours=percents["whole"],
        peer=percents["peer"],
        most_ratio=3,
    )
    yield Row(
        what="CPU, 1 s collection, 8 simulated GPUs, no scrape",
        unit="%",
        ours=percents["fast"],
        most=1.0,
    )
