"""The client of an agent's HTTP interface: one deadline for everything."""

import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from esnode import client
from esnode.client import (
    AgentForbids,
    AgentRefused,
    AgentStopped,
    AgentUnreachable,
    ServedEvent,
    ask,
    fetch,
    follow,
    socket_door,
    url_door,
)
from esnode.clock import monotonic_seconds
from tests.cluster_agents import NO_CLUSTER, pretended_agent


@pytest.fixture
def dripping_server() -> Iterator[str]:
    """Answers a byte at a time, for ever, so that no single wait is ever long."""
    listener = socket.create_server(("127.0.0.1", 0))
    is_over = threading.Event()

    def drip() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while not is_over.wait(0.02):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

    thread = threading.Thread(target=drip)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    is_over.set()
    thread.join(5)
    listener.close()


def test_a_server_that_drips_does_not_hold_the_command(
    dripping_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "TIMEOUT_SECONDS", 0.3)
    started = monotonic_seconds()

    with pytest.raises(AgentUnreachable, match=r"did not answer within 0\.3 s"):
        fetch(dripping_server, "/status")

    assert monotonic_seconds() - started < 5


def test_an_order_that_is_not_answered_in_time_may_still_be_done(dripping_server: str) -> None:
    with pytest.raises(AgentUnreachable, match="what was ordered may still be done"):
        ask(url_door(dripping_server), "/x", schema="x", order={}, timeout_seconds=0.3)


SCHEMA = "esnode.cluster_leave/"
LEFT = (200, {"schema": "esnode.cluster_leave/1", "informed": 1})


def test_an_order_goes_through_the_socket(tmp_path: Path) -> None:
    with pretended_agent(tmp_path, answers={"/order": LEFT}) as agent:
        answer = ask(socket_door(agent.socket_path), "/order", schema=SCHEMA, order={"a": 1})

    assert answer["informed"] == 1
    assert agent.orders == [("/order", {"a": 1})]


def test_a_socket_that_nobody_holds_is_an_agent_that_is_stopped(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left_behind, tempfile.TemporaryDirectory() as short:
        path = Path(short) / "s"
        left_behind.bind(str(path))
        left_behind.close()

        for door in (socket_door(path), socket_door(tmp_path / "agent.sock")):
            with pytest.raises(AgentStopped, match="start one with `esnode agent`"):
                ask(door, "/order", schema=SCHEMA, order={})


def test_a_path_too_long_for_a_socket_is_said_to_be() -> None:
    with pytest.raises(AgentUnreachable, match="at most 107 bytes; give the agent a shorter"):
        ask(socket_door(Path("/" + "x" * 120)), "/order", schema=SCHEMA)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_socket_for_others_says_who_may(tmp_path: Path) -> None:
    with pretended_agent(tmp_path, answers={"/order": LEFT}) as agent:
        os.seteuid(65534)
        try:
            with pytest.raises(AgentForbids, match="the group esnode may"):
                ask(socket_door(agent.socket_path), "/order", schema=SCHEMA, order={})
        finally:
            os.seteuid(0)

    assert agent.orders == []


@pytest.mark.parametrize(
    ("answer", "kind", "line", "code"),
    [
        pytest.param(NO_CLUSTER, AgentRefused, "is in no cluster", "no-cluster", id="409"),
        pytest.param(
            (403, {"error": "you may not", "code": "no"}), AgentForbids, "^you may not$", "no",
            id="403",
        ),
        pytest.param(
            (404, {"error": "no such route"}), AgentRefused, "/order answered 404: no such", "",
            id="no-code",
        ),
        pytest.param(
            (500, {"error": "a\x1b[2Jb\nc", "code": "x"}), AgentRefused, r"^a \[2Jb c$", "x",
            id="a-text-that-steers",
        ),
        pytest.param((200, {"schema": "other/1"}), AgentRefused, "not an esnode", "", id="other"),
    ],
)  # fmt: skip
def test_a_refusal_is_told_in_the_agents_own_words(
    tmp_path: Path,
    answer: tuple[int, dict[str, object]],
    kind: type[AgentRefused],
    line: str,
    code: str,
) -> None:
    with (
        pretended_agent(tmp_path, answers={"/order": answer}) as agent,
        pytest.raises(kind, match=line) as caught,
    ):
        ask(url_door(agent.url), "/order", schema=SCHEMA)

    assert caught.value.code == code


def test_a_stream_gives_its_events_and_ends(tmp_path: Path) -> None:
    lines = [
        "retry: 2000",
        "",
        "id: 7",
        "data: a",
        "data: b",
        "",
        ": alive",
        "data:c",
        "",
        "data: d",
    ]
    with pretended_agent(tmp_path, streams=[lines]) as agent:
        events = list(follow(url_door(agent.url), "/v1/cluster/events?follow=1", last_event_id="6"))

    assert events == [
        ServedEvent(event_id="7", data="a\nb"),
        ServedEvent(event_id="7", data="c"),
    ]
    assert agent.followed_from == ["6"]


def test_a_stream_that_falls_silent_is_an_agent_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "STREAM_SILENT_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer_and_wait() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nid: 1\ndata: x\n\n")
                connection.settimeout(10)
                while connection.recv(4096):  # until the client has had enough
                    pass

        thread = threading.Thread(target=answer_and_wait)
        thread.start()
        stream = follow(url_door(f"http://127.0.0.1:{listener.getsockname()[1]}"), "/events")

        assert next(stream).data == "x"
        with pytest.raises(AgentUnreachable, match=r"did not answer within 0\.3 s"):
            next(stream)
        thread.join(5)
