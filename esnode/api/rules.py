"""What this node does by itself: everybody may read it; it is paused and resumed at the socket.

Its own file because it is one subject at two doors. It must not know rules.
"""

import pwd

from quart import Response, request
from quart_trio import QuartTrio

from esnode.acting_means import Acting
from esnode.api.answers import answer, problem
from esnode.api.orders import BadOrder, optional_of, order_of
from esnode.control_socket import Caller
from esnode.status.control import describe_control

PATH = "/v1/control/rules"


def add_rules_view(app: QuartTrio, acting: Acting) -> None:
    """Let an application say what this node does by itself."""

    @app.get(PATH)
    async def rules() -> Response:
        return answer(_document(acting))


def add_rules_orders(app: QuartTrio, acting: Acting) -> None:
    """Let an application take orders about it."""

    @app.post(f"{PATH}/pause")
    async def pause() -> Response:
        order = await order_of(request)
        feature = _feature_of(acting, order)
        reason = optional_of(order, "reason") or ""
        return _answer(acting, await acting.pause(feature, reason=reason, by=_caller()))

    @app.post(f"{PATH}/resume")
    async def resume() -> Response:
        feature = _feature_of(acting, await order_of(request))
        return _answer(acting, await acting.resume(feature, by=_caller()))

    @app.post(f"{PATH}/undo")
    async def undo() -> Response:
        lease = optional_of(await order_of(request), "lease")
        if lease is not None and lease not in {one.id for one in acting.leases.all}:
            raise BadOrder(f"lease: none {lease[:40]!r} is held")
        held = await acting.undo(lease, by=_caller())
        trouble = "; ".join(f"could not be put back yet: {one.line}" for one in held)
        return _answer(acting, trouble)


def _document(acting: Acting) -> dict[str, object]:
    return describe_control(acting.rules, acting.leases.all, trouble=acting.trouble, now=acting.now)


def _answer(acting: Acting, trouble: str) -> Response:
    if trouble:
        return problem(trouble, 500, "not-kept")
    return answer(_document(acting))


def _feature_of(acting: Acting, order: dict[str, object]) -> str:
    """Which feature is meant; none means everything."""
    feature = optional_of(order, "feature") or ""
    if feature and feature not in acting.rules.features:
        known = ", ".join(acting.rules.features)
        raise BadOrder(f"feature: none {feature[:40]!r}; there are {known}")
    return feature


def _caller() -> str:
    caller: object = request.scope.get("state", {}).get("caller")
    if not isinstance(caller, Caller):
        return "somebody"
    try:
        return pwd.getpwuid(caller.uid).pw_name
    except KeyError:
        return str(caller.uid)
