"""What operators' records come to: one budget, one list of members, whatever the forks."""

from dataclasses import replace

import pytest

from cluster.errors import Malformed
from cluster.ids import NodeId
from cluster.rack.ledger.charter import read_charters
from cluster.rack.ledger.decrees import (
    BudgetSet,
    Decree,
    Joined,
    Retired,
    Slot,
    decode_decree,
    encode_decree,
)
from cluster.rack.units import FIRST_EPOCH, SHARES_TOTAL, Epoch
from tests.ledger_bench import CURRENCY, A, B, C, D, OperatorsLog, budget, founded_log, genesis


def test_what_can_be_shared_is_the_budget_less_margin_and_floors() -> None:
    log = OperatorsLog()
    log.sign(replace(genesis(), margin_ppm=30_000))

    assert (log.charter.budget_watts, log.charter.version.watts) == (1300, 961)


def test_the_last_budget_holds() -> None:
    log = founded_log()
    log.sign(budget(600))
    log.sign(budget(800))

    assert log.charter.version.watts == 800
    assert [one.watts for one in log.charter.budgets] == [1000, 600, 800, 800]


def test_where_the_log_forks_the_lowest_budget_holds_until_it_is_settled() -> None:
    log = founded_log()
    [founding] = log.records
    high = log.sign(budget(900), after=founding)
    log.sign(budget(700), after=founding)
    assert log.charter.version.watts == 700
    assert any("forks" in line for line in log.charter.alarms)
    contested = log.charter.version

    log.sign(budget(850, settles=[log.records[-1]]), after=high)

    assert log.charter.version.watts == 850
    assert log.charter.version.replaces(contested)
    assert log.charter.alarms == ()


def test_of_two_budgets_under_one_number_the_lower_replaces_the_higher() -> None:
    log = founded_log()
    [founding] = log.records
    log.sign(budget(900), after=founding)
    alone = log.charter.version
    log.sign(budget(700), after=founding)

    assert log.charter.version.replaces(alone)
    assert not alone.replaces(log.charter.version)


def test_a_second_genesis_is_ignored_and_told() -> None:
    log = founded_log()
    log.sign(genesis({D: SHARES_TOTAL}))

    assert log.charter.members_of(FIRST_EPOCH) == (A, B, C)
    assert log.charter.alarms == ("operator record 2: a second genesis is ignored",)


def test_who_joins_is_a_member_of_the_epoch_that_the_record_names() -> None:
    log = founded_log()
    log.sign(Joined(currency=CURRENCY, node_id=D, slot="u2", epoch=FIRST_EPOCH))

    assert log.charter.members_of(FIRST_EPOCH) == (A, B, C, D)
    assert log.charter.members_of(Epoch(2, 0)) == ()


@pytest.mark.parametrize(
    ("slot", "is_closed", "words"),
    [
        pytest.param("u9", False, "no slot u9", id="no such slot"),
        pytest.param("u2", True, "an epoch that was closed", id="after the retirement"),
    ],
)
def test_a_join_that_cannot_be_is_ignored_and_told(slot: str, is_closed: bool, words: str) -> None:
    log = founded_log()
    if is_closed:
        log.sign(_retired((C,)))
    log.sign(Joined(currency=CURRENCY, node_id=D, slot=slot, epoch=FIRST_EPOCH))

    assert D not in log.charter.members_of(FIRST_EPOCH)
    assert words in log.charter.alarms[0]


def _retired(out: tuple[NodeId, ...], **rest: object) -> Retired:
    record = Retired(currency=CURRENCY, epoch=FIRST_EPOCH, rank=0, members=(A, B, C), out=out)
    return replace(record, **rest)  # type: ignore[arg-type]  # a table's fields


def test_after_a_retirement_those_who_sign_are_the_members() -> None:
    log = founded_log()
    log.sign(_retired((C,), added=((D, "u2"),)))

    assert log.charter.members_of(Epoch(2, 0)) == (A, B, D)
    assert [slot.node_id for slot in log.charter.slots] == [A, B, D]


_SLOTS = genesis().slots


@pytest.mark.parametrize(
    ("decree", "words"),
    [
        pytest.param(
            replace(genesis(), shares=((A, 1),)), "shares add up to 1", id="too few shares"
        ),
        pytest.param(replace(genesis(), budget_watts=299), "floors add up", id="floors above it"),
        pytest.param(replace(genesis(), margin_ppm=500_001), "margin", id="half is nobody's"),
        pytest.param(
            replace(genesis(), slots=(*_SLOTS, _SLOTS[0])), "named twice", id="a slot twice"
        ),
        pytest.param(
            replace(genesis(), shares=((D, SHARES_TOTAL),)), "stand in no slot", id="no slot"
        ),
        pytest.param(
            replace(
                genesis(),
                slots=(*_SLOTS[:2], replace(_SLOTS[2], is_static=True)),
            ),
            "stand in no slot",
            id="shares for a static load",
        ),
        pytest.param(
            replace(genesis(), slots=(Slot(name="u7", floor_watts=-1), *_SLOTS)),
            "the floor of slot u7",
            id="a floor below nothing",
        ),
        pytest.param(
            BudgetSet(currency=CURRENCY, budget_watts=-5), "the budget is -5 W", id="below nothing"
        ),
        pytest.param(_retired((A, B, C)), "nobody would be left", id="all retire"),
        pytest.param(_retired((D,)), "was no member", id="a stranger retires"),
        pytest.param(_retired((C,), members=(A, A, C)), "named twice", id="a member twice"),
    ],
)
def test_what_does_not_add_up_can_neither_be_signed_nor_obeyed(decree: Decree, words: str) -> None:
    with pytest.raises(Malformed, match=words):
        encode_decree(decree)


@pytest.mark.parametrize(
    "decree",
    [
        pytest.param(genesis(), id="genesis"),
        pytest.param(budget(600), id="budget"),
        pytest.param(Joined(currency=CURRENCY, node_id=D, slot="u2", epoch=Epoch(3, 1)), id="join"),
        pytest.param(
            _retired((C,), added=((D, "u2"),), evidence="outlet 7 is off", rank=2), id="retire"
        ),
    ],
)
def test_a_decree_comes_back_from_its_bytes(decree: Decree) -> None:
    assert decode_decree(*encode_decree(decree)) == decree


def test_records_that_cannot_be_read_are_passed_over() -> None:
    log = founded_log()
    damaged = log.sign(budget(600))
    statement = replace(damaged.record.statement, body=b"\x93\x01\x02\x03")  # type: ignore[arg-type]  # an `Other`
    log.records[-1] = replace(damaged, record=replace(damaged.record, statement=statement))

    assert read_charters(log.records)[CURRENCY].version.watts == 1000
