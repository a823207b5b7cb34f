"""How well a rack is served, and what its faults cost: figures, without a verdict.

Its own file because scenarios share these words. What a figure compares with is what an allocator
that knows everything would do with the watts that can be moved at all.
"""

from collections.abc import Iterable

from cluster.ids import NodeId
from cluster.rack.rows import Wants
from cluster.rack.share import target
from cluster.rack.units import SHARES_TOTAL, watts_of
from simulations.power.node import PRIORITIES, PowerNode
from simulations.power.site import Site


def wants_of(node: PowerNode) -> Wants:
    """What a node's work would draw."""
    return Wants(
        demand_watts=node.machine.demand_watts,
        maximum_watts=node.machine.maximum_watts,
        priority=PRIORITIES[node.weight],
        gang=node.gang,
    )


def held_among(site: Site, nodes: Iterable[PowerNode]) -> int:
    """Shares that these own, or have on their way to each other."""
    accounts = {node.node_id: site.checker.accounts[node.node_id] for node in nodes}
    total = sum(account.own_shares for account in accounts.values())
    for giver, account in accounts.items():
        for to, (sequence, shares) in account.outbox.items():
            taker = accounts.get(to)
            if taker is not None and taker.last_in.get(giver, 0) < sequence:
                total += shares
    return total


def ideal_among(site: Site, nodes: Iterable[PowerNode]) -> dict[NodeId, int]:
    """What these could have in watts, of what they hold together."""
    some = list(nodes)
    budget = site.desk.charter.version.watts
    aims = target(held_among(site, some), {one.node_id: wants_of(one) for one in some}, budget)
    return {node_id: watts_of(shares, budget) for node_id, shares in aims.items()}


def ideal_of_rack(site: Site) -> dict[NodeId, int]:
    """What the living could have if nothing but the dead held anything back."""
    gone = sum(
        account.own_shares + sum(shares for _, shares in account.outbox.values())
        for node_id, account in site.checker.accounts.items()
        if site.nodes[node_id].is_dead and not site.nodes[node_id].is_retired
    )
    budget = site.desk.charter.version.watts
    wants = {node.node_id: wants_of(node) for node in site.living}
    aims = target(SHARES_TOTAL - gone, wants, budget)
    return {node_id: watts_of(shares, budget) for node_id, shares in aims.items()}


def missing_watts(site: Site, ideal: dict[NodeId, int]) -> int:
    """What work would draw by this ideal, and the hardware does not let it."""
    return sum(
        max(0, min(node.machine.demand_watts, ideal[node.node_id]) - node.machine.limit_watts)
        for node in site.living
        if node.node_id in ideal
    )


def unserved_watts(site: Site) -> tuple[int, int]:
    """Of what nodes with working agents and hardware could use: not owned, and not in force.

    The two differ by what is given up on purpose, for nodes that have not confirmed a budget.
    """
    able = [one for one in site.living if one.is_up and not one.machine.is_stuck]
    ideal = ideal_among(site, able)
    budget = site.desk.charter.version.watts
    not_owned = not_in_force = 0
    for node in able:
        could_use = min(node.machine.demand_watts, ideal[node.node_id])
        owned = watts_of(site.checker.accounts[node.node_id].own_shares, budget)
        not_owned += max(0, could_use - owned)
        not_in_force += max(0, could_use - node.machine.limit_watts)
    return not_owned, not_in_force


def stranded_ratio(site: Site) -> float:
    """Of all shares: what nodes hold whose agents are down, or is on its way to them."""
    total = 0
    for node_id, account in site.checker.accounts.items():
        node = site.nodes[node_id]
        if node.is_retired:
            continue
        if node.is_up:
            total += sum(
                shares for to, (_, shares) in account.outbox.items() if not site.nodes[to].is_up
            )
        else:
            total += account.own_shares + sum(shares for _, shares in account.outbox.values())
    return total / SHARES_TOTAL


def draw_watts(site: Site) -> int:
    """What the whole rack draws above its floors."""
    return sum(machine.draw_watts for machine in site.machines)
