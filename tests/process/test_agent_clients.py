"""Clients that speak nonsense, that are slow, and that never read: the agent goes on."""

import os
import random
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from esnode.api.server import CONNECTIONS_MAX
from esnode.listener import WRITE_STALL_SECONDS
from tests.agents import AgentProcess, running_agent, wait_until

pytestmark = pytest.mark.process

SCRAPE = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of zero seconds: closing sends a reset."""

STREAMS = 200


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    folder = tmp_path_factory.mktemp("clients")
    flags = ("--hardware=simulated:h100x8", "--scrape-interval=200ms")
    with running_agent(folder, *flags) as agent:
        wait_until(lambda: len(agent.samples("esnode_gpu_up")) == 8, seconds=10, why="GPUs")
        yield agent


def connect(agent: AgentProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", agent.port), timeout=3)


def all_of(client: socket.socket) -> bytes:
    """What comes until the other side closes, falls silent for 3 s, or resets."""
    got = b""
    try:
        while block := client.recv(1 << 16):
            got += block
    except OSError:
        pass
    return got


def assert_well(agent: AgentProcess) -> None:
    assert agent.process.poll() is None
    answer = agent.get("/healthz")
    assert (answer.status, answer.json()["status"]) == (200, "ok")
    assert agent.get("/metrics").status == 200
    assert "Traceback" not in agent.log_path.read_text()


@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(b"\x00\xff" * 500 + b"\r\n\r\n", id="garbage"),
        pytest.param(random.Random(7).randbytes(4096), id="random bytes"),
        pytest.param(
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 500, id="a TLS hello"
        ),
        pytest.param(b"GET /metrics\r\n\r\n", id="HTTP/0.9"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00" * 64, id="HTTP/2 preface"),
        pytest.param(b"GET /" + b"a" * 65536 + b" HTTP/1.1\r\nHost: x\r\n\r\n", id="a huge path"),
        pytest.param(
            b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Big: " + b"a" * (1 << 20) + b"\r\n\r\n",
            id="a huge header",
        ),
        pytest.param(
            b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + b"X-H: 1\r\n" * 20_000 + b"\r\n",
            id="very many headers",
        ),
        pytest.param(b"GET /metrics HTTP/1.1\r\n\r\n", id="no host"),
        pytest.param(b"GET http://other/metrics HTTP/1.1\r\nHost: y\r\n\r\n", id="a proxy request"),
        pytest.param(b"GET /%00%ff/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", id="a bad path"),
        pytest.param(
            b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\nabc",
            id="a body that never comes",
        ),
        pytest.param(
            b"POST /status HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n",
            id="broken chunks",
        ),
        pytest.param(
            b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
            id="a negative length",
        ),
        pytest.param(
            b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: \xff\xfe\r\nAccept-Encoding: ;q=\r\n\r\n",
            id="headers that are no text",
        ),
        pytest.param(b"GET /metrics?\xff=%ff HTTP/1.1\r\nHost: x\r\n\r\n", id="a query of bytes"),
        pytest.param(
            b"GET /events HTTP/1.1\r\nHost: x\r\nLast-Event-ID: \xb2-\xb3\r\n"
            b"Connection: close\r\n\r\n",
            id="an event id of no run",
        ),
        pytest.param(
            b"GET /events HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n",
            id="a WebSocket",
        ),
    ],
)
def test_nonsense_is_answered_or_dropped(agent: AgentProcess, request_bytes: bytes) -> None:
    with connect(agent) as client:
        try:
            client.sendall(request_bytes)
            client.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it hung up in the middle, which is an answer too
        client.settimeout(1.5)
        answer = all_of(client)

    assert not answer.startswith(b"HTTP/1.1 500")
    assert_well(agent)


def test_a_client_that_closes_its_half_is_answered(agent: AgentProcess) -> None:
    with connect(agent) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        client.shutdown(socket.SHUT_WR)

        answer = all_of(client)

    assert_well(agent)
    assert answer == b"" or b"esnode_agent_build_info" in answer


@pytest.mark.parametrize("path", ["/metrics", "/status", "/healthz", "/nowhere"])
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_client_that_asks_for_the_end_of_the_connection_gets_it(
    agent: AgentProcess, path: str, version: str
) -> None:
    with connect(agent) as client:
        request = f"GET {path} HTTP/{version}\r\nHost: x\r\nConnection: close\r\n\r\n"
        client.sendall(request.encode())
        started = time.perf_counter()
        assert all_of(client).startswith(b"HTTP/1.1 ")
        assert time.perf_counter() - started < 1


@pytest.mark.parametrize("path", ["/metrics", "/status"])
@pytest.mark.parametrize("host", ["http://node1:9100", "http://[::1]:9100", "http://["])
def test_a_target_that_names_its_host_is_a_path_all_the_same(
    agent: AgentProcess, path: str, host: str
) -> None:
    with connect(agent) as client:
        request = f"GET {host}{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        client.sendall(request.encode())
        assert all_of(client).startswith(b"HTTP/1.1 200 ")


def test_requests_on_one_connection_are_answered_in_their_order(agent: AgentProcess) -> None:
    with connect(agent) as client:
        client.sendall(SCRAPE + b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")

        answer = all_of(client)

    first, second = answer.index(b"esnode_agent_build_info"), answer.index(b"tick_age_seconds")
    assert first < second
    assert_well(agent)


@pytest.mark.parametrize("path", ["/metrics", "/events", "/status"])
def test_clients_that_reset_in_the_middle_do_no_harm(agent: AgentProcess, path: str) -> None:
    for _ in range(50):
        with connect(agent) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            client.sendall(SCRAPE.replace(b"/metrics", path.encode()))
            client.recv(1)

    assert_well(agent)
    wait_until(
        lambda: agent.value("esnode_agent_event_clients") == 0, seconds=20, why="streams are gone"
    )


def test_slow_senders_hold_up_nobody(agent: AgentProcess) -> None:
    with ExitStack() as clients:
        slow = [clients.enter_context(connect(agent)) for _ in range(100)]
        request = iter(SCRAPE[:-2] + b"X-Slow: " + b"a" * 100)
        latencies = []
        for _ in range(20):
            byte = bytes([next(request)])
            for client in slow:
                client.sendall(byte)
            started = time.perf_counter()
            assert agent.get("/metrics").status == 200
            latencies.append(time.perf_counter() - started)

        assert sorted(latencies)[len(latencies) // 2] < 0.5
    assert_well(agent)


def open_files(agent: AgentProcess) -> int:
    return len(os.listdir(f"/proc/{agent.pid}/fd"))


def stalled_reader(agent: AgentProcess, path: bytes) -> socket.socket:
    """A client that asks and never reads; its receive buffer is as small as it may be."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    client.settimeout(5)
    client.connect(("127.0.0.1", agent.port))
    client.sendall(SCRAPE.replace(b"/metrics", path))
    return client


@pytest.mark.parametrize(
    ("path", "is_there"),
    [
        pytest.param(
            b"/events",
            lambda agent: agent.value("esnode_agent_event_clients") == STREAMS,
            id="events",
        ),
        pytest.param(b"/metrics", lambda agent: agent.get("/healthz").status == 200, id="metrics"),
    ],
)
def test_readers_that_do_not_read_cost_little_and_delay_nothing(
    tmp_path: Path, path: bytes, is_there: Callable[[AgentProcess], bool]
) -> None:
    flags = ("--hardware=simulated:h100x8", "--scrape-interval=100ms")
    with running_agent(tmp_path, *flags) as agent, ExitStack() as clients:
        assert agent.get("/metrics").status == agent.get("/status").status == 200
        before_mib = agent.resident_mib()
        for _ in range(STREAMS):
            clients.enter_context(stalled_reader(agent, path))
        wait_until(lambda: is_there(agent), seconds=10, why="all clients are there")

        latenesses = []
        for _ in range(6):
            time.sleep(1)
            latenesses.append(agent.value("esnode_agent_tick_lateness_seconds") or 0.0)
            assert agent.get("/healthz").json()["status"] == "ok"

        assert max(latenesses) < 1
        assert agent.resident_mib() - before_mib < 60
        ages = agent.samples("esnode_gpu_reading_age_seconds")
        assert len(ages) == 8
        assert max(ages.values()) < 2
        assert agent.end() < 2
        assert agent.process.returncode == 0


@pytest.mark.slow
def test_a_client_that_never_reads_is_dropped_in_the_end(tmp_path: Path) -> None:
    with running_agent(tmp_path, "--hardware=simulated:h100x8") as agent:
        time.sleep(0.5)  # the connection of the last question is gone
        before = open_files(agent)
        with stalled_reader(agent, b"/metrics") as client:
            client.sendall(SCRAPE * 100)
            wait_until(lambda: open_files(agent) > before, seconds=5, why="it is connected")

            wait_until(
                lambda: open_files(agent) <= before,
                seconds=WRITE_STALL_SECONDS + 15,
                why="it is dropped",
            )
        assert_well(agent)


def test_no_connection_can_end_the_agent_however_it_is_broken(agent: AgentProcess) -> None:
    broken = b"POST /status HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n"
    for _ in range(100):
        with connect(agent) as client:
            client.sendall(broken)
    assert_well(agent)


def test_more_connections_than_may_be_open_are_closed_and_the_rest_is_served(
    tmp_path: Path,
) -> None:
    with running_agent(tmp_path, "--scrape-interval=200ms") as agent:
        kept = connect(agent)
        with ExitStack() as clients:
            for _ in range(CONNECTIONS_MAX + 50):
                clients.enter_context(connect(agent))
            agent.wait_for_event("connections_full")

            kept.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert kept.recv(1 << 16).startswith(b"HTTP/1.1 200")
        kept.close()

        wait_until(lambda: agent.get("/readyz").status == 200, seconds=10, why="room again")
        assert agent.value("esnode_cpu_load1") is not None
        assert len(agent.events("connections_full")) == 1


def test_where_few_files_may_be_open_clients_leave_some_to_the_sources(tmp_path: Path) -> None:
    within = ("sh", "-c", 'ulimit -n 48; exec "$@"', "sh")
    with running_agent(tmp_path, "--scrape-interval=200ms", within=within) as agent:
        with ExitStack() as clients:
            for _ in range(60):
                clients.enter_context(connect(agent))
            agent.wait_for_event("connections_full")
            time.sleep(1)
        wait_until(lambda: agent.get("/readyz").status == 200, seconds=10, why="room again")

        assert "Too many open files" not in agent.log_path.read_text()
