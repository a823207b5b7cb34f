"""Boards with ticks on them, and the bare ASGI front called directly."""

from dataclasses import dataclass, replace
from pathlib import Path

from esnode.api.front import Application, answer_metrics
from esnode.board import Board, Posted
from esnode.cluster_view import ClusterView
from esnode.config import Config
from esnode.metrics import METRICS, Renderer
from esnode.peering import Peering
from esnode.readings.sample import SourceStatus
from esnode.snapshot import Snapshot
from esnode.status import describe
from tests.snapshots import rich_snapshot, rich_view


def post(
    board: Board, number: int, snapshot: Snapshot | None = None, *, at: float | None = None
) -> Posted:
    shown = snapshot or rich_snapshot()
    if at is not None:
        shown = replace(shown, taken_at_seconds=at)
    posted = Posted(
        number=number,
        snapshot=shown,
        unix_seconds=1_800_000_000.0 + number,
        expose=lambda: Renderer(METRICS).render(rich_view(shown)),
        describe=lambda: describe(
            shown, hostname="node-07", unix_seconds=1_800_000_000.0 + number, uptime_seconds=60.0
        ),
    )
    board.post(posted)
    return posted


def board_with(*numbers: int) -> Board:
    board = Board(run_id="run1")
    for number in numbers:
        post(board, number)
    return board


def lonely(folder: Path) -> tuple[Peering, ClusterView]:
    """The cluster part of an agent that is in none."""
    peering = Peering(state_folder=folder, config=Config(), agent_version="0.0.0")
    return peering, ClusterView(peering)


def snapshot_of(*sources: SourceStatus, at: float = 100.0) -> Snapshot:
    return Snapshot(taken_at_seconds=at, sequence=1, sources=sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back from the bare front."""

    status: int
    headers: dict[str, str]
    body: bytes


async def scrape(
    board: Board,
    query: str = "",
    *,
    method: str = "GET",
    headers: tuple[tuple[str, str], ...] = (),
    application: Application | None = None,
    path: str = "/metrics",
) -> Answer:
    """One request, as a server would pass it on."""
    sent: list[dict[str, object]] = []
    scope = {
        "type": "http",
        "path": path,
        "method": method,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers],
    }

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    async def receive() -> dict[str, object]:
        return {"type": "http.request"}

    if application is None:
        await answer_metrics(board, scope, send)
    else:
        await application(scope, receive, send)
    start, *bodies = sent
    assert isinstance(start["status"], int)
    assert isinstance(start["headers"], list)
    return Answer(
        status=start["status"],
        headers={name.decode(): value.decode() for name, value in start["headers"]},
        body=b"".join(body["body"] for body in bodies if isinstance(body["body"], bytes)),
    )
