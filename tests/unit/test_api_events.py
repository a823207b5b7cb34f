"""The board and its stream of events: ids, resuming, slow readers, the end."""

from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
import trio
from trio.testing import MockClock

from esnode.api.read import KEEP_ALIVE_SECONDS, stream
from esnode.board import KEPT_EVENTS, Board
from tests.boards import board_with, post


def id_of(chunk: bytes) -> str:
    first = chunk.decode().split("\n")[0]
    return first.removeprefix("id: ") if first.startswith("id: ") else first


async def take(events: AsyncIterator[bytes], count: int) -> list[str]:
    return [id_of(await anext(events)) for _ in range(count)]


async def test_a_new_client_gets_the_latest_event_at_once(autojump_clock: MockClock) -> None:
    async with aclosing(stream(board_with(1, 2), None)) as events:
        assert await take(events, 2) == ["retry: 2000", "run1-2"]


async def test_each_new_event_comes_once_with_its_id(autojump_clock: MockClock) -> None:
    board = board_with(1)
    async with aclosing(stream(board, None)) as events:
        await take(events, 2)
        post(board, 1)  # a tick in which nothing new was read
        post(board, 2)
        assert await take(events, 1) == ["run1-2"]
        post(board, 3)
        assert await take(events, 1) == ["run1-3"]


@pytest.mark.parametrize(
    ("last_event_id", "expected"),
    [
        pytest.param("run1-1", ["run1-2", "run1-3", "run1-4"], id="what-was-missed"),
        pytest.param("run1-3", ["run1-4"], id="nothing-was-missed"),
        pytest.param("run0-2", ["run1-1", "run1-2", "run1-3", "run1-4"], id="all-after-a-restart"),
        pytest.param("run1-99", ["run1-1", "run1-2", "run1-3"], id="an-id-that-never-was"),
        pytest.param("run1-" + "9" * 5000, ["run1-1", "run1-2"], id="an-id-beyond-reason"),
        pytest.param("run1-x", ["run1-1", "run1-2"], id="an-id-that-is-none"),
        pytest.param("", ["run1-3"], id="no-id"),
    ],
)
async def test_a_client_resumes_after_the_event_it_saw_last(
    autojump_clock: MockClock, last_event_id: str, expected: list[str]
) -> None:
    board = board_with(1, 2, 3)
    async with aclosing(stream(board, last_event_id)) as events, trio.open_nursery() as nursery:
        nursery.start_soon(later, board)
        assert await take(events, 1 + len(expected)) == ["retry: 2000", *expected]


async def later(board: Board) -> None:
    await trio.sleep(1.0)
    post(board, 4)


async def test_a_client_that_is_up_to_date_gets_nothing_twice(autojump_clock: MockClock) -> None:
    board = board_with(1, 2)
    async with aclosing(stream(board, "run1-2")) as events:
        chunks = [await anext(events) for _ in range(2)]

    assert chunks == [b"retry: 2000\n\n", b": keep-alive\n\n"]


async def test_only_the_last_events_are_kept(autojump_clock: MockClock) -> None:
    board = board_with(*range(1, 101))

    kept = board.after(-1)

    assert [event.number for event in kept] == list(range(101 - KEPT_EVENTS, 101))


async def test_a_silent_stream_is_kept_alive(autojump_clock: MockClock) -> None:
    board = board_with(1)
    async with aclosing(stream(board, None)) as events:
        await take(events, 2)
        begun = trio.current_time()
        assert await anext(events) == b": keep-alive\n\n"
        assert trio.current_time() - begun == pytest.approx(KEEP_ALIVE_SECONDS)
        post(board, 2)
        assert await take(events, 1) == ["run1-2"]


async def test_a_slow_reader_skips_to_the_latest_and_holds_nobody_up(
    autojump_clock: MockClock,
) -> None:
    board = board_with(1)
    async with aclosing(stream(board, None)) as slow, aclosing(stream(board, None)) as quick:
        await take(slow, 2)
        await take(quick, 2)
        seen = []
        for number in range(2, 50):
            post(board, number)
            seen += await take(quick, 1)
        assert seen[-1] == "run1-49"
        assert len(seen) == 48
        assert await take(slow, 1) == ["run1-49"]


async def test_the_stream_ends_when_the_agent_does(autojump_clock: MockClock) -> None:
    board = board_with(1)

    async def end() -> None:
        await trio.sleep(3.0)
        board.close()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(end)
        chunks = [chunk async for chunk in stream(board, None)]

    assert [id_of(chunk) for chunk in chunks] == ["retry: 2000", "run1-1"]
    assert trio.current_time() == pytest.approx(3.0)


async def test_clients_are_counted_while_they_listen(autojump_clock: MockClock) -> None:
    board = board_with(1)
    async with aclosing(stream(board, None)) as events:
        await take(events, 1)
        assert board.event_clients == 1
    assert board.event_clients == 0


async def test_a_client_that_is_cut_off_is_no_longer_counted(autojump_clock: MockClock) -> None:
    board = board_with(1)

    async def listen() -> None:
        async for _ in stream(board, None):
            pass

    with trio.move_on_after(1.0):
        await listen()

    assert board.event_clients == 0


async def test_a_body_is_made_once_and_only_when_asked_for() -> None:
    made: list[str] = []
    board = board_with()
    posted = post(board, 1)
    expose, describe = posted._expose, posted._describe
    posted._expose = lambda: (made.append("metrics"), expose())[1]
    posted._describe = lambda: (made.append("status"), describe())[1]

    assert made == []
    assert posted.exposition is posted.exposition
    assert posted.status is posted.status
    assert made == ["metrics", "status"]
