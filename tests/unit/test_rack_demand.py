"""What a node could use, from its draw and its cap."""

from dataclasses import replace

import pytest

from cluster.rack.demand import HOLD_SECONDS, Demand, Estimate, Load, is_at_cap

IDLE = Load(
    draw_watts=3000.0, cap_watts=6000.0, is_capped=False, floor_watts=2000, maximum_watts=4000
)
"""A kilowatt above the floor, and far below its cap."""
AT_CAP = replace(IDLE, draw_watts=3000.0, cap_watts=3000.0, is_capped=True)


def drawing(draw_watts: float) -> Load:
    return replace(IDLE, draw_watts=draw_watts)


def demands(*steps: tuple[float, Load], is_any_short: bool = False) -> list[int]:
    demand = Demand()
    return [demand.read(load, now, is_any_short=is_any_short).demand_watts for now, load in steps]


def test_demand_is_the_draw_above_the_floor_with_head_room() -> None:
    assert demands((0.0, IDLE)) == [1050]


def test_a_draw_below_the_floor_is_no_demand() -> None:
    assert demands((0.0, drawing(1500.0))) == [0]


def test_demand_rises_with_the_draw_at_once() -> None:
    assert demands((0.0, IDLE), (0.1, drawing(5000.0))) == [1050, 3150]


def test_demand_is_never_above_what_the_hardware_can_draw() -> None:
    assert demands((0.0, drawing(9000.0))) == [4000]


def test_what_is_not_known_is_the_most_and_says_so() -> None:
    demand = Demand()

    unknown = demand.read(replace(IDLE, draw_watts=None), 0.0, is_any_short=False)
    known = demand.read(IDLE, 1.0, is_any_short=False)

    assert unknown == Estimate(demand_watts=4000, is_estimated=True)
    assert known == Estimate(demand_watts=1050, is_estimated=False)


def test_a_node_at_its_cap_asks_for_more_by_steps_and_at_a_limited_rate() -> None:
    asked = demands(*((float(second), AT_CAP) for second in range(8)))

    # A quarter more each second, until a fifth of the range is less.
    assert asked == [1313, 1641, 2051, 2564, 3205, 4000, 4000, 4000]


def test_a_node_that_owns_nothing_asks_for_something() -> None:
    load = replace(IDLE, draw_watts=2000.0, cap_watts=2000.0, is_capped=None)

    assert demands((0.0, load), (1.0, load)) == [40, 80]


def test_a_faster_reader_asks_for_no_more_a_second() -> None:
    asked = demands(*((tenth / 10, AT_CAP) for tenth in range(11)))

    assert asked[0] == 1313
    assert asked[10] == 1313 + 800


def test_a_fall_waits_and_then_goes_by_degrees() -> None:
    busy, quiet = drawing(5000.0), drawing(3000.0)

    felt = demands(
        (0.0, busy),
        (1.0, quiet),
        (HOLD_SECONDS, quiet),
        (HOLD_SECONDS + 1.0, quiet),
        (HOLD_SECONDS + 2.0, quiet),
        (HOLD_SECONDS + 60.0, quiet),
    )

    # 1050 + 2100 * exp(-1 / 3), and the same again.
    assert felt == [3150, 3150, 3150, 2555, 2129, 1050]


def test_a_new_peak_begins_the_wait_anew() -> None:
    busy, quiet = drawing(5000.0), drawing(3000.0)

    felt = demands((0.0, busy), (9.0, quiet), (9.5, busy), (19.0, quiet), (19.6, quiet))

    assert felt == [3150, 3150, 3150, 3150, 2770]


def test_nobody_holds_back_what_another_lacks() -> None:
    felt = demands((0.0, drawing(5000.0)), (0.1, IDLE), is_any_short=True)

    assert felt == [3150, 1050]


def test_smaller_hardware_has_less_demand_at_once() -> None:
    smaller = replace(drawing(3000.0), maximum_watts=2000)

    assert demands((0.0, drawing(5000.0)), (1.0, smaller)) == [3150, 2000]


@pytest.mark.parametrize(
    ("draw_watts", "cap_watts", "is_capped", "expected"),
    [
        pytest.param(2100.0, 6000.0, True, True, id="the hardware says so"),
        pytest.param(3899.0, 4000.0, False, False, id="below 95 % of what is above the floor"),
        pytest.param(3900.0, 4000.0, False, True, id="95 % of what is above the floor"),
        pytest.param(1999.0, 2050.0, False, False, id="it idles below the floor"),
        pytest.param(1999.0, 2050.0, None, True, id="the same, and nobody says why"),
        pytest.param(1900.0, 2050.0, None, False, id="below 95 % of the whole cap"),
        pytest.param(None, 4000.0, None, False, id="no draw is known"),
        pytest.param(None, 4000.0, True, True, id="no draw is known, but the hardware speaks"),
        pytest.param(3900.0, None, None, False, id="nothing holds it"),
    ],
)
def test_a_node_is_at_its_cap_by_its_hardware_or_by_its_draw(
    draw_watts: float | None, cap_watts: float | None, is_capped: bool | None, expected: bool
) -> None:
    load = replace(IDLE, draw_watts=draw_watts, cap_watts=cap_watts, is_capped=is_capped)

    assert is_at_cap(load) is expected
