"""One HTTP GET that ends by its deadline, whatever the server does.

Its own file because httpx limits each read and not their sum: a server that drips a byte a second,
in its headers or its body, would hold the worker for ever. Here every wait on the socket gets what
is left of one deadline. httpx is imported at the first use, as most agents scrape nothing. Only the
name look-up is out of reach: the resolver has time limits of its own.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from esnode.collectors.base import CollectFailed

if TYPE_CHECKING:
    import httpx

TIMEOUT_SECONDS = 2.0
"""The default deadline: a scrape that takes longer is of no use to a 5 s interval."""

BODY_LIMIT_BYTES = 8 * 1024 * 1024
"""A vLLM with several models answers with some 100 kB."""

REDIRECTS_MAX = 3

_SCHEMES = ("http", "https")


def word_endpoint(url: str) -> str:
    """Give what may be shown of a URL: no user, no password, no query, no fragment."""
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname or ""
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        host = port = ""
    if not host:
        # Whatever stands before an @ may be a password, wherever the parser has put it.
        return "malformed-url"
    if ":" in host:
        host = f"[{host}]"
    return f"{parts.scheme}://{host}{port}{parts.path}"


class Scraper:
    """One URL with one kept connection. Used by one thread at a time."""

    def __init__(
        self,
        url: str,
        *,
        clock: Callable[[], float],
        timeout_seconds: float,
        body_limit_bytes: int,
    ) -> None:
        self._url = url.strip()
        self._endpoint = word_endpoint(url)
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._body_limit_bytes = body_limit_bytes
        self._client: httpx.Client | None = None
        self._deadline_seconds = 0.0

    def fetch(self) -> bytes:
        """Get the body of a 200 answer.

        Raises:
            CollectFailed: there is none within the deadline and the limits.
        """
        self._check_url()
        import httpx

        try:
            if self._client is None:
                self._client = self._make_client()
            self._deadline_seconds = self._clock() + self._timeout_seconds
            return self._follow(self._client, self._url)
        except httpx.TimeoutException:
            raise self._failed(f"no answer within {self._timeout_seconds:g} s") from None
        except httpx.InvalidURL:
            # Its text may quote the URL, and with it a password.
            raise self._failed("not a usable URL, or a redirect to none") from None
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise self._failed(_word_error(error)) from None

    def close(self) -> None:
        """Close the kept connection."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def remaining_seconds(self) -> float:
        """How long the socket may still be waited for; 0 and less when the time is up."""
        return self._deadline_seconds - self._clock()

    def _check_url(self) -> None:
        try:
            parts = urlsplit(self._url)
            is_usable = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_usable = False
        if not is_usable:
            raise self._failed("not an http or https URL with a host")

    def _make_client(self) -> "httpx.Client":
        import ssl

        import httpx

        from esnode.collectors.app_deadline import DeadlineTransport

        url = httpx.URL(self._url)
        tls = ssl.create_default_context() if url.scheme == "https" else None
        transport = DeadlineTransport(self.remaining_seconds, tls)
        # No proxy and no .netrc of the environment: the endpoints are this host's neighbours.
        return httpx.Client(
            transport=transport,
            auth=(url.username, url.password) if url.userinfo else None,
            trust_env=False,
            follow_redirects=False,
            headers={
                "accept": "text/plain;version=0.0.4, text/plain;q=0.5",
                # A compressed bomb would pass the limit below unseen.
                "accept-encoding": "identity",
                "user-agent": "esnode",
            },
        )

    def _follow(self, client: "httpx.Client", url: str) -> bytes:
        for _ in range(REDIRECTS_MAX + 1):
            with client.stream("GET", url) as response:
                if not response.is_redirect:
                    return self._take_body(response)
                if response.next_request is None:
                    raise self._failed(f"status {response.status_code} without a place to go")
                target = response.next_request.url
                here = response.request.url
            if (target.scheme, target.host, target.port) != (here.scheme, here.host, here.port):
                raise self._failed("redirects to another server, which is not followed")
            url = str(target)
        raise self._failed(f"redirects more than {REDIRECTS_MAX} times")

    def _take_body(self, response: "httpx.Response") -> bytes:
        if response.status_code != 200:
            raise self._failed(f"status {response.status_code} {response.reason_phrase}".strip())
        encoding = response.headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise self._failed(f"the answer is compressed ({encoding[:20]}), unasked")
        body = bytearray()
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > self._body_limit_bytes:
                raise self._failed(f"the answer is larger than {self._body_limit_bytes} bytes")
        return bytes(body)

    def _failed(self, what: str) -> CollectFailed:
        return CollectFailed(f"{self._endpoint}: {what}")


def _word_error(error: Exception) -> str:
    """Give one short line; httpx puts no URL into these."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
