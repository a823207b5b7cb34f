"""Ranks: one epoch never ends in two ways, whatever is lost between two files of one node."""

from dataclasses import replace

import pytest

from cluster.errors import Malformed
from cluster.rack.ledger.book import Book, Debt, Froze, Frozen, apply_entry
from cluster.rack.ledger.decrees import Retired
from cluster.rack.ledger.messages import Told
from cluster.rack.units import FIRST_EPOCH, SHARES_TOTAL, Epoch
from simulations.power.desk import CURRENCY
from tests.ledger_benches import Bench, BenchNode


def hand_over(sender: BenchNode, to: BenchNode) -> None:
    """All that was said to one node reaches it; the sender may say it to others as well."""
    for node_id, message in list(sender.said):
        if node_id == to.id:
            to.receive(sender, message)


def total(nodes: list[BenchNode]) -> int:
    return sum(one.book.own_shares + one.book.sent_shares for one in nodes)


def test_a_node_that_lost_the_record_of_a_higher_rank_finishes_no_lower_one() -> None:
    bench = Bench(4, strangers=1)
    third, first, dying, fourth = bench.begin()
    newcomer = bench.strangers[0]
    newcomer.start()
    bench.desk.retire(FIRST_EPOCH, fourth.id, None)
    for node in (first, third, dying):
        node.hear_decrees(2)
        node.keep_all()
    hand_over(dying, first)
    for node in (dying, third, first):
        node.said.clear()
    bench.desk.retire(FIRST_EPOCH, dying.id, (newcomer.id, "spare0"))
    for _ in range(2):
        for node in (first, third, newcomer):
            node.hear_decrees(3)
            node.keep_all()
    hand_over(third, first)
    hand_over(newcomer, first)
    first.keep_all()
    hand_over(third, newcomer)
    hand_over(first, newcomer)
    newcomer.keep_all()

    third.start()  # its own log is on disk; the operators' log has the second record not yet
    third.hear_decrees(2)
    third.keep_all()
    heard = first.ledger.row(first.now)
    assert heard is not None
    third.ledger.hear_row(heard, third.now)
    for seconds in (0.5, 4.5):
        third.wait(seconds)
        third.keep_all()
    first.said.clear()
    row = third.ledger.row(third.now)
    assert row is not None
    first.receive(third, Told(row=row))
    hand_over(first, third)
    third.keep_all()

    assert third.book.frozen == Frozen(
        rank=1, digest=bench.desk.charter.closings_of(FIRST_EPOCH)[1].digest
    )
    assert third.book.epoch == FIRST_EPOCH
    assert total([first, third, newcomer]) <= SHARES_TOTAL

    third.hear_decrees(3)
    first.wait(2.0)
    first.receive(third, Told(row=row))
    hand_over(first, third)
    third.keep_all()

    assert third.book.epoch == first.book.epoch == newcomer.book.epoch == Epoch(2, 1)
    assert total([first, third, newcomer]) == SHARES_TOTAL


@pytest.mark.parametrize(
    ("rank", "digest"),
    [
        pytest.param(0, bytes(16), id="a lower rank"),
        pytest.param(2, b"x" * 16, id="another record of the rank"),
    ],
)
def test_a_book_takes_no_last_word_that_does_not_follow(rank: int, digest: bytes) -> None:
    book = Book(node_id=Bench().nodes[0].id, currency=CURRENCY, epoch=FIRST_EPOCH)
    book = apply_entry(book, Froze(frozen=Frozen(rank=2, digest=bytes(16))))

    with pytest.raises(Malformed):
        apply_entry(book, Froze(frozen=Frozen(rank=rank, digest=digest)))


def test_nothing_is_signed_before_the_operators_record_is_on_disk() -> None:
    bench = Bench()
    first, _, third = bench.begin()
    bench.desk.retire(FIRST_EPOCH, third.id, None)
    charter = bench.desk.charter

    first.take(first.ledger.hear_charter(charter, first.now, is_kept=False))
    early = list(first.waiting)
    first.take(first.ledger.hear_charter(charter, first.now))

    assert early == []
    assert first.written == [Froze]


def test_a_record_of_a_rank_that_was_signed_otherwise_is_not_signed() -> None:
    bench = Bench()
    first, _, third = bench.begin()
    record = bench.desk.retire(FIRST_EPOCH, third.id, None)
    first.hear_decrees()
    first.keep_all()
    bench.desk.records.pop()
    bench.desk._charters.clear()
    bench.desk._sign(replace(record, evidence="seen to be off"))

    first.hear_decrees()
    first.wait(3.0)

    assert first.written == []
    assert "has to be signed" in first.alarms[-1]


def test_who_has_finished_one_of_two_records_of_a_rank_is_followed() -> None:
    bench = Bench(4)
    first, second, third, fourth = bench.begin()
    record = bench.desk.retire(FIRST_EPOCH, fourth.id, None)
    del fourth.ledger
    for node in (first, second, third):
        node.hear_decrees()
        node.keep_all()
    for node in (second, third):
        hand_over(node, first)
        node.said.clear()
    first.keep_all()  # finishes by the first record
    bench.desk._sign(replace(record, evidence="another word"))
    for node in (second, third):
        node.hear_decrees()
        node.keep_all()

    for node in (second, third):
        row = node.ledger.row(node.now)
        assert row is not None
        first.receive(node, Told(row=row))
    bench.settle()

    assert {one.book.epoch for one in (first, second, third)} == {Epoch(2, 0)}
    assert total([first, second, third]) == SHARES_TOTAL


def test_the_twentieth_record_of_an_epoch_ends_it_as_well_as_the_first() -> None:
    bench = Bench(4)
    first, second, absent, fourth = bench.begin()
    del fourth.ledger
    for _ in range(20):
        bench.desk.retire(FIRST_EPOCH, fourth.id, None)
        for node in (first, second):
            node.hear_decrees()
            node.keep_all()
        hand_over(second, first)
        hand_over(first, second)

    absent.hear_decrees()
    bench.settle()

    assert {one.book.epoch for one in (first, second, absent)} == {Epoch(2, 19)}
    assert total([first, second, absent]) == SHARES_TOTAL


def test_a_record_that_forgets_somebody_who_is_owed_is_told_and_not_signed() -> None:
    bench = Bench(4)
    first, second, third, fourth = bench.begin()
    first.give(second, 10**8)
    first.is_low()
    first.keep_all()
    assert first.book.outbox == {second.id: Debt(sequence=1, shares=10**8)}
    wrong = Retired(
        currency=CURRENCY,
        epoch=FIRST_EPOCH,
        rank=0,
        members=(first.id, third.id, fourth.id),
        out=(fourth.id,),
    )
    bench.desk._sign(wrong)
    first.hear_decrees()

    word = first.ledger._closings._words.state(wrong)

    assert word is None
    assert first.written == []
    assert "does not name" in first.alarms[-1]


def test_a_newcomer_that_goes_at_once_is_asked_for_no_last_word() -> None:
    bench = Bench(strangers=1)
    first, second, third = bench.nodes
    newcomer = bench.strangers[0]
    record = Retired(
        currency=CURRENCY,
        epoch=FIRST_EPOCH,
        rank=0,
        members=(first.id, second.id, third.id),
        out=(third.id, newcomer.id),
        added=((newcomer.id, "spare0"),),
    )

    assert record.signers == (first.id, second.id)
