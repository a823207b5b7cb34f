"""How long connections live."""

import socket
from pathlib import Path

import pytest
import trio

from esnode.api.front import with_metrics
from esnode.api.read import make_app
from esnode.api.server import Server
from esnode.board import Board
from tests.boards import lonely


@pytest.mark.parametrize("path", ["/healthz", "/nowhere"])
async def test_a_connection_that_was_answered_and_is_idle_is_closed(path: str) -> None:
    board = Board(run_id="test")
    app = make_app(board, *lonely(Path("/nowhere")))
    server = Server(with_metrics(board, app), keep_alive_seconds=0.2)
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    host, port = listening.getsockname()
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run, [listening])
        client = await trio.open_tcp_stream(host, port)
        await client.send_all(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        with trio.fail_after(3):
            got = b"".join([block async for block in client])
        assert got.startswith(b"HTTP/1.1 ")
        await client.aclose()
        nursery.cancel_scope.cancel()
