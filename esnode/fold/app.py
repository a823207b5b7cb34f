"""Tokens per second and per joule: counters over one window, never a ratio of two samples."""

from collections import deque

from esnode.fold.counters import increase
from esnode.fold.power import EnergyPrice
from esnode.readings.app import AppReading
from esnode.readings.sample import Reading, Sample
from esnode.snapshot import AppState

WINDOW_SECONDS = 60.0
"""Long enough that a meter read every 5 to 30 s has several samples in it."""
MINIMUM_WINDOW_SECONDS = 2.0


class AppFold:
    """Work done by all endpoints, from successive scrapes."""

    def __init__(self) -> None:
        self._last: dict[str, Sample[AppReading]] = {}
        self._tokens = 0.0
        self._window: deque[tuple[float, float, float | None]] = deque()
        """(time, tokens counted so far, node's joules so far), oldest first."""

    def fold(
        self,
        reading: Reading,
        *,
        node_energy_joules_total: float | None,
        price: EnergyPrice,
        now: float,
    ) -> AppState:
        """The state at `now`; the ratios are ``None`` until the window says something."""
        fresh = [
            (url, sample) for url, sample in reading.apps.items() if sample.fresh(now) is not None
        ]
        is_new = False
        for url, sample in fresh:
            last = self._last.get(url)
            if sample is not last:
                self._last[url] = sample
                is_new = True
                self._tokens += _tokens_since(last, sample)
        for gone in [url for url in self._last if url not in reading.apps]:
            del self._last[gone]
        if is_new:
            self._window.append((now, self._tokens, node_energy_joules_total))
        while len(self._window) > 1 and now - self._window[0][0] > WINDOW_SECONDS:
            self._window.popleft()
        if not fresh:
            self._window.clear()
        endpoints = tuple(sample.value for _, sample in fresh)
        return self._ratios(endpoints, price)

    def _ratios(self, endpoints: tuple[AppReading, ...], price: EnergyPrice) -> AppState:
        if len(self._window) < 2:
            return AppState(endpoints=endpoints)
        start, end = self._window[0], self._window[-1]
        seconds = end[0] - start[0]
        if seconds < MINIMUM_WINDOW_SECONDS:
            return AppState(endpoints=endpoints)
        tokens = end[1] - start[1]
        joules = increase(start[2], end[2])
        kilowatt_hours_per_token = joules / 3.6e6 / tokens if joules and tokens else None
        tariff, carbon = price.price_per_kilowatt_hour, price.carbon_grams_per_kilowatt_hour
        return AppState(
            endpoints=endpoints,
            tokens_per_second=tokens / seconds,
            tokens_per_joule=tokens / joules if joules else None,
            cost_per_million_tokens=(
                kilowatt_hours_per_token * tariff * 1e6
                if kilowatt_hours_per_token is not None and tariff is not None
                else None
            ),
            carbon_grams_per_token=(
                kilowatt_hours_per_token * carbon
                if kilowatt_hours_per_token is not None and carbon is not None
                else None
            ),
            window_seconds=seconds,
        )


def _tokens_since(last: Sample[AppReading] | None, sample: Sample[AppReading]) -> float:
    """Tokens counted between two scrapes; a counter that restarted counts from zero.

    What was counted in a gap is left out: it is the work of a time that no window covers.
    """
    if last is None:
        return 0.0
    if sample.taken_at_seconds - last.taken_at_seconds > sample.stale_after_seconds:
        return 0.0
    before = {(count.model, count.kind): count.tokens_total for count in last.value.tokens}
    grown = 0.0
    for count in sample.value.tokens:
        old = before.get((count.model, count.kind))
        if old is not None:
            step = increase(old, count.tokens_total)
            grown += count.tokens_total if step is None else step
    return grown
