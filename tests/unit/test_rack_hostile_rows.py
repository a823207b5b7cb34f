"""Rows that say what cannot be: what a market makes of them."""

from dataclasses import replace

import pytest

from cluster.rack.rows import Row, Wants
from cluster.rack.trading import Market, bounded_wants
from cluster.rack.units import BudgetVersion
from tests.rack_rows import BUDGET, SHARES_PER_WATT, node, nodes, row, wants

NOW = 100.0


def market_of(*rows: Row) -> Market:
    market = Market()
    for one in rows:
        market.hear(one, NOW)
    return market


@pytest.mark.parametrize(
    "watts", [pytest.param(2**60, id="more than any"), pytest.param(10_001, id="a little more")]
)
def test_a_budget_that_nobody_decreed_lowers_nobody(watts: int) -> None:
    hostile = row(2, 2500, version=BudgetVersion(sequence=0, watts=watts))
    market = market_of(hostile, row(3, 2500), row(4, 2500))

    lowered = market.coverage(
        row(1, 2500), nodes(4), (BUDGET,), known_for_seconds=10.0, now=NOW, last_in={}
    )

    assert lowered == 0


def test_who_names_no_decreed_budget_is_counted_at_the_largest_that_was() -> None:
    cut = BudgetVersion(sequence=2, watts=9_000)
    hostile = row(2, 2500, version=BudgetVersion(sequence=0, watts=2**60))
    others = [row(number, 2500, version=cut) for number in (1, 3, 4)]
    market = market_of(hostile, *others[1:])

    lowered = market.coverage(
        others[0], nodes(4), (BUDGET, cut), known_for_seconds=10.0, now=NOW, last_in={}
    )

    assert lowered == 84


@pytest.mark.parametrize(
    ("said", "counted"),
    [
        pytest.param(wants(900, minimum_watts=400), (900, 400, 4000), id="what is possible"),
        pytest.param(
            wants(2**62, minimum_watts=2**62, maximum_watts=2**62, priority=0),
            (10_000, 4000, 10_000),
            id="all there is",
        ),
        pytest.param(wants(100, minimum_watts=500, maximum_watts=300), (100, 300, 300), id="odd"),
    ],
)
def test_nobody_wants_more_than_there_is_or_most_of_it_before_all_others(
    said: Wants, counted: tuple[int, int, int]
) -> None:
    bounded = bounded_wants(said, BUDGET.watts, 10)

    assert (bounded.demand_watts, bounded.minimum_watts, bounded.maximum_watts) == counted


def test_one_row_parks_nobody() -> None:
    greedy = replace(
        row(2, 0), wants=wants(2**62, minimum_watts=2**62, maximum_watts=2**62, priority=0)
    )
    count = 10
    others = [row(number, 1000, 1000, maximum_watts=1000) for number in range(3, count + 1)]
    own = replace(row(1, 2000), wants=wants(1500, minimum_watts=800))
    market = market_of(greedy, *others)

    gifts = market.gives(own, nodes(count), BUDGET.watts, NOW, last_in={})

    given = sum(gift.shares for gift in gifts if gift.to == node(2))
    assert given <= 1200 * SHARES_PER_WATT
