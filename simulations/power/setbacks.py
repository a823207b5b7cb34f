"""Disks that are set back, and a member that lies, in a rack whose network only loses messages.

Its own file because these faults are of another kind than those of the storm: what was on disk is
there no more, and only others remember it. So those others are up, as the promise asks. It must not
know what is measured afterwards.
"""

from dataclasses import dataclass, field, replace

from cluster.ids import NodeId
from cluster.rack.ledger.messages import Told
from cluster.rack.rows import Credit, Wants
from cluster.rack.units import BudgetVersion
from simulations.power.desk import CURRENCY
from simulations.power.node import PowerNode
from simulations.power.site import Site

ROUNDS = 5
ROUND_SECONDS = 25.0
WARM_SECONDS = 20.0
DOWN_SECONDS = 2.0
REPLACED_SECONDS = 10.0
ENTRIES_MAX = 30
LIE_SECONDS = 2.0


@dataclass(slots=True)
class SetBacks:
    """One node after the other forgets its last entries, while another one lies to everybody."""

    site: Site
    lies: bool = True
    set_back: dict[NodeId, None] = field(default_factory=dict)
    noticed_total: int = 0
    forgotten_total: int = 0
    """Entries."""

    def play(self) -> None:
        """All rounds, and a calm at the end."""
        site = self.site
        site.checker.checks_nodes = False  # what a disk says is no measure of what it forgot
        liar = next(iter(site.nodes.values()))
        if self.lies:
            site.world.at(WARM_SECONDS, self._lie, liar)
        for number in range(ROUNDS):
            begin = WARM_SECONDS + number * ROUND_SECONDS
            site.world.at(begin, site.shift)
            site.world.at(begin + site.chance.uniform(0.5, 4.0), self._set_back, liar)
        site.run_until(WARM_SECONDS + (ROUNDS + 1) * ROUND_SECONDS)

    def _set_back(self, liar: PowerNode) -> None:
        site = self.site
        node = site.chance.choice([one for one in site.living if one is not liar and one.is_up])
        site.crash(node, DOWN_SECONDS)
        self.forgotten_total += node.disk.set_back(site.chance.randint(1, ENTRIES_MAX))
        self.set_back[node.node_id] = None
        site.world.after(REPLACED_SECONDS, self._replace, node)

    def _replace(self, node: PowerNode) -> None:
        self.noticed_total += is_held(node)
        self.site.kill(node)
        self.site.replace(node)

    def _lie(self, liar: PowerNode) -> None:
        site = self.site
        for node in site.living:
            rows = [] if liar.power is None else liar.power.rows(liar.now)
            for _, row in rows:
                told = replace(
                    row,
                    version=BudgetVersion(sequence=0, watts=2**60),
                    wants=Wants(demand_watts=2**62, minimum_watts=2**62, maximum_watts=2**62),
                    credits=(Credit(giver=node.node_id, sequence=10**9),),
                )
                if node is not liar:
                    site.send(liar.node_id, node.node_id, (CURRENCY, Told(row=told)))
        site.world.after(LIE_SECONDS, self._lie, liar)


def is_held(node: PowerNode) -> bool:
    """Whether a node that runs spends nothing, since its book is not believed."""
    power = node.power
    return power is not None and any(
        one.quarantine or (one.own_shares > 0 and one.allowance_watts == 0)
        for one in power.view(node.now).ledgers
    )
