"""An agent's HTTP doors without an agent: documents as the interface describes them, over TCP and
over a unix socket. Records that operators post are judged and kept as by a real one.
"""

import base64
import json
import os
import socketserver
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cluster.enrolment import AuthorityKeys
from cluster.identity.chains import TrustedAuthority
from cluster.identity.operator_log import OperatorLog, read_log
from cluster.identity.operator_records import SignedRecord, read_signed_record
from cluster.keyring import Ed25519Verifier, read_certificate

Answer = tuple[int, dict[str, Any]]
NO_CLUSTER: Answer = (
    409,
    {"error": "this agent is in no cluster; `esnode cluster join`", "code": "no-cluster"},
)


@dataclass(kw_only=True)
class PretendedAgent:
    """What it answers, and what it was asked to do."""

    answers: dict[str, Answer | Callable[[], Answer]] = field(default_factory=dict)
    """By path, with the query. A path that is not here is 404, as from an older agent."""
    orders: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    records: list[SignedRecord] = field(default_factory=list)
    authority: TrustedAuthority | None = None
    """Whose records it keeps."""
    streams: list[list[str]] = field(default_factory=list)
    """One list of lines for each time that somebody follows the events; then it hangs up."""
    followed_from: list[str | None] = field(default_factory=list)
    """The Last-Event-ID of each who followed."""
    socket_path: Path = Path()
    url: str = ""

    def log(self) -> OperatorLog:
        """What members would make of the records."""
        assert self.authority is not None
        return read_log(
            self.records,
            self.authority,
            verifier=Ed25519Verifier(),
            read_certificate=read_certificate,
        )

    def answer(self, path: str) -> Answer:
        if path == "/v1/cluster/operator-log" and self.authority is not None:
            return 200, self._log_document()
        given = self.answers.get(path, (404, {"error": "no such route; GET / lists them"}))
        return given() if callable(given) else given

    def take(self, path: str, order: dict[str, Any]) -> Answer:
        self.orders.append((path, order))
        if path == "/v1/control/cluster/records" and self.authority is not None:
            return self._keep(order)
        return self.answer(path)

    def _keep(self, order: dict[str, Any]) -> Answer:
        signed = read_signed_record(
            base64.b64decode(order["payload"]), base64.b64decode(order["signature"])
        )
        self.records.append(signed)
        refused = {one.hash: line for one, line in self.log().refused}
        if signed.hash in refused:
            self.records.remove(signed)
            return 400, {"error": refused[signed.hash].line, "code": "refused"}
        line = f"record {signed.record.sequence}: {type(signed.record.statement).__name__}"
        return 200, {"schema": "esnode.operator_record/1", "accepted": True, "line": line}

    def _log_document(self) -> dict[str, Any]:
        log = self.log()
        return {
            "schema": "esnode.operator_log/1",
            "records": [
                {
                    "payload": base64.b64encode(one.payload).decode(),
                    "signature": base64.b64encode(one.signature).decode(),
                    "line": f"record {one.record.sequence}",
                }
                for one in self.records
            ],
            "forks": [fork.line for fork in log.forks],
            "waiting": len(log.waiting),
        }


class _Tcp(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no news."""


class _Unix(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no news."""


def _handler(agent: PretendedAgent) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path.startswith("/v1/cluster/events?follow=1"):
                self._stream()
            else:
                self._send(*agent.answer(self.path))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._send(*agent.take(self.path, json.loads(body)))

        def _send(self, status: int, document: dict[str, Any]) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _stream(self) -> None:
            agent.followed_from.append(self.headers.get("Last-Event-ID"))
            if not agent.streams:
                self._send(*NO_CLUSTER)
                return
            lines = agent.streams.pop(0)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write("".join(f"{line}\n" for line in lines).encode())
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@contextmanager
def pretended_agent(state_dir: Path, **known: Any) -> Iterator[PretendedAgent]:
    """Serve on a free port of loopback, and on the control socket of this state folder."""
    agent = PretendedAgent(**known)
    handler = _handler(agent)
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    agent.socket_path = state_dir / "agent.sock"
    with ExitStack() as stack:
        tcp = _Tcp(("127.0.0.1", 0), handler)
        # Paths of sockets are short, those of test folders are not.
        short = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "s"
        unix = _Unix(str(short), handler)
        agent.socket_path.symlink_to(short)
        agent.url = f"http://127.0.0.1:{tcp.server_address[1]}"
        for server in (tcp, unix):
            thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
        try:
            yield agent
        finally:
            os.unlink(agent.socket_path)


def of_cluster(keys: AuthorityKeys, document: dict[str, Any]) -> dict[str, Any]:
    """The document as an agent of this cluster would serve it."""
    cluster = document["cluster"] | {
        "id": str(keys.authority.cluster_id),
        "name": keys.authority.name,
    }
    return document | {"cluster": cluster}


def joined_answer(name: str = "gpu-01") -> Answer:
    """That it has become this node."""
    return 200, {
        "schema": "esnode.cluster_join/1",
        "cluster": {"id": "7" * 32, "name": "lab"},
        "node": {"id": "9" * 32, "name": name, "rack": "r01"},
        "admitted": True,
        "detail": "",
    }
