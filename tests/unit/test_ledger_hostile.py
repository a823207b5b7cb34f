"""What a member can say that is not so, and how little comes of it."""

import random
from dataclasses import replace

import pytest

from cluster.codec import encode_document
from cluster.errors import Malformed
from cluster.rack.ledger.messages import (
    Grant,
    HasSwitched,
    SignedStatement,
    Stated,
    Statement,
    Switch,
    decode_message,
    encode_message,
    encode_statement,
    encode_switch,
    read_statement,
    read_switch,
)
from cluster.rack.rows import Promise, Row
from cluster.rack.units import FIRST_EPOCH, SHARES_TOTAL, Epoch
from cluster.signatures import Purpose
from simulations.power.desk import CURRENCY
from tests.ledger_benches import Bench, BenchNode

TENTH = 10**8


def row_of(node: BenchNode) -> Row:
    row = node.ledger.row(node.now)
    assert row is not None
    return row


def word_of(bench: Bench, node: BenchNode, own_shares: int) -> Stated:
    """A last word of this node, under its own signature, with whatever it likes to say."""
    record = bench.desk.charter.closings_of(FIRST_EPOCH)[-1]
    statement = Statement(
        node_id=node.id,
        epoch=FIRST_EPOCH,
        rank=record.rank,
        digest=record.digest,
        own_shares=own_shares,
        outbox=(),
        last_in=(0,) * len(record.members),
    )
    payload = encode_statement(CURRENCY, statement)
    signature = node.signer.sign(Purpose.POWER_STATEMENT.wrap(payload))
    return Stated(signed=read_statement(payload, signature))


def switch_of(bench: Bench, node: BenchNode, rank: int) -> HasSwitched:
    """A word of this node that it has ended the first epoch by the record of this rank."""
    record = bench.desk.charter.closings_of(FIRST_EPOCH)[rank]
    switch = Switch(node_id=node.id, epoch=FIRST_EPOCH, rank=rank, digest=record.digest)
    payload = encode_switch(CURRENCY, switch)
    signature = node.signer.sign(Purpose.POWER_STATEMENT.wrap(payload))
    return HasSwitched(signed=read_switch(payload, signature))


@pytest.mark.parametrize(
    "kind", [pytest.param("stated", id="a last word"), pytest.param("switched", id="a switch")]
)
def test_a_word_about_what_is_no_currency_is_refused_where_it_is_read(kind: str) -> None:
    fields: tuple[object, ...] = (bytes(16), (1, 0), 0, bytes(16))
    words = {
        "stated": ("closing-statement", "x" * 60, *fields, 0, (), (0, 0, 0)),
        "switched": ("closing-switch", "x" * 60, *fields),
    }
    payload = encode_document((1, *words[kind]))  # type: ignore[arg-type]  # documents by table

    with pytest.raises(Malformed):
        decode_message(encode_document((1, CURRENCY, kind, payload, bytes(64))))


def test_words_about_another_currency_are_ignored() -> None:
    bench = Bench()
    first, second, third = bench.begin()
    bench.desk.retire(FIRST_EPOCH, third.id, None)
    for node in (first, second):
        node.hear_decrees()
        node.keep_all()
    payload = switch_of(bench, second, 0).signed.payload.replace(b"rack:r00", b"rack:r01")

    first.receive(second, HasSwitched(signed=read_switch(payload, bytes(64))))

    assert first.alarms == []
    assert first.written == []


def test_nobody_gives_what_its_own_row_does_not_promise() -> None:
    bench = Bench()
    taker, other, giver = bench.begin()
    grant = Grant(epoch=FIRST_EPOCH, sequence=1, shares=6 * TENTH, row=row_of(giver))

    taker.receive(giver, grant)
    other.receive(giver, grant)

    assert (taker.waiting, other.waiting) == ([], [])
    assert giver.id.short in taker.alarms[0]


def test_nobody_gives_more_than_is_left_beside_the_own_and_the_takers_shares() -> None:
    bench = Bench()
    taker, _, giver = bench.begin()
    promise = Promise(to=taker.id, sequence=1, shares=4 * TENTH)
    row = replace(row_of(giver), promises=(promise,))

    taker.receive(giver, Grant(epoch=FIRST_EPOCH, sequence=1, shares=promise.shares, row=row))

    assert taker.waiting == []


def test_two_words_of_one_node_under_one_record_stop_all_who_hear_of_them() -> None:
    bench = Bench(4)
    first, second, hostile, fourth = bench.begin()
    bench.desk.retire(FIRST_EPOCH, fourth.id, None)
    del fourth.ledger
    for node in (first, second, hostile):
        node.hear_decrees()
        node.keep_all()
    hostile.said.clear()
    quarter = SHARES_TOTAL // 4

    for node, stated in ((first, 0), (second, quarter)):
        node.receive(hostile, word_of(bench, hostile, stated))
        node.receive(hostile, word_of(bench, hostile, quarter - stated))
    bench.settle()

    assert first.book.epoch == second.book.epoch == FIRST_EPOCH
    assert first.messages(Stated) == []
    for node in (first, second):
        assert "two different things" in node.alarms[-1]


def test_a_second_word_is_passed_on_like_the_first() -> None:
    bench = Bench(4)
    first, second, hostile, fourth = bench.begin()
    bench.desk.retire(FIRST_EPOCH, fourth.id, None)
    for node in (first, second, hostile):
        node.hear_decrees()
        node.keep_all()
    first.said.clear()

    for shares in (0, 1, 2):
        first.receive(hostile, word_of(bench, hostile, shares))

    relayed = [one.signed.statement.own_shares for one in first.messages(Stated)]
    assert sorted(dict.fromkeys(relayed)) == [0, 1]


def test_another_last_word_under_the_own_signature_proves_an_old_copy() -> None:
    bench = Bench(4)
    first, second, _, fourth = bench.begin()
    bench.desk.retire(FIRST_EPOCH, fourth.id, None)
    first.hear_decrees()
    first.receive(second, word_of(bench, first, 7))

    first.keep_all()

    assert "another last word" in first.view.quarantine
    assert {one.signed.statement.own_shares for one in first.messages(Stated)} == {7}


def test_a_bare_row_of_the_next_epoch_makes_nobody_finish_a_lower_rank() -> None:
    bench = Bench(4)
    first, second, hostile, fourth = bench.begin()
    bench.desk.retire(FIRST_EPOCH, fourth.id, None)
    for node in (first, second, hostile):
        node.hear_decrees()
        node.keep_all()
    bench.desk.retire(FIRST_EPOCH, fourth.id, None)
    for one in (second, hostile):
        bench.deliver(one)
        one.said.clear()
    first.hear_decrees()

    first.ledger.hear_row(replace(row_of(hostile), epoch=Epoch(2, 0)), first.now)
    first.wait(0.0)
    written = [one.__name__ for one in first.written]

    assert "Switched" not in written[1:]


def test_who_says_that_it_ended_an_epoch_in_two_ways_is_not_followed() -> None:
    bench = Bench(4)
    first, second, hostile, fourth = bench.begin()
    for _ in range(3):
        bench.desk.retire(FIRST_EPOCH, fourth.id, None)
    first.hear_decrees()
    first.keep_all()

    for rank in (0, 1):
        first.receive(hostile, switch_of(bench, hostile, rank))

    assert "in two ways" in first.alarms[-1]
    assert second.book.epoch == first.book.epoch


def test_words_for_records_that_nobody_knows_take_a_bounded_room() -> None:
    bench = Bench()
    node, hostile, third = bench.begin()
    bench.desk.retire(FIRST_EPOCH, third.id, None)
    node.hear_decrees()
    node.keep_all()
    chance = random.Random(1)
    known = word_of(bench, hostile, 5)
    for _ in range(200):
        statement = replace(known.signed.statement, digest=chance.randbytes(16))
        payload = encode_statement(CURRENCY, statement)
        signature = hostile.signer.sign(Purpose.POWER_STATEMENT.wrap(payload))
        node.receive(hostile, Stated(signed=read_statement(payload, signature)))

    node.receive(hostile, known)

    assert len(node.ledger._closings._words._statements) <= 16 + 2
    assert node.view.absent == ()


def test_words_of_those_who_are_not_asked_are_ignored() -> None:
    bench = Bench(strangers=1)
    node, _, third = bench.begin()
    stranger = bench.strangers[0]
    bench.desk.retire(FIRST_EPOCH, third.id, None)
    node.hear_decrees()
    node.keep_all()
    node.said.clear()

    for one in (stranger, third):
        node.receive(one, word_of(bench, one, 0))

    assert node.said == []


def test_a_last_word_of_a_whole_rack_fits_into_a_datagram() -> None:
    chance = random.Random(1)
    statement = Statement(
        node_id=Bench().nodes[0].id,
        epoch=FIRST_EPOCH,
        rank=0,
        digest=bytes(16),
        own_shares=10**7,
        outbox=tuple((176 + at, 60_000, 10**8) for at in range(24)),
        last_in=tuple(chance.randrange(60_000) for _ in range(200)),
    )
    payload = encode_statement(CURRENCY, statement)
    signed = SignedStatement(
        currency=CURRENCY, statement=statement, payload=payload, signature=bytes(64)
    )

    assert len(encode_message(CURRENCY, Stated(signed=signed))) <= 1200


def test_no_more_transfers_are_open_than_a_last_word_has_room_for() -> None:
    bench = Bench(30)
    giver, *others = bench.begin()

    begun = [giver.give(one, 1000) for one in others]

    assert sum(begun) == 24
