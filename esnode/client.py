"""The client of an agent's HTTP interface, used by the command line."""

import json
import ssl
from typing import Any

import httpx

from esnode.clock import monotonic_seconds
from esnode.collectors.app_deadline import DeadlineTransport
from esnode.config.values import without_credentials

TIMEOUT_SECONDS = 5.0


class AgentUnreachable(Exception):
    """No agent answers there; one line that says what to do."""


class AgentRefused(Exception):
    """The agent answered, and not with what was asked; one line."""


def fetch(base_url: str, path: str, **headers: str) -> httpx.Response:
    """One GET.

    Raises:
        AgentUnreachable: nothing answers, or nothing in time.
        AgentRefused: an answer other than 200.
    """
    shown = without_credentials(base_url)
    try:
        response = _get(base_url + path, headers)
    except httpx.TimeoutException:
        raise AgentUnreachable(
            f"the agent at {shown} did not answer within {TIMEOUT_SECONDS:g} s"
        ) from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        raise AgentUnreachable(
            f"{shown!r} is not the URL of an agent; write e.g. http://127.0.0.1:9100"
        ) from None
    except httpx.HTTPError as error:
        raise AgentUnreachable(
            f"no agent answers at {shown} ({error}); start one with `esnode agent`, or name "
            "another with --agent URL"
        ) from None
    if response.status_code != 200:
        text = response.text.strip().splitlines()[:1]
        said = f": {text[0][:200]}" if text else ""
        raise AgentRefused(f"{shown}{path} answered {response.status_code}{said}")
    return response


def _get(url: str, headers: dict[str, str]) -> httpx.Response:
    """Ask within one deadline for everything: a server that drips would else hold us for ever."""
    ends_at = monotonic_seconds() + TIMEOUT_SECONDS
    if not url.startswith(("http://", "https://")):
        raise httpx.UnsupportedProtocol(url)
    tls = _authorities() if url.startswith("https:") else None
    transport = DeadlineTransport(lambda: ends_at - monotonic_seconds(), tls)
    # An agent is asked directly: a proxy of the environment is for the world outside.
    with httpx.Client(transport=transport, trust_env=False) as client:
        return client.get(url, headers=headers)


def _authorities() -> ssl.SSLContext:
    """Whom this machine trusts: its own store, or `SSL_CERT_FILE` and `SSL_CERT_DIR`.

    httpx would look at neither when it is told to leave the environment's proxies alone.
    """
    return ssl.create_default_context()


def fetch_status(base_url: str) -> dict[str, Any]:
    """The status document.

    Raises:
        AgentUnreachable, AgentRefused: as `fetch`; also when another program answers.
    """
    response = fetch(base_url, "/status")
    try:
        document = json.loads(response.content)
        schema = document["schema"]
    except (ValueError, KeyError, TypeError):
        schema = ""
    if not str(schema).startswith("esnode.status/"):
        raise AgentRefused(
            f"what answers at {without_credentials(base_url)} is not an esnode agent; name one "
            "with --agent URL"
        )
    return dict(document)
