"""What an action looks like in the audit, before it is done and after.

Its own file because people and tools read these lines long after: names are only added to. It must
not know how lines reach the disk.
"""

from esnode.acting.words import Mode, Proposal, Result, Ticket, Would

Fields = dict[str, object]


def entry_before(ticket: Ticket, *, by: str) -> Fields:
    """What will be done now."""
    return {"id": ticket.id, "phase": "before", "by": by, **_of(ticket.proposal, Mode.ENFORCE)}


def entry_would(proposal: Proposal, verdict: Would) -> Fields:
    """What would have been done, in observe mode."""
    return {"phase": "would", "line": verdict.line, **_of(proposal, Mode.OBSERVE)}


def entry_after(
    ticket: Ticket,
    result: Result,
    *,
    read_back: str,
    effect: str,
    has_effect: bool | None,
    latency_seconds: float,
) -> Fields:
    """How it went."""
    proposal = ticket.proposal
    return {
        "id": ticket.id,
        "phase": "after",
        "feature": proposal.feature,
        "rule": proposal.rule,
        "target": proposal.target,
        "about": list(proposal.about),
        "result": result.value,
        "read_back": read_back,
        "effect": effect,
        "has_effect": has_effect,
        "latency_seconds": round(latency_seconds, 3),
    }


def entry_note(line: str, **fields: object) -> Fields:
    """What people did, and what went wrong besides actions."""
    return {"phase": "note", "line": line, **fields}


def _of(proposal: Proposal, mode: Mode) -> Fields:
    return {
        "feature": proposal.feature,
        "mode": mode.value,
        "rule": proposal.rule,
        "target": proposal.target,
        "action": proposal.action,
        "expects": proposal.expects,
        "about": list(proposal.about),
        "gpu_owner": proposal.gpu_owner,
        "evidence": [
            {
                "what": one.what,
                "value": one.value,
                "unit": one.unit,
                "age_seconds": round(one.age_seconds, 3),
                "source": one.source,
            }
            for one in proposal.evidence
        ],
    }
