"""Which exit code a status document means, and what `--fail-on` narrows it to.

Its own file because scripts hang on it. The agent says whether the cluster is healthy, degraded or
isolated; with `--fail-on` only what is listed counts as degraded. Being cut off always tells.
"""

from collections.abc import Sequence
from typing import Any

from esnode.cli.cluster_filter import BadExpression
from esnode.cli.cluster_text import STALE_AFTER_SECONDS, figure, find
from esnode.cli.context import EXIT_DEGRADED, EXIT_ISOLATED

NONE = "none"
_OF_NODES = ("degraded", "suspect", "failed")
_OTHERS = ("overcap", "stale", "gpus", "views", "warning", "critical")
CONDITIONS = (*_OF_NODES, *_OTHERS)
_CODES_OF_ONE_WORD = ("unanswered", "identity")
"""Codes of warnings; the others have a hyphen, so that no condition is mistaken for one."""


def parse_conditions(text: str | None) -> tuple[str, ...] | None:
    """What `--fail-on` lists; None where the agent's own word counts.

    Besides the conditions, any code of a warning may be named.

    Raises:
        BadExpression: a word that is none.
    """
    if text is None:
        return None
    words = tuple(word.strip().lower() for word in text.split(",") if word.strip())
    for word in words:
        if word not in (*CONDITIONS, NONE, *_CODES_OF_ONE_WORD) and "-" not in word:
            raise BadExpression(
                f"--fail-on: no condition {word!r}; there are {', '.join(CONDITIONS)}, none, and "
                "the codes of warnings"
            )
    if NONE in words and len(words) > 1:
        raise BadExpression("--fail-on: none stands alone")
    return words


def exit_code(document: dict[str, Any], conditions: Sequence[str] | None) -> int:
    """0 healthy, 1 degraded, 5 cut off."""
    state = document["cluster"]["state"]
    if state == "isolated":
        return EXIT_ISOLATED
    if conditions is None:
        return 0 if state == "healthy" else EXIT_DEGRADED
    return EXIT_DEGRADED if any(_holds(document, one) for one in conditions) else 0


def _holds(document: dict[str, Any], condition: str) -> bool:
    warnings = document["warnings"]
    match condition:
        case "none":
            return False
        case "degraded" | "suspect" | "failed":
            return bool(figure(find(document, "cluster", "nodes", condition)))
        case "overcap":
            return any(_is_over(rack) for rack in document["racks"])
        case "stale":
            return any(_is_stale(node) for node in document["nodes"])
        case "gpus":
            return bool(figure(find(document, "cluster", "gpus", "unhealthy")))
        case "views":
            return any(view.get("disagreements") for view in document.get("views", ()))
        case "warning":
            return any(one["severity"] in ("warning", "critical") for one in warnings)
        case "critical":
            return any(one["severity"] == "critical" for one in warnings)
        case code:
            return any(one["code"] == code for one in warnings)


def _is_over(rack: dict[str, Any]) -> bool:
    draw = figure(find(rack, "power", "draw_watts", "value"))
    limits = [figure(find(rack, "power", name, "value")) for name in ("cap_watts", "budget_watts")]
    return draw is not None and any(limit is not None and draw > limit for limit in limits)


def _is_stale(node: dict[str, Any]) -> bool:
    """Whether a node that should report its draw has not for a while."""
    age = figure(find(node, "power", "draw_watts", "age_seconds"))
    is_there = node["state"] in ("alive", "degraded", "suspect")
    return is_there and age is not None and age > STALE_AFTER_SECONDS
