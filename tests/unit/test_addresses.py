"""One place, one text."""

import socket

import pytest

from cluster.addresses import (
    SocketAddress,
    join_address,
    read_socket_address,
    split_address,
    to_socket_address,
)
from cluster.errors import Malformed
from cluster.gossip.messages import Address


@pytest.mark.parametrize(
    ("where", "text"),
    [
        pytest.param(("10.0.0.1", 7947), "10.0.0.1:7947", id="ipv4"),
        pytest.param(("fd00::1", 7947, 0, 0), "[fd00::1]:7947", id="ipv6"),
        pytest.param(("::ffff:10.0.0.1", 7947, 0, 0), "10.0.0.1:7947", id="ipv4-over-ipv6"),
        pytest.param(("fe80::1", 7947, 0, 3), "[fe80::1%3]:7947", id="link-local"),
        pytest.param(("fe80::1%3", 7947, 0, 3), "[fe80::1%3]:7947", id="link-local-with-link"),
        pytest.param(("::", 0, 0, 0), "[::]:0", id="wildcard"),
    ],
)
def test_what_a_socket_gives_is_written_in_one_way(where: SocketAddress, text: str) -> None:
    assert read_socket_address(where) == text


@pytest.mark.parametrize(
    ("text", "four", "six"),
    [
        pytest.param("10.0.0.1:7", ("10.0.0.1", 7), ("::ffff:10.0.0.1", 7, 0, 0), id="ipv4"),
        pytest.param("[fd00:0::1]:7", None, ("fd00::1", 7, 0, 0), id="ipv6"),
        pytest.param("[fe80::1%3]:7", None, ("fe80::1", 7, 0, 3), id="link-local"),
        pytest.param("[fe80::1%eth0]:7", None, None, id="link-by-name"),
        pytest.param("gpu-17:7", None, None, id="name"),
        pytest.param("10.0.0.1", None, None, id="no-port"),
        pytest.param("10.0.0.1:0", None, None, id="port-zero"),
        pytest.param("10.0.0.1:65536", None, None, id="no-such-port"),
        pytest.param("fd00::1:7", None, None, id="no-brackets"),
        pytest.param("", None, None, id="empty"),
        pytest.param("[]:7", None, None, id="empty-brackets"),
    ],
)
def test_where_a_socket_of_each_family_sends(
    text: str, four: SocketAddress | None, six: SocketAddress | None
) -> None:
    found = [to_socket_address(Address(text), one) for one in (socket.AF_INET, socket.AF_INET6)]

    assert found == [four, six]


def test_what_is_split_can_be_joined_again() -> None:
    for text in ("10.0.0.1:7947", "[fd00::1]:7947", "gpu-17:1", "[fe80::1%3]:7947"):
        assert join_address(*split_address(text)) == text


def test_a_long_text_is_shown_short() -> None:
    with pytest.raises(Malformed) as caught:
        split_address("x" * 1000)

    assert str(caught.value).startswith(f"'{'x' * 57}...' is not HOST:PORT, e.g. ")
