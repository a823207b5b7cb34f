"""An agent ends at once when told to, whoever is connected and whatever hangs."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.agents import AgentProcess, running_agent, started_agent, wait_until
from tests.host_trees import write_tree

pytestmark = pytest.mark.process

GRACE_SECONDS = 2.0


@contextmanager
def open_stream(agent: AgentProcess) -> Iterator[socket.socket]:
    """A client of /events that got its first event."""
    with socket.create_connection(("127.0.0.1", agent.port), timeout=5) as client:
        client.sendall(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
        got = b""
        while b"\ndata: {" not in got:
            block = client.recv(1 << 16)
            assert block, "the stream ended"
            got += block
            assert len(got) < 1 << 20
        yield client


@contextmanager
def kept_connection(agent: AgentProcess) -> Iterator[socket.socket]:
    """A scraper that has scraped once and keeps its connection."""
    with socket.create_connection(("127.0.0.1", agent.port), timeout=5) as client:
        client.sendall(b"GET /metrics?profile=basic HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 200")
        yield client


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda s: s.name)
def test_a_signal_ends_it_within_two_seconds_with_clients_and_a_hung_source(
    tmp_path: Path, number: signal.Signals
) -> None:
    # A pipe that nobody writes to: opening it for reading never returns.
    procfs = write_tree(tmp_path / "proc", {"meminfo": "MemTotal: 1 kB\n"})
    os.mkfifo(procfs / "loadavg")
    flags = (f"--procfs-path={procfs}", "--scrape-interval=200ms", "--collect-deadline=300ms")
    with running_agent(tmp_path, *flags) as agent, ExitStack() as clients:
        for _ in range(10):
            clients.enter_context(open_stream(agent))
            clients.enter_context(kept_connection(agent))
        wait_until(
            lambda: agent.samples("esnode_agent_collector_stalls_total")[
                '{collector="cpu",target=""}'
            ],
            seconds=5,
            why="the hung source counts as stalled",
        )

        took_seconds = agent.end(number)

        assert agent.process.returncode == 0
        assert took_seconds < GRACE_SECONDS
        assert [e["event"] for e in agent.events()][-2:] == ["agent_stopping", "agent_stopped"]
        assert not (agent.state_dir / "agent.json").exists()


def test_a_signal_during_the_start_ends_it_too(tmp_path: Path) -> None:
    for delay_seconds in (0.05, 0.2, 0.35, 0.5):
        with started_agent(tmp_path, name=f"agent-{delay_seconds}") as agent:
            time.sleep(delay_seconds)

            took_seconds = agent.end(signal.SIGTERM)

            assert agent.process.returncode in (0, -signal.SIGTERM)
            assert took_seconds < GRACE_SECONDS
            assert "Traceback" not in agent.log_path.read_text()


def test_streams_end_with_a_whole_event(tmp_path: Path) -> None:
    with running_agent(tmp_path) as agent, open_stream(agent) as client:
        agent.end(signal.SIGTERM)

        rest = b""
        while block := client.recv(1 << 16):
            rest += block
        assert rest == b"" or rest.endswith(b"0\r\n\r\n")


def test_a_second_signal_changes_nothing(tmp_path: Path) -> None:
    with running_agent(tmp_path) as agent:
        agent.process.send_signal(signal.SIGTERM)
        agent.process.send_signal(signal.SIGINT)

        agent.process.wait(GRACE_SECONDS)

        assert agent.process.returncode == 0
        assert "Traceback" not in agent.log_path.read_text()
