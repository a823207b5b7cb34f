"""Nodes, wants and rows of a rack, as the tests of its arithmetic make them."""

from cluster.ids import NodeId
from cluster.rack.rows import Credit, Promise, Row, Wants
from cluster.rack.units import FIRST_EPOCH, SHARES_TOTAL, BudgetVersion, Epoch

BUDGET = BudgetVersion(sequence=1, watts=10_000)
"""One watt is 100 000 shares."""
SHARES_PER_WATT = SHARES_TOTAL // BUDGET.watts


def node(number: int) -> NodeId:
    return NodeId(number.to_bytes(16, "big"))


def nodes(count: int) -> tuple[NodeId, ...]:
    return tuple(node(number) for number in range(1, count + 1))


def wants(
    demand_watts: int,
    *,
    minimum_watts: int = 0,
    maximum_watts: int = 4000,
    priority: int = 1,
    gang: str = "",
) -> Wants:
    return Wants(
        demand_watts=demand_watts,
        minimum_watts=minimum_watts,
        maximum_watts=maximum_watts,
        priority=priority,
        gang=gang,
    )


def row(
    number: int,
    own_watts: int,
    demand_watts: int = 0,
    *,
    stamp: int = 1,
    epoch: Epoch = FIRST_EPOCH,
    version: BudgetVersion = BUDGET,
    maximum_watts: int = 4000,
    is_refusing: bool = False,
    is_frozen: bool = False,
    promises: tuple[Promise, ...] = (),
    credits: tuple[Credit, ...] = (),
) -> Row:
    return Row(
        node_id=node(number),
        stamp=stamp,
        epoch=epoch,
        shares=own_watts * SHARES_PER_WATT,
        version=version,
        wants=wants(demand_watts, maximum_watts=maximum_watts),
        is_refusing=is_refusing,
        is_frozen=is_frozen,
        promises=promises,
        credits=credits,
    )


def promise(to: int, watts: int, sequence: int = 1) -> Promise:
    return Promise(to=node(to), sequence=sequence, shares=watts * SHARES_PER_WATT)


def credit(giver: int, sequence: int = 1) -> Credit:
    return Credit(giver=node(giver), sequence=sequence)
