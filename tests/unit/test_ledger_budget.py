"""Budgets, joins and lost books, as one node's ledger obeys operators."""

from cluster.rack.ledger.book import BudgetTaken, Complied, MemberAdded
from cluster.rack.ledger.messages import Grant
from cluster.rack.units import FIRST_EPOCH
from simulations.power.desk import FLOOR_WATTS
from tests.ledger_benches import Bench, BenchNode

FLOORS = 3 * FLOOR_WATTS


def cut(bench: Bench, dynamic_watts: int = 1500) -> BenchNode:
    """The first node hears of another budget; the bench has begun."""
    bench.desk.set_budget(FLOORS + dynamic_watts)
    node = bench.nodes[0]
    node.hear_decrees()
    return node


def test_a_node_that_no_record_names_owns_nothing() -> None:
    bench = Bench(strangers=1)
    node = bench.strangers[0]
    node.start()
    node.keep_all()

    node.hear_decrees()

    assert node.waiting == []
    assert node.ledger.row(node.now) is None
    assert node.ledger.allowance_watts == 0


def test_compliance_counts_what_is_set_aside_for_others() -> None:
    bench = Bench()
    node, taker, _ = bench.begin()
    node.give(taker, 10**8)
    cut(bench)
    node.keep_all()

    node.bounded(500)
    before = node.written
    node.bounded(350)

    assert before == []
    assert Complied in node.written


def test_a_version_that_is_not_on_disk_is_not_complied_with() -> None:
    bench = Bench()
    bench.begin()
    node = cut(bench)

    node.bounded(0)

    assert node.written == [BudgetTaken]


def test_an_older_version_changes_nothing() -> None:
    bench = Bench()
    bench.begin()
    node = cut(bench)
    node.keep_all()

    node.hear_decrees(1)

    assert node.written == []
    assert node.ledger.allowance_watts == 500


def test_a_budget_below_the_floors_leaves_nothing_to_share() -> None:
    bench = Bench()
    bench.begin()
    bench.desk.set_budget(FLOORS - 1)

    bench.nodes[0].hear_decrees()

    assert bench.nodes[0].ledger.allowance_watts == 0


def test_a_crash_between_hearing_and_keeping_loses_nothing_but_time() -> None:
    bench = Bench()
    bench.begin()
    node = cut(bench)

    node.start()
    node.hear_decrees()

    assert BudgetTaken in node.written
    assert node.ledger.allowance_watts == 500


def test_a_newcomer_begins_with_nothing_and_can_be_given_something() -> None:
    bench = Bench(strangers=1)
    giver, *_ = bench.begin()
    newcomer = bench.strangers[0]
    bench.desk.join(newcomer.id, "spare0", FIRST_EPOCH)
    for node in bench.nodes:
        node.hear_decrees()
        assert node.written == [MemberAdded]
    newcomer.start()
    newcomer.hear_decrees()
    bench.settle()

    is_begun = giver.give(newcomer, 10**8)
    bench.settle()

    assert is_begun
    assert newcomer.book.own_shares == 10**8
    assert newcomer.ledger.allowance_watts == 300


def test_a_grant_of_somebody_who_is_not_known_as_a_member_yet_waits() -> None:
    bench = Bench(strangers=1)
    giver, other, _ = bench.begin()
    newcomer = bench.strangers[0]
    bench.desk.join(newcomer.id, "spare0", FIRST_EPOCH)
    newcomer.start()
    for node in (giver, newcomer):
        node.hear_decrees()
        node.keep_all()
        node.is_low()
        node.keep_all()
    giver.give(newcomer, 10**8)
    giver.is_low()
    giver.keep_all()
    bench.deliver(giver)
    newcomer.keep_all()
    newcomer.is_low()
    newcomer.keep_all()
    newcomer.give(other, 10**7)
    newcomer.is_low()
    newcomer.keep_all()
    grant = newcomer.messages(Grant)[0]

    other.receive(newcomer, grant)
    early = list(other.waiting)
    other.hear_decrees()
    other.keep_all()
    other.receive(newcomer, grant)

    assert early == []
    assert len(other.waiting) == 1


def test_quarantine_outlives_a_restart() -> None:
    bench = Bench()
    node = bench.nodes[0]
    node.start(may_found=False)
    node.keep_all()
    node.hear_decrees()
    node.keep_all()

    node.start()
    node.hear_decrees()
    node.keep_all()

    assert node.ledger.allowance_watts == 0
    assert node.view.quarantine
