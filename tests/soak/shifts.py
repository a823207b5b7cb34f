"""Work that moves from node to node, and how fast watts followed it, by the machines' own files."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from esnode.cli.demo_witness import MachineHistory
from tests.soak.machines import SoakRack

EVERY_SECONDS = (9.0, 13.0)
FOLLOWED_RATIO = 0.9
WATTS_MIN = 100
"""A move of less is no move: those who work had theirs already."""
STEP_SECONDS = 0.05
IDLE_RATIO = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """From an instant on these work."""

    at_seconds: float
    names: tuple[str, ...]


class Shifts:
    """All moves of one soak."""

    def __init__(self, rack: SoakRack, rng: random.Random) -> None:
        self._rack = rack
        self._rng = rng
        self._next_seconds = 0.0
        self.done: list[Shift] = []

    def play(self, now: float) -> None:
        """Let others work, when it is time."""
        if now < self._next_seconds:
            return
        self._next_seconds = now + self._rng.uniform(*EVERY_SECONDS)
        names = self._rack.names
        working = sorted(self._rng.sample(names, len(names) // 2))
        ratios = {name: 1.0 if name in working else IDLE_RATIO for name in names}
        took = [name for name, ratio in ratios.items() if self._rack.work(name, ratio)]
        self.done.append(
            Shift(at_seconds=now, names=tuple(name for name in working if name in took))
        )

    def follow_seconds(self, shift: Shift, until_seconds: float) -> float | None:
        """From a move to 90 % of the watts that those who work then have at the end of it.

        None where they had them already, or nothing is known.
        """
        histories = [MachineHistory(self._rack.machine_path(name)) for name in shift.names]
        for history in histories:
            history.read()
        before, after = _sum(histories, shift.at_seconds), _sum(histories, until_seconds)
        if before is None or after is None or after - before < WATTS_MIN:
            return None
        wanted, at = before + FOLLOWED_RATIO * (after - before), shift.at_seconds
        while (_sum(histories, at) or 0) < wanted:
            at += STEP_SECONDS
        return at - shift.at_seconds


def _sum(histories: Sequence[MachineHistory], at_seconds: float) -> int | None:
    known = [history.in_force_watts(at_seconds) for history in histories]
    watts = [one for one in known if one is not None]
    return sum(watts) if len(watts) == len(known) else None
