"""The hardware of one slot: what limits it, what it draws, and how it fails.

Its own file because it is the lowest door: everything above is the agent's own code. All watts are
above the slot's floor. It must not know shares.
"""

import random
from collections.abc import Callable

from simulations.world import World

MAXIMUM_WATTS = 4000
"""The range of a slot: eight parts of 500 W."""
CALL_SECONDS = (0.005, 0.03)
FAILURE_RATIO = 0.01
SETTLE_SECONDS = (0.05, 0.5)


class Machine:
    """One machine. Work draws power only while the gate is open."""

    def __init__(
        self, world: World, chance: random.Random, *, on_change: Callable[["Machine"], None]
    ) -> None:
        self._world = world
        self._chance = chance
        self._on_change = on_change
        self.maximum_watts = MAXIMUM_WATTS
        """What it can draw with its limits at their highest."""
        self.limit_watts = MAXIMUM_WATTS
        self._held: list[int] = []
        """Limits of calls that have not settled: each may still show, or show already."""
        self.is_gate_open = False
        self.is_on = True
        self.is_stuck = False
        """It takes calls and changes nothing."""
        self.demand_watts = 0
        self.uncapped_watts = 0
        """What no limit holds: fans, or a load that nobody knows of."""
        self.ignores_gate = False
        self.bound_watts = 0
        self.boots = 0

    def become(self, maximum_watts: int) -> None:
        """Another kind of machine, before anything runs."""
        self.maximum_watts = self.limit_watts = maximum_watts

    def refresh(self) -> None:
        """Work out the bound anew."""
        is_running = self.is_on and (self.is_gate_open or self.ignores_gate)
        self.bound_watts = max([self.limit_watts, *self._held]) if is_running else 0
        self._on_change(self)

    @property
    def draw_watts(self) -> int:
        """What it draws above its floor."""
        if not self.is_on:
            return 0
        return min(self.demand_watts, self.bound_watts) + self.uncapped_watts

    def set_limit(self, watts: int, done: Callable[[int], None]) -> None:
        """A call of the vendor's library: a raise shows from the call on, a lowering after a while.

        `done` is told the limit that is in force after the call.
        """
        before, boot = self.limit_watts, self.boots
        target = max(0, min(self.maximum_watts, watts))
        held = max(before, target)
        self._held.append(held)
        self.refresh()
        is_taken = not self.is_stuck and self._chance.random() > FAILURE_RATIO

        def end() -> None:
            if boot == self.boots and is_taken and self.is_on:
                self.limit_watts = target
                wait_seconds = self._chance.uniform(*SETTLE_SECONDS) if target < before else 0.0
                self._world.after(wait_seconds, let_go)
            else:
                let_go()
            self.refresh()
            done(self.limit_watts)

        def let_go() -> None:
            if boot == self.boots:
                self._held.remove(held)
                self.refresh()

        self._world.after(self._chance.uniform(*CALL_SECONDS), end)

    def reboot(self) -> None:
        """The limit is lost, and nothing runs before an agent opens the gate."""
        self.boots += 1
        self.limit_watts = self.maximum_watts
        self._held = []
        self.is_gate_open = False
        self.refresh()

    def power_off(self) -> None:
        """Proven off: it draws nothing."""
        self.is_on = False
        self.refresh()
