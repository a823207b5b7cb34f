"""Token counters and queues of the inference servers at `app_metrics_urls`.

Its own file because it is the one collector that speaks HTTP, with hosts that may be slow, broken
or hostile. What the metrics mean is in `app_dialects`, how a deadline is kept in `app_http`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from esnode.collectors.app_dialects import Sample, is_of_interest, read_samples
from esnode.collectors.app_http import BODY_LIMIT_BYTES, TIMEOUT_SECONDS, Scraper, word_endpoint
from esnode.collectors.base import CollectFailed, Discovery
from esnode.readings.app import AppReading

_LINE_START = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*(?=[{ \t])")
"""The name of a sample, as the exposition format wants it."""

_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class AppTarget:
    """One configured URL. It may hold a password, so only `endpoint` is ever shown."""

    endpoint: str
    url: str = field(repr=False)


class AppCollector:
    """One worker and one kept connection per URL."""

    name = "app"

    def __init__(
        self,
        urls: Sequence[str],
        *,
        clock: Callable[[], float],
        timeout_seconds: float = TIMEOUT_SECONDS,
        body_limit_bytes: int = BODY_LIMIT_BYTES,
    ) -> None:
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._body_limit_bytes = body_limit_bytes
        self._targets = _name_targets(urls)
        self._scrapers: dict[str, Scraper] = {}

    def discover(self) -> Discovery[None, AppTarget]:
        """List the configured URLs, be they good or not: a bad one says why when it is read."""
        return Discovery(part=None, targets=self._targets)

    def read(self, target: AppTarget) -> AppReading:
        """Scrape one URL.

        Raises:
            CollectFailed: no usable answer within the deadline.
        """
        scraper = self._scrapers.get(target.url)
        if scraper is None:
            scraper = Scraper(
                target.url,
                clock=self._clock,
                timeout_seconds=self._timeout_seconds,
                body_limit_bytes=self._body_limit_bytes,
            )
            self._scrapers[target.url] = scraper
        body = scraper.fetch()
        return read_samples(target.endpoint, parse_exposition(target.endpoint, body))

    def close(self) -> None:
        """Close the kept connections."""
        for scraper in list(self._scrapers.values()):  # a read under way may add one
            scraper.close()
        self._scrapers.clear()


def parse_exposition(endpoint: str, body: bytes) -> Iterator[Sample]:
    """Parse the lines that some dialect reads. Every line must look like the format, though.

    Histograms are most of an inference server's metrics, and parsing them all would cost a
    hundred times what the few counters do.

    Raises:
        CollectFailed: a line is none of Prometheus' text format.
    """
    text = body.decode("utf-8", "replace")
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        # A line that starts with {" has a quoted name, which no server in question uses.
        if not stripped or stripped.startswith(("#", '{"')):
            continue
        name = _LINE_START.match(stripped)
        if name is None:
            raise _malformed(endpoint, number, stripped)
        if is_of_interest(name.group()):
            yield _parse_line(endpoint, number, stripped)


def _parse_line(endpoint: str, number: int, line: str) -> Sample:
    try:
        (family,) = text_string_to_metric_families(line + "\n")
        (sample,) = family.samples
    except (ValueError, LookupError, TypeError):
        # What the parser raises depends on where the line breaks off.
        raise _malformed(endpoint, number, line) from None
    return Sample(name=sample.name, labels=sample.labels, value=sample.value)


def _malformed(endpoint: str, number: int, line: str) -> CollectFailed:
    shown = line[:_SHOWN_CHARACTERS]
    return CollectFailed(f"{endpoint}: line {number} is no Prometheus text: {shown!r}")


def _name_targets(urls: Sequence[str]) -> dict[str, AppTarget]:
    """Key each URL by what may be shown of it; two that look alike are numbered."""
    targets: dict[str, AppTarget] = {}
    for url in dict.fromkeys(urls):
        endpoint = name = word_endpoint(url)
        number = 2
        while name in targets:
            name = f"{endpoint}#{number}"
            number += 1
        targets[name] = AppTarget(endpoint=name, url=url)
    return targets
