"""What a certificate is worth at a given time, and after what operators have said.

Its own file because the rule is unusual: TLS runs without its time check, and a certificate that
has ended takes the node's roles away and raises an alarm, but the node is still a member and its
power is still counted. Only a revocation or a removal makes it a stranger. It must not know
certificates beyond the identity that `chains` made of them.
"""

from dataclasses import dataclass
from enum import StrEnum

from cluster.identity.certificates import Window
from cluster.identity.chains import NodeIdentity
from cluster.identity.refusals import Refused, Rule
from cluster.ids import NodeId, Role

WARNING_SECONDS = 30 * 86_400
"""How long before its end a certificate begins to warn."""
_DAY_SECONDS = 86_400


class Validity(StrEnum):
    """Where a time lies relative to a certificate's own."""

    NOT_YET = "not-yet"
    CURRENT = "current"
    ENDING = "ending"
    ENDED = "ended"


IN_FORCE = (Validity.CURRENT, Validity.ENDING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a node may do now. It is counted for power whatever this says."""

    validity: Validity
    roles: tuple[Role, ...]
    alarm: str | None
    """One line for operators, or None while there is nothing to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocations:
    """What operators have withdrawn."""

    node_ids: frozenset[NodeId] = frozenset()
    """Keys that are not to be believed again, under any certificate."""
    serials: frozenset[int] = frozenset()
    """Certificates that are void: of a node, of an invite, of an issuer."""
    removals: frozenset[tuple[NodeId, int]] = frozenset()
    """Nodes that were retired, with the certificate they had: with a new one they may return."""


def judge_validity(window: Window, now_unix_seconds: int) -> Validity:
    """Where this time lies; both ends are inside."""
    if now_unix_seconds < window.begin_unix_seconds:
        return Validity.NOT_YET
    if now_unix_seconds > window.end_unix_seconds:
        return Validity.ENDED
    if window.end_unix_seconds - now_unix_seconds < WARNING_SECONDS:
        return Validity.ENDING
    return Validity.CURRENT


def judge_standing(identity: NodeIdentity, now_unix_seconds: int) -> Standing:
    """Which of its roles a node has at this time, and what operators should know."""
    validity = judge_validity(identity.window, now_unix_seconds)
    who = f"certificate of {identity.name} in rack {identity.rack}"
    match validity:
        case Validity.CURRENT:
            return Standing(validity=validity, roles=identity.roles, alarm=None)
        case Validity.ENDING:
            days = (identity.window.end_unix_seconds - now_unix_seconds) // _DAY_SECONDS
            alarm = f"{who} ends in {days} days; `esnode cluster renew` on it"
            return Standing(validity=validity, roles=identity.roles, alarm=alarm)
        case Validity.ENDED:
            alarm = f"{who} has ended, it has no roles left; `esnode cluster renew` on it"
            return Standing(validity=validity, roles=(), alarm=alarm)
        case Validity.NOT_YET:
            alarm = f"{who} has not begun, it has no roles yet; compare the clocks"
            return Standing(validity=validity, roles=(), alarm=alarm)


def check_revocation(identity: NodeIdentity, revocations: Revocations) -> Refused | None:
    """Whether an operator has withdrawn this node.

    A revoked invite does not withdraw the nodes that have come by it: it only lets no more in.
    """
    if identity.node_id in revocations.node_ids:
        return Refused(rule=Rule.REVOKED, line=f"{identity.name}: an operator revoked its key")
    if identity.serial in revocations.serials:
        line = f"{identity.name}: an operator revoked its certificate {identity.serial:x}"
        return Refused(rule=Rule.REVOKED, line=line)
    if (identity.node_id, identity.serial) in revocations.removals:
        line = f"{identity.name}: an operator removed it; it needs a new invite to return"
        return Refused(rule=Rule.REMOVED, line=line)
    return None
