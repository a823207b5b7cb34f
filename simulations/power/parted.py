"""Two operators who do not hear of each other, while their rack is cut in two.

Its own file because more than one budget is meant at once, and the lowest holds. It must not know
what is measured afterwards.
"""

from collections.abc import Callable
from dataclasses import dataclass

from cluster.ids import NodeId
from simulations.power.site import Site

FIRST_RATIO, SECOND_RATIO, SETTLED_RATIO = 0.80, 0.65, 0.90
APART_SECONDS = 12.0
SETTLED_SECONDS = 30.0


@dataclass(slots=True)
class TwoOperators:
    """A rack is cut in two, and on each side somebody signs another budget."""

    site: Site
    until: Callable[[Callable[[], bool]], float | None]
    """Lets time pass until something is so; how long it took."""
    to_the_lower_seconds: float | None = None
    settled_seconds: float | None = None
    alarmed_count: int = 0

    def play(self) -> None:
        """Apart, together again, and settled."""
        site, desk = self.site, self.site.desk
        nodes = list(site.nodes.values())
        site.chance.shuffle(nodes)
        sides = nodes[: len(nodes) // 2], nodes[len(nodes) // 2 :]
        self._cut([one.node_id for one in sides[0]])
        watts = [int(ratio * site.dynamic_watts) for ratio in (FIRST_RATIO, SECOND_RATIO)]
        desk.set_two_budgets(*(one + desk.floors_watts for one in watts))
        site.checker.budgets_changed()
        count = desk.count
        for node in sides[1]:
            node.unheard_record = count - 2
            node.hear_records(count)
        for node in sides[0]:
            node.hear_records(count - 1)
        site.run_for(APART_SECONDS)
        site.cut(None)
        for node in sides[1]:
            node.hear_all_branches()
        accounts = site.checker.accounts
        self.to_the_lower_seconds = self.until(
            lambda: all(max(accounts[one.node_id].budgets.values()) == watts[1] for one in nodes)
        )
        site.run_for(SETTLED_SECONDS)
        self.alarmed_count = sum(any("forks" in line for line in one.alarms) for one in nodes)
        desk.settle(int(SETTLED_RATIO * site.dynamic_watts) + desk.floors_watts)
        site.checker.budgets_changed()
        nodes[0].hear_records(desk.count)
        newest = desk.charter.version.sequence
        self.settled_seconds = self.until(
            lambda: all(accounts[one.node_id].complied_sequence == newest for one in nodes)
        )
        site.run_for(SETTLED_SECONDS)

    def _cut(self, side: list[NodeId]) -> None:
        self.site.cut(lambda sender, to: (sender in side) != (to in side))
