"""Old copies of a ledger: what peers remember is asked for, and believed within bounds."""

from dataclasses import replace

import pytest

from cluster.rack.ledger.book import Opened
from cluster.rack.ledger.messages import Asked, Grant, Recalled, Receipt, Told
from cluster.rack.rows import Credit, Row
from cluster.rack.units import FIRST_EPOCH, SHARES_TOTAL
from tests.ledger_benches import Bench, BenchNode

TENTH = 10**8


def row_of(node: BenchNode) -> Row:
    row = node.ledger.row(node.now)
    assert row is not None
    return row


def begin_again(bench: Bench, node: BenchNode) -> None:
    """The node's agent starts once more, with what its log says; nobody has answered yet."""
    node.start()
    node.keep_all()
    node.hear_decrees()
    node.keep_all()
    node.is_low()
    node.keep_all()


def set_back(bench: Bench, giver: BenchNode, taker: BenchNode) -> None:
    """The giver has given, and begins again with the log from before that."""
    old = list(giver.log)
    assert giver.give(taker, 2 * TENTH)
    bench.settle()
    for node in bench.nodes:
        node.wait(60.0)
        node.said.clear()
    giver.log = old
    begin_again(bench, giver)


def allowed_watts(bench: Bench) -> int:
    return sum(node.ledger.allowance_watts for node in bench.nodes)


def test_a_disk_that_was_set_back_is_found_out_by_the_one_who_was_given_something() -> None:
    bench = Bench()
    giver, taker, _ = bench.begin()
    set_back(bench, giver, taker)

    bench.settle()

    assert giver.ledger.allowance_watts == 0
    assert allowed_watts(bench) <= 3000
    assert taker.id.short in giver.alarms[-1]
    assert not giver.give(taker, TENTH)


def test_nothing_is_given_before_all_that_are_alive_have_answered() -> None:
    bench = Bench()
    node, other, _ = bench.begin()
    begin_again(bench, node)

    early = node.give(other, TENTH)
    bench.settle()
    later = node.give(other, TENTH)

    assert (early, later) == (False, True)


def test_a_node_that_nobody_answers_goes_on_after_some_seconds() -> None:
    node, other, third = Bench().begin()
    begin_again(node.bench, node)
    node.receive(other, Told(row=row_of(other)))

    asked = []
    while node.ledger.is_asking:
        due = node.ledger.deadline()
        assert due is not None
        node.wait(max(0.01, due - node.now))
        asked.append(node.now)

    assert asked[-1] == pytest.approx(3.0)
    assert node.give(third, TENTH)


def test_those_who_are_silent_are_not_waited_for_longer_than_a_second() -> None:
    node, other, third = Bench().begin()
    begin_again(node.bench, node)
    ask = node.messages(Asked)[0]
    other.receive(node, ask)
    node.receive(other, other.messages(Recalled)[0])

    node.wait(0.9)
    early = node.ledger.is_asking
    node.wait(0.2)

    assert (early, node.ledger.is_asking) == (True, False)
    assert node.give(third, TENTH)


def test_the_first_life_of_a_new_book_asks_nobody() -> None:
    node, *_ = Bench().begin()

    assert not node.ledger.is_asking
    assert node.messages(Asked) == []


def test_a_claim_is_forgotten_when_its_witness_says_otherwise() -> None:
    node, other, _ = Bench().begin()
    begin_again(node.bench, node)
    node.receive(
        other, Told(row=replace(row_of(other), credits=(Credit(giver=node.id, sequence=9),)))
    )
    assert node.ledger.allowance_watts == 0

    node.wait(1.1)
    other.receive(node, node.messages(Asked)[-1])
    node.receive(other, other.messages(Recalled)[-1])

    assert node.ledger.allowance_watts == 1000
    assert node.view.quarantine == ""


def test_two_witnesses_are_believed_for_good() -> None:
    node, other, third = Bench().begin()
    begin_again(node.bench, node)

    for one in (other, third):
        node.receive(
            one, Told(row=replace(row_of(one), credits=(Credit(giver=node.id, sequence=9),)))
        )
    node.keep_all()
    node.said.clear()
    node.start()
    node.hear_decrees()

    assert node.ledger.allowance_watts == 0
    assert "old copy" in node.view.quarantine


def test_one_row_lowers_nobody_who_was_confirmed_in_this_life() -> None:
    bench = Bench()
    node, liar, third = bench.begin()
    begin_again(bench, node)
    bench.settle()

    for sequence in (10**9, 7, 8):
        row = replace(row_of(liar), credits=(Credit(giver=node.id, sequence=sequence),))
        node.receive(liar, Told(row=row))

    assert node.ledger.allowance_watts == 1000
    assert len(node.alarms) == 1
    assert not node.give(liar, TENTH)
    assert node.give(third, TENTH)


def test_a_gap_in_grants_of_a_liar_lowers_nobody_either() -> None:
    bench = Bench()
    node, liar, _ = bench.begin()

    node.receive(liar, Grant(epoch=FIRST_EPOCH, sequence=7, shares=1, row=row_of(liar)))

    assert node.ledger.allowance_watts == 1000
    assert liar.id.short in node.alarms[0]


def test_memory_and_disk_that_were_set_back_together_are_found_out_when_gossip_doubts() -> None:
    bench = Bench()
    giver, taker, _ = bench.begin()
    set_back(bench, giver, taker)
    giver.ledger._recollections._began_seconds = None  # as if all had confirmed it long ago
    giver.ledger._recollections._confirmed = {taker.id: None}
    giver.receive(taker, Receipt(epoch=FIRST_EPOCH, sequence=1, row=row_of(taker)))
    before = giver.ledger.allowance_watts

    giver.take(giver.ledger.doubt(giver.now))
    bench.settle()

    assert before == 1000
    assert giver.ledger.allowance_watts == 0


def test_a_later_life_that_others_have_heard_of_is_a_claim_too() -> None:
    bench = Bench()
    node, other, _ = bench.begin()
    old = list(node.log)
    for _ in range(3):
        begin_again(bench, node)
        other.receive(node, Told(row=row_of(node)))
    node.log = old
    begin_again(bench, node)

    bench.settle()

    assert node.ledger.allowance_watts == 0
    assert "life 4" in node.alarms[-1]


def test_a_receipt_names_the_last_transfer_and_not_the_one_that_came_again() -> None:
    bench = Bench()
    giver, taker, _ = bench.begin()
    first = None
    for _ in range(2):
        assert giver.give(taker, TENTH)
        giver.is_low()
        giver.keep_all()
        first = first or giver.messages(Grant)[0]
        bench.settle()

    taker.receive(giver, first)

    assert [one.sequence for one in taker.messages(Receipt)] == [2]


def test_a_book_that_is_not_believed_sends_nothing() -> None:
    bench = Bench()
    giver, taker, third = bench.begin()
    giver.give(taker, TENTH)
    giver.is_low()
    giver.keep_all()
    begin_again(bench, giver)
    giver.receive(
        third, Told(row=replace(row_of(third), credits=(Credit(giver=giver.id, sequence=9),)))
    )
    giver.said.clear()

    for _ in range(20):
        giver.wait(0.5)

    assert giver.messages(Grant) == []


def test_a_witness_that_is_retired_counts_no_more() -> None:
    bench = Bench(4)
    node, liar, *others = bench.begin()
    begin_again(bench, node)
    node.receive(
        liar, Told(row=replace(row_of(liar), credits=(Credit(giver=node.id, sequence=9),)))
    )
    bench.desk.retire(FIRST_EPOCH, liar.id, None)
    del liar.ledger

    for one in (node, *others):
        one.hear_decrees()
    bench.settle()

    assert node.book.epoch is not None
    assert node.book.epoch.number == 2
    assert sum(one.book.own_shares for one in (node, *others)) == SHARES_TOTAL


def test_a_newcomer_that_has_lost_its_book_is_not_opened_anew() -> None:
    bench = Bench(strangers=1)
    bench.begin()
    newcomer = bench.strangers[0]
    bench.desk.join(newcomer.id, "spare0", FIRST_EPOCH)
    newcomer.start(may_found=False)
    newcomer.hear_decrees()
    newcomer.keep_all()

    assert not any(isinstance(one, Opened) for one in newcomer.log)
    assert newcomer.view.quarantine
    assert newcomer.ledger.allowance_watts == 0
