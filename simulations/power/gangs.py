"""Nodes that do one synchronous job: as fast as the slowest of them.

Its own file because a gang is one claimant to the target and several machines to everybody else. It
must not know how its watts are decided.
"""

from simulations.power.node import PowerNode
from simulations.power.site import Site

DEMAND_RATIOS = (0.6, 1.0)


def form_gangs(site: Site, size: int) -> list[list[PowerNode]]:
    """All nodes of a rack in gangs of so many; each node wants more than its part."""
    nodes = list(site.nodes.values())
    for place, node in enumerate(nodes):
        node.gang, node.weight = f"job {place // size}", 4
        ratio = site.chance.uniform(*DEMAND_RATIOS)
        node.machine.demand_watts = int(ratio * node.machine.maximum_watts)
        node.push_wants()
    return [nodes[at : at + size] for at in range(0, len(nodes), size)]


def spread_of(gangs: list[list[PowerNode]]) -> tuple[float, float]:
    """How far apart siblings are at worst, as parts of their demand; and the watts that are wasted
    on those who are ahead.
    """
    worst, wasted = 0.0, 0.0
    for gang in gangs:
        speeds = [min(1.0, one.machine.limit_watts / one.machine.demand_watts) for one in gang]
        slowest = min(speeds)
        worst = max(worst, max(speeds) - slowest)
        wasted += sum(
            (speed - slowest) * one.machine.demand_watts
            for one, speed in zip(gang, speeds, strict=True)
        )
    return worst, wasted
