"""The rules of the power ledger, one by one: what must have happened before what."""

from dataclasses import replace

import pytest

from cluster.rack.ledger.book import (
    BudgetTaken,
    Complied,
    Credited,
    Debited,
    Opened,
    Settled,
    Started,
)
from cluster.rack.ledger.messages import Asked, Grant, Receipt, Told
from cluster.rack.rows import Credit, Promise
from cluster.rack.units import FIRST_EPOCH, SHARES_TOTAL
from tests.ledger_bench import (
    NOW,
    A,
    B,
    BenchNode,
    C,
    D,
    budget,
    deliver,
    founded_log,
    opened,
)

WATT = SHARES_TOTAL // 1000


def _grant(node: BenchNode, sequence: int, watts: int) -> Grant:
    row = node.ledger.row(NOW)
    assert row is not None
    shares = watts * WATT
    promise = Promise(to=B, sequence=sequence, shares=shares)
    row = replace(row, shares=max(0, row.shares - shares), promises=(promise,))
    return Grant(epoch=FIRST_EPOCH, sequence=sequence, shares=shares, row=row)


def _receipt(node: BenchNode, sequence: int) -> Receipt:
    row = node.ledger.row(NOW)
    assert row is not None
    return Receipt(epoch=FIRST_EPOCH, sequence=sequence, row=row)


def test_a_life_is_written_down_before_anything_is_said() -> None:
    node = BenchNode(A)

    assert [keep.entry for keep in node.waiting] == [Started(incarnation=1)]
    assert node.said == []


def test_genesis_opens_the_account_of_whoever_it_names() -> None:
    log = founded_log()
    named, stranger = opened(A, log), opened(D, log)

    assert named.own_watts == 500
    assert not stranger.ledger.book.is_open
    assert stranger.ledger.allowance_watts == 0


def test_the_allowance_falls_at_the_moment_of_a_gift_and_before_any_disk_or_wire() -> None:
    giver = opened(A, founded_log())

    assert giver.give(B, 200)

    assert giver.ledger.allowance_watts == 300
    assert (giver.waiting, giver.said) == ([], [])


def test_nothing_is_debited_while_a_higher_cap_may_still_show_in_the_draw() -> None:
    giver = opened(A, founded_log())
    giver.give(B, 200)

    giver.bound(301)
    assert giver.waiting == []

    giver.bound(300)
    assert [type(keep.entry) for keep in giver.waiting] == [Debited]


def test_hardware_that_cannot_be_read_is_never_low_enough() -> None:
    giver = opened(A, founded_log())
    giver.give(B, 200)

    giver.bound(None)

    assert giver.waiting == []


def test_a_grant_leaves_only_when_its_debit_is_on_disk() -> None:
    giver = opened(A, founded_log())
    giver.give(B, 200)
    giver.bound(300)
    assert giver.said == []

    giver.keep_one()

    assert [(to, type(message)) for to, message in giver.said] == [(B, Grant)]


def test_between_debit_and_disk_the_shares_are_nobodys_to_spend() -> None:
    giver = opened(A, founded_log())
    giver.give(B, 200)
    giver.bound(300)

    assert giver.ledger.allowance_watts == 300
    assert giver.ledger.view().own_shares == 500 * WATT
    assert not giver.give(C, 301)


def test_hardware_that_refuses_gives_nothing_away() -> None:
    giver = opened(A, founded_log())
    giver.give(B, 200)

    giver.take(giver.ledger.refused(NOW))

    assert giver.ledger.allowance_watts == 500
    assert giver.ledger.view().is_refusing
    assert giver.waiting == []


def test_one_transfer_at_a_time_goes_from_one_node_to_another() -> None:
    giver = opened(A, founded_log())
    giver.give(B, 100)
    assert not giver.give(B, 100)
    giver.bound(400)
    giver.keep_all()
    assert not giver.give(B, 100)

    giver.hear(B, _receipt(opened(B, founded_log()), 1))
    giver.keep_all()

    assert giver.give(B, 100)


@pytest.mark.parametrize(
    "watts",
    [pytest.param(501, id="more than is owned"), pytest.param(0, id="nothing")],
)
def test_what_cannot_be_given_is_not_begun(watts: int) -> None:
    assert not opened(A, founded_log()).give(B, watts)


def test_nobody_gives_to_itself_or_to_a_stranger() -> None:
    giver = opened(A, founded_log())

    assert not giver.give(A, 10)
    assert not giver.give(D, 10)


def test_a_credit_counts_and_is_acknowledged_only_from_disk_on() -> None:
    log = founded_log()
    giver, taker = opened(A, log), opened(B, log)

    taker.hear(A, _grant(giver, 1, 200))
    assert (taker.ledger.allowance_watts, taker.said) == (300, [])

    taker.keep_one()
    assert taker.ledger.allowance_watts == 500
    assert [(to, type(message)) for to, message in taker.said] == [(A, Receipt)]


def test_a_grant_that_comes_twice_is_acknowledged_twice_and_credited_once() -> None:
    log = founded_log()
    giver, taker = opened(A, log), opened(B, log)
    grant = _grant(giver, 1, 200)

    taker.hear(A, grant)
    taker.hear(A, grant)  # before the disk has it
    taker.keep_all()
    taker.hear(A, grant)

    assert taker.own_watts == 500
    assert [entry for entry in taker.disk if isinstance(entry, Credited)] == [
        Credited(giver=A, sequence=1, shares=200 * WATT)
    ]
    assert sum(isinstance(message, Receipt) for _, message in taker.said) == 2


def test_a_restart_between_credit_and_receipt_credits_nothing_twice() -> None:
    log = founded_log()
    giver, taker = opened(A, log), opened(B, log)
    grant = _grant(giver, 1, 200)
    taker.hear(A, grant)
    taker.keep_all()

    again = taker.restart()
    again.keep_all()
    again.hear(A, grant)
    again.keep_all()

    assert again.own_watts == 500


def test_a_giver_that_restarts_sends_its_grant_again_once_its_hardware_is_known_to_obey() -> None:
    giver = opened(A, founded_log())
    giver.give(B, 200)
    giver.bound(300)
    giver.keep_all()

    again = giver.restart()
    again.keep_all()
    taker = opened(B, founded_log()).ledger.row(NOW)
    assert taker is not None
    again.take(again.ledger.advance(NOW + 10.0))
    again.ledger.hear_row(taker, NOW + 10.0)
    for later in (NOW + 10.5, NOW + 14.0):
        again.take(again.ledger.advance(later))
    assert all(isinstance(message, Asked) for _, message in again.drain())

    again.take(again.ledger.bounded(300, later))
    assert [(to, type(message)) for to, message in again.drain()] == [(B, Grant)]


def test_a_receipt_lets_the_giver_forget_and_nothing_else_does() -> None:
    log = founded_log()
    giver, taker = opened(A, log), opened(B, log)
    giver.give(B, 200)
    giver.bound(300)
    giver.keep_all()

    giver.hear(C, _receipt(opened(C, log), 1))
    assert B in giver.ledger.book.outbox
    giver.hear(B, _receipt(taker, 1))
    giver.keep_all()

    assert giver.ledger.book.outbox == {}
    assert giver.disk[-1] == Settled(to=B, sequence=1)
    assert giver.own_watts == 300


def test_a_whole_transfer_moves_watts_and_loses_none() -> None:
    log = founded_log()
    giver, taker = opened(A, log), opened(B, log)
    giver.give(B, 200)
    giver.bound(300)
    giver.keep_all()

    deliver([giver, taker])

    assert (giver.own_watts, taker.own_watts) == (300, 500)
    assert giver.ledger.book.outbox == {}


@pytest.mark.parametrize(
    "sender",
    [pytest.param(D, id="a stranger"), pytest.param(C, id="somebody in another's name")],
)
def test_a_grant_counts_only_from_the_member_that_signed_it(sender: object) -> None:
    log = founded_log()
    giver, taker = opened(A, log), opened(B, log)

    taker.hear(sender, _grant(giver, 1, 200))  # type: ignore[arg-type]  # the table's ids

    assert taker.waiting == []


def test_more_shares_than_there_are_is_nobodys_to_give() -> None:
    log = founded_log()
    giver, taker = opened(A, log), opened(B, log)

    taker.hear(A, _grant(giver, 1, 701))

    assert taker.waiting == []
    assert "more shares than its own account holds, or than there are" in taker.alarms[0]


def test_a_grant_of_another_epoch_is_not_heard() -> None:
    log = founded_log()
    giver, taker = opened(A, log), opened(B, log)
    old = _grant(giver, 1, 200)

    taker.hear(A, Grant(epoch=old.epoch._replace(number=2), sequence=1, shares=9, row=old.row))

    assert taker.waiting == []


@pytest.mark.parametrize(
    "way",
    [
        pytest.param("row", id="in a row"),
        pytest.param("receipt", id="in a receipt"),
        pytest.param("grant", id="by a gap in what it gives"),
    ],
)
def test_a_peer_that_remembers_more_than_this_book_holds_it_at_its_floor(way: str) -> None:
    log = founded_log()
    node, peer = opened(B, log).restart(), opened(A, log)
    node.obey(log)
    row = peer.ledger.row(NOW)
    assert row is not None
    match way:
        case "row":
            node.hear(A, Told(row=replace(row, credits=(Credit(giver=B, sequence=4),))))
        case "receipt":
            node.hear(A, _receipt(peer, 4))
        case _:
            node.hear(A, _grant(peer, 3, 200))
    node.keep_all()

    assert node.ledger.allowance_watts == 0
    assert "either this ledger is an old copy" in node.alarms[0]
    assert not node.ledger.book.quarantine
    assert not node.give(A, 10)


def test_a_missing_book_of_a_node_with_shares_is_not_opened_anew() -> None:
    node = BenchNode(A, may_found=False)

    node.obey(founded_log())
    node.keep_all()

    assert node.ledger.book.quarantine
    assert node.ledger.allowance_watts == 0


def test_a_lower_budget_is_obeyed_before_it_is_on_disk() -> None:
    log = founded_log()
    node = opened(A, log)
    log.sign(budget(600))

    node.obey(log)

    assert node.ledger.allowance_watts == 300
    assert isinstance(node.waiting[0].entry, BudgetTaken)


def test_a_higher_budget_raises_nothing_before_it_is_on_disk() -> None:
    log = founded_log()
    node = opened(A, log)
    log.sign(budget(2000))

    node.obey(log)
    assert node.ledger.allowance_watts == 500

    node.keep_one()
    assert node.ledger.allowance_watts == 1000


def test_compliance_is_told_only_once_the_hardware_is_low() -> None:
    log = founded_log()
    node = opened(A, log)
    before = node.ledger.book.complied
    log.sign(budget(600))
    node.obey(log)
    node.keep_all()
    row = node.ledger.row(NOW)
    assert row is not None
    assert row.version == before

    node.bound(300)
    assert isinstance(node.waiting[0].entry, Complied)
    node.keep_all()

    assert node.ledger.book.complied.watts == 600


def test_a_disk_that_does_not_answer_changes_nothing_but_the_pace() -> None:
    log = founded_log()
    giver = opened(A, log)
    giver.give(B, 200)
    giver.bound(300)
    log.sign(budget(2000))
    giver.obey(log)

    for _ in range(5):
        giver.take(giver.ledger.advance(NOW + 60.0))

    assert giver.said == []
    assert giver.ledger.allowance_watts == 300


def test_watts_are_rounded_down_and_never_add_up_to_more_than_the_budget() -> None:
    log = founded_log()
    log.sign(budget(997))
    nodes = [opened(one, log) for one in (A, B, C)]

    assert [node.ledger.allowance_watts for node in nodes] == [498, 299, 199]


def test_an_opened_account_is_written_with_members_and_budget() -> None:
    node = opened(A, founded_log())

    [entry] = [one for one in node.disk if isinstance(one, Opened)]
    assert (entry.members, entry.version.watts) == ((A, B, C), 1000)
