"""What holds of the folds whatever the meters do."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esnode.agent import Agent, AgentSettings
from esnode.fold.counters import Integral, WrappingEnergy, held
from esnode.fold.host import busy_ratio
from esnode.fold.power import EnergyPrice
from esnode.metrics import METRICS, View
from tests.expositions import Series, meant_by
from tests.node_stories import STEPS, Step, Story

RANGE = 262_143_328_850
PRICE = EnergyPrice(
    price_per_kilowatt_hour=0.3, currency="EUR", carbon_grams_per_kilowatt_hour=400.0
)
COUNTERS = tuple(metric for metric in METRICS if metric.kind == "counter")

SOURCE_OF = {
    "esnode_cpu_seconds_total": "cpu",
    "esnode_gpu_energy_joules_total": "gpu",
    "esnode_app_tokens_total": "app",
}
"""Counters that are a source's own and start anew with it; all others are the agent's."""

BEGINS_WITHIN = {
    "esnode_cpu_rapl_energy_joules_total": 0.0,
    "esnode_node_energy_joules_total": 0.0,
    "esnode_energy_cost_total": 8.0 / 3600 * 0.3,
    "esnode_carbon_grams_total": 8.0 / 3600 * 400,
    "esnode_gpu_throttle_seconds_total": 1.0,
}
"""What a counter of the agent's own may hold when first seen, for each second of the story: nothing
of the time before the agent. 8 kW is the most that a story's chassis draws."""


@settings(max_examples=80, deadline=None)
@given(st.lists(STEPS, min_size=2, max_size=40))
def test_no_counter_goes_back_or_begins_with_what_was_before_the_agent(
    steps: list[Step],
) -> None:
    agent, story = Agent(AgentSettings()), Story()
    began = story.now
    last: dict[Series, float] = {}

    for step in steps:
        reading = story.live(step)
        agent.settings = replace(agent.settings, price=PRICE if step.is_priced else EnergyPrice())
        for series in [s for s in last if SOURCE_OF.get(s[0]) in story.reset]:
            del last[series]
        snapshot = agent.tick(reading, now=story.now).snapshot

        for series, value in meant_by(View(snapshot=snapshot), COUNTERS):
            if series in last:
                assert value >= last[series], series
            elif series[0] in BEGINS_WITHIN:
                assert value <= BEGINS_WITHIN[series[0]] * (story.now - began), series
            last[series] = value


@settings(max_examples=80, deadline=None)
@given(st.lists(STEPS, min_size=2, max_size=40))
def test_no_more_energy_is_counted_than_was_used(steps: list[Step]) -> None:
    agent, story = Agent(AgentSettings()), Story()
    began = story.now

    for step in steps:
        power = agent.tick(story.live(step), now=story.now).snapshot.power

        for zone in power.zones:
            assert zone.energy_joules_total <= story.zone_joules + 1.0
        assert (power.node_energy_joules_total or 0.0) <= 8000.0 * (story.now - began)


@given(
    st.integers(0, RANGE - 1),
    st.lists(st.tuples(st.floats(0.1, 60.0), st.floats(0.0, 900.0)), min_size=1, max_size=50),
)
def test_a_counter_that_wraps_is_followed_to_the_microjoule(
    start: int, steps: list[tuple[float, float]]
) -> None:
    energy = WrappingEnergy(ceiling_watts=5000.0)
    at, used = 0.0, 0
    energy.fold(start, RANGE, at)

    for seconds, watts in steps:
        at += seconds
        used += int(watts * seconds * 1e6)
        energy.fold((start + used) % RANGE, RANGE, at)

    assert energy.total_joules == pytest.approx(used / 1e6, rel=1e-9, abs=1e-6)


@given(st.lists(st.tuples(st.floats(0.1, 60.0), st.none() | st.floats(0.0, 1e4)), max_size=50))
def test_an_area_is_the_sum_of_what_each_sample_added_and_never_shrinks(
    steps: list[tuple[float, float | None]],
) -> None:
    integral = Integral()
    at, added = 0.0, 0.0

    for seconds, value in steps:
        at += seconds
        step = integral.fold(value, at, gap_seconds=30.0)
        assert step >= 0.0
        added += step

    assert (integral.total or 0.0) == pytest.approx(added)


@given(st.floats(0.1, 29.0), st.floats(0.0, 1e4), st.floats(0.0, 1e4), st.floats(0.01, 0.99))
def test_an_area_does_not_depend_on_where_a_straight_line_is_sampled(
    seconds: float, first: float, second: float, share: float
) -> None:
    whole, parts = Integral(), Integral()
    between = first + (second - first) * share

    for integral, samples in (
        (whole, [(0.0, first), (seconds, second)]),
        (parts, [(0.0, first), (seconds * share, between), (seconds, second)]),
    ):
        for at, value in samples:
            integral.fold(value, at, gap_seconds=30.0)

    assert whole.total == pytest.approx(parts.total, abs=1e-6)


TIMES = st.tuples(*[st.floats(0.0, 1e7)] * 10)


@given(TIMES, TIMES)
def test_a_busy_share_is_a_share_or_unknown(
    before: tuple[float, ...], after: tuple[float, ...]
) -> None:
    ratio = busy_ratio(before, after)

    assert ratio is None or 0.0 <= ratio <= 1.0


@given(st.floats(0.0, 1e9), st.floats(0.0, 1e9), st.floats(0.0, 10.0))
def test_a_held_counter_steps_back_only_by_more_than_the_tolerance(
    before: float, after: float, tolerance: float
) -> None:
    kept = held(before, after, tolerance)

    assert kept in (before, after)
    assert kept >= before or before - after > tolerance
