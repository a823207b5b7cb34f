"""The one arbiter of a node's power: of all that would cap it, the lowest wins.

Pure. Its own file because nothing else may decide what is written to the hardware. A claimant that
cannot say how much it allows (a ledger that is not read yet, a sensor that does not answer) still
counts: nothing is raised then. It must not know how watts are divided among devices.
Source: `min(rack share, thermal, profile, operator)`, the design's section on rack power.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from esnode.readings.limits import Limit, LimitRange


class Source(IntEnum):
    """Who may cap a node; of two at the same watts the first is named."""

    RACK = 0
    THERMAL = 1
    PROFILE = 2
    OPERATOR = 3

    @property
    def text(self) -> str:
        """How journals and people call it."""
        return self.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One that would cap the node. A source may claim several times, once for each currency."""

    source: Source
    watts: int | None
    """The most it allows at the inlet; ``None`` when it cannot say."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the claims come to."""

    watts: int | None
    """The node's cap; ``None`` when no claim says one."""
    binding: Claim | None
    """The claim that it comes from."""
    unknown: tuple[Claim, ...] = ()
    """Those that cannot say."""

    @property
    def may_raise(self) -> bool:
        """Whether limits may go up to `watts`, or only down."""
        return not self.unknown

    @property
    def reason(self) -> str:
        """One line for the journal."""
        parts = []
        if self.binding is not None:
            parts.append(f"{self.binding.source.text}: {self.binding.reason}")
        if self.unknown:
            who = ", ".join(f"{claim.source.text} ({claim.reason})" for claim in self.unknown)
            parts.append(f"nothing is raised while unknown: {who}")
        return "; ".join(parts) or "nothing caps this node"


def arbitrate(claims: Iterable[Claim]) -> Decision:
    """The lowest claim, and whether anything may be raised at all."""
    known: list[tuple[int, Claim]] = []
    unknown: list[Claim] = []
    for claim in sorted(claims, key=lambda claim: claim.source):
        if claim.watts is None:
            unknown.append(claim)
        else:
            known.append((max(0, claim.watts), claim))
    if not known:
        return Decision(watts=None, binding=None, unknown=tuple(unknown))
    watts, binding = min(known, key=lambda one: one[0])
    return Decision(watts=watts, binding=binding, unknown=tuple(unknown))


def allow(
    decision: Decision, limits: Iterable[Limit], in_force: dict[str, int | None]
) -> tuple[Limit, ...]:
    """Of a split's limits those that the decision lets through: all, or only the lowerings.

    A device whose limit is unknown counts at its maximum, so setting it is a lowering.
    """
    return tuple(
        limit
        for limit in limits
        if decision.may_raise
        or (watts := in_force.get(limit.device)) is None
        or limit.watts <= watts
    )


def narrow(limits: LimitRange, ceiling_watts: int | None) -> LimitRange:
    """The range that is left under a ceiling of somebody else's, see `ForeignWriters`."""
    if ceiling_watts is None or ceiling_watts >= limits.maximum_watts:
        return limits
    return LimitRange(
        device=limits.device,
        kind=limits.kind,
        minimum_watts=min(limits.minimum_watts, ceiling_watts),
        maximum_watts=ceiling_watts,
        default_watts=limits.default_watts,
    )
