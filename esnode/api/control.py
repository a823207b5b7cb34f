"""The routes that change something. They are served on the control socket alone.

Whoever can open that socket, and is who may (see `esnode.control_socket`), may give any of these
orders. Each is done when it is answered, or the answer says that it is not.
"""

import structlog
from quart import Response, request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from cluster.enrolment import NodeKeys
from cluster.errors import PeerFault
from cluster.identity.files import IdentityUnusable
from esnode.api.answers import answer, problem
from esnode.api.cluster import add_cluster_routes
from esnode.api.jobs import add_job_orders, add_job_views
from esnode.api.orchestrator import add_orchestrator_routes
from esnode.api.orders import BadOrder, bytes_of, optional_of, order_of, text_of
from esnode.api.power import add_power_routes
from esnode.cluster_view import ClusterView
from esnode.peering import Peering
from esnode.powering.driver import Powering
from esnode.status.gpu import Document
from esnode.status.times import utc_text
from esnode.workloads.driver import Workloads

log = structlog.get_logger("esnode.control")

BODY_BYTES_MAX = 256 * 1024


def make_control_app(
    peering: Peering,
    view: ClusterView,
    power: Powering | None = None,
    workloads: Workloads | None = None,
) -> QuartTrio:
    """The application behind the control socket."""
    app = QuartTrio("esnode.control")
    app.config["MAX_CONTENT_LENGTH"] = BODY_BYTES_MAX
    add_cluster_routes(app, peering, view)
    if power is not None:
        add_power_routes(app, power)
    if workloads is not None:
        add_job_views(app, workloads)
        add_job_orders(app, workloads)
        add_orchestrator_routes(app, workloads, None)

    @app.post("/v1/control/cluster/join")
    async def join() -> Response:
        order = await order_of(request)
        keys, is_admitted = await peering.join(text_of(order, "token"), optional_of(order, "name"))
        return answer(_joined(peering, keys, is_admitted=is_admitted))

    @app.post("/v1/control/cluster/rejoin")
    async def rejoin() -> Response:
        keys, is_admitted = await peering.rejoin()
        return answer(_joined(peering, keys, is_admitted=is_admitted))

    @app.post("/v1/control/cluster/leave")
    async def leave() -> Response:
        informed = await peering.leave()
        return answer({"schema": "esnode.cluster_leave/1", "informed": informed})

    @app.post("/v1/control/cluster/renew")
    async def renew() -> Response:
        keys, is_admitted = await peering.renew(text_of(await order_of(request), "token"))
        return answer(
            {
                "schema": "esnode.cluster_renew/1",
                "ends_at": utc_text(keys.identity.window.end_unix_seconds),
                "node": {"id": keys.identity.node_id.hex(), "name": keys.identity.name},
                "admitted": is_admitted,
                "detail": "" if is_admitted else _not_yet(peering, "accepted this certificate"),
            }
        )

    @app.post("/v1/control/cluster/records")
    async def records() -> Response:
        order = await order_of(request)
        line = await peering.hear_operator(bytes_of(order, "payload"), bytes_of(order, "signature"))
        return answer({"schema": "esnode.operator_record/1", "accepted": True, "line": line})

    _add_error_handlers(app)
    return app


def _add_error_handlers(app: QuartTrio) -> None:
    @app.errorhandler(BadOrder)
    async def bad_order(error: BadOrder) -> Response:
        return problem(str(error), 400, "bad-order")

    @app.errorhandler(PeerFault)
    async def refused(error: PeerFault) -> Response:
        return problem(str(error), 409, "refused")

    @app.errorhandler(IdentityUnusable)
    async def unusable(error: IdentityUnusable) -> Response:
        return problem(str(error), 500, "identity-unusable")

    @app.errorhandler(HTTPException)
    async def other(error: HTTPException) -> Response:
        return problem(error.name.lower(), error.code or 500)


def _joined(peering: Peering, keys: NodeKeys, *, is_admitted: bool) -> Document:
    identity = keys.identity
    detail = f"node {identity.name} is a member" if is_admitted else _not_yet(peering)
    return {
        "schema": "esnode.cluster_join/1",
        "cluster": {"id": identity.cluster_id.hex(), "name": keys.authority.name},
        "node": {"id": identity.node_id.hex(), "name": identity.name, "rack": identity.rack},
        "admitted": is_admitted,
        "detail": detail,
    }


def _not_yet(peering: Peering, what: str = "let it in") -> str:
    """Why nobody has accepted a certificate so far."""
    host = peering.host
    if peering.trouble:
        return peering.trouble
    why = "" if host is None or host.last_failure is None else f": {host.last_failure}"
    return f"no member has {what} yet{why}; the agent goes on trying"
