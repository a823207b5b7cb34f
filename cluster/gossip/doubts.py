"""Who is in doubt: claims about members, our own and those of others, and what they lead to.

Its own file because accusing is the one thing that can hurt a healthy node. The rules:

1. A claim names the version of its subject that it is about, and is void once that is higher.
2. It counts only from a member that takes part, and from one that accuses more than half of the
   others it counts for nothing: that one has lost the network.
3. When doubt ends is arithmetic, see `suspicion`.

It must not know how a claim came, or how it was verified.
"""

from collections.abc import Callable

from cluster.gossip.effects import Status
from cluster.gossip.members import Member, Members
from cluster.gossip.messages import Claim, Evidence, Kind, Statement
from cluster.gossip.outbox import Outbox, news_key
from cluster.gossip.own import Own
from cluster.gossip.rumors import Urgency
from cluster.gossip.settings import GossipSettings
from cluster.gossip.suspicion import Suspicion, ends_seconds
from cluster.ids import NodeId

_ACCUSERS_ENOUGH = 5
"""Further accusers keep their evidence to themselves: it would change nothing."""
_ACCUSED_FEW = 3
_EARLY_MAX = 256


class Doubts:
    """Keeps the suspicions of one node."""

    def __init__(
        self, *, own: Own, settings: GossipSettings, outbox: Outbox, members: Members
    ) -> None:
        self._own = own
        self._settings = settings
        self._outbox = outbox
        self.members = members
        self.accused_by: NodeId | None = None
        """Somebody claims that this node, in its present version, is not here."""
        self._end_seconds: float | None = None
        """No suspicion ends before; one may end later than it says."""
        self._counted_count = 0
        """How many took part when it was reckoned."""
        self._early: dict[tuple[NodeId, NodeId], Statement] = {}

    def accuse(self, member: Member, evidence: Evidence, began: float, now: float) -> None:
        """A member did not answer this node itself."""
        if not member.is_here or not member.address:
            return
        suspicion = self._doubt(member, began, "this node could not reach it", now)
        is_enough = len(suspicion.accusers) >= _ACCUSERS_ENOUGH
        if suspicion.accuse(self._own.node_id, evidence, now) and not is_enough:
            self._claim(Kind.SUSPECT, member, evidence)
        self._hasten(member)

    def hear(
        self, statement: Statement, claim: Claim, is_genuine: Callable[[], bool], now: float
    ) -> None:
        """Somebody accuses somebody. The signature is looked at only if it would matter."""
        if claim.subject == self._own.node_id:
            is_current = claim.subject_version == self._own.member.version
            if is_current and self.accused_by is None and is_genuine():
                self.accused_by = statement.signer
            return
        member = self.members.get(claim.subject)
        by = self.members.get(statement.signer)
        if member is None or by is None:
            self._keep_early(statement, claim)
            return
        if not by.is_here:
            return
        if member.status is Status.FAILED:
            self._hear_verdict(statement, claim, member, is_genuine)
        if not member.is_here:
            return
        if claim.subject_version != member.version or _is_counted(statement, claim, member):
            return
        if self._accuses_most(by) or not is_genuine():
            return
        # Whoever claims silence has waited for an answer during one interval at least.
        is_silence = claim.evidence is Evidence.SILENCE
        began = now - self._settings.probe_interval_seconds if is_silence else now
        suspicion = self._doubt(member, began, f"accused by {by.introduction.name}", now)
        suspicion.accuse(statement.signer, claim.evidence, now)
        self._hasten(member)
        member.claims[statement.signer] = statement
        if statement.kind is Kind.FAILED:
            suspicion.gave_up[statement.signer] = None
        self._outbox.spread(statement, Urgency.CLAIM, claim.subject)
        quorum = min(self._settings.quorum_count, self.members.here_count)
        if len(suspicion.gave_up) >= quorum and not self._was_heard(member, now):
            self._give_up(member, now)

    def withdraw(self, accuser: NodeId) -> None:
        """What this one claimed of others does not count any more."""
        for member in (*self.members.suspects, *self.members.failed):
            if member.suspicion is not None:
                member.suspicion.accusers.pop(accuser, None)
                member.suspicion.gave_up.pop(accuser, None)
                member.claims.pop(accuser, None)
                self._outbox.news.drop(news_key(Kind.SUSPECT, accuser, member.node_id))

    def verdicts(self, node_id: NodeId) -> list[Statement]:
        """What convinces others that a member has failed, if it has."""
        member = self.members.get(node_id)
        if member is None or member.status is not Status.FAILED:
            return []
        given = [one for one in member.claims.values() if one.kind is Kind.FAILED]
        return given[: self._settings.quorum_count]

    def expire(self, now: float) -> None:
        """Give up those whose suspicion has ended."""
        end = self.next_end()
        if end is None or now < end:
            return
        for member in self.members.suspects:
            ends = self._ends(member)
            if ends is not None and ends <= now:
                self._give_up(member, now)
        self._reckon()

    def next_end(self) -> float | None:
        """When to look for suspicions that have ended."""
        if self._counted_count != self.members.here_count:
            self._reckon()
        return self._end_seconds

    def begin_anew(self, now: float) -> None:
        """We have slept: every suspicion begins anew, without our own evidence."""
        for member in self.members.suspects:
            if member.suspicion is not None:
                member.suspicion.began_seconds = now
                member.suspicion.accusers.pop(self._own.node_id, None)
                if member.suspicion.refused_seconds is not None:
                    member.suspicion.refused_seconds = now
        self._reckon()

    def void(self, member: Member) -> None:
        """A higher version of it has come."""
        for accuser in member.claims:
            self._outbox.news.drop(news_key(Kind.SUSPECT, accuser, member.node_id))
        member.claims.clear()
        member.suspicion = None

    def ripe(self, node_id: NodeId) -> list[Statement]:
        """Verdicts that came before this member did, which may count now."""
        ripe = [key for key in self._early if node_id in key]
        return [self._early.pop(key) for key in ripe]

    def _keep_early(self, statement: Statement, claim: Claim) -> None:
        # Datagrams overtake each other: to one that joins, a verdict may come before its subject.
        if statement.kind is Kind.FAILED and len(self._early) < _EARLY_MAX:
            self._early[statement.signer, claim.subject] = statement

    def _hear_verdict(
        self, statement: Statement, claim: Claim, member: Member, is_genuine: Callable[[], bool]
    ) -> None:
        """Keep it, until there are enough to convince whoever joins later."""
        suspicion = member.suspicion
        if suspicion is None or statement.kind is not Kind.FAILED:
            return
        is_wanted = len(suspicion.gave_up) < self._settings.quorum_count
        if not is_wanted or claim.subject_version != member.version:
            return
        if statement.signer in suspicion.gave_up or not is_genuine():
            return
        suspicion.gave_up[statement.signer] = None
        member.claims[statement.signer] = statement
        self._outbox.spread(statement, Urgency.CLAIM, claim.subject)

    def _accuses_most(self, by: Member) -> bool:
        suspects = self.members.suspects
        accused = sum(
            one.suspicion is not None and by.node_id in one.suspicion.accusers for one in suspects
        )
        return accused > _ACCUSED_FEW and 2 * accused > self.members.here_count

    def _was_heard(self, member: Member, now: float) -> bool:
        heard = member.heard_seconds
        return heard is not None and now - heard < self._settings.suspicion_min_seconds

    def _doubt(self, member: Member, began: float, reason: str, now: float) -> Suspicion:
        if member.suspicion is None:
            member.suspicion = Suspicion(version=member.version, began_seconds=began)
            member.flaps.add(now, self._settings.flap_half_life_seconds)
            self._change(member, Status.SUSPECT, reason, now)
        return member.suspicion

    def _claim(self, kind: Kind, member: Member, evidence: Evidence) -> None:
        claim = Claim(subject=member.node_id, subject_version=member.version, evidence=evidence)
        statement = self._own.accuse(kind, claim)
        member.claims[self._own.node_id] = statement
        self._outbox.spread(statement, Urgency.CLAIM, member.node_id)

    def _change(self, member: Member, after: Status, reason: str, now: float) -> None:
        self._outbox.emit(self.members.change(member, after, reason, now))

    def _reckon(self) -> None:
        self._counted_count = self.members.here_count
        ends = [self._ends(member) for member in self.members.suspects]
        self._end_seconds = min((one for one in ends if one is not None), default=None)

    def _hasten(self, member: Member) -> None:
        ends = self._ends(member)
        if ends is not None and (self._end_seconds is None or ends < self._end_seconds):
            self._end_seconds = ends

    def _ends(self, member: Member) -> float | None:
        if member.suspicion is None:
            return None
        return ends_seconds(
            member.suspicion,
            self._settings,
            own_id=self._own.node_id,
            others_count=self.members.here_count,
            heard_seconds=member.heard_seconds,
        )

    def _give_up(self, member: Member, now: float) -> None:
        suspicion = member.suspicion
        if suspicion is None:
            return
        is_refused = suspicion.is_refused(others_count=self.members.here_count)
        evidence = Evidence.REFUSED if is_refused else Evidence.SILENCE
        words = "refused" if evidence is Evidence.REFUSED else "silent"
        reason = f"{words}; accused by {len(suspicion.accusers)}"
        if len(suspicion.gave_up) < self._settings.quorum_count:
            suspicion.gave_up[self._own.node_id] = None
            self._claim(Kind.FAILED, member, evidence)
        self._change(member, Status.FAILED, reason, now)


def _is_counted(statement: Statement, claim: Claim, member: Member) -> bool:
    suspicion = member.suspicion
    if suspicion is None:
        return False
    if statement.kind is Kind.FAILED:
        return statement.signer in suspicion.gave_up
    evidence = suspicion.accusers.get(statement.signer)
    return evidence is not None and evidence >= claim.evidence
