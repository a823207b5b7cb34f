"""What one order looks like in the setter's journal, before it is done and after.

Its own file because people and tools read these lines long after: names are never changed, only
added to. It must not know how lines reach the disk.
"""

from collections.abc import Mapping, Sequence

from esnode.readings.limits import EnforcedLimit, Limit, LimitOutcome, LimitRefused
from esnode.setter.messages import NAME_MAX, TEXT_MAX, SetLimits


def entry_before(
    number: int,
    at_unix_seconds: float,
    order: SetLimits,
    limits: Sequence[Limit],
    befores: Mapping[str, EnforcedLimit],
) -> dict[str, object]:
    """What will be written, and what is in force until then."""
    changes = [
        {
            "device": limit.device,
            "asked_watts": limit.watts,
            "before_watts": befores[limit.device].enforced_watts,
        }
        for limit in limits
    ]
    return {**_head(number, at_unix_seconds, order, "before"), "changes": changes}


def entry_after(
    number: int, at_unix_seconds: float, order: SetLimits, outcomes: Sequence[LimitOutcome]
) -> dict[str, object]:
    """What came of it."""
    lines: list[dict[str, object]] = []
    for outcome in outcomes:
        line: dict[str, object] = {
            "device": outcome.device,
            "asked_watts": outcome.asked_watts,
            "enforced_watts": outcome.enforced_watts,
        }
        if isinstance(outcome, LimitRefused):
            line["refused"] = outcome.reason[:TEXT_MAX]
        lines.append(line)
    return {**_head(number, at_unix_seconds, order, "after"), "outcomes": lines}


def _head(number: int, at_unix_seconds: float, order: SetLimits, phase: str) -> dict[str, object]:
    return {
        "at_unix_seconds": round(at_unix_seconds, 3),
        "order": number,
        "phase": phase,
        "source": order.source[:NAME_MAX],
        "reason": order.reason[:TEXT_MAX],
    }
