"""The routes that answer from the board, asked in-process."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import trio
from trio.testing import MockClock

from esnode.api.read import INDEX, make_app
from esnode.board import Board
from esnode.readings.sample import SourceStatus
from tests.boards import board_with, lonely, post, snapshot_of


@asynccontextmanager
async def client_of(board: Board) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=make_app(board, *lonely(Path("/nowhere"))))  # type: ignore[arg-type]  # Quart's own types
    async with httpx.AsyncClient(transport=transport, base_url="http://node") as client:
        yield client


@pytest.mark.parametrize("path", ["/status", "/v1/status"])
async def test_the_status_is_the_document_of_the_latest_tick(path: str) -> None:
    board = board_with(1, 2)

    async with client_of(board) as client:
        response = await client.get(path)

    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert board.latest is not None
    assert response.content == board.latest.status
    assert response.json()["schema"] == "esnode.status/1"


async def test_the_status_of_an_agent_that_ends_is_refused() -> None:
    board = Board(run_id="run1")
    board.close()

    async with client_of(board) as client:
        response = await client.get("/status")

    assert (response.status_code, response.json()) == (503, {"error": "the agent is stopping"})


async def test_the_index_lists_the_routes() -> None:
    async with client_of(board_with(1)) as client:
        response = await client.get("/")

    assert response.text == INDEX
    for route in ("/metrics", "/status", "/events", "/healthz", "/readyz"):
        assert route in response.text


async def test_an_unknown_route_is_json_that_says_where_the_routes_are() -> None:
    async with client_of(board_with(1)) as client:
        response = await client.get("/statuss")

    assert response.status_code == 404
    assert response.json() == {"error": "no such route; GET / lists them"}


async def test_a_wrong_method_is_json_that_says_which_are_allowed() -> None:
    async with client_of(board_with(1)) as client:
        response = await client.post("/status")

    assert response.status_code == 405
    assert response.json() == {"error": "method not allowed"}
    assert {"GET", "HEAD"} <= set(response.headers["allow"].split(", "))


@pytest.mark.parametrize(
    ("age", "code", "word"),
    [
        pytest.param(0.5, 200, "ok", id="in-time"),
        pytest.param(5.0, 200, "ok", id="just-in-time"),
        pytest.param(6.0, 503, "late", id="late"),
    ],
)
async def test_the_agent_is_well_while_it_ticks(
    autojump_clock: MockClock, age: float, code: int, word: str
) -> None:
    board = Board(run_id="run1")
    post(board, 1, at=trio.current_time())
    await trio.sleep(age)

    async with client_of(board) as client:
        response = await client.get("/healthz")

    assert response.status_code == code
    assert response.json() == {"status": word, "tick_age_seconds": age}


async def test_an_agent_without_a_tick_is_neither_well_nor_ready() -> None:
    async with client_of(Board(run_id="run1")) as client:
        health, ready = await client.get("/healthz"), await client.get("/readyz")

    assert (health.status_code, health.json()["tick_age_seconds"]) == (503, None)
    assert (ready.status_code, ready.json()) == (503, {"status": "stale", "stale": ["agent"]})


def source(collector: str, last: float | None, **more: object) -> SourceStatus:
    return SourceStatus(
        collector=collector,
        last_success_at_seconds=last,
        interval_seconds=5.0,
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("sources", "stale"),
    [
        pytest.param([source("cpu", 99.0, state="ok")], [], id="fresh"),
        pytest.param([source("cpu", 80.0, state="failed")], [], id="two-missed-reads"),
        pytest.param([source("cpu", 79.0, state="failed")], ["cpu"], id="too-old"),
        pytest.param([source("cpu", None, state="pending")], ["cpu"], id="never-answered"),
        pytest.param([source("ipmi", None, state="unavailable")], [], id="not-on-this-machine"),
        pytest.param(
            [source("filesystem", 99.0), source("filesystem", 1.0, target="/dead")],
            [],
            id="one-hung-mount-is-not-its-collector",
        ),
    ],
)
async def test_readiness_is_that_data_is_fresh(
    sources: list[SourceStatus], stale: list[str]
) -> None:
    board = Board(run_id="run1")
    post(board, 1, snapshot_of(*sources))

    async with client_of(board) as client:
        response = await client.get("/readyz")

    assert response.status_code == (503 if stale else 200)
    assert response.json().get("stale", []) == stale


async def test_readiness_tells_health_apart() -> None:
    board = Board(run_id="run1")
    post(board, 1, snapshot_of(source("cpu", 99.0, state="failed")))

    async with client_of(board) as client:
        response = await client.get("/readyz")

    assert response.json() == {"status": "ok", "healthy": False}


async def test_events_are_a_stream_that_proxies_leave_alone(autojump_clock: MockClock) -> None:
    board = board_with(1)

    async def end_soon() -> None:
        await trio.sleep(1.0)
        board.close()

    async with client_of(board) as client, trio.open_nursery() as nursery:
        nursery.start_soon(end_soon)
        response = await client.get("/events")

    assert response.headers["content-type"] == "text/event-stream"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-accel-buffering"] == "no"
    first, event, rest = response.text.split("\n\n")
    assert (first, rest) == ("retry: 2000", "")
    identity, data = event.split("\n")
    assert identity == "id: run1-1"
    assert json.loads(data.removeprefix("data: "))["schema"] == "esnode.status/1"


async def test_an_event_stream_can_be_resumed_by_header() -> None:
    board = board_with(1, 2, 3)
    board.close()

    async with client_of(board) as client:
        response = await client.get("/events", headers={"Last-Event-ID": "run1-1"})

    assert [line for line in response.text.split("\n") if line.startswith("id:")] == [
        "id: run1-2",
        "id: run1-3",
    ]
