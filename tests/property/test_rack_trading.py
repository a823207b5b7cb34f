"""What holds of every market, whatever rows are heard."""

from hypothesis import given, settings
from hypothesis import strategies as some

from cluster.ids import NodeId
from cluster.rack.rows import Promise, Row, Wants
from cluster.rack.trading import Market
from cluster.rack.units import FIRST_EPOCH, SHARES_TOTAL, BudgetVersion, watts_of
from tests.rack_rows import node

BUDGET_WATTS = 12_000
VERSION = BudgetVersion(sequence=1, watts=BUDGET_WATTS)
NOW = 50.0


@some.composite
def racks(draw: some.DrawFn) -> list[Row]:
    """Rows of a whole currency: shares that come to the total, and any wants."""
    count = draw(some.integers(2, 10))
    cuts = sorted(
        draw(some.lists(some.integers(0, SHARES_TOTAL), min_size=count - 1, max_size=count - 1))
    )
    owned = [high - low for low, high in zip([0, *cuts], [*cuts, SHARES_TOTAL], strict=True)]
    rows = []
    for number, shares in enumerate(owned, 1):
        wants = Wants(
            demand_watts=draw(some.integers(0, 4000)),
            minimum_watts=draw(some.sampled_from((0, 0, 0, 300))),
            maximum_watts=draw(some.sampled_from((1000, 4000))),
            priority=draw(some.integers(0, 3)),
            gang=draw(some.sampled_from(("", "", "", "a"))),
        )
        promises = ()
        if draw(some.booleans()) and shares > 1000:
            part = draw(some.integers(1, shares))
            to = node(draw(some.integers(1, count)))
            if to != node(number):
                promises = (Promise(to=to, sequence=1, shares=part),)
                shares -= part
        rows.append(
            Row(
                node_id=node(number),
                stamp=1,
                epoch=FIRST_EPOCH,
                shares=shares,
                version=VERSION,
                wants=wants,
                promises=promises,
            )
        )
    return rows


def all_gifts(rows: list[Row], members: list[NodeId]) -> dict[tuple[NodeId, NodeId], int]:
    """What each begins to give, by its own view of the same rows."""
    given: dict[tuple[NodeId, NodeId], int] = {}
    for own in rows:
        market = Market()
        for row in rows:
            if row.node_id != own.node_id:
                market.hear(row, NOW)
        for gift in market.gives(own, members, BUDGET_WATTS, NOW, last_in={}):
            given[own.node_id, gift.to] = gift.shares
    return given


def settled(row: Row, given: dict[tuple[NodeId, NodeId], int], rows: list[Row]) -> Row:
    """The row once every transfer has arrived."""
    shares = row.shares
    for other in rows:
        shares += sum(one.shares for one in other.promises if one.to == row.node_id)
    for (giver, to), amount in given.items():
        shares += amount * ((to == row.node_id) - (giver == row.node_id))
    return Row(
        node_id=row.node_id,
        stamp=row.stamp + 1,
        epoch=row.epoch,
        shares=shares,
        version=row.version,
        wants=row.wants,
    )


@given(racks())
def test_nobody_gives_more_than_it_has_or_to_itself(rows: list[Row]) -> None:
    given = all_gifts(rows, [row.node_id for row in rows])

    for row in rows:
        own = [amount for (giver, _), amount in given.items() if giver == row.node_id]
        assert sum(own) <= row.shares
        assert all(amount > 0 for amount in own)
    assert all(giver != to for giver, to in given)


@given(racks())
def test_equal_rows_make_few_transfers_and_nobody_both_gives_and_takes(rows: list[Row]) -> None:
    given = all_gifts(rows, [row.node_id for row in rows])

    givers = {giver for giver, _ in given}
    takers = {to for _, to in given}
    assert not givers & takers
    assert len(given) <= len(rows) - 1


@given(racks())
def test_the_order_of_members_changes_nothing(rows: list[Row]) -> None:
    members = [row.node_id for row in rows]

    assert all_gifts(rows, members) == all_gifts(rows, members[::-1])


@settings(max_examples=60)
@given(racks())
def test_a_market_comes_to_rest(rows: list[Row]) -> None:
    members = [row.node_id for row in rows]
    total = sum(settled(row, {}, rows).shares for row in rows)

    for _ in range(8):
        given = all_gifts(rows, members)
        is_moving = bool(given) or any(row.promises for row in rows)
        rows = [settled(row, given, rows) for row in rows]
        assert sum(row.shares for row in rows) == total
        if not is_moving:
            break

    assert all_gifts(rows, members) == {}


@given(racks(), some.integers(0, 12_000), some.integers(0, 10))
def test_those_who_confirmed_cover_all_that_the_others_may_draw(
    rows: list[Row], smaller_watts: int, confirmed_count: int
) -> None:
    newest = BudgetVersion(sequence=2, watts=smaller_watts)
    rows = [settled(row, {}, rows) for row in rows]
    known = [
        Row(
            node_id=row.node_id,
            stamp=row.stamp,
            epoch=row.epoch,
            shares=row.shares,
            version=newest if index <= confirmed_count else VERSION,
        )
        for index, row in enumerate(rows)
    ]
    members = [row.node_id for row in rows]
    covered = 0
    for own in known[: confirmed_count + 1]:
        market = Market()
        for row in known:
            market.hear(row, NOW)
        covered += market.coverage(own, members, (VERSION, newest), 60.0, NOW + 60, last_in={})

    confirmed = sum(row.shares for row in known[: confirmed_count + 1])
    excess = sum(
        watts_of(row.shares, BUDGET_WATTS) - watts_of(row.shares, smaller_watts) - 1
        for row in known[confirmed_count + 1 :]
    )
    assert covered >= excess or confirmed == 0
