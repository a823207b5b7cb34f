"""What a node gives by the rows it has heard."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from cluster.ids import NodeId
from cluster.rack.rows import Row
from cluster.rack.throughput import Curve, throughput_target
from cluster.rack.trading import (
    GRACE_SECONDS,
    ROW_ALIVE_SECONDS,
    Gift,
    Market,
    burst_deadband_watts,
    deadband_watts,
)
from cluster.rack.units import BudgetVersion, Epoch
from tests.rack_rows import BUDGET, SHARES_PER_WATT, credit, node, nodes, promise, row, wants

NOW = 100.0
SMALLER = BudgetVersion(sequence=2, watts=7_000)


def market(*rows: Row) -> Market:
    heard = Market()
    for one in rows:
        heard.hear(one, NOW)
    return heard


def gifts(
    own: Row, *others: Row, members: Sequence[NodeId] = (), last_in: dict[int, int] | None = None
) -> dict[int, float]:
    """To whom how many watts are given."""
    among = members or sorted(one.node_id for one in (own, *others))
    given = market(*others).gives(
        own,
        among,
        BUDGET.watts,
        NOW,
        last_in={node(n): sequence for n, sequence in (last_in or {}).items()},
    )
    return {int.from_bytes(gift.to, "big"): gift.shares / SHARES_PER_WATT for gift in given}


def test_what_one_does_not_need_goes_to_whom_it_lacks() -> None:
    assert gifts(row(1, 3000, 1000), row(2, 1000, 3000)) == {2: 2000.0}


def test_who_lacks_gives_nothing() -> None:
    assert gifts(row(2, 1000, 3000), row(1, 3000, 1000)) == {}


def test_every_donor_gives_its_own_part() -> None:
    rows = [row(1, 1500, 500), row(2, 1500, 500), row(3, 0, 1500), row(4, 0, 500)]

    given = [gifts(rows[i], *rows[:i], *rows[i + 1 :]) for i in range(4)]

    assert given == [{3: 1000.0}, {3: 500.0, 4: 500.0}, {}, {}]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(row(2, 1000, 3000, is_refusing=True), id="its hardware refuses"),
        pytest.param(row(2, 1000, 3000, is_frozen=True), id="it is frozen"),
        pytest.param(row(2, 1000, 3000, epoch=Epoch(2, 0)), id="it is in another epoch"),
    ],
)
def test_nothing_is_planned_with_a_node_that_cannot_trade(other: Row) -> None:
    assert gifts(row(1, 3000, 1000), other) == {}


def test_nothing_is_planned_with_a_node_that_fell_silent() -> None:
    own, other = row(1, 3000, 1000), row(2, 1000, 3000)
    heard = market(other)

    in_time = heard.gives(own, nodes(2), BUDGET.watts, NOW + ROW_ALIVE_SECONDS, last_in={})
    too_late = heard.gives(own, nodes(2), BUDGET.watts, NOW + ROW_ALIVE_SECONDS + 0.1, last_in={})

    assert in_time == (Gift(to=node(2), shares=2000 * SHARES_PER_WATT),)
    assert too_late == ()


def test_the_same_row_again_does_not_keep_a_node_alive() -> None:
    heard = market(row(2, 1000, 3000, stamp=7))

    assert not heard.hear(row(2, 1000, 3000, stamp=7), NOW + 5)
    assert not heard.hear(row(2, 9000, 0, stamp=6), NOW + 5)

    assert heard.age_seconds(node(2), NOW + 9) == 9.0
    assert heard.silent(nodes(2), NOW + 9) == nodes(2)
    assert heard.row(node(2)) == row(2, 1000, 3000, stamp=7)


def test_a_newer_row_replaces_what_was_known() -> None:
    heard = market(row(2, 1000, 3000, stamp=7))

    assert heard.hear(row(2, 2000, 3000, stamp=8), NOW + 5)

    assert heard.is_alive(node(2), NOW + 9)
    assert heard.silent(nodes(2), NOW + 9) == (node(1),)


def test_a_forgotten_node_is_unknown() -> None:
    heard = market(row(2, 1000, 3000))

    heard.forget(node(2))

    assert heard.row(node(2)) is None
    assert heard.age_seconds(node(2), NOW) is None


def test_who_is_no_member_gets_nothing() -> None:
    own, other = row(1, 3000, 1000), row(2, 1000, 3000)

    assert gifts(own, other, members=(node(1),)) == {}
    assert gifts(own, other, members=(node(2), node(3))) == {}


def test_a_frozen_node_starts_nothing() -> None:
    assert gifts(row(1, 3000, 1000, is_frozen=True), row(2, 1000, 3000)) == {}


def test_a_node_that_refused_may_still_ask_what_it_should_give() -> None:
    assert gifts(row(1, 3000, 1000, is_refusing=True), row(2, 1000, 3000)) == {2: 2000.0}


def test_without_a_budget_nothing_moves() -> None:
    given = market(row(2, 1000, 3000)).gives(row(1, 3000), nodes(2), 0, NOW, last_in={})

    assert given == ()


def test_what_others_promised_already_is_not_given_again() -> None:
    own = row(1, 1100, 1000)
    giver = row(2, 1000, 1000, promises=(promise(3, 1000),))

    assert gifts(own, giver, row(3, 1000, 2000)) == {}
    assert gifts(own, replace(giver, promises=()), row(3, 1000, 2000)) == {3: 100.0}


def test_a_promise_that_arrived_is_counted_once() -> None:
    own = row(1, 2000, 1000)
    giver = row(2, 1000, 1000, promises=(promise(3, 1000, sequence=4),))
    taker = row(3, 2000, 3000, credits=(credit(2, sequence=4),))

    assert gifts(own, giver, taker) == {3: 1000.0}


def test_an_older_credit_does_not_hide_a_promise() -> None:
    own = row(1, 1100, 1000)
    giver = row(2, 1000, 1000, promises=(promise(3, 1000, sequence=4),))
    taker = row(3, 2000, 3000, credits=(credit(2, sequence=3), credit(1, sequence=9)))

    assert gifts(own, giver, taker) == {}


@pytest.mark.parametrize(
    ("last_in", "expected"),
    [
        pytest.param({}, {3: 1000.0}, id="under way: what comes in counts as owned"),
        pytest.param({2: 1}, {}, id="credited already: it is in the own row"),
    ],
)
def test_promises_to_oneself_are_compared_with_what_one_credited(
    last_in: dict[int, int], expected: dict[int, float]
) -> None:
    own = row(1, 1000, 1000)
    giver = row(2, 1000, 1000, promises=(promise(1, 1000),))

    assert gifts(own, giver, row(3, 1000, 2000), last_in=last_in) == expected


def test_nobody_gives_what_has_not_arrived_yet() -> None:
    own = row(1, 300, 0)
    giver = row(2, 1000, 1000, promises=(promise(1, 1000),))

    assert gifts(own, giver, row(3, 1000, 2000)) == {3: 300.0}


def test_who_has_a_transfer_of_ours_under_way_gets_no_second_one() -> None:
    own = row(1, 3000, 1000, promises=(promise(2, 100),))

    assert gifts(own, row(2, 1000, 2000), row(3, 1000, 2000)) == {3: 1000.0}


@pytest.mark.parametrize(
    ("spare", "lacking", "expected"),
    [
        pytest.param(41, [41], {2: 41.0}, id="both outside"),
        pytest.param(40, [40], {}, id="the donor inside"),
        pytest.param(60, [20, 20, 20], {}, id="the takers inside their half"),
        pytest.param(61, [20, 20, 21], {4: 21.0}, id="one taker outside its half"),
    ],
)
def test_small_differences_are_left_alone(
    spare: int, lacking: list[int], expected: dict[int, float]
) -> None:
    takers = [row(n, 1000, 1000 + lacks) for n, lacks in enumerate(lacking, 2)]

    assert gifts(row(1, 1000 + spare, 1000), *takers) == expected


@pytest.mark.parametrize(
    ("maximum_watts", "need", "burst"),
    [
        pytest.param(0, 40, 80, id="nothing"),
        pytest.param(1000, 40, 80, id="a small node"),
        pytest.param(4000, 40, 200, id="the node of the model"),
        pytest.param(10_200, 102, 510, id="a large node"),
    ],
)
def test_a_deadband_is_a_part_of_the_range(maximum_watts: int, need: int, burst: int) -> None:
    range_of = wants(0, maximum_watts=maximum_watts)

    assert (deadband_watts(range_of), burst_deadband_watts(range_of)) == (need, burst)


@pytest.mark.parametrize(
    ("too_much", "expected"),
    [
        pytest.param(200, {}, id="inside the wide band"),
        pytest.param(201, {2: 201.0}, id="outside of it"),
    ],
)
def test_burst_room_moves_only_where_much_of_it_is_misplaced(
    too_much: int, expected: dict[int, float]
) -> None:
    assert gifts(row(1, 2000 + too_much, 500), row(2, 2000 - too_much, 500)) == expected


@pytest.mark.parametrize(
    ("spare", "expected"),
    [
        pytest.param(114, {3: 100.0}, id="fourteen are left for the next one"),
        pytest.param(115, {3: 100.0, 4: 15.0}, id="fifteen"),
    ],
)
def test_a_transfer_is_worth_fifteen_watts_at_least(spare: int, expected: dict[int, float]) -> None:
    own, second = row(1, 1000 + spare, 1000), row(2, 1200 - spare, 1000)

    assert gifts(own, second, row(3, 1000, 1100), row(4, 1000, 1100)) == expected


def test_short_are_all_who_lack_of_their_demand_even_if_there_is_no_more() -> None:
    own, rest = row(1, 1000, 3000), (row(2, 1000, 1020), row(3, 1000, 1021), row(4, 500, 0))

    short = market(*rest).short_watts(own, nodes(5), BUDGET.watts, NOW, last_in={})

    assert short == {node(1): 2000, node(3): 21}


def test_another_aim_makes_another_market() -> None:
    curves = {node(1): Curve(knee_ratio=0.25)}
    heard = Market(partial(throughput_target, curves=curves))
    heard.hear(row(2, 1500, 4000), NOW)

    given = heard.gives(row(1, 1500, 4000), nodes(2), BUDGET.watts, NOW, last_in={})

    assert given == (Gift(to=node(2), shares=500 * SHARES_PER_WATT),)


def covered(
    own: Row,
    *others: Row,
    versions: Sequence[BudgetVersion] = (BUDGET, SMALLER),
    known_for_seconds: float = 60.0,
    now: float = NOW + 60,
    last_in: dict[NodeId, int] | None = None,
) -> int:
    return market(*others).coverage(
        own, nodes(4), versions, known_for_seconds, now, last_in=last_in or {}
    )


def current(number: int, own_watts: int) -> Row:
    return row(number, own_watts, version=SMALLER)


def test_nobody_covers_while_everybody_has_confirmed() -> None:
    assert covered(*(current(n, 2500) for n in (1, 2, 3, 4))) == 0


def test_those_who_confirmed_make_up_for_one_who_did_not() -> None:
    # The fourth may draw 2500 instead of 1750; of the 750, a third each.
    assert covered(current(1, 2500), current(2, 2500), current(3, 2500), row(4, 2500)) == 250


def test_who_holds_more_lowers_more() -> None:
    rows = (current(2, 1500), current(3, 1500), row(4, 2500))

    assert covered(current(1, 4500), *rows) == 450


def test_who_was_never_heard_is_counted_at_the_largest_budget_known() -> None:
    larger = BudgetVersion(sequence=0, watts=13_000)
    rows = (current(1, 2500), current(2, 2500), current(3, 2500))

    assert covered(*rows) == 250
    assert covered(*rows, versions=(SMALLER, larger, BUDGET)) == 500


def test_a_silent_node_may_have_passed_through_every_budget_since() -> None:
    raised = BudgetVersion(sequence=2, watts=13_000)
    cut = BudgetVersion(sequence=3, watts=7_000)
    rows = [row(n, 2500, version=cut) for n in (1, 2, 3)]

    assert covered(*rows, row(4, 2500), versions=(BUDGET, raised, cut)) == 500


@pytest.mark.parametrize(
    ("known_for_seconds", "age_seconds", "expected"),
    [
        pytest.param(GRACE_SECONDS - 0.1, 0.0, 0, id="in the grace"),
        pytest.param(GRACE_SECONDS, 0.0, 250, id="after it"),
        pytest.param(1.0, ROW_ALIVE_SECONDS + 1, 250, id="no grace for the silent"),
    ],
)
def test_a_live_node_has_a_moment_to_confirm(
    known_for_seconds: float, age_seconds: float, expected: int
) -> None:
    rows = (current(1, 2500), current(2, 2500), current(3, 2500), row(4, 2500))

    assert covered(*rows, known_for_seconds=known_for_seconds, now=NOW + age_seconds) == expected


def test_shares_on_their_way_between_the_confirmed_are_confirmed() -> None:
    giver = row(2, 1500, version=SMALLER, promises=(promise(3, 1000),))

    assert covered(current(1, 2500), giver, current(3, 2500), current(4, 2500)) == 0


def test_a_raise_is_covered_by_nobody() -> None:
    raised = BudgetVersion(sequence=2, watts=12_000)
    own = row(1, 2500, version=raised)

    assert covered(own, row(2, 2500), versions=(BUDGET, raised)) == 0


def test_without_a_version_or_a_share_there_is_nothing_to_cover_with() -> None:
    assert covered(current(1, 2500), versions=()) == 0
    assert covered(current(1, 0)) == 0


def test_part_of_a_watt_is_lowered_as_a_whole_one() -> None:
    # 749.7 over three.
    rows = (current(2, 2500), current(3, 2501), row(4, 2499))

    assert covered(current(1, 2500), *rows) == 250
