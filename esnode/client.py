"""The client of an agent's HTTP interface, used by the command line.

An agent has two doors: its listen address, which anybody may read, and the unix socket in its state
folder, which also takes orders. Whatever goes wrong at either becomes one line that says what to
do. It must not know what the documents mean.
"""

import errno
import json
import os
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from esnode.clock import monotonic_seconds
from esnode.collectors.app_deadline import DeadlineTransport
from esnode.config.values import without_credentials

TIMEOUT_SECONDS = 5.0
STREAM_SILENT_SECONDS = 40.0
"""An agent's streams say something at least every 15 s."""
_SOCKET_PATH_BYTES_MAX = 107
"""Source: unix(7), sun_path of 108 bytes with the NUL at its end."""
_LINE_CHARACTERS_MAX = 400


class AgentUnreachable(Exception):
    """No agent answers there; one line that says what to do."""


class AgentStopped(AgentUnreachable):
    """Nobody listens there: whatever was asked has certainly not been done."""


class AgentRefused(Exception):
    """The agent answered, and not with what was asked; one line."""

    def __init__(self, line: str, *, status: int = 0, code: str = "") -> None:
        super().__init__(line)
        self.status = status
        """Of HTTP; 0 where what answers is no agent of ours."""
        self.code = code
        """The agent's own word for the reason, or nothing."""


class AgentForbids(AgentRefused):
    """The caller may not do this; one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Where to reach an agent."""

    base_url: str
    socket_path: Path | None = None
    """The unix socket to go through; the URL's host is then only a word in a header."""

    @property
    def shown(self) -> str:
        """As one may print it."""
        return str(self.socket_path or without_credentials(self.base_url))


def url_door(base_url: str) -> Door:
    """The listen address of an agent."""
    return Door(base_url=base_url)


def socket_door(path: Path) -> Door:
    """The control socket of an agent."""
    return Door(base_url="http://localhost", socket_path=path)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedEvent:
    """One event of a stream."""

    event_id: str
    """Empty where it has none."""
    data: str


def fetch(base_url: str, path: str, **headers: str) -> httpx.Response:
    """One GET.

    Raises:
        AgentUnreachable: nothing answers, or nothing in time.
        AgentRefused: an answer other than 200.
    """
    door = url_door(base_url)
    with _one_line_errors(door, TIMEOUT_SECONDS):
        response = _send(door, "GET", path, headers=headers, timeout_seconds=TIMEOUT_SECONDS)
    _check_answer(door, path, response)
    return response


def fetch_status(base_url: str) -> dict[str, Any]:
    """The status document.

    Raises:
        AgentUnreachable, AgentRefused: as `fetch`; also when another program answers.
    """
    return _read_document(url_door(base_url), fetch(base_url, "/status"), "esnode.status/")


def ask(
    door: Door,
    path: str,
    *,
    schema: str,
    order: Mapping[str, object] | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> dict[str, Any]:
    """One document of this schema; with an order (a POST of it) the answer to that.

    Raises:
        AgentStopped: nobody listens there, so nothing has been done.
        AgentUnreachable: no answer in time, or half of one.
        AgentForbids: the caller may not.
        AgentRefused: an answer other than 200, or of another program.
    """
    with _one_line_errors(door, timeout_seconds, is_order=order is not None):
        response = _send(
            door, "GET" if order is None else "POST", path,
            order=order, timeout_seconds=timeout_seconds,
        )  # fmt: skip
    _check_answer(door, path, response)
    return _read_document(door, response, schema)


def follow(door: Door, path: str, *, last_event_id: str = "") -> Iterator[ServedEvent]:
    """The events of a stream as they come, until it ends.

    Raises:
        AgentUnreachable, AgentRefused: as `ask`; also when the stream falls silent.
    """
    headers = {"Accept": "text/event-stream"}
    if last_event_id:
        headers["Last-Event-ID"] = last_event_id
    ends_at = monotonic_seconds() + TIMEOUT_SECONDS
    with (
        _one_line_errors(door, STREAM_SILENT_SECONDS),
        _client(door, lambda: ends_at - monotonic_seconds()) as client,
        client.stream("GET", door.base_url + path, headers=headers) as response,
    ):
        if response.status_code != 200:
            response.read()
            _check_answer(door, path, response)
        event_id, data = "", []
        for line in response.iter_lines():
            ends_at = monotonic_seconds() + STREAM_SILENT_SECONDS
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "id":
                event_id = value
            elif name == "data":
                data.append(value)
            elif not line and data:
                yield ServedEvent(event_id=event_id, data="\n".join(data))
                data = []


def _send(
    door: Door,
    method: str,
    path: str,
    *,
    timeout_seconds: float,
    headers: Mapping[str, str] | None = None,
    order: Mapping[str, object] | None = None,
) -> httpx.Response:
    """Ask within one deadline for everything: a server that drips would else hold us for ever."""
    ends_at = monotonic_seconds() + timeout_seconds
    with _client(door, lambda: ends_at - monotonic_seconds()) as client:
        return client.request(method, door.base_url + path, headers=headers, json=order)


def _client(door: Door, remaining_seconds: Callable[[], float]) -> httpx.Client:
    if not door.base_url.startswith(("http://", "https://")):
        raise httpx.UnsupportedProtocol(door.base_url)
    path = None if door.socket_path is None else _knock(door.socket_path, remaining_seconds())
    tls = _authorities() if door.base_url.startswith("https:") else None
    transport = DeadlineTransport(remaining_seconds, tls, path)
    # An agent is asked directly: a proxy of the environment is for the world outside.
    return httpx.Client(transport=transport, trust_env=False)


def _knock(path: Path, timeout_seconds: float) -> str:
    """Whether somebody listens at a socket; httpcore would leave ours open when nobody does."""
    if len(os.fsencode(path)) > _SOCKET_PATH_BYTES_MAX:
        raise AgentUnreachable(
            f"{path}: the path of a socket has at most {_SOCKET_PATH_BYTES_MAX} bytes; give the "
            "agent a shorter --state-dir"
        )
    try:
        with socket.socket(socket.AF_UNIX) as trial:
            trial.settimeout(max(0.1, timeout_seconds))
            trial.connect(str(path))
    except TimeoutError:
        raise httpx.ConnectTimeout("nobody accepts") from None
    except PermissionError:
        raise AgentForbids(
            f"{path}: not allowed; only root, the agent's user and the group esnode may (sudo, or "
            "`usermod -aG esnode USER`)",
            status=403,
        ) from None
    except OSError as error:
        raise AgentStopped(
            f"no agent answers at {path} ({error.strerror}); start one with `esnode agent`, or "
            "name its folder with --state-dir"
        ) from None
    return str(path)


def _authorities() -> ssl.SSLContext:
    """Whom this machine trusts: its own store, or `SSL_CERT_FILE` and `SSL_CERT_DIR`.

    httpx would look at neither when it is told to leave the environment's proxies alone.
    """
    return ssl.create_default_context()


@contextmanager
def _one_line_errors(
    door: Door, timeout_seconds: float, *, is_order: bool = False
) -> Iterator[None]:
    try:
        yield
    except httpx.TimeoutException:
        later = "; what was ordered may still be done" if is_order else ""
        raise AgentUnreachable(
            f"the agent at {door.shown} did not answer within {timeout_seconds:g} s{later}"
        ) from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        raise AgentUnreachable(
            f"{door.shown!r} is not the URL of an agent; write e.g. http://127.0.0.1:9100"
        ) from None
    except httpx.HTTPError as error:
        raise _what_happened(door, error) from None


def _what_happened(door: Door, error: httpx.HTTPError) -> AgentUnreachable:
    if door.socket_path is not None:
        return AgentUnreachable(f"the agent at {door.shown} broke off ({error})")
    cause = _system_error(error)
    is_refused = cause is not None and cause.errno == errno.ECONNREFUSED
    kind = AgentStopped if is_refused else AgentUnreachable
    return kind(
        f"no agent answers at {door.shown} ({error}); start one with `esnode agent`, or name "
        "another with --agent URL"
    )


def _system_error(error: BaseException) -> OSError | None:
    """What the operating system said, below what the libraries made of it."""
    at: BaseException | None = error
    while at is not None:
        if isinstance(at, OSError):
            return at
        at = at.__cause__ or at.__context__
    return None


def _check_answer(door: Door, path: str, response: httpx.Response) -> None:
    status = response.status_code
    if status == 200:
        return
    code = ""
    try:
        problem = json.loads(response.content)
        line, code = str(problem["error"]), str(problem.get("code", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        text = response.text.strip().splitlines()[:1]
        said = f": {text[0][:200]}" if text else ""
        line = f"{door.shown}{path} answered {status}{said}"
    else:
        line = "".join(c if c.isprintable() else " " for c in line)[:_LINE_CHARACTERS_MAX]
        if not code:  # as the routes of the agent alone answer
            line = f"{door.shown}{path} answered {status}: {line}"
    kind = AgentForbids if status in (401, 403) else AgentRefused
    raise kind(line, status=status, code=code)


def _read_document(door: Door, response: httpx.Response, schema: str) -> dict[str, Any]:
    try:
        document = json.loads(response.content)
        found = document["schema"]
    except (ValueError, KeyError, TypeError, RecursionError):
        found = ""
    if not str(found).startswith(schema):
        raise AgentRefused(
            f"what answers at {door.shown} is not an esnode agent; name one with --agent URL"
        )
    return dict(document)
