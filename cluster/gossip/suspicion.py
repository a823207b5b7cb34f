"""How long to doubt before believing: arithmetic on accusers and `now`.

Its own file because it decides when a node is given up, and everything else only brings evidence.
The rules:

1. Suspicion lasts from `suspicion_max_seconds` down to `suspicion_min_seconds`; each further
   distinct accuser shortens it.
2. At its end a node has failed for us if we have failed to reach it ourselves, or if
   `quorum_count` distinct members say so; else we go on doubting.
3. Two observers of a refused port make it short: there is nobody there, which silence never shows.
4. Whoever was heard after all is not given up before the shortest time from then.

It must not know messages or members. Source of the curve: Lifeguard, section IV-B.
"""

import math
from dataclasses import dataclass, field

from cluster.gossip.messages import Evidence, Version
from cluster.gossip.settings import GossipSettings
from cluster.ids import NodeId

_REFUSALS = 2


@dataclass(slots=True, kw_only=True)
class Suspicion:
    """What speaks against one version of one node."""

    version: Version
    began_seconds: float
    accusers: dict[NodeId, Evidence] = field(default_factory=dict)
    gave_up: dict[NodeId, None] = field(default_factory=dict)
    """Those of them who say that it has failed."""
    refused_seconds: float | None = None
    """When the first refusal was heard of."""

    def accuse(self, accuser: NodeId, evidence: Evidence, now: float) -> bool:
        """Count an accuser; whether that is anything new."""
        before = self.accusers.get(accuser)
        if before is not None and before >= evidence:
            return False
        self.accusers[accuser] = evidence
        if evidence is Evidence.REFUSED and self.refused_seconds is None:
            self.refused_seconds = now
        return True

    @property
    def refusals_count(self) -> int:
        """How many observers saw a refused port."""
        return sum(evidence is Evidence.REFUSED for evidence in self.accusers.values())

    def is_refused(self, *, others_count: int) -> bool:
        """Whether enough observers saw it, of those that there are beside the subject."""
        return self.refusals_count >= min(_REFUSALS, others_count)


def suspicion_seconds(confirmations: int, settings: GossipSettings, *, possible: int) -> float:
    """How long suspicion lasts with so many confirmations, of those that are possible at all."""
    needed = min(settings.confirmations_count, possible)
    if confirmations >= needed:
        return settings.suspicion_min_seconds
    span = settings.suspicion_max_seconds - settings.suspicion_min_seconds
    return settings.suspicion_max_seconds - span * math.log(confirmations + 1) / math.log(
        needed + 1
    )


def ends_seconds(
    suspicion: Suspicion,
    settings: GossipSettings,
    *,
    own_id: NodeId,
    others_count: int,
    heard_seconds: float | None,
) -> float | None:
    """When the node has failed for us, or None while the evidence is too thin for that.

    `others_count` is how many members there are beside the subject, us included.
    """
    if suspicion.is_refused(others_count=others_count):
        began = suspicion.refused_seconds
        return (suspicion.began_seconds if began is None else began) + settings.refused_seconds
    quorum = min(settings.quorum_count, others_count)
    if own_id not in suspicion.accusers and len(suspicion.accusers) < quorum:
        return None
    confirmations = len(suspicion.accusers) - 1
    ends = suspicion.began_seconds + suspicion_seconds(
        confirmations, settings, possible=others_count - 1
    )
    if heard_seconds is not None:
        ends = max(ends, heard_seconds + settings.suspicion_min_seconds)
    return ends
