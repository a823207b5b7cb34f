"""Small real HTTP servers on loopback, good and bad, for those who scrape."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[BaseHTTPRequestHandler, threading.Event], None]
"""Answers one request; the event is set when the test is over."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Scrapers hang up on bad servers; that is no news."""


@contextmanager
def serve(answer: Answer) -> Iterator[str]:
    """Serve on a free port; gives ``http://127.0.0.1:PORT``."""
    is_over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer(self, is_over)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        is_over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def send(
    handler: BaseHTTPRequestHandler,
    body: bytes,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> None:
    handler.send_response(status)
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def answer_with(
    body: str | bytes, *, status: int = 200, headers: dict[str, str] | None = None
) -> Answer:
    """Always the same answer."""
    raw = body.encode() if isinstance(body, str) else body
    return lambda handler, _: send(handler, raw, status=status, headers=headers)


def never_answer(handler: BaseHTTPRequestHandler, is_over: threading.Event) -> None:
    is_over.wait()


def drip_body(handler: BaseHTTPRequestHandler, is_over: threading.Event) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    while not is_over.wait(0.05):
        handler.wfile.write(b"#")
        handler.wfile.flush()


def drip_headers(handler: BaseHTTPRequestHandler, is_over: threading.Event) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not is_over.wait(0.05):
        handler.wfile.write(b"a")
        handler.wfile.flush()


def flood(total_bytes: int) -> Answer:
    """A body that goes on and on, without saying how long it is."""

    def answer(handler: BaseHTTPRequestHandler, is_over: threading.Event) -> None:
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        block = b"# nothing\n" * 10_000
        for _ in range(total_bytes // len(block)):
            if is_over.is_set():
                return
            handler.wfile.write(block)

    return answer
