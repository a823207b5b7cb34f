"""What this node does by itself, in figures for `/metrics`: read when somebody scrapes."""

from esnode.acting.rules import Rules
from esnode.acting.words import Mode
from esnode.metrics import ControlStats


def count_control(rules: Rules, now: float) -> ControlStats:
    """The figures of one node's rules."""
    return ControlStats(
        modes=tuple(
            ((name, mode.value), mode is rules.mode(name))
            for name in rules.features
            for mode in Mode
        ),
        is_paused=tuple(((name,), rules.pause_of(name) is not None) for name in rules.features),
        actions_total=tuple(sorted(rules.actions.items())),
        skipped_total=tuple(sorted(rules.skipped.items())),
        budgets_remaining=tuple(
            ((name,), rules.remaining_count(name, now)) for name in rules.features
        ),
    )
