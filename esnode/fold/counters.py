"""Counters that reset, wrap or step back a little, and what may be concluded from them."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from esnode.readings.sample import Sample

T = TypeVar("T")

STEP_BACK_TOLERANCE_SECONDS = 1.0
"""The kernel's per-CPU idle and iowait seconds step back by some ticks (node_exporter#1686)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span(Generic[T]):
    """Two successive samples of one source."""

    before: T
    after: T
    seconds: float


class SpanTracker(Generic[T]):
    """Turns a stream of samples into spans, each new sample once."""

    def __init__(self) -> None:
        self._last: Sample[T] | None = None
        self._span: Span[T] | None = None

    def fold(self, sample: Sample[T] | None, *, now: float) -> tuple[Span[T] | None, bool]:
        """The span that ends at `sample`, and whether it is new.

        There is none for the first sample, after a gap longer than the sample's own stale age, and
        when the sample is stale.
        """
        if sample is None or sample.fresh(now) is None:
            self._span = None
            return None, False
        last = self._last
        if last is not None and sample.taken_at_seconds == last.taken_at_seconds:
            return self._span, False
        self._last = sample
        self._span = None
        if last is not None:
            seconds = sample.taken_at_seconds - last.taken_at_seconds
            if 0 < seconds <= sample.stale_after_seconds:
                self._span = Span(before=last.value, after=sample.value, seconds=seconds)
        return self._span, True


def increase(before: float | None, after: float | None) -> float | None:
    """How much a counter grew; ``None`` when unknown or when it was reset in between."""
    if before is None or after is None or after < before:
        return None
    return after - before


def rate_per_second(before: float | None, after: float | None, seconds: float) -> float | None:
    """`increase` over time."""
    grown = increase(before, after)
    return None if grown is None or seconds <= 0 else grown / seconds


def held(before: float, after: float, tolerance: float) -> float:
    """A counter that may not step back: small steps are held, large ones are resets."""
    return before if before - tolerance <= after < before else after


class WrappingEnergy:
    """Joules counted by a hardware counter that wraps at a known range.

    The first reading only sets the base, so the total starts at 0 and never with a huge value. A
    jump that would mean more than `ceiling_watts` is not believed and sets a new base; so does an
    interval in which the counter may have gone round more than once, because nobody can tell how
    often: 262 kJ at `SUSTAINED_WATTS` are 4.4 minutes.
    Source: kernel documentation, power/powercap (energy_uj, max_energy_range_uj).
    """

    SUSTAINED_WATTS = 1000.0
    """Above what any one zone draws for minutes: the largest server processors are rated 500 W."""

    def __init__(self, *, ceiling_watts: float) -> None:
        self._ceiling_watts = ceiling_watts
        self._last: tuple[int, float] | None = None
        self.total_joules = 0.0
        self.power_watts: float | None = None

    def fold(self, microjoules: int, range_microjoules: int | None, taken_at: float) -> None:
        """Take one raw reading; one already taken is ignored."""
        last, self._last = self._last, (microjoules, taken_at)
        if last is None:
            return
        seconds = taken_at - last[1]
        if seconds <= 0:
            self._last = last
            return
        grown = microjoules - last[0]
        is_round_unknown = False
        if range_microjoules:
            grown = grown + range_microjoules if grown < 0 else grown
            is_round_unknown = range_microjoules / 1e6 < self.SUSTAINED_WATTS * seconds
        joules = grown / 1e6
        if grown < 0 or is_round_unknown or joules > self._ceiling_watts * seconds:
            self.power_watts = None
            return
        self.total_joules += joules
        self.power_watts = joules / seconds


class Integral:
    """The area under a value that is sampled now and then (trapezoid rule).

    Gaps longer than `gap_seconds` are left out: nothing is known of them, so nothing is added.
    """

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None
        self.total: float | None = None

    def fold(self, value: float | None, taken_at: float, *, gap_seconds: float) -> float:
        """Take one sample; the part of the area that it added."""
        if value is None:
            self._last = None
            return 0.0
        last = self._last
        if last is not None and taken_at <= last[1]:
            return 0.0
        self._last = (value, taken_at)
        if self.total is None:
            self.total = 0.0
        if last is None or taken_at - last[1] > gap_seconds:
            return 0.0
        area = (value + last[0]) / 2 * (taken_at - last[1])
        self.total += area
        return area
