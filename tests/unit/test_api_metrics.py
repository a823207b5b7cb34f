"""`/metrics`: negotiation, selections, refusals. The bare front is called directly."""

import gzip

import pytest
import trio
from trio.testing import MockClock

from esnode.api.front import with_metrics
from esnode.api.negotiate import MAXIMUM_QUERY_BYTES, wants_gzip, wants_openmetrics
from esnode.board import Board
from esnode.metrics import GROUPS, OPENMETRICS, TEXT
from tests.boards import board_with, post, scrape
from tests.expositions import samples_of

PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;q=0.3,"
    "text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)
"""What Prometheus 3 sends."""


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        pytest.param("", False, id="nothing-said"),
        pytest.param("*/*", False, id="curl"),
        pytest.param("text/plain", False, id="text"),
        pytest.param(PROMETHEUS, True, id="prometheus"),
        pytest.param("application/openmetrics-text", True, id="openmetrics"),
        pytest.param("Application/OpenMetrics-Text; version=1.0.0", True, id="in-any-case"),
        pytest.param(
            "application/openmetrics-text;q=0.2, text/plain;q=0.5", False, id="rather-text"
        ),
        pytest.param("application/openmetrics-text;q=0", False, id="refused"),
        pytest.param("application/openmetrics-text; q=0.5, */*;q=0.5", True, id="as-well"),
        pytest.param("application/openmetrics-text;q=high", False, id="not-a-quality"),
        pytest.param("application/openmetrics-text;q=nan", False, id="not-any-number"),
        pytest.param(",;,=", False, id="nonsense"),
        pytest.param("application/json", False, id="a-format-that-is-not-served"),
    ],
)
def test_openmetrics_is_served_to_those_who_prefer_it(accept: str, expected: bool) -> None:
    assert wants_openmetrics(accept) is expected


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        pytest.param("", False, id="nothing-said"),
        pytest.param("gzip", True, id="gzip"),
        pytest.param("deflate, GZIP;q=0.5", True, id="in-any-case-and-place"),
        pytest.param("gzip;q=0", False, id="refused"),
        pytest.param("*", True, id="anything"),
        pytest.param("*;q=0, gzip", True, id="nothing-but-gzip"),
        pytest.param("gzip;q=0, *", False, id="anything-but-gzip"),
        pytest.param("br, zstd", False, id="others"),
    ],
)
def test_gzip_is_served_to_those_who_take_it(encoding: str, expected: bool) -> None:
    assert wants_gzip(encoding) is expected


async def test_a_scrape_is_the_body_of_the_latest_tick() -> None:
    board = board_with(1)

    answer = await scrape(board)

    assert answer.status == 200
    assert answer.headers["content-type"] == TEXT
    assert answer.headers["content-length"] == str(len(answer.body))
    assert answer.headers["vary"] == "accept, accept-encoding"
    assert "content-encoding" not in answer.headers
    assert board.latest is not None
    assert answer.body == board.latest.exposition.body()


async def test_a_scrape_can_be_openmetrics_and_gzip_with_headers_in_several_lines() -> None:
    board = board_with(1)

    answer = await scrape(
        board,
        headers=(
            ("accept", "text/plain;q=0.1"),
            ("accept", "application/openmetrics-text"),
            ("accept-encoding", "br"),
            ("accept-encoding", "gzip"),
        ),
    )

    assert answer.headers["content-type"] == OPENMETRICS
    assert answer.headers["content-encoding"] == "gzip"
    body = gzip.decompress(answer.body).decode()
    assert samples_of(body, is_openmetrics=True)


async def test_head_has_the_headers_of_get_and_no_body() -> None:
    board = board_with(1)

    get, head = await scrape(board), await scrape(board, method="HEAD")

    assert head.headers == get.headers
    assert head.body == b""


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_other_methods_are_told_which_are_allowed(method: str) -> None:
    answer = await scrape(board_with(1), method=method)

    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    assert answer.body == b"only GET and HEAD\n"


@pytest.mark.parametrize(
    ("query", "groups"),
    [
        pytest.param("collect[]=gpu", {"esnode_gpu", "esnode_gpus"}, id="one"),
        pytest.param("collect%5B%5D=gpu", {"esnode_gpu", "esnode_gpus"}, id="escaped"),
        pytest.param(
            "collect[]=gpu&collect[]=numa", {"esnode_gpu", "esnode_gpus", "esnode_numa"}, id="two"
        ),
        pytest.param(
            "collect[]=gpu&profile=gpu-only", {"esnode_gpu", "esnode_gpus"}, id="with-profile"
        ),
    ],
)
async def test_a_query_chooses_collectors(query: str, groups: set[str]) -> None:
    answer = await scrape(board_with(1), query)

    samples = samples_of(answer.body.decode())
    assert {"_".join(name.split("_")[:2]) for name, _ in samples} == groups


async def test_a_selection_of_nothing_is_an_empty_body() -> None:
    answer = await scrape(board_with(1), "collect[]=cpu&profile=gpu-only")

    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param(
            "collect[]=gpus",
            f"collect[]='gpus': no such collector; one of {', '.join(GROUPS)}",
            id="unknown-collector",
        ),
        pytest.param(
            "profile=all",
            "profile='all': no such profile; one of full, basic, gpu-only, power-only",
            id="unknown-profile",
        ),
        pytest.param(
            "collect=gpu",
            "unknown parameter 'collect'; use collect[]=NAME or profile=NAME",
            id="unknown-parameter",
        ),
        pytest.param("collect[]", "the query is not NAME=VALUE pairs", id="no-value"),
        pytest.param(
            "a=\N{BLACK SMILING FACE}", "the query is not NAME=VALUE pairs", id="not-ascii"
        ),
        pytest.param(
            "collect[]=a%0Ab",
            f"collect[]='a\\nb': no such collector; one of {', '.join(GROUPS)}",
            id="a-new-line-is-not-passed-on",
        ),
        pytest.param(
            "a=" + "b" * MAXIMUM_QUERY_BYTES,
            f"the query is longer than {MAXIMUM_QUERY_BYTES} bytes",
            id="too-long",
        ),
    ],
)
async def test_a_bad_query_is_one_line(query: str, expected: str) -> None:
    answer = await scrape(board_with(1), query)

    assert answer.status == 400
    assert answer.body.decode() == f"{expected}\n"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


async def test_a_scrape_before_the_first_tick_waits_for_it(autojump_clock: MockClock) -> None:
    board = Board(run_id="run1")
    answers: list[int] = []

    async def ask() -> None:
        answers.append((await scrape(board)).status)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.sleep(0.1)
        assert answers == []
        post(board, 1)

    assert answers == [200]


async def test_a_scrape_of_an_agent_that_ends_before_its_first_tick_is_refused() -> None:
    board = Board(run_id="run1")
    board.close()

    answer = await scrape(board)

    assert (answer.status, answer.body) == (503, b"the agent is stopping\n")


async def test_every_other_path_is_given_to_the_rest() -> None:
    asked: list[str] = []

    async def rest(scope, receive, send) -> None:  # type: ignore[no-untyped-def]
        asked.append(scope["path"])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    front = with_metrics(board_with(1), rest)

    statuses = [
        (await scrape(board_with(1), application=front, path=path)).status
        for path in ("/metrics", "/metrics/", "/status")
    ]

    assert statuses == [200, 204, 204]
    assert asked == ["/metrics/", "/status"]
