"""The fairest split: who gets what of so many shares."""

import pytest

from cluster.rack.rows import Wants
from cluster.rack.share import Claim, parked, split, target, water_fill
from cluster.rack.units import SHARES_TOTAL
from tests.rack_rows import BUDGET, SHARES_PER_WATT, node, wants


def watts(count: int) -> int:
    return count * SHARES_PER_WATT


def targets_in_watts(total_watts: int, claimed: dict[int, Wants]) -> dict[int, float]:
    aims = target(watts(total_watts), {node(n): one for n, one in claimed.items()}, BUDGET.watts)
    return {n: aims[node(n)] / SHARES_PER_WATT for n in claimed}


@pytest.mark.parametrize(
    ("total", "claims", "expected"),
    [
        pytest.param(10, [], (), id="nobody claims"),
        pytest.param(9, [(1, 0, 5), (1, 0, 5)], (5, 4), id="the odd one goes to the first"),
        pytest.param(20, [(1, 0, 5), (1, 0, 6)], (5, 6), id="more than all can take"),
        pytest.param(90, [(1, 0, 99), (2, 0, 99)], (30, 60), id="by weight"),
        pytest.param(90, [(1, 0, 99), (2, 0, 40)], (50, 40), id="what one cannot take"),
        pytest.param(90, [(1, 50, 99), (2, 0, 99)], (50, 40), id="never below the low bound"),
        pytest.param(30, [(1, 20, 99), (1, 5, 9), (1, 0, 9)], (20, 5, 5), id="level at a bound"),
        pytest.param(10, [(1, 20, 99), (3, 20, 99)], (3, 7), id="not enough for the low bounds"),
        pytest.param(10, [(1, 2, 99), (1, 20, 99)], (2, 8), id="the low bounds are a max-min too"),
        pytest.param(0, [(1, 0, 5), (1, 0, 5)], (0, 0), id="nothing there"),
        pytest.param(7, [(1, 3, 3), (1, 0, 9)], (3, 4), id="one that cannot move"),
    ],
)
def test_a_common_level_fills_everybody_within_the_own_bounds(
    total: int, claims: list[tuple[int, int, int]], expected: tuple[int, ...]
) -> None:
    assert water_fill(total, [Claim(*claim) for claim in claims]) == expected


@pytest.mark.parametrize(
    ("total", "weights", "expected"),
    [
        pytest.param(10, [1, 1, 1], (4, 3, 3), id="equal fractions: the first"),
        pytest.param(10, [1, 2], (3, 7), id="the larger fraction"),
        pytest.param(5, [0, 1], (0, 5), id="no weight, no part"),
        pytest.param(0, [0, 0], (0, 0), id="nothing for nobody"),
    ],
)
def test_a_split_loses_nothing_by_rounding(
    total: int, weights: list[int], expected: tuple[int, ...]
) -> None:
    assert split(total, weights) == expected


def test_demands_are_met_before_anybody_gets_room_to_burst() -> None:
    aims = targets_in_watts(5000, {1: wants(1000), 2: wants(3000)})

    assert aims == {1: 1500.0, 2: 3500.0}


def test_a_shortage_is_shared_by_weight() -> None:
    aims = targets_in_watts(
        6000, {1: wants(4000, priority=0), 2: wants(4000, priority=1), 3: wants(4000, priority=3)}
    )

    # 8 : 4 : 1; the first needs no more than 3692, and so nobody reaches a bound.
    assert aims[1] == pytest.approx(6000 * 8 / 13, abs=0.001)
    assert aims[2] == pytest.approx(6000 * 4 / 13, abs=0.001)
    assert aims[3] == pytest.approx(6000 * 1 / 13, abs=0.001)


def test_a_minimum_of_a_low_class_comes_before_demand_of_a_high_one() -> None:
    aims = targets_in_watts(
        5000, {1: wants(4000, priority=0), 2: wants(4000, minimum_watts=2000, priority=3)}
    )

    assert aims == {1: 3000.0, 2: 2000.0}


def test_what_no_hardware_could_draw_is_held_evenly() -> None:
    aims = targets_in_watts(
        9000, {1: wants(0, maximum_watts=1000), 2: wants(500, maximum_watts=2000)}
    )

    assert aims == {1: 4000.0, 2: 5000.0}


def test_nobody_is_served_above_what_its_hardware_can_draw() -> None:
    aims = targets_in_watts(
        3000, {1: wants(4000, maximum_watts=1000), 2: wants(4000, maximum_watts=4000)}
    )

    assert aims == {1: 1000.0, 2: 2000.0}


def test_all_ranks_of_a_gang_are_equally_satisfied() -> None:
    aims = targets_in_watts(
        5000,
        {
            1: wants(2000, minimum_watts=1000, gang="train-7"),
            2: wants(4000, minimum_watts=1000, gang="train-7"),
            3: wants(1000),
        },
    )

    # 4000 W for the gang: 2000 above the minima, half of what its ranks lack of their demands.
    assert aims == {1: 1500.0, 2: 2500.0, 3: 1000.0}


def test_a_gang_weighs_as_much_as_its_ranks() -> None:
    aims = targets_in_watts(
        6000, {1: wants(4000, gang="a"), 2: wants(4000, gang="a"), 3: wants(4000)}
    )

    assert aims == {1: 2000.0, 2: 2000.0, 3: 2000.0}


def test_burst_room_of_a_gang_is_in_one_ratio_too() -> None:
    aims = targets_in_watts(
        3000,
        {
            1: wants(0, maximum_watts=1000, gang="a"),
            2: wants(0, maximum_watts=4000, gang="a"),
        },
    )

    assert aims == {1: 600.0, 2: 2400.0}


def test_everybody_runs_while_the_minima_fit() -> None:
    claimed = {node(n): wants(3000, minimum_watts=2500, priority=n) for n in range(4)}

    assert parked(SHARES_TOTAL, claimed, BUDGET.watts) == ()


def test_the_lowest_class_is_parked_first_and_by_id_inside_it() -> None:
    claimed = {
        node(1): wants(4000, minimum_watts=3000, priority=3),
        node(2): wants(4000, minimum_watts=3000, priority=3),
        node(3): wants(4000, minimum_watts=3000, priority=2),
        node(4): wants(4000, minimum_watts=3000, priority=0),
        node(5): wants(4000, minimum_watts=0, priority=3),
    }

    assert parked(watts(9000), claimed, BUDGET.watts) == (node(1),)
    assert parked(watts(8999), claimed, BUDGET.watts) == (node(1), node(2))
    assert parked(watts(3000), claimed, BUDGET.watts) == (node(1), node(2), node(3))


def test_a_gang_is_parked_as_a_whole() -> None:
    claimed = {
        node(1): wants(4000, minimum_watts=3000, priority=3, gang="a"),
        node(2): wants(4000, minimum_watts=3000, priority=2),
        node(3): wants(4000, minimum_watts=3000, priority=3, gang="a"),
    }

    assert parked(watts(8000), claimed, BUDGET.watts) == (node(1), node(3))


def test_a_parked_node_leaves_its_watts_to_those_who_run() -> None:
    aims = targets_in_watts(
        5000,
        {
            1: wants(4000, minimum_watts=3000, priority=3),
            2: wants(4000, minimum_watts=3000, priority=1),
        },
    )

    # 4000 for its demand; what not even its hardware could draw is held evenly.
    assert aims == {1: 500.0, 2: 4500.0}


def test_half_a_minimum_is_given_to_nobody() -> None:
    aims = targets_in_watts(
        4000, {n: wants(2500, minimum_watts=2500, priority=2) for n in (1, 2, 3)}
    )

    assert aims == {1: 0.0, 2: 0.0, 3: 4000.0}


def test_wants_out_of_range_are_bent_and_harm_nobody() -> None:
    aims = targets_in_watts(
        4000,
        {
            1: Wants(demand_watts=-5, minimum_watts=-7, maximum_watts=-1, priority=99),
            2: Wants(demand_watts=9000, minimum_watts=9000, maximum_watts=4000, priority=-3),
        },
    )

    assert aims == {1: 0.0, 2: 4000.0}


def test_without_a_budget_shares_are_still_counted() -> None:
    aims = target(SHARES_TOTAL, {node(1): wants(100), node(2): wants(0)}, 0)

    assert sum(aims.values()) == SHARES_TOTAL
