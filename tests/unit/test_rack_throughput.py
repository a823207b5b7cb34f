"""The split that gets the most work done."""

import pytest

from cluster.rack.rows import Wants
from cluster.rack.throughput import Curve, throughput_target
from tests.rack_rows import BUDGET, SHARES_PER_WATT, node, wants

ROOT = Curve(exponent=0.5)


def targets_in_watts(
    total_watts: int, claimed: dict[int, Wants], curves: dict[int, Curve]
) -> dict[int, float]:
    aims = throughput_target(
        total_watts * SHARES_PER_WATT,
        {node(n): one for n, one in claimed.items()},
        BUDGET.watts,
        {node(n): curve for n, curve in curves.items()},
    )
    assert sum(aims.values()) == total_watts * SHARES_PER_WATT
    return {n: aims[node(n)] / SHARES_PER_WATT for n in claimed}


def test_equal_nodes_get_equal_parts() -> None:
    aims = targets_in_watts(4000, {1: wants(4000), 2: wants(4000)}, {1: ROOT, 2: ROOT})

    assert aims == {1: 2000.0, 2: 2000.0}


def test_the_last_watt_is_worth_the_same_to_all() -> None:
    # Twice the weight at a root is worth four times the watts.
    aims = targets_in_watts(
        4000, {1: wants(4000, priority=1), 2: wants(4000, priority=2)}, {1: ROOT, 2: ROOT}
    )

    assert aims[1] == pytest.approx(3200, abs=0.01)
    assert aims[2] == pytest.approx(800, abs=0.01)


def test_nobody_gets_watts_of_no_use_while_another_has_a_use_for_them() -> None:
    decode = Curve(start_ratio=0.0, exponent=0.5, knee_ratio=0.25)

    aims = targets_in_watts(5000, {1: wants(4000), 2: wants(4000)}, {1: decode, 2: Curve()})

    assert aims[1] <= 1000.0
    assert aims == {1: 1000.0, 2: 4000.0}


def test_a_node_that_works_only_from_some_watts_on_gets_beyond_them() -> None:
    late = Curve(start_ratio=0.25, exponent=0.5)

    aims = targets_in_watts(5000, {1: wants(4000), 2: wants(4000)}, {1: late, 2: late})

    assert aims == {1: 2500.0, 2: 2500.0}


def test_a_start_that_all_cannot_reach_is_shared_by_weight() -> None:
    late = Curve(start_ratio=0.5, exponent=0.5)

    aims = targets_in_watts(3000, {1: wants(4000), 2: wants(4000)}, {1: late, 2: late})

    assert aims == {1: 1500.0, 2: 1500.0}


def test_straight_curves_of_one_slope_are_shared_by_weight() -> None:
    aims = targets_in_watts(3000, {1: wants(4000), 2: wants(4000)}, {})

    assert aims == {1: 1500.0, 2: 1500.0}


def test_the_steeper_of_two_straight_curves_comes_first() -> None:
    aims = targets_in_watts(
        3000, {1: wants(4000, maximum_watts=4000), 2: wants(2000, maximum_watts=2000)}, {}
    )

    assert aims == {1: 1000.0, 2: 2000.0}


def test_minima_and_parking_are_those_of_the_fair_target() -> None:
    claimed = {
        1: wants(4000, minimum_watts=1500),
        2: wants(4000, minimum_watts=1500, priority=3),
        3: wants(4000, priority=0),
    }

    assert targets_in_watts(3500, claimed, {})[2] == 1500.0
    assert targets_in_watts(2999, claimed, {})[2] == 0.0


def test_ranks_of_a_gang_get_equal_satisfaction() -> None:
    aims = targets_in_watts(
        4000,
        {1: wants(4000, gang="a"), 2: wants(2000, gang="a"), 3: wants(0)},
        {1: ROOT},
    )

    assert aims[1] / 4000 == pytest.approx(aims[2] / 2000)


def test_a_node_that_can_draw_nothing_harms_nobody() -> None:
    aims = targets_in_watts(3000, {1: wants(0, maximum_watts=0), 2: wants(4000)}, {1: ROOT})

    assert aims == {1: 0.0, 2: 3000.0}
