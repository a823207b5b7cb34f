"""A transport for httpx whose every wait on the socket ends at one deadline.

Its own file because it is imported only when something is asked: it needs httpx and httpcore at
its top. It knows no URL and no metric.
"""

import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore
import httpx

Remaining = Callable[[], float]
"""Seconds until the deadline."""


class DeadlineTransport(httpx.BaseTransport):
    """httpx's own transport in small, over a network that knows the deadline."""

    def __init__(
        self,
        remaining_seconds: Remaining,
        tls: ssl.SSLContext | None,
        socket_path: str | None = None,
    ) -> None:
        """With a path, every request goes to that unix socket, whatever host its URL names."""
        self._pool = httpcore.ConnectionPool(
            ssl_context=tls,
            max_connections=1,
            max_keepalive_connections=1,
            uds=socket_path,
            network_backend=_DeadlineNetwork(remaining_seconds),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; the body is read as it comes."""
        with _mapped_errors():
            answer = self._pool.handle_request(
                httpcore.Request(
                    method=request.method,
                    url=httpcore.URL(
                        scheme=request.url.raw_scheme,
                        host=request.url.raw_host,
                        port=request.url.port,
                        target=request.url.raw_path,
                    ),
                    headers=request.headers.raw,
                    content=request.stream,
                )
            )
        return httpx.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_Body(answer),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        """Close the kept connection."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        with _mapped_errors():
            yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


class _DeadlineNetwork(httpcore.NetworkBackend):
    def __init__(self, remaining_seconds: Remaining) -> None:
        self._remaining_seconds = remaining_seconds
        self._network = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        stream = self._network.connect_tcp(
            host,
            port,
            timeout=_wait(self._remaining_seconds),
            local_address=local_address,
            socket_options=socket_options,
        )
        return _DeadlineStream(stream, self._remaining_seconds)

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        stream = self._network.connect_unix_socket(
            path, timeout=_wait(self._remaining_seconds), socket_options=socket_options
        )
        return _DeadlineStream(stream, self._remaining_seconds)


class _DeadlineStream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, remaining_seconds: Remaining) -> None:
        self._stream = stream
        self._remaining_seconds = remaining_seconds

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, timeout=_wait(self._remaining_seconds))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, timeout=_wait(self._remaining_seconds))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        stream = self._stream.start_tls(
            ssl_context, server_hostname, timeout=_wait(self._remaining_seconds)
        )
        return _DeadlineStream(stream, self._remaining_seconds)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _wait(remaining_seconds: Remaining) -> float:
    """Give what is left of the deadline.

    Raises:
        httpcore.ReadTimeout: nothing is. (A socket timeout of 0 would mean "do not block".)
    """
    seconds = remaining_seconds()
    if seconds <= 0:
        raise httpcore.ReadTimeout("the deadline has passed")
    return seconds


@contextmanager
def _mapped_errors() -> Iterator[None]:
    """Turn httpcore's failures into httpx's, as httpx's own transport does."""
    try:
        yield
    except httpcore.TimeoutException as error:
        raise httpx.ReadTimeout(str(error)) from error
    except httpcore.NetworkError as error:
        raise httpx.NetworkError(str(error)) from error
    except (httpcore.ProtocolError, httpcore.UnsupportedProtocol) as error:
        raise httpx.ProtocolError(str(error)) from error
