"""The routes that only read: status, events, health. Everything comes from the board."""

from collections.abc import AsyncIterator

import trio
from quart import Response, request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from esnode import __version__
from esnode.api.answers import answer, problem
from esnode.api.cluster import add_cluster_routes
from esnode.api.door import Door
from esnode.api.jobs import add_job_views
from esnode.api.orchestrator import add_orchestrator_routes, guard
from esnode.api.power import add_power_routes
from esnode.board import Board, Posted
from esnode.cluster_view import ClusterView
from esnode.peering import Peering
from esnode.powering.driver import Powering
from esnode.status import is_healthy
from esnode.workloads.driver import Workloads

KEEP_ALIVE_SECONDS = 15.0
"""Proxies close a silent stream after 30 to 60 s."""

TICK_LATE_SECONDS = 5.0
"""The control tick is 1 s: from here on the agent itself is in trouble."""

INDEX = f"""esnode {__version__}

/metrics      Prometheus text, OpenMetrics by Accept header
              ?collect[]=gpu&collect[]=power   only these collectors
              ?profile=basic|gpu-only|power-only
/status       the node as JSON (also /v1/status)
/events       the same as a stream of server-sent events
/healthz      whether the agent works
/readyz       whether its data is fresh
/v1/cluster   every rack and node as this one knows them (?view=all asks everybody)
/v1/racks/ID  one rack (/v1/racks/ID/power: its budget and its slots)
/v1/power     this node's cap, and the power of its rack
/v1/jobs      the jobs of this node
/v1/cluster/events  what happened (?follow=1 as a stream)
"""


def make_app(
    board: Board,
    peering: Peering,
    view: ClusterView,
    power: Powering | None = None,
    workloads: Workloads | None = None,
    door: Door | None = None,
) -> QuartTrio:
    """The Quart application."""
    app = QuartTrio("esnode")
    app.config["MAX_CONTENT_LENGTH"] = 1 << 20
    add_cluster_routes(app, peering, view)
    if power is not None:
        add_power_routes(app, power)
    if workloads is not None:
        add_job_views(app, workloads)
        if door is not None:
            guard(app, door)
            add_orchestrator_routes(app, workloads, door)

    @app.get("/")
    async def index() -> Response:
        return Response(INDEX, content_type="text/plain; charset=utf-8")

    @app.get("/status")
    @app.get("/v1/status")
    async def status() -> Response:
        posted = await board.first()
        if posted is None:
            return problem("the agent is stopping", 503)
        return Response(posted.status, content_type="application/json")

    @app.get("/events")
    async def events() -> Response:
        last_event_id = request.headers.get("Last-Event-ID")
        response = Response(
            stream(board, last_event_id),
            content_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
        response.timeout = None
        return response

    @app.get("/healthz")
    async def healthz() -> Response:
        age_seconds = _tick_age(board)
        if age_seconds is None or age_seconds > TICK_LATE_SECONDS:
            return answer({"status": "late", "tick_age_seconds": age_seconds}, 503)
        return answer({"status": "ok", "tick_age_seconds": age_seconds}, 200)

    @app.get("/readyz")
    async def readyz() -> Response:
        late = stale_sources(board.latest) if board.latest else ["agent"]
        if late:
            return answer({"status": "stale", "stale": late}, 503)
        assert board.latest is not None
        return answer({"status": "ok", "healthy": is_healthy(board.latest.snapshot)}, 200)

    _explain_problems(app)
    return app


def _explain_problems(app: QuartTrio) -> None:
    @app.errorhandler(HTTPException)
    async def http_problem(error: HTTPException) -> Response:
        hint = {404: "no such route; GET / lists them"}.get(error.code or 0, error.name.lower())
        response = problem(hint, error.code or 500)
        if allowed := getattr(error, "valid_methods", None):
            response.headers["Allow"] = ", ".join(sorted(allowed))
        return response


def stale_sources(posted: Posted) -> list[str]:
    """Collectors of this machine whose data is older than may be shown, or that never answered.

    One hung mount or GPU does not count: the rest of its collector is fresh.
    """
    snapshot = posted.snapshot
    stale = []
    for status in snapshot.sources:
        if status.target or status.state == "unavailable":
            continue
        last = status.last_success_at_seconds
        limit = 3 * status.interval_seconds + TICK_LATE_SECONDS
        if last is None or snapshot.taken_at_seconds - last > limit:
            stale.append(status.name)
    return stale


def _tick_age(board: Board) -> float | None:
    if board.posted_at_seconds is None:
        return None
    return round(trio.current_time() - board.posted_at_seconds, 3)


async def stream(board: Board, last_event_id: str | None) -> AsyncIterator[bytes]:
    """Server-sent events: what was missed since `Last-Event-ID`, then each new one as it comes."""
    board.event_clients += 1
    try:
        yield b"retry: 2000\n\n"
        number = -1
        if last_event_id:
            known = board.number_of(last_event_id)
            number = -1 if known is None else known
            for posted in board.after(number):
                number = posted.number
                yield _event(board, posted)
        while True:
            newer: Posted | None = None
            with trio.move_on_after(KEEP_ALIVE_SECONDS) as waiting:
                newer = await board.newer(number)
            if newer is not None:
                number = newer.number
                yield _event(board, newer)
            elif waiting.cancelled_caught:
                yield b": keep-alive\n\n"
            else:
                return
    finally:
        board.event_clients -= 1


def _event(board: Board, posted: Posted) -> bytes:
    identity = board.event_id(posted).encode()
    return b"id: " + identity + b"\ndata: " + posted.status + b"\n\n"
