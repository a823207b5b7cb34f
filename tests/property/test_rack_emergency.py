"""What holds of emergencies and demands, whatever is measured and heard."""

from random import Random

from hypothesis import given
from hypothesis import strategies as some

from cluster.rack.demand import Demand, Load
from cluster.rack.emergency import (
    HOLD_SECONDS_MIN,
    MILLION,
    Emergency,
    EmergencyMessage,
    class_cut_ratio,
)
from tests.rack_rows import node

messages = some.builds(
    EmergencyMessage,
    witness=some.integers(2, 5).map(node),
    stamp=some.integers(0, 6),
    cut_parts_per_million=some.integers(-10, 2 * MILLION),
)
pauses = some.floats(0.0, 30.0)
events = some.lists(
    some.tuples(pauses, some.one_of(messages, some.floats(0.0, 90_000.0), some.none())),
    max_size=25,
)


@given(events, some.integers(0, 2**32))
def test_an_emergency_only_ever_lowers(
    story: list[tuple[float, EmergencyMessage | float | None]], seed: int
) -> None:
    emergency, now = Emergency(node(1), first_stamp=0, rng=Random(seed)), 0.0

    for pause, event in story:
        now += pause
        before = emergency.view(now).cut_parts_per_million
        if isinstance(event, EmergencyMessage):
            emergency.receive(event, now)
        elif event is not None:
            emergency.measured(event, 0.5, 40_000, now, budget_watts=20_000)
        else:
            emergency.advance(now)
        after = emergency.view(now).cut_parts_per_million

        assert 0 <= after <= MILLION
        assert after >= before or event is None
        assert 0 <= emergency.throttle_watts(2000, 1) <= 2000
        assert (after > 0) <= (emergency.deadline() is not None)


@given(some.lists(messages, max_size=12))
def test_the_same_messages_again_change_nothing(heard: list[EmergencyMessage]) -> None:
    emergency = Emergency(node(1), first_stamp=0, rng=Random(1))
    for message in heard:
        emergency.receive(message, 0.0)
    due = emergency.deadline()

    for message in heard:
        assert emergency.receive(message, 1.0) == []

    assert emergency.deadline() == due


@given(events)
def test_one_liar_takes_half_at_most(
    story: list[tuple[float, EmergencyMessage | float | None]],
) -> None:
    emergency, now = Emergency(node(1), first_stamp=0, rng=Random(1)), 0.0

    for pause, event in story:
        now += pause
        if isinstance(event, EmergencyMessage) and event.witness == node(2):
            emergency.receive(event, now)

    assert emergency.view(now).cut_parts_per_million <= MILLION // 2


@given(events, some.integers(0, 2**32))
def test_every_cut_comes_to_an_end(
    story: list[tuple[float, EmergencyMessage | float | None]], seed: int
) -> None:
    emergency, now = Emergency(node(1), first_stamp=0, rng=Random(seed)), 0.0
    for pause, event in story:
        now += pause
        if isinstance(event, EmergencyMessage):
            emergency.receive(event, now)
    ended_at = now

    for _ in range(30):
        due = emergency.deadline()
        if due is None:
            break
        now = max(now, due)
        emergency.advance(now)

    assert emergency.view(now).cut_parts_per_million == 0
    assert now == ended_at or now - ended_at >= HOLD_SECONDS_MIN - sum(pause for pause, _ in story)


@given(some.floats(0.0, 1.0), some.lists(some.integers(0, 50_000), min_size=4, max_size=4))
def test_all_classes_together_give_what_is_to_be_cut(
    cut_ratio: float, watts_by_class: list[int]
) -> None:
    ratios = [class_cut_ratio(cut_ratio, priority, watts_by_class) for priority in range(4)]

    given_watts = sum(watts * ratio for watts, ratio in zip(watts_by_class, ratios, strict=True))
    assert given_watts >= cut_ratio * sum(watts_by_class) * (1 - 1e-9) - 1e-6
    assert given_watts <= cut_ratio * sum(watts_by_class) * (1 + 1e-9) + 1e-6
    assert ratios == sorted(ratios)


loads = some.builds(
    Load,
    draw_watts=some.one_of(some.none(), some.floats(0.0, 9000.0)),
    cap_watts=some.one_of(some.none(), some.floats(0.0, 9000.0)),
    is_capped=some.one_of(some.none(), some.booleans()),
    floor_watts=some.just(2000),
    maximum_watts=some.sampled_from((0, 2000, 4000)),
)


@given(some.lists(some.tuples(some.floats(0.0, 20.0), loads, some.booleans()), max_size=25))
def test_demand_covers_what_is_drawn_and_is_within_the_hardware(
    story: list[tuple[float, Load, bool]],
) -> None:
    demand, now = Demand(), 0.0

    for pause, load, is_any_short in story:
        now += pause
        estimate = demand.read(load, now, is_any_short=is_any_short)

        assert 0 <= estimate.demand_watts <= load.maximum_watts
        assert estimate.is_estimated is (load.draw_watts is None)
        if load.draw_watts is not None:
            drawn = min(load.draw_watts - load.floor_watts, load.maximum_watts)
            assert estimate.demand_watts >= drawn
