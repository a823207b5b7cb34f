"""What may be concluded from counters that reset, wrap or step back."""

import pytest

from esnode.fold.counters import (
    Integral,
    SpanTracker,
    WrappingEnergy,
    held,
    increase,
    rate_per_second,
)
from tests.samples import sample

RANGE = 262_143_328_850
"""Of a common package zone, in microjoules."""


def energy(*readings: tuple[float, int], span: int | None = RANGE) -> WrappingEnergy:
    counter = WrappingEnergy(ceiling_watts=5000.0)
    for at, microjoules in readings:
        counter.fold(microjoules, span, at)
    return counter


@pytest.mark.parametrize(
    ("readings", "span", "joules", "watts"),
    [
        pytest.param([(0, 900_000_000)], RANGE, 0.0, None, id="the-first-only-sets-the-base"),
        pytest.param([(0, 0), (5, 500_000_000)], RANGE, 500.0, 100.0, id="plain-growth"),
        pytest.param(
            [(0, RANGE - 100_000_000), (5, 400_000_000)], RANGE, 500.0, 100.0, id="a-wrap"
        ),
        pytest.param(
            [(0, 500_000_000), (5, 400_000_000)], None, 0.0, None, id="a-step-back-of-unknown-range"
        ),
        pytest.param(
            [(0, 500_000_000), (5, 400_000_000), (10, 900_000_000)],
            None,
            500.0,
            100.0,
            id="and-on-from-the-new-base",
        ),
        pytest.param(
            [(0, 0), (5, 200_000_000_000)], RANGE, 0.0, None, id="an-implausible-jump-is-no-energy"
        ),
        pytest.param(
            [(0, 0), (5, 200_000_000_000), (10, 200_500_000_000)],
            RANGE,
            500.0,
            100.0,
            id="and-on-from-where-it-jumped",
        ),
        pytest.param(
            [(0, 400_000_000), (5, 100_000_000)], RANGE, 0.0, None, id="a-reset-is-no-wrap"
        ),
        pytest.param([(0, 0), (0, 500_000_000)], RANGE, 0.0, None, id="no-time-has-passed"),
        pytest.param(
            [(0, 0), (5, 500_000_000), (5, 500_000_000)], RANGE, 500.0, 100.0, id="the-same-again"
        ),
        pytest.param(
            [(0, 0), (600, 100_000_000_000)],
            RANGE,
            0.0,
            None,
            id="too-long-to-tell-how-often-it-wrapped",
        ),
        pytest.param(
            [(0, 0), (600, 60_000_000_000)], None, 60_000.0, 100.0, id="long-but-it-never-wraps"
        ),
    ],
)
def test_energy_of_a_wrapping_counter(
    readings: list[tuple[float, int]], span: int | None, joules: float, watts: float | None
) -> None:
    counter = energy(*readings, span=span)

    assert counter.total_joules == joules
    assert counter.power_watts == watts


@pytest.mark.parametrize(
    ("before", "after", "grown"),
    [
        pytest.param(1, 3, 2, id="growth"),
        pytest.param(3, 3, 0, id="nothing-happened"),
        pytest.param(3, 1, None, id="a-reset-tells-nothing"),
        pytest.param(None, 1, None, id="unknown-before"),
        pytest.param(1, None, None, id="unknown-after"),
    ],
)
def test_how_much_a_counter_grew(
    before: float | None, after: float | None, grown: float | None
) -> None:
    assert increase(before, after) == grown
    expected = None if grown is None else grown / 2
    assert rate_per_second(before, after, 2.0) == expected


def test_a_rate_over_no_time_is_unknown() -> None:
    assert rate_per_second(1, 2, 0.0) is None


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(10.0, 11.0, 11.0, id="growth"),
        pytest.param(10.0, 9.5, 10.0, id="a-small-step-back-is-held"),
        pytest.param(10.0, 9.0, 10.0, id="a-step-of-the-tolerance-too"),
        pytest.param(10.0, 0.0, 0.0, id="a-large-one-is-a-reset"),
    ],
)
def test_a_counter_that_steps_back_a_little_is_held(
    before: float, after: float, expected: float
) -> None:
    assert held(before, after, 1.0) == expected


@pytest.mark.parametrize(
    ("samples", "total"),
    [
        pytest.param([(0, None)], None, id="nothing-known"),
        pytest.param([(0, 100.0)], 0.0, id="one-sample-has-no-area"),
        pytest.param([(0, 100.0), (10, 200.0)], 1500.0, id="trapezoid"),
        pytest.param([(0, 100.0), (10, None), (15, 100.0)], 0.0, id="an-unknown-value-is-a-gap"),
        pytest.param([(0, 100.0), (31, 100.0)], 0.0, id="a-long-gap-is-left-out"),
        pytest.param([(0, 100.0), (31, 100.0), (41, 100.0)], 1000.0, id="and-on-after-it"),
        pytest.param([(0, 100.0), (10, 100.0), (10, 900.0)], 1000.0, id="a-sample-counts-once"),
        pytest.param([(10, 100.0), (5, 900.0), (20, 100.0)], 1000.0, id="an-older-one-not-at-all"),
    ],
)
def test_the_area_under_a_sampled_value(
    samples: list[tuple[float, float | None]], total: float | None
) -> None:
    integral = Integral()

    added = [integral.fold(value, at, gap_seconds=30.0) for at, value in samples]

    assert integral.total == total
    assert sum(added) == (total or 0.0)


def test_a_span_is_new_once_and_stays_until_the_next_sample() -> None:
    tracker = SpanTracker[str]()
    first, second = sample("a", 0.0), sample("b", 5.0)

    assert tracker.fold(first, now=1.0) == (None, True)
    span, is_new = tracker.fold(second, now=6.0)
    assert span is not None
    assert (span.before, span.after, span.seconds, is_new) == ("a", "b", 5.0, True)
    assert tracker.fold(second, now=7.0) == (span, False)


@pytest.mark.parametrize(
    ("second", "now"),
    [
        pytest.param(sample("b", 40.0), 41.0, id="after-a-gap"),
        pytest.param(None, 41.0, id="without-a-sample"),
        pytest.param(sample("b", 5.0), 41.0, id="of-a-stale-sample"),
    ],
)
def test_there_is_no_span(second: object, now: float) -> None:
    tracker = SpanTracker[object]()
    tracker.fold(sample("a", 0.0), now=1.0)

    span, _ = tracker.fold(second, now=now)  # type: ignore[arg-type]

    assert span is None
