"""Giving and taking shares: every rule of the order that makes a transfer safe."""

from dataclasses import replace

import pytest

from cluster.rack.ledger.book import Credited, Settled, Started
from cluster.rack.ledger.messages import Grant, Receipt
from cluster.rack.rows import Credit
from cluster.rack.units import Epoch
from tests.ledger_benches import THIRD, Bench, BenchNode

TENTH = 10**8


def given(bench: Bench) -> tuple[BenchNode, BenchNode, Grant]:
    """A grant that has been sent and not been heard."""
    giver, taker, *_ = bench.nodes
    assert giver.give(taker, TENTH)
    giver.is_low()
    giver.keep_all()
    grant = giver.messages(Grant)[0]
    giver.said.clear()
    return giver, taker, grant


def test_a_grant_that_comes_again_before_the_credit_is_on_disk_is_not_credited_twice() -> None:
    bench = Bench()
    bench.begin()
    giver, taker, grant = given(bench)
    taker.receive(giver, grant)

    taker.receive(giver, grant)

    assert taker.written == [Credited]
    assert taker.messages(Receipt) == []


def test_a_grant_is_sent_again_until_it_is_acknowledged() -> None:
    bench = Bench()
    bench.begin()
    giver, taker, grant = given(bench)

    waits = []
    for _ in range(8):
        due = giver.ledger.deadline()
        assert due is not None
        waits.append(round(due - giver.now, 2))
        giver.wait(due - giver.now)
    again = giver.messages(Grant)
    taker.receive(giver, grant)
    taker.keep_all()
    giver.receive(taker, taker.messages(Receipt)[0])
    giver.keep_all()

    assert len(again) == 8
    assert waits == [0.15, 0.24, 0.38, 0.61, 0.98, 1.57, 2.0, 2.0]
    assert giver.ledger.deadline() is None


def test_a_receipt_makes_the_giver_forget_the_debt() -> None:
    bench = Bench()
    bench.begin()
    giver, taker, grant = given(bench)
    taker.receive(giver, grant)
    taker.keep_all()
    receipt = taker.messages(Receipt)[0]

    giver.receive(taker, receipt)
    giver.receive(taker, receipt)

    assert giver.written == [Settled]
    giver.keep_all()
    assert dict(giver.book.outbox) == {}
    assert giver.book.out_sequences == {taker.id: 1}


def test_hardware_that_was_asked_for_nothing_is_refusing_too() -> None:
    node, *_ = Bench().begin()

    node.take(node.ledger.refused(node.now))

    assert node.view.is_refusing


def test_a_refusal_is_forgotten_when_nothing_is_asked_any_more() -> None:
    node, *_ = Bench().begin()
    node.take(node.ledger.refused(node.now))

    node.ledger.nothing_asked()

    assert not node.view.is_refusing


def test_a_quarantined_node_takes_nothing_and_still_acknowledges_what_it_has() -> None:
    bench = Bench()
    bench.begin()
    giver, taker, grant = given(bench)
    taker.receive(giver, grant)
    taker.keep_all()
    taker.ledger._account.quarantine("a test says so")
    taker.wait(0.0)
    taker.keep_all()
    taker.said.clear()

    taker.receive(giver, grant)
    taker.receive(giver, replace(grant, sequence=2))

    assert len(taker.messages(Receipt)) == 1
    assert taker.waiting == []
    assert taker.ledger.allowance_watts == 0


@pytest.mark.parametrize(
    "change",
    [pytest.param({"epoch": Epoch(2, 0)}, id="a later epoch"),
     pytest.param({"shares": 0}, id="nothing in it")],
)  # fmt: skip
def test_a_grant_that_is_none_is_ignored(change: dict[str, object]) -> None:
    bench = Bench()
    bench.begin()
    giver, taker, grant = given(bench)

    taker.receive(giver, replace(grant, **change))  # type: ignore[arg-type]  # by the table

    assert (taker.waiting, taker.said, taker.alarms) == ([], [], [])


def test_strangers_cannot_give_and_nobody_can_speak_for_another() -> None:
    bench = Bench(strangers=1)
    _, taker, other = bench.begin()
    _, _, grant = given(bench)

    taker.receive(bench.strangers[0], grant)
    taker.receive(other, grant)

    assert (taker.waiting, taker.said) == ([], [])


def test_a_giver_that_dies_before_the_debit_is_on_disk_has_given_nothing() -> None:
    giver, taker, _ = Bench().begin()
    giver.give(taker, TENTH)
    giver.is_low()

    giver.start()
    giver.hear_decrees()
    giver.keep_all()
    giver.is_low()

    assert giver.ledger.allowance_watts == 1000
    assert giver.messages(Grant) == []


def test_each_life_has_a_number_of_its_own_and_rows_go_on_counting() -> None:
    node, *_ = Bench().begin()
    before = node.ledger.row(node.now)

    node.start()
    written = node.written
    node.keep_all()
    after = node.ledger.row(node.now)

    assert before is not None
    assert after is not None
    assert written == [Started]
    assert after.stamp > before.stamp


def test_a_promise_is_told_until_it_is_acknowledged_and_a_credit_for_some_seconds() -> None:
    bench = Bench()
    bench.begin()
    giver, taker, grant = given(bench)
    taker.receive(giver, grant)
    taker.keep_all()
    promising, told = giver.ledger.row(giver.now), taker.ledger.row(taker.now)
    giver.receive(taker, taker.messages(Receipt)[0])
    giver.keep_all()
    done, later = giver.ledger.row(giver.now), taker.ledger.row(taker.now + 5.0)

    assert promising is not None
    assert told is not None
    assert [(one.to, one.sequence, one.shares) for one in promising.promises] == [
        (taker.id, 1, TENTH)
    ]
    assert told.credits == (Credit(giver=giver.id, sequence=1),)
    assert done is not None
    assert later is not None
    assert (done.promises, later.credits) == ((), ())


def test_whatever_is_done_the_shares_stay_the_whole() -> None:
    bench = Bench()
    one, two, three = bench.begin()
    for giver, taker, shares in ((one, two, 3), (two, three, 5), (three, one, 7), (one, three, 9)):
        giver.give(taker, shares * TENTH // 10)
        bench.settle()

    owned = [node.book.own_shares for node in bench.nodes]
    assert owned == [THIRD + 1 - 5 * 10**7, THIRD - 2 * 10**7, THIRD + 7 * 10**7]
    assert sum(owned) == 10**9
    assert [node.view.sent for node in bench.nodes] == [(), (), ()]
