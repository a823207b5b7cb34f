"""Features, evidence and proposals, made with few words."""

from esnode.acting.rules import Rules
from esnode.acting.words import Do, Evidence, Feature, Mode, Proposal, Ticket

REAPING = Feature(
    name="reaping",
    summary="ends what nobody needs",
    per_hour_count=3,
    dwell_seconds=10.0,
    cooldown_seconds=60.0,
)
COOLING = Feature(
    name="cooling",
    summary="cools",
    per_hour_count=100,
    dwell_seconds=0.0,
    cooldown_seconds=0.0,
)


def evidence(
    value: float | str | None = 91.0, *, age: float = 1.0, is_failed: bool = False
) -> Evidence:
    return Evidence(
        what="temperature",
        value=value,
        unit="C",
        age_seconds=age,
        interval_seconds=5.0,
        source="gpu",
        is_source_failed=is_failed,
    )


def proposal(
    feature: str = "cooling",
    *,
    target: str = "gpu GPU-a",
    facts: tuple[Evidence, ...] | None = None,
    owner: str | None = None,
) -> Proposal:
    return Proposal(
        feature=feature,
        rule="heat",
        target=target,
        action="drain",
        evidence=(evidence(),) if facts is None else facts,
        expects="3 C less",
        about=("job-7",),
        gpu_owner=owner,
    )


def rules(mode: Mode = Mode.ENFORCE) -> Rules:
    """Rules of both features, long enough in life to act from 60 s on."""
    return Rules((REAPING, COOLING), {"reaping": mode, "cooling": mode}, now=0.0)


def ticket_of(verdict: object) -> Ticket:
    assert isinstance(verdict, Do), verdict
    return verdict.ticket
