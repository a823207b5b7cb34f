"""Shares, budgets and epochs: the units of the power ledger.

Its own file because the ledger, the target that advises it and whoever checks them must count
alike. A *share* is a fixed part of a currency; what it is worth in watts follows from the budget in
force, so that a new budget needs no message per watt. Watts here are *dynamic*: above the fixed
floor of the node's slot. It must not know who owns anything.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, NewType

CurrencyId = NewType("CurrencyId", str)
"""``rack:r01``, ``feed-a:r01``: one constraint that is shared out."""

SHARES_TOTAL = 10**9
"""Of every currency: one share of a 1 MW rack is a milliwatt."""
WATTS_MAX = 10**8
"""No constraint of one currency is larger: 100 MW."""


class Epoch(NamedTuple):
    """Between two of these the shares of the retired are given out again; compared in order."""

    number: int
    rank: int
    """Of the RETIRE record that began it; the first epoch is (1, 0)."""


FIRST_EPOCH = Epoch(1, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetVersion:
    """One budget of a currency, as an operator signed it."""

    sequence: int
    """Of the operator's record in the log."""
    watts: int
    """What may be shared out: the budget less margin and floors."""
    is_unanimous: bool = field(default=True, compare=False)
    """False where two records of this sequence contradict each other; the lower one holds."""

    def replaces(self, other: "BudgetVersion") -> bool:
        """Whether this one is to be obeyed where both are known.

        Of two records under one sequence (a fork of the operators' log) the lower one holds.
        """
        return (self.sequence, -self.watts) > (other.sequence, -other.watts)


def watts_of(shares: int, budget_watts: int) -> int:
    """What so many shares are worth: whole watts, rounded down.

    No tolerance upward: sixteen tolerances of half a watt once added up to a violation.
    """
    return shares * budget_watts // SHARES_TOTAL


def shares_of(watts: int, budget_watts: int) -> int:
    """The fewest shares that are worth so many watts; all of them where there is no budget."""
    if budget_watts <= 0:
        return SHARES_TOTAL
    return min(SHARES_TOTAL, -(-watts * SHARES_TOTAL // budget_watts))
