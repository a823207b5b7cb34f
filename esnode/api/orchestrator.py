"""The predecessor's control routes, with its shapes: register a device, submit a task, see both.

Its own file because it is kept for compatibility alone. A task that names a command really runs, as
a job of this node, and is answered once it is on disk; one that names none is placed and answered,
as it always was.
"""

from quart import Response, request
from quart_trio import QuartTrio

from esnode.api.answers import answer, problem
from esnode.api.door import Door
from esnode.api.jobs import NotAllowed, job_id_of_key, owner_of
from esnode.api.orders import BadOrder, order_of
from esnode.control_socket import Caller
from esnode.workloads.book import Phase
from esnode.workloads.driver import Workloads
from esnode.workloads.tasks import (
    TaskRefused,
    document_of_device,
    job_spec_of,
    read_task,
    with_tasks,
)


def add_orchestrator_routes(app: QuartTrio, workloads: Workloads, door: Door | None) -> None:
    """Let an application answer as the predecessor did; `door` is None on the control socket."""

    @app.post("/orchestrator/register")
    async def register_device() -> Response:
        device = workloads.tasks.register(await order_of(request))
        message = f"Device '{device.id}' registered/updated."
        return answer({"status": "ok", "message": message})

    @app.post("/orchestrator/submit")
    async def submit_task() -> Response:
        body = await order_of(request)
        task = read_task(body)
        spec = job_spec_of(body, task)
        if spec is None:
            result = workloads.tasks.submit(task, workloads.snapshot, is_thermal_on=True)
            return answer({"status": result.status, "assigned_device": result.assigned_device})
        caller = _caller(door)
        job_id = job_id_of_key(f"task {caller.uid} {task.id}")
        job = await workloads.submit(spec, owner_of(caller), job_id)
        await workloads.settle(job.id)
        job = workloads.find(job.id)
        is_assigned = job.phase is not Phase.QUEUED
        return answer(
            {
                "status": "Assigned" if is_assigned else "Queued",
                "assigned_device": job.gpus[0] if job.gpus else None,
                "job": job.id,
            }
        )

    @app.get("/orchestrator/metrics")
    async def device_metrics() -> Response:
        held = {uuid: job.id for job in workloads.book if job.is_live for uuid in job.gpus}
        devices = with_tasks(workloads.tasks.devices(workloads.snapshot), held)
        queued = [job.id for job in workloads.book.held(Phase.QUEUED)]
        return answer(
            {
                "device_count": len(devices),
                "pending_tasks": [*workloads.tasks.pending, *queued],
                "devices": list(map(document_of_device, devices)),
            }
        )

    @app.errorhandler(BadOrder)
    @app.errorhandler(TaskRefused)
    async def refused_task(error: BadOrder | TaskRefused) -> Response:
        return problem(str(error), 400, "bad-order")


def guard(app: QuartTrio, door: Door) -> None:
    """Ask at the door before every order that comes over TCP."""

    @app.before_request
    async def ask() -> Response | None:
        is_order = request.method not in ("GET", "HEAD", "OPTIONS")
        if is_order or request.path.startswith("/orchestrator/"):
            return door.refusal()
        return None


def _caller(door: Door | None) -> Caller:
    caller: object = request.scope.get("state", {}).get("caller")
    if isinstance(caller, Caller):
        return caller
    named = "orders about jobs need the control socket" if door is None else door.caller()
    if isinstance(named, str):
        raise NotAllowed(named)
    return named
