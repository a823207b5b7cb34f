"""The HTTP server: hypercorn's protocols over connections that are ours.

Its own file because hypercorn's own `serve` has habits that an agent cannot have: an exception in
one connection (a client that breaks its chunks in mid-answer) ends the server and all that runs
beside it; it writes under a shield, so a client that does not read keeps it from ending; it keeps
connections whose client has left, and accepts more until no file can be opened. It knows no routes.
"""

import resource
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import structlog
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config as Settings
from hypercorn.events import Event, RawData
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState

if TYPE_CHECKING:
    from esnode.api.front import Application

log = structlog.get_logger("esnode.server")

CONNECTIONS_MAX = 512
"""Half of the usual limit of open files, so that collectors can always open theirs."""


def connections_max() -> int:
    """How many connections may be open: fewer where fewer files may be."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_unlimited = soft == resource.RLIM_INFINITY
    return CONNECTIONS_MAX if is_unlimited else max(1, min(CONNECTIONS_MAX, soft // 2))


KEEP_ALIVE_SECONDS = 75.0
"""Longer than the usual scrape interval; also how long a request may take to be sent."""

REQUEST_HEAD_BYTES = 16 * 1024

_FORBIDDEN_BODY = (
    b'{"error": "only root, the user of the agent and the group esnode may ask here", '
    b'"code": "not-allowed"}\n'
)
_FORBIDDEN = (
    b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_FORBIDDEN_BODY), _FORBIDDEN_BODY)
)

Connection = trio.SocketStream | trio.SSLStream[trio.SocketStream]


class TlsUnusable(Exception):
    """The certificate or its key cannot be used; one line."""


class _Protocol(TCPServer):
    """hypercorn's side of one connection."""

    async def protocol_send(self, event: Event) -> None:
        # Quart cancels its request's tasks when it hears that the answer is out. They are what
        # closes the connection then, or starts the time after which it counts as idle.
        with trio.CancelScope(shield=not isinstance(event, RawData)):
            await super().protocol_send(event)

    async def _read_data(self) -> None:
        await super()._read_data()
        # The client has left. hypercorn would keep one that never asked for the keep-alive time.
        await self.idle_task.stop()


class Server:
    """One application on some listening sockets."""

    def __init__(
        self,
        application: "Application",
        *,
        certificate_path: str | None = None,
        key_path: str | None = None,
        keep_alive_seconds: float = KEEP_ALIVE_SECONDS,
        is_allowed: Callable[[socket.socket], bool] | None = None,
        caller_of: Callable[[socket.socket], object] | None = None,
    ) -> None:
        """Prepare to serve, over TLS when there is a certificate, and only to whom `is_allowed`.

        What `caller_of` says of a connection stands in the state of its requests as `caller`.

        Raises:
            TlsUnusable: the certificate or its key cannot be used.
        """
        self._is_allowed = is_allowed
        self._caller_of = caller_of
        self._application = ASGIWrapper(application)  # type: ignore[arg-type]  # plain dicts
        self._settings = _settings(certificate_path, key_path)
        self._settings.keep_alive_timeout = keep_alive_seconds
        try:
            self._tls = self._settings.create_ssl_context()
        except OSError as error:  # ssl.SSLError is one
            raise TlsUnusable(error.strerror or str(error)) from None
        self._context = WorkerContext(None)
        self._connections_max = connections_max()
        self._open: dict[Connection, None] = {}
        self._accepting = trio.CancelScope()
        self._all_gone = trio.Event()
        self._is_full = False

    async def run(
        self,
        sockets: Sequence[socket.socket],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until cancelled, or until `close` has ended every connection."""
        listeners = [self._listen(one) for one in sockets]
        async with trio.open_nursery() as connections:
            with self._accepting:
                task_status.started()
                await trio.serve_listeners(self._serve_one, listeners, handler_nursery=connections)

    async def close(self, *, grace_seconds: float) -> None:
        """Accept no more, let answers in flight end for so long, then cut what is still open."""
        self._accepting.cancel()
        await self._context.terminated.set()
        if self._open:
            self._all_gone = trio.Event()
            with trio.move_on_after(grace_seconds):
                await self._all_gone.wait()
        for connection in list(self._open):
            await _cut(connection)

    def _listen(self, one: socket.socket) -> trio.abc.Listener[Connection]:
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(one))
        if self._tls is None:
            return listener
        return trio.SSLListener(listener, self._tls, https_compatible=True)

    async def _serve_one(self, connection: Connection) -> None:
        """Serve one connection; whatever goes wrong in it ends it alone."""
        if len(self._open) >= self._connections_max:
            if not self._is_full:
                log.warning("connections_full", connections=len(self._open))
            self._is_full = True
            await _cut(connection)
            return
        self._is_full = False
        if not self._may_ask(connection):
            await _forbid(connection)
            return
        self._open[connection] = None
        serve = partial(_Protocol, self._application, self._settings, self._context)
        state = ConnectionState(self._state_of(connection))
        try:
            await serve(state, connection)  # type: ignore[arg-type]  # with or without TLS
        except* Exception as errors:  # per request: one of three places where this is legal
            log.debug("connection_failed", errors=[repr(error) for error in errors.exceptions])
        finally:
            del self._open[connection]
            if not self._open:
                self._all_gone.set()
            await _cut(connection)

    def _state_of(self, connection: Connection) -> dict[str, object]:
        if self._caller_of is None or not isinstance(connection, trio.SocketStream):
            return {}
        return {"caller": self._caller_of(connection.socket)}  # type: ignore[arg-type]  # wrapped

    def _may_ask(self, connection: Connection) -> bool:
        if self._is_allowed is None or not isinstance(connection, trio.SocketStream):
            return True
        return self._is_allowed(connection.socket)  # type: ignore[arg-type]  # trio's wraps it


async def _forbid(connection: Connection) -> None:
    """Tell whoever may not ask that it is so, if it listens."""
    with trio.move_on_after(1.0):
        try:
            await connection.receive_some(REQUEST_HEAD_BYTES)
            await connection.send_all(_FORBIDDEN)
        except trio.BrokenResourceError:
            log.debug("forbidden_client_left")
    await _cut(connection)


def _settings(certificate_path: str | None, key_path: str | None) -> Settings:
    settings = Settings()
    settings.accesslog = None
    settings.errorlog = None
    settings.include_server_header = False
    settings.h11_max_incomplete_size = REQUEST_HEAD_BYTES
    settings.certfile = certificate_path
    settings.keyfile = key_path
    return settings


async def _cut(connection: Connection) -> None:
    """Close at once. Whoever waits on it, even under a shield, is woken with an error."""
    with trio.CancelScope(shield=True) as scope:
        scope.cancel()
        await connection.aclose()
