"""What this node may do by itself, and does, as one document (`esnode.control/1`).

Its own file because people and tools read it: names are only added to. It must not know who asks.
"""

from collections.abc import Iterable

from esnode.acting.leases import Lease
from esnode.acting.rules import EVERYTHING, Pause, Rules, Standing
from esnode.acting.words import Do, Proposal
from esnode.status.times import utc_text

SCHEMA = "esnode.control/1"
Document = dict[str, object]


def describe_control(
    rules: Rules, leases: Iterable[Lease], *, trouble: str, now: float
) -> Document:
    """All of it."""
    return {
        "schema": SCHEMA,
        "trouble": trouble,
        "pause": _pause(rules.memory.pauses.get(EVERYTHING)),
        "features": [_feature(rules, name, now) for name in rules.features],
        "decisions": [_decision(one, now) for one in rules.standing(now)],
        "leases": [
            {
                "id": one.id,
                "feature": one.feature,
                "kind": one.kind.value,
                "target": one.target,
                "original": one.original,
                "changed": one.changed,
                "left_seconds": round(one.until_seconds - now, 1),
            }
            for one in leases
        ],
    }


def _feature(rules: Rules, name: str, now: float) -> Document:
    feature = rules.features[name]
    return {
        "name": name,
        "summary": feature.summary,
        "mode": rules.mode(name).value,
        "configured_mode": rules.configured_mode(name).value,
        "tripped": rules.memory.tripped.get(name, ""),
        "pause": _pause(rules.memory.pauses.get(name)),
        "budget_per_hour": feature.per_hour_count,
        "budget_remaining": rules.remaining_count(name, now),
    }


def _pause(pause: Pause | None) -> Document | None:
    if pause is None:
        return None
    return {"by": pause.by, "reason": pause.reason, "at": utc_text(pause.at_unix_seconds)}


def _decision(standing: Standing, now: float) -> Document:
    proposal, verdict = standing.proposal, standing.verdict
    return {
        "word": standing.word,
        "line": verdict.line,
        "ticket": verdict.ticket.id if isinstance(verdict, Do) else "",
        "age_seconds": round(now - standing.at_seconds, 1),
        **_proposal(proposal),
    }


def _proposal(proposal: Proposal) -> Document:
    return {
        "feature": proposal.feature,
        "rule": proposal.rule,
        "target": proposal.target,
        "action": proposal.action,
        "expects": proposal.expects,
        "about": list(proposal.about),
        "evidence": [one.line for one in proposal.evidence],
    }
