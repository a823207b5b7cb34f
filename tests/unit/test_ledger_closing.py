"""How an epoch ends: retirements, last words, and what can go wrong with them."""

from dataclasses import replace

import pytest

from cluster.rack.ledger.book import Froze, Switched
from cluster.rack.ledger.decrees import Retired
from cluster.rack.ledger.messages import Grant, Receipt, Stated, read_statement
from cluster.rack.units import FIRST_EPOCH, SHARES_TOTAL, Epoch
from simulations.power.desk import CURRENCY
from tests.ledger_benches import Bench, BenchNode

TENTH = 10**8


def retire_third(bench: Bench) -> tuple[BenchNode, BenchNode]:
    """The third node is off, and the others hear that it is retired."""
    first, second, third = bench.nodes
    bench.desk.retire(FIRST_EPOCH, third.id, None)
    del third.ledger
    for node in (first, second):
        node.hear_decrees()
    return first, second


def test_all_end_in_the_same_epoch_with_the_whole() -> None:
    bench = Bench()
    bench.begin()
    first, second = retire_third(bench)

    bench.settle()

    assert first.book.epoch == second.book.epoch == Epoch(2, 0)
    assert first.book.members == second.book.members == (first.id, second.id)
    assert first.book.own_shares + second.book.own_shares == SHARES_TOTAL
    assert first.ledger.may_trade


def test_a_last_word_is_on_disk_before_anybody_hears_it() -> None:
    bench = Bench()
    bench.begin()

    first, _ = retire_third(bench)
    before = first.messages(Stated)
    written = first.written
    first.keep_all()

    assert written == [Froze]
    assert before == []
    assert len(first.messages(Stated)) == 1


def test_freezing_waits_for_what_is_on_its_way_to_disk() -> None:
    bench = Bench()
    first, second, third = bench.begin()
    first.give(second, TENTH)
    first.is_low()
    bench.desk.retire(FIRST_EPOCH, third.id, None)

    first.hear_decrees()
    before = [one.__name__ for one in first.written]
    first.keep_all()

    assert before == ["Debited"]
    assert isinstance(first.log[-1], Froze)


def test_a_gift_that_is_not_written_down_is_given_up() -> None:
    bench = Bench()
    first, second, third = bench.begin()
    first.give(second, TENTH)
    bench.desk.retire(FIRST_EPOCH, third.id, None)

    first.hear_decrees()

    assert first.ledger.allowance_watts == 1000
    assert not first.ledger.may_trade
    assert not first.give(second, TENTH)


def test_nothing_is_credited_once_a_retirement_is_heard_of() -> None:
    bench = Bench()
    first, second, third = bench.begin()
    first.give(second, TENTH)
    first.is_low()
    first.keep_all()
    grant = first.messages(Grant)[0]
    bench.desk.retire(FIRST_EPOCH, third.id, None)
    second.hear_decrees()
    second.keep_all()

    second.receive(first, grant)

    assert second.waiting == []


def test_what_was_on_its_way_comes_back_to_its_giver() -> None:
    bench = Bench()
    first, second, _ = bench.begin()
    second.give(first, TENTH)
    second.is_low()
    second.keep_all()
    second.said.clear()
    owned = second.book.own_shares

    retire_third(bench)
    bench.settle()

    assert second.book.own_shares == owned + TENTH
    assert dict(second.book.outbox) == {}


def test_a_late_grant_of_the_old_epoch_is_worth_nothing() -> None:
    bench = Bench()
    first, second, _ = bench.begin()
    second.give(first, TENTH)
    second.is_low()
    second.keep_all()
    grant = second.messages(Grant)[0]
    second.said.clear()
    retire_third(bench)
    bench.settle()
    owned = first.book.own_shares

    first.receive(second, grant)
    bench.settle()

    assert first.book.own_shares == owned


def test_a_last_word_is_said_again_each_second_until_the_epoch_ends() -> None:
    bench = Bench()
    bench.begin()
    first, _ = retire_third(bench)
    first.keep_all()
    first.said.clear()

    first.wait(0.9)
    early = len(first.messages(Stated))
    first.wait(0.2)

    assert early == 0
    assert len(first.messages(Stated)) == 1
    assert first.ledger.deadline() == pytest.approx(first.now + 1.0)


def test_one_absent_signer_keeps_everybody_where_they_are() -> None:
    bench = Bench()
    bench.begin()
    first, second = retire_third(bench)
    first.keep_all()

    for _ in range(30):
        first.wait(1.0)

    assert first.view.absent == (second.id,)
    assert first.book.epoch == FIRST_EPOCH
    assert first.ledger.allowance_watts == 1000


def test_a_signer_that_crashed_after_it_finished_helps_those_behind() -> None:
    bench = Bench()
    bench.begin()
    first, second = retire_third(bench)
    first.keep_all()
    second.keep_all()
    bench.deliver(second)
    first.keep_all()
    first.start()
    first.keep_all()
    first.hear_decrees()
    row = second.ledger.row(second.now)
    assert row is not None

    first.ledger.hear_row(row, first.now)
    first.wait(0.0)
    bench.deliver(first)
    bench.settle()

    assert first.log[-1] != second.log[-1]
    assert second.book.epoch == Epoch(2, 0)


def test_words_of_an_epoch_that_is_on_its_way_to_disk_do_not_count_as_lost_books() -> None:
    bench = Bench()
    first, second, _ = bench.begin()
    first.give(second, TENTH)
    first.is_low()
    first.keep_all()
    bench.deliver(first)
    second.keep_all()
    receipt = second.messages(Receipt)[0]
    second.said.clear()
    retire_third(bench)
    second.keep_all()
    first.keep_all()
    bench.deliver(second)
    assert first.written == [Switched]

    first.receive(second, receipt)
    first.keep_all()

    assert first.alarms == []
    assert first.book.epoch == Epoch(2, 0)


def test_a_signer_of_a_lower_rank_makes_all_finish_that_rank() -> None:
    bench = Bench(4)
    first, second, third, fourth = bench.begin()
    bench.desk.retire(FIRST_EPOCH, fourth.id, None)
    del fourth.ledger
    for node in (first, second, third):
        node.hear_decrees()
        node.keep_all()
    for node in (second, third):
        bench.deliver(node)
    first.keep_all()  # finishes rank 0
    bench.desk.retire(FIRST_EPOCH, third.id, None)
    del third.ledger
    second.hear_decrees()
    second.keep_all()
    assert first.book.epoch == Epoch(2, 0)
    assert second.book.epoch == FIRST_EPOCH
    row = first.ledger.row(first.now)
    assert row is not None

    second.ledger.hear_row(row, second.now)
    second.wait(0.0)
    bench.settle()

    assert second.book.epoch == Epoch(2, 0)


def test_a_second_death_before_anybody_finished_is_closed_by_the_higher_rank() -> None:
    bench = Bench(4)
    first, second, third, fourth = bench.begin()
    bench.desk.retire(FIRST_EPOCH, fourth.id, None)
    del fourth.ledger
    for node in (first, second):
        node.hear_decrees()
        node.keep_all()
    bench.desk.retire(FIRST_EPOCH, third.id, None)
    del third.ledger

    for node in (first, second):
        node.hear_decrees()
    bench.settle()

    assert first.book.epoch == second.book.epoch == Epoch(2, 1)
    assert first.book.own_shares + second.book.own_shares == SHARES_TOTAL


def test_two_retirements_of_one_rank_are_not_signed() -> None:
    bench = Bench(4)
    first, _, third, fourth = bench.begin()
    for gone in (third, fourth):
        record = bench.desk.retire(FIRST_EPOCH, gone.id, None)
        if gone is fourth:
            bench.desk.records.pop()
            bench.desk._sign(replace(record, rank=0, out=(fourth.id,)))

    first.hear_decrees()

    assert first.written == []
    assert "contradict each other" in first.alarms[0]


def test_a_retirement_that_forgets_a_member_is_not_signed() -> None:
    bench = Bench()
    first, second, third = bench.begin()
    record = Retired(
        currency=CURRENCY,
        epoch=FIRST_EPOCH,
        rank=0,
        members=(first.id, third.id),
        out=(third.id,),
    )
    bench.desk._sign(record)

    first.hear_decrees()
    second.hear_decrees()

    assert (first.written, second.written) == ([], [])
    assert second.id.short in first.alarms[0]
    assert "forgets" in second.alarms[0]


def test_a_node_that_is_retired_while_it_runs_holds_nothing_any_more() -> None:
    bench = Bench()
    *_, third = bench.begin()
    bench.desk.retire(FIRST_EPOCH, third.id, None)

    third.hear_decrees()

    assert third.ledger.allowance_watts == 0
    assert "retired" in third.alarms[0]


def test_a_newcomer_signs_too_and_gets_what_is_left() -> None:
    bench = Bench(strangers=1)
    first, second, third = bench.begin()
    newcomer = bench.strangers[0]
    bench.desk.retire(FIRST_EPOCH, third.id, (newcomer.id, "spare0"))
    del third.ledger
    newcomer.start()
    newcomer.hear_decrees()
    newcomer.keep_all()
    for node in (first, second):
        node.hear_decrees()

    bench.settle()

    assert newcomer.book.epoch == Epoch(2, 0)
    assert newcomer.book.own_shares == SHARES_TOTAL - first.book.own_shares - second.book.own_shares
    assert newcomer.ledger.allowance_watts > 900


@pytest.mark.parametrize("which", ["signature", "currency", "stranger"])
def test_a_statement_that_its_node_did_not_sign_is_ignored(which: str) -> None:
    bench = Bench()
    bench.begin()
    first, second = retire_third(bench)
    first.keep_all()
    second.keep_all()
    word = second.messages(Stated)[0].signed
    if which == "signature":
        word = replace(word, signature=bytes(64))
    elif which == "currency":
        payload = word.payload.replace(b"rack:r00", b"rack:r01")
        word = read_statement(payload, word.signature)
    else:
        bench.public_keys.pop(second.id)

    first.receive(second, Stated(signed=word))

    assert first.view.absent == (second.id,)
    assert first.written == []
