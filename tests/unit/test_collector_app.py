"""Scraping real servers on loopback: good ones, and every bad one that we know of."""

import gzip
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import pytest

from esnode.collectors.app import AppCollector, AppTarget, parse_exposition
from esnode.collectors.app_http import word_endpoint
from esnode.collectors.base import CollectFailed
from esnode.readings.app import AppReading, TokenCount
from tests.metrics_servers import (
    Answer,
    answer_with,
    drip_body,
    drip_headers,
    flood,
    never_answer,
    send,
    serve,
)

VLLM = """\
# HELP vllm:iteration_tokens_total Histogram of number of tokens per engine_step.
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_sum{model_name="llama"} 99.0
vllm:iteration_tokens_total_bucket{le="1.0",model_name="llama"} 3.0
# TYPE vllm:prompt_tokens counter
vllm:prompt_tokens_total{engine="0",model_name="llama"} 1.5e+06
# TYPE vllm:generation_tokens counter
vllm:generation_tokens_total{engine="0",model_name="llama"} 200.0
vllm:num_requests_running{engine="0",model_name="llama"} 3.0
vllm:num_requests_waiting{engine="0",model_name="llama"} 7.0
"""

LATEST_SECONDS = 1.5
"""A scrape with a deadline of 0.3 s must be over by then, also on a busy machine."""


@contextmanager
def collecting(
    urls: Sequence[str], *, timeout_seconds: float = 5.0, body_limit_bytes: int = 8 * 1024 * 1024
) -> Iterator[AppCollector]:
    collector = AppCollector(
        urls,
        clock=time.perf_counter,
        timeout_seconds=timeout_seconds,
        body_limit_bytes=body_limit_bytes,
    )
    try:
        yield collector
    finally:
        collector.close()


def read_only_target(collector: AppCollector) -> AppReading:
    (target,) = collector.discover().targets.values()
    return collector.read(target)


def fail_to_read(
    answer: Answer, *, timeout_seconds: float = 5.0, body_limit_bytes: int = 8 * 1024 * 1024
) -> str:
    with (
        serve(answer) as origin,
        collecting(
            [f"{origin}/metrics"],
            timeout_seconds=timeout_seconds,
            body_limit_bytes=body_limit_bytes,
        ) as collector,
        pytest.raises(CollectFailed) as caught,
    ):
        read_only_target(collector)
    line = str(caught.value)
    assert line.startswith(f"{origin}/metrics: ")
    assert "\n" not in line
    return line.removeprefix(f"{origin}/metrics: ")


def test_a_vllm_server_is_read() -> None:
    with serve(answer_with(VLLM)) as origin, collecting([f"{origin}/metrics"]) as collector:
        reading = read_only_target(collector)

    assert reading == AppReading(
        endpoint=f"{origin}/metrics",
        engine="vllm",
        tokens=(
            TokenCount(model="llama", kind="generation", tokens_total=200.0),
            TokenCount(model="llama", kind="prompt", tokens_total=1_500_000.0),
        ),
        requests_running=3.0,
        requests_waiting=7.0,
    )


def test_one_connection_serves_many_scrapes() -> None:
    ports: list[int] = []

    def answer(handler: BaseHTTPRequestHandler, _: object) -> None:
        ports.append(handler.client_address[1])
        send(handler, VLLM.encode())

    with serve(answer) as origin, collecting([f"{origin}/metrics"]) as collector:
        for _ in range(3):
            read_only_target(collector)

    assert len(ports) == 3
    assert len(set(ports)) == 1


def test_a_server_that_comes_back_is_read_again() -> None:
    statuses = iter([503, 200])

    def answer(handler: BaseHTTPRequestHandler, _: object) -> None:
        send(handler, VLLM.encode(), status=next(statuses))

    with serve(answer) as origin, collecting([f"{origin}/metrics"]) as collector:
        with pytest.raises(CollectFailed, match="status 503"):
            read_only_target(collector)
        reading = read_only_target(collector)

    assert reading.engine == "vllm"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(never_answer, id="silent"),
        pytest.param(drip_body, id="drips-its-body"),
        pytest.param(drip_headers, id="drips-its-headers"),
    ],
)
def test_the_deadline_holds_whatever_the_server_does(answer: Answer) -> None:
    started = time.perf_counter()

    line = fail_to_read(answer, timeout_seconds=0.3)

    assert line == "no answer within 0.3 s"
    assert time.perf_counter() - started < LATEST_SECONDS


def test_a_body_of_100_megabytes_is_not_taken() -> None:
    line = fail_to_read(flood(100 * 1024 * 1024))

    assert line == "the answer is larger than 8388608 bytes"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(answer_with("oops", status=500), "status 500", id="500"),
        pytest.param(answer_with("", status=204), "status 204", id="no-content"),
        pytest.param(answer_with("who", status=401), "status 401", id="401"),
        pytest.param(answer_with("", status=304), "status 304", id="not-modified"),
        pytest.param(answer_with("", status=302), "status 302", id="redirect-to-nowhere"),
        pytest.param(
            answer_with("<html>\n<body>"), "line 1 is no Prometheus text: '<html>'", id="html"
        ),
        pytest.param(answer_with('"# HELP llamacpp"'), "line 1 is no", id="json-string"),
        pytest.param(answer_with(b"\x00\xff\xfe"), "line 1 is no", id="binary"),
        pytest.param(
            answer_with('up 1\nvllm:prompt_tokens_total{model_name="x} 5\n'), "line 2 is no",
            id="open-quote",
        ),
        pytest.param(
            answer_with("vllm:prompt_tokens_total five\n"), "line 1 is no", id="no-number"
        ),
        pytest.param(
            answer_with("vllm:prompt_tokens_total \n"), "line 1 is no", id="cut-off"
        ),
        pytest.param(
            answer_with(gzip.compress(VLLM.encode()), headers={"Content-Encoding": "gzip"}),
            "compressed (gzip)",
            id="compressed",
        ),
    ],
)  # fmt: skip
def test_a_useless_answer_is_one_line(answer: Answer, expected: str) -> None:
    assert expected in fail_to_read(answer)


def test_a_server_that_speaks_no_http_is_one_line() -> None:
    def answer(handler: BaseHTTPRequestHandler, _: object) -> None:
        handler.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        handler.close_connection = True

    assert "ProtocolError" in fail_to_read(answer)


def test_nobody_at_the_port_is_one_line() -> None:
    with serve(never_answer) as origin:
        pass

    with (
        collecting([f"{origin}/metrics"]) as collector,
        pytest.raises(CollectFailed, match="NetworkError"),
    ):
        read_only_target(collector)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        pytest.param("/metrics/", None, id="same-server"),
        pytest.param("http://127.0.0.2:9/metrics", "redirects to another server", id="host"),
        pytest.param("http://169.254.169.254/latest", "redirects to another server", id="cloud"),
        pytest.param("https://127.0.0.1/metrics", "redirects to another server", id="scheme"),
        pytest.param("file:///etc/passwd", "redirects to another server", id="file"),
        pytest.param("/metrics", "redirects more than 3 times", id="round-and-round"),
        pytest.param("http://[", "", id="malformed"),
    ],
)
def test_redirects_stay_on_their_server(location: str, expected: str | None) -> None:
    def answer(handler: BaseHTTPRequestHandler, _: object) -> None:
        if handler.path == "/metrics":
            send(handler, b"", status=302, headers={"Location": location})
        else:
            send(handler, VLLM.encode())

    if expected is None:
        with serve(answer) as origin, collecting([f"{origin}/metrics"]) as collector:
            assert read_only_target(collector).engine == "vllm"
    else:
        assert expected in fail_to_read(answer)


def test_credentials_are_sent_and_never_shown() -> None:
    seen: list[str | None] = []

    def answer(handler: BaseHTTPRequestHandler, _: object) -> None:
        seen.append(handler.headers.get("Authorization"))
        send(handler, VLLM.encode() if len(seen) == 1 else b"<", status=200)

    with serve(answer) as origin:
        url = origin.replace("http://", "http://agent:s%40cret@") + "/metrics?token=s@cret"
        with collecting([url]) as collector:
            found = collector.discover()
            reading = read_only_target(collector)
            with pytest.raises(CollectFailed) as caught:
                read_only_target(collector)

    assert seen == ["Basic YWdlbnQ6c0BjcmV0"] * 2
    assert reading.endpoint == f"{origin}/metrics"
    for shown in (repr(found), repr(reading), str(caught.value)):
        assert "cret" not in shown


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        pytest.param("http://host:8000/metrics", "http://host:8000/metrics", id="plain"),
        pytest.param("https://a:b@host/m?x=1#y", "https://host/m", id="secrets"),
        pytest.param("http://[::1]:8000/m", "http://[::1]:8000/m", id="ipv6"),
        pytest.param("http://host:port/m", "malformed-url", id="no-port"),
        pytest.param("user:secret@host/metrics", "malformed-url", id="no-scheme"),
        pytest.param("", "malformed-url", id="empty"),
        pytest.param("http://[::1/m", "malformed-url", id="half-ipv6"),
    ],
)
def test_an_endpoint_is_what_may_be_shown_of_a_url(url: str, endpoint: str) -> None:
    assert word_endpoint(url) == endpoint


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("ftp://host/metrics", id="ftp"),
        pytest.param("file:///proc/self/environ", id="file"),
        pytest.param("user:secret@host/metrics", id="no-scheme"),
        pytest.param("http://host:99999/metrics", id="port-too-large"),
        pytest.param("", id="empty"),
    ],
)
def test_a_url_that_is_none_fails_when_read(url: str) -> None:
    with collecting([url]) as collector, pytest.raises(CollectFailed) as caught:
        read_only_target(collector)

    assert "not an http or https URL" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_urls_that_look_alike_are_numbered() -> None:
    with collecting(["http://h/m?a=1", "http://h/m?a=2", "http://h/m?a=1"]) as collector:
        targets = collector.discover().targets

    assert list(targets.items()) == [
        ("http://h/m", AppTarget(endpoint="http://h/m", url="http://h/m?a=1")),
        ("http://h/m#2", AppTarget(endpoint="http://h/m#2", url="http://h/m?a=2")),
    ]


def test_lines_of_no_interest_need_not_be_parsable_to_the_end() -> None:
    body = b'other{a="b} 1\n{"quoted.name"} 1\n\n# EOF\nvllm:num_requests_running 2\r\n'

    samples = list(parse_exposition("here", body))

    assert [(sample.name, sample.value) for sample in samples] == [
        ("vllm:num_requests_running", 2.0)
    ]


def test_httpx_is_imported_at_the_first_scrape_only() -> None:
    script = (
        "import sys\n"
        "from esnode.collectors.app import AppCollector\n"
        "AppCollector(['http://h/m'], clock=lambda: 0.0).discover()\n"
        "print('httpx' in sys.modules)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stdout == "False\n"
