"""What holds for every split, whatever the machine, the demand and the cap."""

from hypothesis import given, settings
from hypothesis import strategies as st

from esnode.control.split import (
    DEADBAND_RATIO,
    Chassis,
    NodePart,
    apply_limits,
    bound_watts,
    floor_watts,
    maximum_watts,
    split,
)
from esnode.control.supply import Efficiency
from esnode.readings.limits import LimitRange


@st.composite
def efficiencies(draw: st.DrawFn) -> Efficiency:
    loads = sorted(draw(st.sets(st.integers(0, 12_000), min_size=1, max_size=5)))
    points: list[tuple[int, float]] = []
    for load in loads:
        ratio = draw(st.floats(0.5, 0.99))
        if points and ratio * points[-1][0] > points[-1][1] * load:
            ratio = points[-1][1]
        points.append((load, ratio))
    return Efficiency(points=tuple(points))


@st.composite
def parts(draw: st.DrawFn) -> tuple[NodePart, ...]:
    made = []
    for index in range(draw(st.integers(0, 9))):
        low = draw(st.integers(1, 500))
        high = low + draw(st.integers(0, 1500))
        made.append(
            NodePart(
                range=LimitRange(
                    device=f"d{index}", kind="gpu", minimum_watts=low, maximum_watts=high
                ),
                demand_watts=draw(st.none() | st.floats(0.0, 2500.0)),
                is_settable=draw(st.booleans()),
                enforced_watts=draw(st.none() | st.integers(low - 1, high + 1)),
                weight=draw(st.integers(1, 16)),
            )
        )
    return tuple(made)


chassis = st.builds(Chassis, rest_watts=st.integers(0, 4000), efficiency=efficiencies())


@settings(max_examples=400, deadline=None)
@given(parts(), chassis, st.integers(0, 30_000))
def test_limits_lie_in_their_ranges_and_repeat(machine, around, cap) -> None:
    limits = split(cap, machine, around)

    assert limits == split(cap, machine, around)
    settable = [part for part in machine if part.is_settable]
    assert [limit.device for limit in limits] == [part.range.device for part in settable]
    for limit, part in zip(limits, settable, strict=True):
        assert part.range.minimum_watts <= limit.watts <= part.range.maximum_watts


@settings(max_examples=400, deadline=None)
@given(parts(), chassis, st.integers(0, 10_000))
def test_the_cap_is_kept_wherever_it_can_be(machine, around, above_floor) -> None:
    cap = floor_watts(machine, around) + above_floor

    after = bound_watts(apply_limits(machine, split(cap, machine, around)), around)

    assert after is not None
    assert after <= cap


@settings(max_examples=200, deadline=None)
@given(parts(), chassis, st.integers(0, 10_000))
def test_a_cap_below_the_floor_gives_the_floor(machine, around, below) -> None:
    cap = floor_watts(machine, around) - 1 - below

    after = bound_watts(apply_limits(machine, split(cap, machine, around)), around)

    assert after == floor_watts(machine, around)


@settings(max_examples=200, deadline=None)
@given(parts(), chassis)
def test_the_maximum_leaves_everybody_near_his_maximum(machine, around) -> None:
    limits = split(maximum_watts(machine, around), machine, around)

    for limit, part in zip(limits, [one for one in machine if one.is_settable], strict=True):
        span = part.range.maximum_watts - part.range.minimum_watts
        assert part.range.maximum_watts - limit.watts <= DEADBAND_RATIO * span


@settings(max_examples=200, deadline=None)
@given(parts(), chassis, st.integers(0, 10_000))
def test_a_split_that_is_in_force_is_not_written_again(machine, around, above_floor) -> None:
    cap = floor_watts(machine, around) + above_floor
    once = split(cap, machine, around)

    assert split(cap, apply_limits(machine, once), around) == once


@settings(max_examples=200, deadline=None)
@given(parts(), chassis, st.integers(0, 10_000))
def test_nobody_has_room_for_bursts_while_another_lacks_what_it_needs(
    machine, around, above_floor
) -> None:
    fresh = tuple(
        NodePart(
            range=part.range,
            demand_watts=part.demand_watts,
            is_settable=part.is_settable,
            enforced_watts=None,
            weight=part.weight,
        )
        for part in machine
    )
    cap = floor_watts(fresh, around) + above_floor

    limits = {limit.device: limit.watts for limit in split(cap, fresh, around)}

    def needed(part: NodePart) -> float:
        demand = part.range.maximum_watts if part.demand_watts is None else part.demand_watts
        return min(max(demand, part.range.minimum_watts), part.range.maximum_watts)

    settable = [part for part in fresh if part.is_settable]
    is_short = any(limits[part.range.device] < needed(part) - 1 for part in settable)
    has_room = any(limits[part.range.device] > needed(part) + 1 for part in settable)
    assert not (is_short and has_room)


@settings(max_examples=200, deadline=None)
@given(efficiencies(), st.integers(0, 20_000), st.integers(0, 20_000))
def test_more_load_never_draws_less(efficiency, one, other) -> None:
    low, high = sorted((one, other))

    assert efficiency.wall_watts(low) <= efficiency.wall_watts(high) * (1 + 1e-12)
    assert efficiency.wall_watts(low) >= low
