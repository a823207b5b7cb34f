"""What follows from a statement: who is believed, and what becomes of the one it is about.

Its own file because every rule about whom to believe is here. The rules:

1. A statement counts when its signer is known by a certificate, is not excluded, and signed it. It
   is verified once: what is old or known is dropped before that.
2. Only its own signature raises a node's version.
3. Whoever contradicts itself under one version is quarantined, shown and reported, never expelled:
   it may be a cloned disk.

Claims are weighed by `doubts`. It must not know probes or timers.
"""

from collections.abc import Mapping

from cluster.errors import Misuse
from cluster.gossip.doubts import Doubts
from cluster.gossip.effects import (
    ChainsWanted,
    Equivocated,
    Head,
    MemberChanged,
    Status,
)
from cluster.gossip.envelope import Door, Reason
from cluster.gossip.fields import DecodeError
from cluster.gossip.ground import BARE, Ground
from cluster.gossip.held import slot_of
from cluster.gossip.introduction import Introduction
from cluster.gossip.members import Member
from cluster.gossip.messages import (
    NEVER,
    Address,
    Kind,
    MemberRecord,
    Statement,
    Version,
)
from cluster.gossip.outbox import Outbox, news_key
from cluster.gossip.own import Own
from cluster.gossip.records import Outcome, Records
from cluster.gossip.rumors import Urgency
from cluster.gossip.settings import GossipSettings
from cluster.gossip.statements import (
    read_claim,
    read_member,
    read_state,
    read_summary,
    verify_statement,
)
from cluster.ids import ClusterId, NodeId
from cluster.signatures import Verifier

_PENDING_MAX = 4096
_REMOVED_SECONDS = 600.0
"""So long people can see that somebody was removed, and by whom; then its place is free."""
_ACCUSERS_ENOUGH = 5
"""Further accusers keep their evidence to themselves: it would change nothing."""


class Beliefs:
    """Applies statements to the records and members of one node."""

    def __init__(
        self,
        *,
        own: Own,
        settings: GossipSettings,
        outbox: Outbox,
        doubts: Doubts,
        verifier: Verifier,
        heads: Mapping[NodeId, Head],
        ground: Ground = BARE,
    ) -> None:
        self._own = own
        self._settings = settings
        self._outbox = outbox
        self._verifier = verifier
        self.floors = dict(heads)
        self.records = Records(ground)
        self.members = doubts.members
        self._doubts = doubts
        self._ground = ground
        self._introductions = {own.node_id: own.introduction}
        self._excluded: dict[NodeId, str] = {}
        self._pending: dict[NodeId, Statement] = {}
        self._wanted: dict[Address, dict[NodeId, None]] = {}
        self.summary_seconds: dict[NodeId, float] = {}
        """When the latest summary of a rack came, by who speaks for it."""
        self.outlived: Version | None = None
        """Our own key has said something in a life that we do not know of."""
        self.door = Door(
            cluster_id=own.cluster_id,
            own_id=own.node_id,
            verifier=verifier,
            settings=settings,
            public_key_of=self._public_key_of,
        )
        for head in heads.values():
            self.door.floor(head.node_id, head.member.epoch)
        self.records.put(own.member)

    @property
    def own_id(self) -> NodeId:
        """Whose beliefs these are."""
        return self._own.node_id

    @property
    def cluster_id(self) -> ClusterId:
        """Which cluster they are about."""
        return self._own.cluster_id

    def trust(self, introduction: Introduction, now: float) -> None:
        """A certificate speaks for this node from now on."""
        node_id = introduction.node_id
        if node_id == self._own.node_id:
            return
        self._introductions[node_id] = introduction
        waiting = self._pending.pop(node_id, None)
        if waiting is not None:
            self.hear(waiting, Address(""), now)

    def is_known(self, node_id: NodeId) -> bool:
        """Whether a certificate of it is known here."""
        return self._introduction(node_id) is not None

    def is_excluded(self, node_id: NodeId) -> bool:
        """Whether an operator has withdrawn it."""
        return node_id in self._excluded

    def exclude(self, node_id: NodeId, reason: str, now: float) -> None:
        """An operator removed or revoked this node: nothing that it says counts any more."""
        self._excluded[node_id] = reason
        self._pending.pop(node_id, None)
        self.records.drop(node_id)
        self._outbox.news.drop(news_key(Kind.MEMBER, node_id, None))
        self._outbox.news.drop(news_key(Kind.SUMMARY, node_id, None))
        self._doubts.withdraw(node_id)
        subject = self.members.get(node_id)
        if subject is not None and subject.status is not Status.REMOVED:
            self._doubts.void(subject)
            self._outbox.emit(self.members.change(subject, Status.REMOVED, reason, now))

    def forget(self, now: float) -> None:
        """Those removed a while ago; what they said last stays a floor, should they come back."""
        for node_id in self._excluded:
            member = self.members.get(node_id)
            if member is None or now - member.changed_seconds < _REMOVED_SECONDS:
                continue
            self.floors[node_id] = Head(
                node_id=node_id, member=member.version, state=member.state_version
            )
            self.members.forget(member)
            self._introductions.pop(node_id, None)

    def readmit(self, introduction: Introduction, now: float) -> None:
        """An excluded node has a new certificate that stands."""
        self._excluded.pop(introduction.node_id, None)
        self.trust(introduction, now)

    def hear(self, statement: Statement, source: Address, now: float) -> None:
        """Somebody passed this on."""
        signer = statement.signer
        if signer in self._excluded:
            self._outbox.reject(Reason.EXCLUDED, source)
        elif not self.is_known(signer):
            self._wait_for_chain(statement, source)
        else:
            try:
                self._hear_known(statement, source, now)
            except DecodeError:
                self._outbox.reject(Reason.MALFORMED, source)

    def flush_wanted(self) -> None:
        """Ask for the certificates that were missing; at most once a call of a public verb."""
        for address, node_ids in self._wanted.items():
            missing = tuple(one for one in node_ids if not self.is_known(one))
            if missing:
                self._outbox.emit(ChainsWanted(ask=address, node_ids=missing))
        self._wanted.clear()

    def _introduction(self, node_id: NodeId) -> Introduction | None:
        own = self._introductions.get(node_id)
        return self._ground.introductions.get(node_id) if own is None else own

    def _introduced(self, node_id: NodeId) -> Introduction:
        known = self._introduction(node_id)
        if known is None:
            raise Misuse(f"{node_id} was not introduced")
        return known

    def _public_key_of(self, node_id: NodeId) -> bytes | Reason:
        if node_id in self._excluded:
            return Reason.EXCLUDED
        known = self._introduction(node_id)
        return Reason.UNKNOWN if known is None else known.public_key

    def _wait_for_chain(self, statement: Statement, source: Address) -> None:
        if statement.kind not in (Kind.MEMBER, Kind.LEFT):
            self._outbox.reject(Reason.UNKNOWN, source)
            return
        held = self._pending.get(statement.signer)
        if held is None and len(self._pending) >= _PENDING_MAX:
            self._outbox.reject(Reason.BUDGET, source)
            return
        if held is None or held.version < statement.version:
            self._pending[statement.signer] = statement
        self._wanted.setdefault(source, {})[statement.signer] = None

    def _hear_known(self, statement: Statement, source: Address, now: float) -> None:
        if statement.signer == self._own.node_id:
            self._hear_of_own(statement, source, now)
        elif statement.is_claim:
            self._doubts.hear(
                statement,
                read_claim(statement.body),
                lambda: self._verify(statement, source, now),
                now,
            )
        elif self.records.judge(statement) in (Outcome.NEWER, Outcome.EQUIVOCATION):
            self._hear_record(statement, source, now)

    def _verify(self, statement: Statement, source: Address, now: float) -> bool:
        refusal = self.door.verify(
            lambda: verify_statement(
                statement,
                cluster_id=self._own.cluster_id,
                public_key=self._introduced(statement.signer).public_key,
                verifier=self._verifier,
            ),
            source,
            now,
        )
        if refusal is not None:
            self._outbox.reject(refusal, source)
        return refusal is None

    def _hear_of_own(self, statement: Statement, source: Address, now: float) -> None:
        if statement.kind not in (Kind.MEMBER, Kind.LEFT):
            return
        if self.records.judge(statement) not in (Outcome.NEWER, Outcome.EQUIVOCATION):
            return
        if self._verify(statement, source, now):
            self.records.put(statement)
            self.outlived = max(self.outlived or NEVER, statement.version)

    def _hear_record(self, statement: Statement, source: Address, now: float) -> None:
        introduction = self._introduced(statement.signer)
        floor = self.floors.get(statement.signer, Head(node_id=statement.signer))
        match statement.kind:
            case Kind.MEMBER:
                record = read_member(statement.body)
                is_own_word = (record.name, record.rack) == (introduction.name, introduction.rack)
                lowest = floor.member
            case Kind.SUMMARY:
                is_own_word = read_summary(statement.body).rack == introduction.rack
                lowest = NEVER
            case Kind.STATE:
                is_own_word = introduction.rack == self._own.introduction.rack
                lowest = floor.state
            case _:
                is_own_word, lowest = True, floor.member
        if not is_own_word:
            self._outbox.reject(Reason.CONTRADICTS_CERTIFICATE, source)
        elif statement.version < lowest:
            self._outbox.reject(Reason.REPLAYED, source)
        elif self._verify(statement, source, now):
            outcome = self.records.put(statement)
            if outcome is Outcome.EQUIVOCATION:
                # It raises no version, so it voids no claim and moves nobody.
                self._quarantine(statement)
            else:
                self._apply(statement, now)

    def _apply(self, statement: Statement, now: float) -> None:
        match statement.kind:
            case Kind.MEMBER:
                self._apply_member(statement, read_member(statement.body), now)
            case Kind.LEFT:
                self._apply_left(statement, now)
            case Kind.STATE:
                member = self.members.get(statement.signer)
                if member is not None:
                    member.state_body = read_state(statement.body)
                    member.state_seconds = member.heard_seconds = now
                    member.state_version = statement.version
            case _:
                self.summary_seconds[statement.signer] = now
                self._outbox.spread(statement, Urgency.SUMMARY)

    def _apply_member(self, statement: Statement, record: MemberRecord, now: float) -> None:
        introduction = self._introduced(statement.signer)
        member = self.members.get(statement.signer)
        self.door.floor(statement.signer, statement.version.epoch)
        if member is None:
            member = Member(
                introduction=introduction,
                record=record,
                version=statement.version,
                status=Status.ALIVE,
                changed_seconds=now,
            )
            self.members.add(member)
            self._outbox.spread(statement, Urgency.MEMBER)
            self._outbox.emit(
                MemberChanged(
                    node_id=member.node_id, before=None, after=Status.ALIVE, reason="joined"
                )
            )
            for verdict in self._doubts.ripe(member.node_id):
                self.hear(verdict, Address(""), now)
            return
        is_restart = statement.version.epoch > member.version.epoch
        self._doubts.void(member)
        member.is_quarantined = False
        is_move = member.record.addresses != record.addresses
        self.members.renew(member, introduction, record, statement.version)
        if is_restart:
            # Once a minute is an upgrade; more is a crash loop, or a clone that outdoes it.
            member.flaps.add(now, self._settings.flap_half_life_seconds)
            member.state_body, member.state_seconds, member.misses_count = None, None, 0
        reason = "restarted" if is_restart else "moved" if is_move else "refuted"
        if member.status is not Status.ALIVE or is_move:
            self._outbox.emit(self.members.change(member, Status.ALIVE, reason, now))
        self._outbox.spread(statement, Urgency.CLAIM)

    def _apply_left(self, statement: Statement, now: float) -> None:
        member = self.members.get(statement.signer)
        if member is None:
            # It left before we heard of it: nothing to show, but to be passed on all the same.
            self._outbox.spread(statement, Urgency.CLAIM)
            return
        self._doubts.void(member)
        member.version = statement.version
        if member.status is not Status.LEFT:
            self._outbox.emit(self.members.change(member, Status.LEFT, "it said so", now))
        self._outbox.spread(statement, Urgency.CLAIM)

    def _quarantine(self, statement: Statement) -> None:
        held = self.records.get(slot_of(statement.kind), statement.signer)
        member = self.members.get(statement.signer)
        if held is None or member is None:
            return
        member.is_quarantined = True
        for place, one in enumerate(held.statements):
            # One pair at a time: who goes on contradicting itself shall not fill our datagrams.
            key = ("proof", one.signer, place)
            self._outbox.spread_as(key, one, Urgency.CLAIM)
        self._outbox.emit(Equivocated(node_id=statement.signer, proof=held.statements))
