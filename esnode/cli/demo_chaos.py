"""What `--chaos` does to the agents of a demo: one at a time is killed, or stopped for a while.

Its own file because it must know nothing of what the rack promises: the promise has to hold
whatever is done here.
"""

import random
from dataclasses import dataclass

from esnode.cli.demo_cluster import Machine

DOWN_SECONDS = 15.0
"""Long enough to be given up: a crash on one machine is noticed within about 3 s."""
FROZEN_SECONDS = 6.0
UP_SECONDS = 10.0
FREEZE_RATIO = 0.4
"""How many of the victims are stopped where they stand, and not killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Victim:
    machine: Machine
    until_seconds: float


class Chaos:
    """One victim after the other."""

    def __init__(self, machines: list[Machine], rng: random.Random) -> None:
        self._machines = machines
        self._rng = rng
        self._victim: _Victim | None = None
        self._next_seconds: float | None = None
        self.faults = 0
        self.events: list[str] = []

    def play(self, now: float) -> None:
        """Do what is due."""
        victim = self._victim
        if victim is not None:
            if now >= victim.until_seconds:
                self._mend(victim.machine)
                self._victim, self._next_seconds = None, now + UP_SECONDS
        elif self._next_seconds is None:
            self._next_seconds = now + UP_SECONDS
        elif now >= self._next_seconds:
            self._victim = self._strike(now)

    def end(self) -> None:
        """Leave nobody stopped."""
        if self._victim is not None:
            self._mend(self._victim.machine)
            self._victim = None

    def _strike(self, now: float) -> _Victim | None:
        running = [one for one in self._machines if one.is_running]
        if not running:
            return None
        machine = self._rng.choice(running)
        self.faults += 1
        if self._rng.random() < FREEZE_RATIO:
            machine.freeze()
            self.events.append(f"{machine.name} is stopped (SIGSTOP) for {FROZEN_SECONDS:g} s")
            return _Victim(machine=machine, until_seconds=now + FROZEN_SECONDS)
        machine.kill()
        self.events.append(f"{machine.name} is killed with -9")
        return _Victim(machine=machine, until_seconds=now + DOWN_SECONDS)

    def _mend(self, machine: Machine) -> None:
        if machine.is_frozen:
            machine.thaw()
            self.events.append(f"{machine.name} goes on")
        else:
            machine.start()
            self.events.append(f"{machine.name} is started again")
