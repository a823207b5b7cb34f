"""What one node tells of its part in one currency: advice for all, proof of nothing.

Its own file because the ledger makes rows, the target reads them, and both may be wrong about them
without harm: a wrong view makes the split unfair for a second, never unsafe. It must not know how
rows travel.
"""

from dataclasses import dataclass

from cluster.ids import NodeId
from cluster.rack.units import BudgetVersion, Epoch

PRIORITY_WEIGHTS = (8, 4, 2, 1)
"""By priority class: 0 is served first."""
GAIN_RATIO_MIN = 0.5
GAIN_RATIO_MAX = 2.0
STAMP_BITS = 32
"""Of a row's count, below the life of its node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Shares on their way to somebody: being prepared, or debited and not acknowledged."""

    to: NodeId
    sequence: int
    shares: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """The last transfer that was credited from somebody, told for some seconds.

    So a promise that has arrived is not counted twice.
    """

    giver: NodeId
    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wants:
    """What a node could do with watts; all of them dynamic, above the floor of its slot."""

    demand_watts: int
    """What its work would draw now if nothing held it, with head room."""
    minimum_watts: int = 0
    """What its running work cannot do without: the lowest settable caps, less the floor."""
    maximum_watts: int = 0
    """What its hardware can draw at most."""
    priority: int = 1
    """Class of its most important work: 0 (first) to 3."""
    gain_ratio: float = 1.0
    """Its performance per watt beside that of the others; `GAIN_RATIO_MIN` to `GAIN_RATIO_MAX`."""
    gang: str = ""
    """Nodes with the same text do one synchronous job; empty for none."""

    @property
    def weight(self) -> float:
        """How much it counts where there is not enough for all."""
        gain = min(GAIN_RATIO_MAX, max(GAIN_RATIO_MIN, self.gain_ratio))
        return PRIORITY_WEIGHTS[min(max(self.priority, 0), len(PRIORITY_WEIGHTS) - 1)] * gain


NOTHING_WANTED = Wants(demand_watts=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One node's account, as it says itself."""

    node_id: NodeId
    stamp: int
    """Its incarnation in the upper bits, then a count: the higher is the newer."""
    epoch: Epoch
    shares: int
    """What it owns, less what it prepares to give."""
    version: BudgetVersion
    """The newest budget that its hardware has complied with."""
    wants: Wants = NOTHING_WANTED
    is_refusing: bool = False
    """Its hardware does not lower: plan around what it holds."""
    is_frozen: bool = False
    """It has said its last word in this epoch."""
    promises: tuple[Promise, ...] = ()
    credits: tuple[Credit, ...] = ()

    @property
    def life(self) -> int:
        """How often its node had started with its book when it said this."""
        return self.stamp >> STAMP_BITS
