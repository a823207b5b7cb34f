"""Families about what this node does by itself: modes, actions, what was not done, budgets."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from esnode.metrics.model import ControlStats, Sample, View, families


def _each(get: Callable[[ControlStats], Iterable[Sample]]) -> Callable[[View], Iterable[Sample]]:
    def read(view: View) -> Iterator[Sample]:
        if view.control is not None:
            yield from get(view.control)

    return read


_family = partial(families, "control")

CONTROL = (
    *_family(("feature", "mode"), ("control_mode", "gauge", "1 for the mode that a feature is in; one that fell back to observing counts as observe.", _each(lambda c: c.modes))),
    *_family(
        ("feature",),
        ("control_paused", "gauge", "1 while somebody has stopped a feature.", _each(lambda c: c.is_paused)),
        ("control_budget_remaining", "gauge", "How many more things a feature may do within the hour.", _each(lambda c: c.budgets_remaining)),
    ),
    *_family(("feature", "mode", "result"), ("control_actions_total", "counter", "What was done, or would have been, since the agent started.", _each(lambda c: c.actions_total))),
    *_family(("feature", "reason"), ("control_skipped_total", "counter", "What was wanted and not done, by the word for why not.", _each(lambda c: c.skipped_total))),
)  # fmt: skip
