"""Swim: who is here, as one state machine without a clock, a socket or a set.

The page to read first. Like every state machine of the project it has five verbs: `receive`,
`advance`, `deadline`, `view`, and requests; all but the questions return effects, to be carried out
in order. The theory of operation:

1. Each node keeps the newest signed member record of every other (`records`). Records, claims and
   summaries are news: repeated to a few random members every `gossip_interval_seconds` (`rumors`),
   and put into whatever room other datagrams leave.
2. A digest of all member records rides in every ping and ack. Where two differ, they find out what
   is missing and send it (`reconcile`). So news may be lost, and still everybody agrees soon.
3. One member an interval is asked whether it is there (`detector`). Silence makes an accusation,
   accusations make doubt, doubt ends in *failed* (`doubts`, `suspicion`), unless the accused raises
   its version, which only its own signature can.
4. States go from their origin straight to each rack mate; whoever misses one asks another mate.
5. A node that was not running for a while knows it, and gets up to date before it accuses anybody.

It must not know watts, certificates, or how bytes travel.
"""

import math
import random
from collections.abc import Iterable, Mapping, Sequence

from cluster.gossip.answers import Answers
from cluster.gossip.beliefs import Beliefs
from cluster.gossip.contacts import Contacts
from cluster.gossip.defence import Defence
from cluster.gossip.detector import Detector
from cluster.gossip.doubts import Doubts
from cluster.gossip.effects import (
    Effect,
    Head,
    Paused,
)
from cluster.gossip.envelope import Reason, claimed_sender
from cluster.gossip.farewell import Farewell
from cluster.gossip.fields import DecodeError
from cluster.gossip.ground import BARE, Ground
from cluster.gossip.heads import HeadsKept
from cluster.gossip.inputs import Datagram, Input, Refused
from cluster.gossip.introduction import Introduction
from cluster.gossip.members import Members
from cluster.gossip.messages import (
    Address,
    Application,
    Kind,
    OperatorNews,
    RackSummary,
    Statement,
)
from cluster.gossip.outbox import Outbox, check_opaque
from cluster.gossip.own import Identity, Own
from cluster.gossip.reconcile import Reconciler
from cluster.gossip.rumors import Urgency
from cluster.gossip.settings import GossipSettings
from cluster.gossip.statements import summary_body
from cluster.gossip.states import States
from cluster.gossip.view import GossipView, is_speaker, view_member, view_racks
from cluster.gossip.wire import decode_payload
from cluster.ids import NodeId
from cluster.signatures import Signer, Verifier

_ISOLATED_SECONDS = 5.0
_URGENT_FEW = 16
"""Claims; about two datagrams of them."""
_HURRY_MAX = 5


class Swim:
    """One node of the gossip."""

    def __init__(
        self,
        *,
        identity: Identity,
        signer: Signer,
        verifier: Verifier,
        rng: random.Random,
        settings: GossipSettings | None = None,
        seeds: Sequence[Address] = (),
        heads: Mapping[NodeId, Head] | None = None,
        ground: Ground = BARE,
    ) -> None:
        self._settings = settings or GossipSettings()
        self._rng = rng
        self._own = Own(identity, signer)
        self._members = Members(self._own.node_id, identity.introduction.rack, ground)
        self._outbox = Outbox(self._own, self._settings, self._members)
        self._doubts = Doubts(
            own=self._own, settings=self._settings, outbox=self._outbox, members=self._members
        )
        self._beliefs = Beliefs(
            own=self._own,
            settings=self._settings,
            outbox=self._outbox,
            doubts=self._doubts,
            verifier=verifier,
            heads=heads or {},
            ground=ground,
        )
        self._detector = Detector(
            settings=self._settings,
            outbox=self._outbox,
            members=self._members,
            doubts=self._doubts,
            records=self._beliefs.records,
            own_id=self._own.node_id,
            rng=rng,
        )
        self._reconciler = Reconciler(self._beliefs.records, self._outbox, self._doubts, rng)
        self._build_talk(tuple(seeds))
        self._due_seconds = math.inf
        self._gossip_seconds = 0.0

    def start(self, now: float) -> list[Effect]:
        """Begin: knock at the seeds."""
        self._members.start(now)
        self._detector.start(now)
        self._contacts.due_seconds = now
        self._states.start(now)
        self._heads.start(now)
        self._gossip_seconds = now
        self._run_timers(now)
        return self._finish(now)

    def receive(self, came: Input, now: float) -> list[Effect]:
        """Something came from the network."""
        if self._farewell.is_over:
            return []
        self._notice_pause(now)
        match came:
            case Datagram(source=source, data=data):
                self._receive(data, source, now)
            case Refused(address=address):
                self._detector.hear_refused(address, now)
        return self._finish(now)

    def advance(self, now: float) -> list[Effect]:
        """Time has passed."""
        if self._farewell.is_over:
            return []
        self._notice_pause(now)
        self._run_timers(now)
        return self._finish(now)

    def deadline(self) -> float | None:
        """When `advance` is wanted; None before the start, and once this node has left."""
        return None if self._due_seconds == math.inf else self._due_seconds

    def _next_due(self) -> float:
        if self._farewell.is_over:
            return math.inf
        due = min(self._detector.deadline(), self._contacts.due_seconds, self._states.due_seconds)
        due = min(due, self._heads.due_seconds, self._farewell.due_seconds)
        due = min(due, self._defence.due_seconds)
        end = self._doubts.next_end()
        if end is not None:
            due = min(due, max(end, self._detector.hush_until_seconds))
        if self._outbox.news and self._members.here_count:
            due = min(due, self._gossip_seconds)
        return due

    @property
    def digest(self) -> int:
        """Of all member records: equal on two nodes that hold the same."""
        return self._beliefs.records.digest

    def view(self, now: float) -> GossipView:
        """What this node knows of the others."""
        settings = self._settings
        answered = self._detector.answered_seconds
        is_unanswered = answered is None or now - answered > _ISOLATED_SECONDS
        return GossipView(
            node_id=self._own.node_id,
            version=self._own.member.version,
            members=tuple(
                view_member(one, settings, now)
                for one in sorted(self._members, key=lambda one: one.node_id)
            ),
            racks=view_racks(
                self._own,
                self._members,
                self._beliefs.records,
                heard_seconds=self._beliefs.summary_seconds,
                now=now,
            ),
            digest=self._beliefs.records.digest,
            health_score=self._detector.health.score,
            is_speaker=is_speaker(self._own, self._members),
            is_isolated=len(self._members) > 0 and is_unanswered,
            is_leaving=self._farewell.is_begun,
            is_contested=self._defence.is_contested,
            checks_total=self._beliefs.door.checks_total,
            views_equal_total=self._answers.views_equal_total,
            views_different_total=self._answers.views_different_total,
        )

    def is_here_at(self, address: Address) -> bool:
        """Whether a member that takes part says that it is there."""
        return self._members.is_here_at(address)

    def trust(
        self, introductions: Iterable[Introduction], source: Address | None, now: float
    ) -> list[Effect]:
        """Certificates, judged: over the stream from whoever is at the source, or from disk."""
        for introduction in introductions:
            if not self._beliefs.is_excluded(introduction.node_id):
                self._beliefs.trust(introduction, now)
        if source is not None and not self._members.is_here_at(source):
            self._outbox.send(source, [self._own.member, self._reconciler.summary()])
        return self._finish(now)

    def seek(self, seeds: Sequence[Address], now: float) -> list[Effect]:
        """Knock at these from now on: names were looked up again."""
        self._contacts.seeds = tuple(seeds)
        return self._finish(now)

    def exclude(self, node_id: NodeId, reason: str, now: float) -> list[Effect]:
        """An operator removed or revoked this node."""
        self._beliefs.exclude(node_id, reason, now)
        return self._finish(now)

    def readmit(self, introduction: Introduction, now: float) -> list[Effect]:
        """A removed node has come back with a new certificate that stands."""
        self._beliefs.readmit(introduction, now)
        return self._finish(now)

    def relay_operator_record(self, record: bytes, now: float) -> list[Effect]:
        """Pass on a record that stands, before everything else.

        Raises:
            Misuse: it is larger than `OPAQUE_BYTES_MAX`; such a record goes over the stream.
        """
        check_opaque(record)
        self._answers.keep_record(record)
        self._outbox.spread_record(record)
        return self._finish(now)

    def publish_state(self, state: bytes, now: float) -> list[Effect]:
        """Tell the rack how we are; once a second."""
        self._states.publish(state)
        return self._finish(now)

    def publish_summary(self, payload: bytes, now: float) -> list[Effect]:
        """Tell the other racks how ours is; for the one that speaks for it."""
        summary = RackSummary(rack=self._own.introduction.rack, payload=payload)
        statement = self._own.say(Kind.SUMMARY, summary_body(summary))
        self._beliefs.records.put(statement)
        self._outbox.spread(statement, Urgency.SUMMARY)
        return self._finish(now)

    def send_application(self, to: NodeId, message: Application, now: float) -> list[Effect]:
        """Send a message of the layer above; it may be lost.

        Raises:
            Misuse: it is larger than `OPAQUE_BYTES_MAX`.
        """
        check_opaque(message.payload)
        member = self._members.get(to)
        if member is not None and member.address is not None:
            self._outbox.send(member.address, [message])
        return self._finish(now)

    def move(self, addresses: tuple[Address, ...], now: float) -> list[Effect]:
        """We are to be found somewhere else now."""
        self._defence.announce(self._own.move(addresses))
        return self._finish(now)

    def leave(self, now: float) -> list[Effect]:
        """Say good-bye, and stay until some have heard it."""
        self._defence.announce(self._own.leave())
        self._farewell.begin(self._rng, now)
        return self._finish(now)

    def _build_talk(self, seeds: tuple[Address, ...]) -> None:
        """The parts that only talk: what they need has been made before."""
        self._states = States(
            own=self._own,
            settings=self._settings,
            outbox=self._outbox,
            members=self._members,
            records=self._beliefs.records,
            rng=self._rng,
        )
        self._heads = HeadsKept(
            settings=self._settings,
            outbox=self._outbox,
            members=self._members,
            floors=self._beliefs.floors,
        )
        self._farewell = Farewell(
            own=self._own,
            settings=self._settings,
            outbox=self._outbox,
            members=self._members,
            detector=self._detector,
        )
        self._contacts = Contacts(
            own=self._own,
            settings=self._settings,
            outbox=self._outbox,
            members=self._members,
            detector=self._detector,
            seeds=seeds,
            rng=self._rng,
        )
        self._defence = Defence(
            own=self._own,
            settings=self._settings,
            outbox=self._outbox,
            beliefs=self._beliefs,
            doubts=self._doubts,
            detector=self._detector,
            contacts=self._contacts,
            rng=self._rng,
        )
        self._answers = Answers(
            farewell=self._farewell,
            settings=self._settings,
            outbox=self._outbox,
            beliefs=self._beliefs,
            detector=self._detector,
            reconciler=self._reconciler,
        )

    def _receive(self, data: bytes, source: Address, now: float) -> None:
        opened = self._beliefs.door.open(data, source, now)
        if isinstance(opened, Reason):
            self._outbox.reject(opened, source)
            if opened is Reason.UNKNOWN:
                self._contacts.ask_stranger(claimed_sender(data), source, now)
            elif opened is Reason.REPLAYED:
                self._answers.answer_earlier_life(data, source, now)
            return
        try:
            messages = decode_payload(opened.payload)
        except DecodeError:
            self._outbox.reject(Reason.MALFORMED, source)
            return
        for message in messages:
            if not opened.is_signed and not isinstance(message, Statement | OperatorNews):
                self._outbox.reject(Reason.NOT_ALLOWED, source)
                return
            self._answers.answer(message, opened, source, now)

    def _run_timers(self, now: float) -> None:
        self._detector.advance(now)
        if now >= self._detector.hush_until_seconds:
            self._doubts.expire(now)
        if now >= self._contacts.due_seconds:
            self._contacts.advance(now)
        if now >= self._states.due_seconds:
            self._states.advance(now)
        if now >= self._heads.due_seconds:
            self._heads.advance(now)
            self._beliefs.forget(now)
        if self._outbox.news and now >= self._gossip_seconds:
            self._gossip(now)
        if now >= self._farewell.due_seconds:
            self._farewell.advance(now)

    def _finish(self, now: float) -> list[Effect]:
        """What every public verb ends with."""
        if not self._farewell.is_begun:
            self._defence.advance(now)
        self._beliefs.flush_wanted()
        if self._outbox.is_urgent:
            self._outbox.is_urgent = False
            soon = now + self._settings.eager_seconds
            self._gossip_seconds = min(self._gossip_seconds, soon)
        effects = self._outbox.drain()
        # What has just become due was not asked for before: to be late for it is no pause.
        self._due_seconds = max(self._next_due(), now)
        return effects

    def _gossip(self, now: float) -> None:
        # A whole rack that fails is more news than fits: then it is sent more often.
        hurry = min(_HURRY_MAX, 1 + self._outbox.news.urgent_count // _URGENT_FEW)
        self._gossip_seconds = now + self._settings.gossip_interval_seconds / hurry
        for member in self._members.draw(self._rng, self._settings.fanout_count):
            if member.address is not None:
                self._outbox.send(member.address, [])

    def _notice_pause(self, now: float) -> None:
        late = now - self._due_seconds
        if late <= self._settings.pause_seconds:
            return
        self._due_seconds = math.inf
        self._outbox.emit(Paused(pause_seconds=late))
        self._detector.begin_anew(now)
        self._doubts.begin_anew(now)
        if not self._farewell.is_begun:
            # Others have missed us: better to say that we are back than to wait to be told.
            self._defence.announce(self._own.refute())
        for member in self._members.draw(self._rng, self._settings.fanout_count):
            if member.address is not None:
                self._outbox.send(member.address, [self._reconciler.summary()])
