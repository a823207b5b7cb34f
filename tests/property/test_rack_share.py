"""What holds of every split, whoever wants what."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from cluster.ids import NodeId
from cluster.rack.matching import pair
from cluster.rack.rows import Wants
from cluster.rack.share import Claim, parked, split, target, water_fill
from cluster.rack.throughput import Curve, throughput_target
from cluster.rack.units import SHARES_TOTAL, shares_of
from tests.rack_rows import node

amounts = some.integers(0, 10**9)
claims = some.lists(
    some.builds(
        lambda weight, low, more: Claim(weight, low, low + more),
        some.integers(1, 16_000),
        some.one_of(some.just(0), amounts),
        some.one_of(some.just(0), amounts),
    ),
    max_size=12,
)
totals = some.integers(0, 4 * 10**9)
all_wants = some.builds(
    Wants,
    demand_watts=some.integers(0, 5000),
    minimum_watts=some.sampled_from((0, 0, 0, 500, 2000)),
    maximum_watts=some.sampled_from((0, 1000, 4000)),
    priority=some.integers(0, 3),
    gain_ratio=some.floats(0.25, 3.0),
    gang=some.sampled_from(("", "", "a", "b")),
)
racks = some.lists(all_wants, min_size=1, max_size=10).map(
    lambda wanted: {node(number): one for number, one in enumerate(wanted, 1)}
)
curves = some.builds(
    Curve,
    start_ratio=some.floats(0.0, 0.6),
    exponent=some.floats(0.05, 1.0),
    knee_ratio=some.floats(0.61, 1.0),
)
budgets = some.integers(1, 200_000)
shares = some.integers(0, SHARES_TOTAL)


@given(totals, claims)
def test_a_fill_comes_to_the_total_exactly(total: int, claimed: list[Claim]) -> None:
    parts = water_fill(total, claimed)

    assert sum(parts) == min(total, sum(claim.high for claim in claimed))


@given(totals, claims)
def test_a_fill_keeps_everybody_within_bounds(total: int, claimed: list[Claim]) -> None:
    parts = water_fill(total, claimed)

    is_enough = sum(claim.low for claim in claimed) <= total
    for claim, part in zip(claimed, parts, strict=True):
        assert 0 <= part <= claim.high
        assert part >= claim.low or not is_enough


@given(totals, claims)
def test_nobody_is_above_the_level_of_one_who_could_take_more(
    total: int, claimed: list[Claim]
) -> None:
    if sum(claim.low for claim in claimed) > total:
        return
    parts = water_fill(total, claimed)

    # A share of rounding apart, whoever rises above the low bound is at the lowest level there is.
    hungry = [
        (part + 1) / claim.weight
        for claim, part in zip(claimed, parts, strict=True)
        if part < claim.high
    ]
    for claim, part in zip(claimed, parts, strict=True):
        if part > claim.low and hungry:
            assert (part - 1) / claim.weight <= min(hungry) * (1 + 1e-9)


@given(totals, claims, some.randoms(use_true_random=False))
def test_a_fill_does_not_depend_on_the_order(total: int, claimed: list[Claim], rng: Random) -> None:
    order = list(range(len(claimed)))
    rng.shuffle(order)
    here = water_fill(total, claimed)
    there = water_fill(total, [claimed[index] for index in order])

    for position, index in enumerate(order):
        assert abs(there[position] - here[index]) <= 1


@given(totals, claims, some.integers(0, 10**9))
def test_more_to_share_is_less_for_nobody(total: int, claimed: list[Claim], more: int) -> None:
    before, after = water_fill(total, claimed), water_fill(total + more, claimed)

    assert all(late >= early - 1 for early, late in zip(before, after, strict=True))


@given(some.integers(0, 10**9), some.lists(some.integers(0, 10**6), min_size=1, max_size=12))
def test_a_split_is_exact_and_in_proportion(total: int, weights: list[int]) -> None:
    parts = split(total, weights)

    if sum(weights) > 0:
        assert sum(parts) == total
        for weight, part in zip(weights, parts, strict=True):
            assert abs(part - total * weight / sum(weights)) <= 1


@given(shares, racks, budgets)
def test_a_target_gives_away_what_there_is(
    total: int, wanted: dict[NodeId, Wants], budget_watts: int
) -> None:
    aims = target(total, wanted, budget_watts)

    assert sum(aims.values()) == total
    assert min(aims.values()) >= 0
    stopped = parked(total, wanted, budget_watts)
    for node_id, one in wanted.items():
        minimum = min(one.minimum_watts, one.maximum_watts)
        if minimum and node_id not in stopped:
            assert aims[node_id] >= shares_of(minimum, budget_watts)


@given(shares, racks, budgets)
def test_every_node_computes_the_same_target(
    total: int, wanted: dict[NodeId, Wants], budget_watts: int
) -> None:
    backwards = dict(reversed(wanted.items()))

    assert target(total, wanted, budget_watts) == target(total, backwards, budget_watts)
    assert parked(total, wanted, budget_watts) == parked(total, backwards, budget_watts)


@given(shares, racks, budgets, some.integers(1, 3000))
def test_who_wants_more_gets_no_less_of_what_is_needed(
    total: int, wanted: dict[NodeId, Wants], budget_watts: int, more_watts: int
) -> None:
    def alone(extra_watts: int) -> Wants:
        return Wants(demand_watts=500 + extra_watts, maximum_watts=4000)

    before = target(total, {**wanted, node(99): alone(0)}, budget_watts)
    after = target(total, {**wanted, node(99): alone(more_watts)}, budget_watts)

    needed = shares_of(500, budget_watts)
    assert after[node(99)] >= min(before[node(99)], needed) - 1


@given(shares, racks, budgets)
def test_ranks_of_a_gang_differ_by_rounding_alone(
    total: int, wanted: dict[NodeId, Wants], budget_watts: int
) -> None:
    aims = target(total, wanted, budget_watts)
    stopped = parked(total, wanted, budget_watts)

    ratios = []
    for node_id, one in wanted.items():
        low = min(one.minimum_watts, one.maximum_watts)
        high = min(max(one.demand_watts, low), one.maximum_watts)
        way = shares_of(high, budget_watts) - shares_of(low, budget_watts)
        if one.gang == "a" and node_id not in stopped and way > 0:
            above = min(way, aims[node_id] - (shares_of(low, budget_watts) if low else 0))
            ratios.append((above / way, 2 / way))
    for (one_ratio, one_slack), (next_ratio, next_slack) in pairwise(ratios):
        assert abs(one_ratio - next_ratio) <= one_slack + next_slack


@given(shares, racks, budgets, some.lists(curves, min_size=10, max_size=10))
def test_the_other_target_keeps_the_same_bounds(
    total: int, wanted: dict[NodeId, Wants], budget_watts: int, fitted: list[Curve]
) -> None:
    by_node = dict(zip(wanted, fitted, strict=False))

    aims = throughput_target(total, wanted, budget_watts, by_node)

    assert sum(aims.values()) == total
    assert min(aims.values()) >= 0
    stopped = parked(total, wanted, budget_watts)
    for node_id, one in wanted.items():
        minimum = min(one.minimum_watts, one.maximum_watts)
        if minimum and node_id not in stopped:
            assert aims[node_id] >= shares_of(minimum, budget_watts)


@given(
    some.dictionaries(some.integers(1, 20), amounts, max_size=10),
    some.dictionaries(some.integers(21, 40), amounts, max_size=10),
)
def test_a_pairing_moves_what_fits_in_few_transfers(
    donors: dict[int, int], takers: dict[int, int]
) -> None:
    spare = {node(n): amount for n, amount in donors.items()}
    missing = {node(n): amount for n, amount in takers.items()}

    transfers = pair(spare, missing)

    assert sum(one.shares for one in transfers) == min(sum(spare.values()), sum(missing.values()))
    assert len(transfers) <= max(0, len(spare) + len(missing) - 1)
    assert all(one.shares > 0 for one in transfers)
    for giver, amount in spare.items():
        assert sum(one.shares for one in transfers if one.giver == giver) <= amount
    for taker, amount in missing.items():
        assert sum(one.shares for one in transfers if one.to == taker) <= amount


def filled_by_floats(total: float, claimed: list[Claim]) -> list[float]:
    """Weighted max-min by bisection of the level: another way to the same answer."""
    low, high = 0.0, max(bound / weight for weight, _, bound in claimed) + 1
    for _ in range(200):
        level = (low + high) / 2
        if sum(min(bound, max(least, level * w)) for w, least, bound in claimed) > total:
            high = level
        else:
            low = level
    return [min(bound, max(least, low * weight)) for weight, least, bound in claimed]


@given(totals, claims.filter(bool))
def test_a_fill_is_that_of_a_slower_rule(total: int, claimed: list[Claim]) -> None:
    if not sum(claim.low for claim in claimed) <= total:
        return

    parts = water_fill(total, claimed)

    assert parts == pytest.approx(filled_by_floats(total, claimed), rel=1e-9, abs=2)
