"""The listening sockets, and the line that helps when they cannot be had."""

import errno
import os
import socket
from pathlib import Path

import pytest

from esnode.config.values import Address
from esnode.listener import ListenError, explain, open_sockets, port_holder


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_an_address_is_opened_for_all_that_its_host_stands_for(host: str) -> None:
    sockets = open_sockets(Address(host, 0))
    try:
        assert sockets
        for one in sockets:
            with socket.create_connection(one.getsockname()[:2], timeout=5):
                pass
    finally:
        for one in sockets:
            one.close()


def test_a_port_that_is_taken_names_its_holder_and_the_next_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(ListenError) as caught:
            open_sockets(Address("127.0.0.1", port))

        holder = port_holder(port)
    assert holder is not None
    assert f"(pid {os.getpid()})" in holder
    assert str(caught.value) == (
        f"listen_address: port {port} is held by {holder}; stop it, or move this agent with "
        f"--listen-address 127.0.0.1:{port + 1 if port < 65535 else 9101}"
    )


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        pytest.param(
            "192.0.2.1",
            "listen_address: 192.0.2.1 is not an address of this machine; use 0.0.0.0",
            id="of-another-machine",
        ),
        pytest.param(
            "x" * 70, f"listen_address: {'x' * 70}: is not a host name", id="longer-than-any-name"
        ),
        pytest.param("a..b", "listen_address: a..b: is not a host name", id="empty-label"),
    ],
)
def test_a_host_that_cannot_be_had_is_one_line(host: str, expected: str) -> None:
    with pytest.raises(ListenError) as caught:
        open_sockets(Address(host, 0))

    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        pytest.param(
            errno.EACCES,
            "listen_address: no permission for port 80; use a port of 1024 or above, "
            "or grant CAP_NET_BIND_SERVICE",
            id="privileged",
        ),
        pytest.param(
            errno.ENOBUFS,
            "listen_address: 0.0.0.0:80: No buffer space available",
            id="anything-else",
        ),
    ],
)
def test_other_refusals_say_what_would_help(number: int, expected: str) -> None:
    assert explain(OSError(number, ""), Address("0.0.0.0", 80)) == expected


def test_a_port_that_nobody_holds_has_no_holder(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]

    assert port_holder(port) is None
