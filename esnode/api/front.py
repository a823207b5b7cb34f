"""The outermost ASGI application: `/metrics` answered at once, everything else given to Quart.

A bare answer costs half of one that goes through Quart, and scrapes are what this server does most.
A scrape never triggers collection: it gets the body of the latest tick.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from esnode.api.negotiate import BadQuery, parse_selection, wants_gzip, wants_openmetrics
from esnode.board import Board
from esnode.metrics import OPENMETRICS, TEXT

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


def with_metrics(board: Board, rest: Application) -> Application:
    """`rest`, with `/metrics` in front of it."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if "path" in scope:
            scope = {**scope, "path": _path(scope["path"])}
        if scope["type"] == "http" and scope["path"] == "/metrics":
            await answer_metrics(board, scope, send)
        else:
            await rest(scope, receive, send)

    return application


async def answer_metrics(board: Board, scope: Scope, send: Send) -> None:
    """One scrape."""
    if scope["method"] not in ("GET", "HEAD"):
        await _answer(send, 405, b"only GET and HEAD\n", [(b"allow", b"GET, HEAD")])
        return
    try:
        selection = parse_selection(scope["query_string"])
    except BadQuery as bad:
        await _answer(send, 400, f"{bad}\n".encode())
        return
    posted = await board.first()
    if posted is None:
        await _answer(send, 503, b"the agent is stopping\n")
        return
    is_openmetrics = wants_openmetrics(_header(scope, b"accept"))
    is_gzip = wants_gzip(_header(scope, b"accept-encoding"))
    body = posted.exposition.body(
        is_openmetrics=is_openmetrics, is_gzip=is_gzip, selection=selection
    )
    headers = [
        (b"content-type", (OPENMETRICS if is_openmetrics else TEXT).encode()),
        (b"content-length", str(len(body)).encode()),
        (b"vary", b"accept, accept-encoding"),
    ]
    if is_gzip:
        headers.append((b"content-encoding", b"gzip"))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    sent = b"" if scope["method"] == "HEAD" else body
    await send({"type": "http.response.body", "body": sent})


def _path(target: str) -> str:
    """The path of a request's target, which may name our host as well (RFC 9112, 3.2.2)."""
    if target.startswith("/"):
        return target
    _, scheme_end, rest = target.partition("://")
    return "/" + rest.partition("/")[2] if scheme_end else f"/{target}"


def _header(scope: Scope, wanted: bytes) -> str:
    """One header; when it comes several times, as if it had come in one line (RFC 9110, 5.3)."""
    return ",".join(value.decode("latin-1") for name, value in scope["headers"] if name == wanted)


async def _answer(
    send: Send, status: int, body: bytes, extra: list[tuple[bytes, bytes]] | None = None
) -> None:
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        *(extra or ()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
