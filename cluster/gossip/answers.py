"""What a node replies to each message of a peer.

Its own file because it is the protocol's conversation, apart from timers and from belief. Whoever
asks is answered at the address that the question came from. A member that we take for failed or
suspect is shown the claims, so that it can refute; one whose view differs is sent a summary. It
must not know time-outs.
"""

import hashlib
import math

from cluster.gossip.beliefs import Beliefs
from cluster.gossip.detector import Detector, claims
from cluster.gossip.effects import Deliver, OperatorRecordHeard
from cluster.gossip.envelope import Envelope, Reason, look
from cluster.gossip.farewell import Farewell
from cluster.gossip.fields import DecodeError
from cluster.gossip.held import Slot
from cluster.gossip.messages import (
    Ack,
    Address,
    Application,
    Message,
    Nack,
    OperatorNews,
    Page,
    Ping,
    PingRequest,
    Relayed,
    StateDigest,
    Statement,
    Summary,
)
from cluster.gossip.outbox import Outbox
from cluster.gossip.reconcile import Reconciler
from cluster.gossip.settings import GossipSettings
from cluster.gossip.wire import decode_payload
from cluster.ids import NodeId

_WARN_SECONDS = 0.5
_SUMMARY_SECONDS = 0.2
"""At least this long between two summaries of one peer that are answered."""
_SEEN_MAX = 4096
_STATES_MAX = 8
_STANDING_MAX = 256
_OFFERED_MAX = 4
_RECORDS_PER_SECOND = 20.0
_RECORDS_MAX = 64.0
"""Operators' records that the layer above is asked to judge: anybody can send one that is false,
and each costs a signature. Those that stand cost nothing."""


class Answers:
    """Replies for one node."""

    def __init__(
        self,
        *,
        settings: GossipSettings,
        outbox: Outbox,
        beliefs: Beliefs,
        detector: Detector,
        reconciler: Reconciler,
        farewell: Farewell,
    ) -> None:
        self.views_equal_total = 0
        self.views_different_total = 0
        """Of pings and acks: whether the peer's view was ours."""
        self._farewell = farewell
        self._settings = settings
        self._outbox = outbox
        self._beliefs = beliefs
        self._detector = detector
        self._reconciler = reconciler
        self._summaries: dict[NodeId, float] = {}
        self._records_seen: dict[bytes, None] = {}
        self._records_standing: dict[bytes, None] = {}
        self._records_left_count = _RECORDS_MAX
        self._records_seconds = 0.0

    def answer(self, message: Message, envelope: Envelope, source: Address, now: float) -> None:
        """Reply to one message of a datagram that came through the door."""
        match message:
            case Ping():
                self._answer_ping(message, envelope.sender, source, now)
            case Ack(nonce=nonce, view_digest=digest):
                if self._detector.hear_ack(nonce, envelope.sender, envelope.datagram, now):
                    self._beliefs.door.anchor(envelope.sender)
                    self._farewell.hear_ack(nonce)
                    if self._may_sync(envelope.sender, digest, now):
                        self._outbox.send(source, [self._reconciler.summary()])
            case PingRequest():
                asker = self._beliefs.members.get(envelope.sender)
                if asker is not None:
                    self._detector.hear_request(message, asker, source, now)
            case Nack(nonce=nonce):
                self._detector.hear_nack(nonce, envelope.sender)
            case Relayed(datagram=datagram):
                self._hear_relayed(datagram, source, now)
            case Summary():
                before = self._summaries.get(envelope.sender, -math.inf)
                if now - before >= _SUMMARY_SECONDS:
                    self._summaries[envelope.sender] = now
                    self._reconciler.answer_summary(message, source)
                    self._offer_records(source)
            case Page():
                self._reconciler.answer_page(message, source)
            case StateDigest():
                self._answer_states(message, envelope.sender, source)
            case OperatorNews(record=record):
                self._hear_record(record, source, now)
            case Application():
                self._deliver(message, envelope.sender, source, now)
            case Statement():
                self._beliefs.hear(message, source, now)

    def answer_earlier_life(self, datagram: bytes, source: Address, now: float) -> None:
        """Show a node that counts from too low what it once signed, so that it can go on above.

        Or show it to whoever replays its datagrams, a few times a second, which tells them nothing.
        """
        seen = look(datagram, self._beliefs.cluster_id)
        if isinstance(seen, Reason):
            return
        held = self._beliefs.records.get(Slot.MEMBER, seen.sender)
        member = self._beliefs.members.get(seen.sender)
        if held is None or member is None or seen.version.epoch >= held.version.epoch:
            return
        if now - member.warned_seconds >= _WARN_SECONDS:
            member.warned_seconds = now
            self._outbox.send_all(source, held.statements, 1)

    def keep_record(self, record: bytes) -> None:
        """An operator's record that stands: offered to whoever sees the cluster otherwise."""
        self._mark_record(record)
        self._records_left_count += 1
        if len(self._records_standing) >= _STANDING_MAX:
            self._records_standing.pop(next(iter(self._records_standing)))
        self._records_standing[record] = None

    def _offer_records(self, to: Address) -> None:
        # Who lacks a removal differs from us in its digest until it has it, so this ends.
        offered = list(self._records_standing)[:_OFFERED_MAX]
        for record in offered:
            self._records_standing[record] = self._records_standing.pop(record)
        if offered:
            self._outbox.send(to, [OperatorNews(record=one) for one in offered], has_news=False)

    def _mark_record(self, record: bytes) -> None:
        """The layer above need not judge it again."""
        if len(self._records_seen) >= _SEEN_MAX:
            self._records_seen.pop(next(iter(self._records_seen)))
        self._records_seen[hashlib.sha256(record).digest()] = None

    def _answer_ping(self, ping: Ping, sender: NodeId, source: Address, now: float) -> None:
        member = self._beliefs.members.get(sender)
        digest = self._beliefs.records.digest
        if ping.target != self._beliefs.own_id:
            return
        ack = Ack(nonce=ping.nonce, view_digest=digest)
        if ping.is_bare:
            self._outbox.send(source, [ack], has_news=False)
            return
        reply: list[Message] = [ack]
        if member is not None and member.claims and now - member.warned_seconds >= _WARN_SECONDS:
            member.warned_seconds = now
            reply.extend(claims(member))
        if self._may_sync(sender, ping.view_digest, now):
            reply.append(self._reconciler.summary())
        self._outbox.send(source, reply)

    def _may_sync(self, sender: NodeId, digest: int, now: float) -> bool:
        member = self._beliefs.members.get(sender)
        if digest == self._beliefs.records.digest:
            self.views_equal_total += 1
            return False
        self.views_different_total += 1
        if member is None:
            return True
        if now - member.synced_seconds < self._settings.sync_interval_seconds:
            return False
        member.synced_seconds = now
        return True

    def _hear_relayed(self, datagram: bytes, source: Address, now: float) -> None:
        awaited = self._detector.awaited_through_helpers()
        if awaited is None:
            return
        opened = self._beliefs.door.open_relayed(datagram, awaited, source, now)
        if isinstance(opened, Reason):
            self._outbox.reject(opened, source)
            return
        try:
            messages = decode_payload(opened.payload)
        except DecodeError:
            self._outbox.reject(Reason.MALFORMED, source)
            return
        for message in messages:
            if isinstance(message, Ack):
                self._detector.hear_relayed_ack(message.nonce, now)

    def _answer_states(self, asked: StateDigest, sender: NodeId, source: Address) -> None:
        asker = self._beliefs.members.get(sender)
        if asker is None or not self._beliefs.members.is_mate(asker):
            return
        given: list[Statement] = []
        for entry in asked.entries:
            held = self._beliefs.records.get(Slot.STATE, entry.node_id)
            if held is not None and held.version > entry.version:
                given.extend(held.statements)
        self._outbox.send_all(source, given, _STATES_MAX)

    def _hear_record(self, record: bytes, source: Address, now: float) -> None:
        if hashlib.sha256(record).digest() in self._records_seen:
            return
        elapsed, self._records_seconds = now - self._records_seconds, now
        left = self._records_left_count + max(0.0, elapsed) * _RECORDS_PER_SECOND
        self._records_left_count = min(_RECORDS_MAX, left)
        if self._records_left_count < 1:
            self._outbox.reject(Reason.BUDGET, source)  # it comes again, or over a stream
            return
        self._records_left_count -= 1
        self._mark_record(record)
        self._outbox.emit(OperatorRecordHeard(record=record, source=source))

    def _deliver(self, message: Application, sender: NodeId, source: Address, now: float) -> None:
        if self._beliefs.door.is_anchored(sender):
            self._outbox.emit(Deliver(sender=sender, message=message))
            return
        # It may be a recording from before our start. An answer to a nonce shows what is not.
        self._outbox.reject(Reason.UNANCHORED, source)
        member = self._beliefs.members.get(sender)
        if member is not None and now - member.warned_seconds >= _WARN_SECONDS:
            member.warned_seconds = now
            self._detector.run_errand(member, [], now)
