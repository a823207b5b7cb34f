"""Operators' logs that fork before they agree on a genesis, and slots that two are to stand in."""

from cluster.identity.operator_records import SignedRecord
from cluster.rack.ledger.charter import Charter, read_charters
from cluster.rack.ledger.decrees import BudgetSet, Joined, Retired
from cluster.rack.units import FIRST_EPOCH
from tests.ledger_bench import (
    CURRENCY,
    NOW,
    A,
    B,
    BenchNode,
    C,
    D,
    E,
    OperatorsLog,
    budget,
    founded_log,
    genesis,
)

TENTH = 10**8


class Fork:
    """Two branches, each with a genesis of its own."""

    def __init__(self) -> None:
        self.log = OperatorsLog()
        self.root = self.log.sign(budget(1000))
        self.high = self.log.sign(genesis({A: 7 * TENTH, B: 2 * TENTH, C: TENTH}), after=self.root)
        self.low = self.log.sign(genesis({A: TENTH, B: 8 * TENTH, C: TENTH}), after=self.root)

    def charter(self, *records: SignedRecord) -> Charter:
        """By the root and these."""
        ordered = sorted((self.root, *records), key=lambda one: (one.record.sequence, one.hash))
        return read_charters(ordered)[CURRENCY]


def hear(node: BenchNode, charter: Charter) -> None:
    node.take(node.ledger.hear_charter(charter, NOW))
    node.keep_all()


def test_shares_of_two_geneses_are_never_both_in_force() -> None:
    fork = Fork()
    nodes = [BenchNode(one) for one in (A, B, C)]
    for node, heard in zip(nodes, (fork.high, fork.low, fork.low), strict=True):
        hear(node, fork.charter(heard))

    whole = fork.charter(fork.high, fork.low)
    for node in nodes:
        hear(node, whole)

    assert sum(node.ledger.allowance_watts for node in nodes) <= whole.version.watts
    assert any("each branch has a genesis" in line for line in whole.alarms)
    held = [node for node in nodes if node.ledger.allowance_watts == 0]
    assert all("another genesis" in node.alarms[-1] for node in held)


def test_nobody_opens_an_account_while_two_geneses_stand() -> None:
    fork = Fork()
    node = BenchNode(A)

    hear(node, fork.charter(fork.high, fork.low))

    assert not node.ledger.book.is_open


def test_a_budget_that_makes_a_branch_void_settles_which_genesis_counts() -> None:
    fork = Fork()
    settled = fork.log.sign(budget(900, settles=[fork.high]), after=fork.low)
    node, other = BenchNode(A), BenchNode(B)
    hear(other, fork.charter(fork.high))

    charter = fork.charter(fork.high, fork.low, settled)
    for one in (node, other):
        hear(one, charter)

    assert charter.founded.shares[0] == (A, TENTH)
    assert not charter.is_contested
    assert node.ledger.book.own_shares == TENTH
    assert other.ledger.allowance_watts == 0


def test_a_second_genesis_after_the_first_is_ignored() -> None:
    log = founded_log()
    log.sign(genesis({A: TENTH, B: 8 * TENTH, C: TENTH}))

    assert log.charter.founded.shares[0] == (A, 5 * TENTH)
    assert not log.charter.is_contested
    assert "a second genesis is ignored" in log.charter.alarms[0]


def test_of_two_that_join_one_slot_the_first_stands_in_it() -> None:
    log = OperatorsLog()
    founded = genesis()
    log.sign(founded)
    for node_id in (D, E):
        log.sign(Joined(currency=CURRENCY, node_id=node_id, slot="u0", epoch=FIRST_EPOCH))

    charter = log.charter

    assert [slot.node_id for slot in charter.slots] == [A, B, C]
    assert len(charter.alarms) == 2
    assert "slot u0 is not free" in charter.alarms[0]


def test_a_member_that_stands_in_no_slot_may_draw_nothing_above_a_floor() -> None:
    log = founded_log()
    log.sign(Joined(currency=CURRENCY, node_id=D, slot="u0", epoch=FIRST_EPOCH))
    node = BenchNode(D)
    node.obey(log)
    node.keep_all()

    assert node.ledger.book.is_open
    assert node.ledger.allowance_watts == 0
    assert not log.charter.has_slot(D)


def test_a_slot_that_was_given_up_is_free_for_the_next() -> None:
    log = founded_log()
    log.sign(
        Retired(
            currency=CURRENCY,
            epoch=FIRST_EPOCH,
            rank=0,
            members=(A, B, C),
            out=(C,),
            added=((D, "u2"),),
        )
    )
    log.sign(
        Retired(
            currency=CURRENCY,
            epoch=FIRST_EPOCH,
            rank=1,
            members=(A, B, C),
            out=(C,),
            added=((E, "u2"),),
        )
    )

    assert log.charter.alarms == ()
    assert [slot.node_id for slot in log.charter.slots] == [A, B, E]


def test_a_newcomer_for_a_slot_that_is_not_free_stands_in_none() -> None:
    log = founded_log()
    log.sign(
        Retired(
            currency=CURRENCY,
            epoch=FIRST_EPOCH,
            rank=0,
            members=(A, B, C),
            out=(C,),
            added=((D, "u0"), (E, "u9")),
        )
    )

    assert len(log.charter.alarms) == 2
    assert not log.charter.has_slot(D)
    assert not log.charter.has_slot(E)


def test_a_budget_below_the_floors_is_told() -> None:
    log = founded_log()
    log.sign(BudgetSet(currency=CURRENCY, budget_watts=200))

    assert log.charter.version.watts == 0
    assert "below the floors" in log.charter.alarms[0]
