"""One seed of a scenario, and by what its rack is made: the product's code, or a mistake's.

Its own file because scenarios, mistakes and whoever plays them share it. It must not know which
scenarios there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from simulations.power.outcome import Figure
from simulations.power.site import Site


class MakeSite(Protocol):
    """What a rack is made by: `Site`, or one that makes a deliberate mistake."""

    def __call__(
        self,
        count: int,
        seed: int,
        *,
        loss_ratio: float = ...,
        step_crash_ratio: float = ...,
        empty_slots: int = ...,
        maximum_watts: Sequence[int] = ...,
        static_watts: int = ...,
        feed_ratio: float | None = ...,
    ) -> Site:
        """A rack that has just started."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One seed of one scenario."""

    nodes: int
    seed: int
    loss_ratio: float = 0.2
    make: MakeSite = Site

    def calm_site(self) -> Site:
        """A rack in which nothing fails but the network."""
        return self.make(self.nodes, self.seed, loss_ratio=self.loss_ratio)


Played = tuple[Site, dict[str, Figure]]
