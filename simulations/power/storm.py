"""The storm: everything that goes wrong in a rack, by chance, and then calm.

Its own file because every mistake and every rack size is tried in the same one. It must not know
what is measured afterwards.
"""

from dataclasses import dataclass, field

from simulations.power.measure import stranded_ratio
from simulations.power.site import Site

SECONDS = 200.0
CALM_SECONDS = 80.0
"""At the end: by then a rack should have come to rest."""
STEP_CRASH_RATIO = 0.01
FAULT_EVERY_SECONDS = 6.0
CRASH, REBOOT, STICK = 0.45, 0.60, 0.65
"""Of the faults: up to these, the rest are changes of demand."""
REPLACED_RATIO = 0.6


@dataclass(slots=True)
class Storm:
    """One storm over one rack."""

    site: Site
    is_heavy: bool = False
    """Whether three nodes die shortly one after another and each is replaced."""
    stranded_ratios: list[float] = field(default_factory=list)

    def play(self) -> None:
        """All of it, and the calm."""
        site, chance = self.site, self.site.chance
        end = SECONDS - CALM_SECONDS
        site.until_seconds = end
        self._plan_faults(end)
        for _ in range(chance.randint(1, 3)):
            site.world.at(chance.uniform(5, end - 40), site.partition)
        for _ in range(3):
            site.world.at(chance.uniform(10, end), site.shift)
        budget = site.dynamic_watts
        for low, high in ((0.6, 0.9), (0.9, 1.1)):
            site.world.at(
                chance.uniform(20, end), site.set_budget, budget * chance.uniform(low, high)
            )
        self._plan_deaths(end)
        site.world.at(chance.uniform(10, end * 0.5), site.join)
        site.world.at(1.0, self._look, end)
        site.run_until(SECONDS)

    def _plan_faults(self, end: float) -> None:
        chance = self.site.chance
        at_seconds = chance.expovariate(1 / FAULT_EVERY_SECONDS)
        while at_seconds <= end:
            self.site.world.at(at_seconds, self._fault, chance.random())
            at_seconds += chance.expovariate(1 / FAULT_EVERY_SECONDS)

    def _fault(self, which: float) -> None:
        site = self.site
        node = site.chance.choice(site.living)
        if which < CRASH:
            site.crash(node)
        elif which < REBOOT:
            site.reboot(node)
        elif which < STICK:
            node.machine.is_stuck = not node.machine.is_stuck
        else:
            node.machine.demand_watts = int(site.chance.uniform(0, 1) * node.machine.maximum_watts)
            node.push_wants()

    def _plan_deaths(self, end: float) -> None:
        chance = self.site.chance
        if self.is_heavy:
            first = chance.uniform(10, end * 0.4)
            for _ in range(3):
                self.site.world.at(first + chance.uniform(0, 15), self._die)
        elif chance.random() < REPLACED_RATIO:
            self.site.world.at(chance.uniform(20, end * 0.7), self._die)

    def _die(self) -> None:
        site = self.site
        node = site.chance.choice(site.living)
        site.kill(node)
        if self.is_heavy:
            site.world.after(site.chance.uniform(5, 20), site.replace, node)
        elif site.chance.random() < REPLACED_RATIO:
            site.world.after(site.chance.uniform(10, 40), site.replace, node)

    def _look(self, end: float) -> None:
        self.stranded_ratios.append(stranded_ratio(self.site))
        if self.site.world.now < end:
            self.site.world.after(1.0, self._look, end)
