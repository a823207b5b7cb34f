"""The routes that show the cluster: everybody may read them, at either door."""

import base64
import json
from collections.abc import AsyncIterator, Sequence

import trio
from quart import Response, request
from quart_trio import QuartTrio

from esnode.api.answers import answer, problem
from esnode.cluster_events import ClusterEvents
from esnode.cluster_view import ClusterView
from esnode.operator_text import record_line
from esnode.peering import NotInCluster, Peering
from esnode.status.gpu import Document

EVENTS_SCHEMA = "esnode.cluster_events/1"
LOG_SCHEMA = "esnode.operator_log/1"
KEEP_ALIVE_SECONDS = 15.0
"""Proxies close a silent stream after 30 to 60 s."""


def add_cluster_routes(app: QuartTrio, peering: Peering, view: ClusterView) -> None:
    """Let an application answer for the whole cluster."""

    @app.get("/v1/cluster")
    async def cluster() -> Response:
        is_all = request.args.get("view") == "all"
        return answer(await view.document(is_everybody_asked=is_all))

    @app.get("/v1/racks/<rack>")
    async def one_rack(rack: str) -> Response:
        document = await view.rack_document(rack)
        if document is None:
            return problem(f"no rack {rack[:40]!r} is known here", 404, "no-rack")
        return answer(document)

    @app.get("/v1/racks/<rack>/power")
    async def rack_power(rack: str) -> Response:
        document = await view.power_document(rack)
        if document is None:
            return problem(f"no rack {rack[:40]!r} is known here", 404, "no-rack")
        return answer(document)

    @app.get("/v1/cluster/events")
    async def cluster_events() -> Response:
        after = _number(request.args.get("after") or request.headers.get("Last-Event-ID"))
        is_stream = "text/event-stream" in request.headers.get("Accept", "")
        if not is_stream and request.args.get("follow") != "1":
            return answer({"schema": EVENTS_SCHEMA, "events": list(peering.events.after(after))})
        response = Response(
            follow(peering.events, after),
            content_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
        response.timeout = None
        return response

    @app.get("/v1/cluster/operator-log")
    async def operator_log() -> Response:
        return answer(describe_log(peering))

    @app.errorhandler(NotInCluster)
    async def no_cluster(error: NotInCluster) -> Response:
        return problem(str(error), 409, error.code)


def describe_log(peering: Peering) -> Document:
    """What operators have said, as this node has it.

    Raises:
        NotInCluster: there is no cluster.
    """
    log = peering.running().peer.roster.log
    return {
        "schema": LOG_SCHEMA,
        "records": [
            {
                "payload": base64.b64encode(signed.payload).decode(),
                "signature": base64.b64encode(signed.signature).decode(),
                "line": record_line(signed),
            }
            for signed in (*log.records, *log.waiting)
        ],
        "forks": [fork.line for fork in log.forks],
        "waiting": len(log.waiting),
    }


async def follow(events: ClusterEvents, after: int) -> AsyncIterator[bytes]:
    """Server-sent events: those kept after a number, then each new one as it comes."""
    yield b"retry: 2000\n\n"
    while True:
        new: Sequence[Document] = ()
        with trio.move_on_after(KEEP_ALIVE_SECONDS) as waiting:
            new = await events.newer(after)
        if new:
            for event in new:
                after = int(str(event["id"]))
                yield f"id: {after}\ndata: {json.dumps(event)}\n\n".encode()
        elif waiting.cancelled_caught:
            yield b": keep-alive\n\n"
        else:
            return


def _number(text: str | None) -> int:
    if text is not None and text.isascii() and text.isdigit() and len(text) < 18:
        return int(text)
    return 0
