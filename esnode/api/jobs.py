"""The routes of jobs. Everybody may see that there are jobs; orders and output are for the socket.

A job runs as whoever submitted it, by the kernel's word about the caller. Each order is on disk
when it is answered, and the same order twice is one.
"""

import hashlib
import os
import pwd
import random

import trio
from quart import Response, request
from quart_trio import QuartTrio

from esnode.api.answers import answer, problem
from esnode.api.orders import BadOrder, order_of, text_of
from esnode.control_socket import Caller
from esnode.workloads.book import Owner
from esnode.workloads.document import describe_job, describe_jobs
from esnode.workloads.driver import Workloads
from esnode.workloads.ids import BadJobId, JobId, make_job_id, parse_job_id
from esnode.workloads.means import JobRefused
from esnode.workloads.output import PIECE_BYTES_MAX, read_output
from esnode.workloads.records import Purpose
from esnode.workloads.spec import JobSpec
from esnode.workloads.spec_reading import SpecRefused, read_spec, spec_of

LOGS_SCHEMA = "esnode.job_logs/1"
IDEMPOTENCY_KEY = "Idempotency-Key"


def add_job_views(app: QuartTrio, workloads: Workloads) -> None:
    """Let an application tell which jobs there are."""

    @app.get("/v1/jobs")
    async def jobs() -> Response:
        return answer(describe_jobs(workloads.views(), trouble=workloads.trouble))

    @app.get("/v1/jobs/<job>/ready")
    async def ready(job: str) -> Response:
        view = workloads.view(_id_of(job))
        is_ready = view.seen is not None and view.seen.is_running and not view.stage
        word = "ready" if is_ready else "draining" if view.stage else "not ready"
        return answer({"schema": "esnode.job_ready/1", "state": word}, 200 if is_ready else 503)

    _add_error_handlers(app)


def add_job_orders(app: QuartTrio, workloads: Workloads) -> None:
    """Let an application take orders about jobs."""

    @app.post("/v1/jobs")
    async def submit() -> Response:
        order = await order_of(request)
        spec = _spec_of(order.get("spec"))
        key = request.headers.get(IDEMPOTENCY_KEY)
        job_id: JobId | None = None
        if order.get("job") is not None:
            job_id = _id_of(text_of(order, "job"))
        elif key is not None:
            job_id = job_id_of_key(f"key {_caller().uid} {key}")
        job = await workloads.submit(spec, owner_of(_caller()), job_id)
        return answer(describe_job(workloads.view(job.id)))

    @app.get("/v1/jobs/<job>")
    async def show(job: str) -> Response:
        return answer(describe_job(workloads.view(_id_of(job))))

    @app.post("/v1/jobs/<job>/stop")
    async def stop(job: str) -> Response:
        order = await order_of(request)
        try:
            purpose = Purpose(text_of(order, "purpose"))
        except ValueError:
            raise BadOrder(f"purpose: one of {', '.join(Purpose)}") from None
        found = workloads.find(_id_of(job))
        by = _may_order(found.owner)
        reason = text_of(order, "reason") if order.get("reason") else "asked to stop"
        await workloads.stop(found.id, purpose, by=by, reason=reason)
        return answer(describe_job(workloads.view(found.id)))

    @app.get("/v1/jobs/<job>/logs")
    async def logs(job: str) -> Response:
        found = workloads.find(_id_of(job))
        _may_order(found.owner)
        cursor = request.args.get("cursor", "")
        tail = request.args.get("tail", str(PIECE_BYTES_MAX))
        if not tail.isdecimal():
            raise BadOrder("tail: a number of bytes")
        folder = workloads.folder_of(found.id)
        try:
            output = await trio.to_thread.run_sync(
                lambda: read_output(folder, cursor, tail_bytes=min(int(tail), PIECE_BYTES_MAX))
            )
        except OSError as error:
            return problem(f"its output cannot be read: {error.strerror}", 500, "unreadable")
        return answer(
            {
                "schema": LOGS_SCHEMA,
                "job": found.id,
                "text": output.text,
                "cursor": output.cursor,
                "is_more": output.is_more,
                "has_gap": output.has_gap,
                "is_live": found.is_held,
            }
        )


def _add_error_handlers(app: QuartTrio) -> None:
    @app.errorhandler(JobRefused)
    async def refused(error: JobRefused) -> Response:
        if error.is_unknown:
            return problem(str(error), 404, "no-such-job")
        return problem(str(error), 409, "refused")

    @app.errorhandler(BadJobId)
    async def bad_id(error: BadJobId) -> Response:
        return problem(str(error), 400, "bad-order")

    @app.errorhandler(SpecRefused)
    async def bad_spec(error: SpecRefused) -> Response:
        document: dict[str, object] = {
            "error": str(error),
            "code": "bad-spec",
            "lines": list(error.lines),
        }
        return answer(document, 400)

    @app.errorhandler(NotAllowed)
    async def forbidden(error: NotAllowed) -> Response:
        return problem(str(error), 403, "not-allowed")


class NotAllowed(Exception):
    """The caller may not do this; one line."""


def _spec_of(value: object) -> JobSpec:
    return read_spec(value) if isinstance(value, str) else spec_of(value)


def _id_of(text: str) -> JobId:
    try:
        return parse_job_id(text)
    except BadJobId as bad:
        raise BadJobId(f"job: {text[:40]!r} {bad}") from None


def _caller() -> Caller:
    caller: object = request.scope.get("state", {}).get("caller")
    if not isinstance(caller, Caller):
        raise NotAllowed("orders about jobs are taken on the control socket alone")
    return caller


def job_id_of_key(key: str) -> JobId:
    """The same id for the same key: who repeats an order means the same job."""
    digest = hashlib.sha256(key.encode()).digest()
    return make_job_id(0.0, random.Random(int.from_bytes(digest)))


def owner_of(caller: Caller) -> Owner:
    """As whom a caller's job runs.

    Raises:
        NotAllowed: this agent cannot run jobs as the caller.
    """
    own_uid = os.geteuid()
    if own_uid not in (0, caller.uid):
        raise NotAllowed(
            f"this agent runs as {_name(own_uid)} and can start jobs of {_name(own_uid)} only"
        )
    name = _name(caller.uid)
    try:
        groups = tuple(os.getgrouplist(name, caller.gid))
    except (OSError, ValueError):
        groups = (caller.gid,)
    return Owner(uid=caller.uid, gid=caller.gid, groups=groups, user=name)


def _may_order(owner: Owner) -> str:
    """Who the caller is, if the job is theirs or they may order everybody's."""
    caller = _caller()
    if caller.uid in (0, os.geteuid(), owner.uid):
        return _name(caller.uid)
    raise NotAllowed(f"this is a job of {owner.user or owner.uid}")


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
