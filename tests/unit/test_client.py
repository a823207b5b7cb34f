"""The client of an agent's HTTP interface: one deadline for everything."""

import socket
import threading
from collections.abc import Iterator

import pytest

from esnode import client
from esnode.client import AgentUnreachable, fetch
from esnode.clock import monotonic_seconds


@pytest.fixture
def dripping_server() -> Iterator[str]:
    """Answers a byte at a time, for ever, so that no single wait is ever long."""
    listener = socket.create_server(("127.0.0.1", 0))
    is_over = threading.Event()

    def drip() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while not is_over.wait(0.02):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

    thread = threading.Thread(target=drip)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    is_over.set()
    thread.join(5)
    listener.close()


def test_a_server_that_drips_does_not_hold_the_command(
    dripping_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "TIMEOUT_SECONDS", 0.3)
    started = monotonic_seconds()

    with pytest.raises(AgentUnreachable, match=r"did not answer within 0\.3 s"):
        fetch(dripping_server, "/status")

    assert monotonic_seconds() - started < 5
