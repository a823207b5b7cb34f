"""Peer: all that an agent sees of its cluster, as one state machine without a clock or a socket.

Gossip (`swim`) knows who is here and whose signature it is; the roster knows whose signatures
count. This is where the two meet: certificates that gossip misses are asked for over the stream,
what operators say is judged and then obeyed, and whoever calls is let in or sent away. The same
verbs as `Swim`; whatever gossip asks that can be answered here does not reach the driver.

It must not know datagrams, files or sockets: simulations drive it as the agent does.
"""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from cluster.errors import Malformed, PeerFault
from cluster.gossip import effects as gossip_effects
from cluster.gossip.effects import ChainsWanted, OperatorRecordHeard
from cluster.gossip.inputs import Input
from cluster.gossip.messages import Address, Application
from cluster.gossip.outbox import OPAQUE_BYTES_MAX
from cluster.gossip.swim import Swim
from cluster.gossip.view import GossipView
from cluster.identity.chains import NodeIdentity
from cluster.identity.operator_records import SignedRecord
from cluster.identity.refusals import Refused
from cluster.ids import NodeId, NodeName
from cluster.learned import NOTHING, Learned
from cluster.papers import (
    OFFER_MAX,
    Chain,
    Paper,
    PapersRequest,
    decode_paper,
    decode_papers,
    encode_paper,
    encode_wanted,
    read_wanted,
)
from cluster.roster import Roster

_OFFERS = 8
"""Members that a paper too large for a datagram is shown to; each does the same once."""
OFFERED_BYTES_MAX = 14 * 1024
"""With the marks it fits into one frame of the stream."""
OFFERS_BYTES_MAX = 48 * 1024
"""The same for an offer that names no marks."""
_SYNC_SECONDS = 20.0
"""Between two comparisons of the operators' log with some member: cuts heal, disks are restored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """Open a stream there, show who we are, and hand in the papers that come back.

    Without ids: all that we lack.
    """

    ask: Address
    node_ids: tuple[NodeId, ...] = ()
    offered: tuple[bytes, ...] = field(repr=False, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistPapers:
    """Keep these; the next life of this node is handed them."""

    papers: tuple[Paper, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSpoke:
    """An operator's record stands here from now on."""

    record: SignedRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    """An operator withdrew this node itself: nobody listens to it any more."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """Something that operators should look at; said once."""

    line: str


Effect: TypeAlias = (
    gossip_effects.Effect | Exchange | PersistPapers | OperatorSpoke | Withdrawn | Alarm
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerView:
    """What this node knows of its cluster at one instant."""

    gossip: GossipView
    identities: Mapping[NodeId, NodeIdentity]
    """Everybody who is in, by certificate; also those that gossip has not met."""
    withdrawn: Mapping[NodeId, str]
    shared_names: Mapping[NodeName, tuple[NodeId, ...]]
    waiting: tuple[NodeIdentity, ...]
    """Who has shown a certificate, and waits for an operator's word."""
    forgotten: frozenset[tuple[NodeName, NodeId]]
    """Names that operators have taken from a key."""
    alarms: tuple[str, ...]
    """Forks of the operators' log, admissions that do not stand: what holds until mended."""
    operator_records_count: int
    operator_records_waiting_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """What came of somebody calling over the stream."""

    effects: list[Effect]
    refused: Refused | None
    """None where the caller is in."""


class Peer:
    """One node of a cluster."""

    def __init__(self, *, swim: Swim, roster: Roster, own: NodeIdentity, rng: random.Random):
        self._swim = swim
        self._roster = roster
        self._own = own
        self._rng = rng
        self._sync_seconds = math.inf
        self._asked: dict[Address, float] = {}

    @property
    def roster(self) -> Roster:
        """Whose signatures count."""
        return self._roster

    def start(self, now: float, *, now_unix_seconds: int) -> list[Effect]:
        """Begin: believe what was on disk, admit ourselves if we are the first, knock at seeds."""
        effects: list[Effect] = list(self._swim.trust(self._roster.introductions(), None, now))
        for node_id, reason in self._roster.withdrawals().items():
            effects += self._exclude(node_id, reason, now)
        for record in self._roster.log.records:
            effects += self._relay(record, now)
        effects += self._obey(self._roster.found(now_unix_seconds=now_unix_seconds), None, now)
        effects += self._translate(self._swim.start(now), now)
        self._sync_seconds = now + _SYNC_SECONDS * self._rng.random()
        return effects

    def receive(self, came: Input, now: float) -> list[Effect]:
        """Something came from the network."""
        return self._translate(self._swim.receive(came, now), now)

    def advance(self, now: float) -> list[Effect]:
        """Time has passed."""
        effects = self._translate(self._swim.advance(now), now)
        if now >= self._sync_seconds and self._swim.deadline() is not None:
            self._sync_seconds = now + _SYNC_SECONDS * (0.75 + 0.5 * self._rng.random())
            effects += self._offer((), 1, now)
        return effects

    def deadline(self) -> float | None:
        """When `advance` is wanted; None once this node has left."""
        due = self._swim.deadline()
        return None if due is None else min(due, self._sync_seconds)

    def view(self, now: float) -> PeerView:
        """What this node knows of the others."""
        roster = self._roster
        return PeerView(
            gossip=self._swim.view(now),
            identities=roster.identities(),
            withdrawn=roster.withdrawals(),
            shared_names=roster.settlement.shared_names(roster.log.forgotten),
            waiting=roster.waiting(),
            forgotten=roster.log.forgotten,
            alarms=roster.standing_alarms(),
            operator_records_count=len(roster.log.records),
            operator_records_waiting_count=len(roster.log.waiting),
        )

    def is_here_at(self, address: Address) -> bool:
        """Whether a member that takes part says that it is there."""
        return self._swim.is_here_at(address)

    # -- the stream -------------------------------------------------------------------------------

    def meet(
        self,
        chain: Chain,
        address: Address | None,
        offered: Iterable[bytes],
        now: float,
        *,
        now_unix_seconds: int,
    ) -> Meeting:
        """Somebody who holds this chain's key calls, from where it says that it is to be found.

        Raises:
            Malformed: the chain is none.
        """
        learned = self._roster.learn(decode_papers(offered))
        welcomed, refused = self._roster.welcome(chain, now_unix_seconds=now_unix_seconds)
        source = None if refused else address
        effects = self._obey(learned.joined(welcomed), source, now)
        if refused is None and not learned.introduced and not welcomed.introduced:
            # An old acquaintance, who may have lost sight of us.
            effects += self._translate(self._swim.trust((), source, now), now)
        return Meeting(effects=effects, refused=refused)

    def identity_of(self, chain: Chain) -> NodeIdentity:
        """Who has shown a chain that was welcome.

        Raises:
            PeerFault: nobody who is in.
        """
        identity = self._roster.identity_by(chain)
        if identity is None:
            raise PeerFault("this certificate is not that of a member; `esnode cluster join`")
        return identity

    def give(self, request: PapersRequest) -> tuple[bytes, ...]:
        """The answer to somebody who is in; what proves this node is always part of it.

        What the asker has and this node lacks is asked back for.
        """
        asked = (*request.node_ids, self._own.node_id) if request.node_ids else ()
        given = self._roster.give(asked, request.marks)
        lacking = self._roster.dossiers.lacking(request.marks)
        return (*given, encode_wanted(lacking)) if lacking else given

    def offers_for(self, parts: Sequence[bytes]) -> list[PapersRequest]:
        """What to send on after an answer, for what it asked back."""
        offers: list[PapersRequest] = []
        batch: list[bytes] = []
        left_bytes = OFFERS_BYTES_MAX
        for paper in self._roster.dossiers.by_marks(read_wanted(parts)):
            if len(batch) >= OFFER_MAX or len(paper) > left_bytes:
                offers.append(PapersRequest(node_ids=(self._own.node_id,), offered=tuple(batch)))
                batch, left_bytes = [], OFFERS_BYTES_MAX
            batch.append(paper)
            left_bytes -= len(paper)
        if batch:
            offers.append(PapersRequest(node_ids=(self._own.node_id,), offered=tuple(batch)))
        return offers

    def give_records(self, request: PapersRequest) -> tuple[bytes, ...]:
        """The answer to somebody whom an operator has withdrawn: why."""
        return self._roster.give_records(request.marks)

    def request_for(self, exchange: Exchange) -> PapersRequest:
        """What to ask in an exchange."""
        offered: list[bytes] = []
        left_bytes = OFFERED_BYTES_MAX
        for paper in dict.fromkeys((*exchange.offered, *self._roster.own_papers())):
            left_bytes -= len(paper)
            if left_bytes < 0:
                break  # whoever lacks the admitter of our admitter asks for it
            offered.append(paper)
        return PapersRequest(
            node_ids=exchange.node_ids, marks=self._roster.marks(), offered=tuple(offered)
        )

    def hear_papers(
        self, parts: Sequence[bytes], source: Address | None, now: float
    ) -> list[Effect]:
        """Papers that came back from an exchange, or from this machine's operator."""
        learned = self._roster.learn(decode_papers(parts))
        effects = self._obey(learned, source, now)
        if not learned.introduced and source is not None:
            effects += self._translate(self._swim.trust((), source, now), now)
        return effects

    # -- requests ---------------------------------------------------------------------------------

    def hear_operator(
        self, record: SignedRecord, now: float
    ) -> tuple[list[Effect], Refused | None]:
        """A record from this machine's operator: kept and spread, or why it does not stand."""
        refused = self._roster.judge_record(record)
        if refused is not None:
            return [], refused
        addresses = {one.node_id: one.address for one in self._swim.view(now).members}
        learned = self._roster.learn([record])
        effects = self._obey(learned, None, now)
        records = tuple(reversed(self._roster.give_records()))
        for node_id, _ in learned.excluded:
            # The others ignore it from now on, so nobody else will tell it.
            if (address := addresses.get(node_id)) is not None:
                own = (self._own.node_id,)
                effects.append(Exchange(ask=address, node_ids=own, offered=records))
        return effects, None

    def show(self, papers: Iterable[Paper], now: float) -> list[Effect]:
        """Show papers of our own to some members, who pass them on: a renewed certificate."""
        kept = self._roster.learn(papers)
        effects = self._obey(kept, None, now)
        return effects + self._offer(self._roster.own_papers(), _OFFERS, now)

    def seek(self, seeds: Sequence[Address], now: float) -> list[Effect]:
        """Knock at these from now on."""
        return self._translate(self._swim.seek(seeds, now), now)

    def publish_state(self, state: bytes, now: float) -> list[Effect]:
        """Tell the rack how we are; once a second."""
        return self._translate(self._swim.publish_state(state, now), now)

    def publish_summary(self, payload: bytes, now: float) -> list[Effect]:
        """Tell the other racks how ours is."""
        return self._translate(self._swim.publish_summary(payload, now), now)

    def send_application(self, to: NodeId, message: Application, now: float) -> list[Effect]:
        """Send a message of the layer above; it may be lost.

        Raises:
            Misuse: it is too large for a datagram.
        """
        return self._translate(self._swim.send_application(to, message, now), now)

    def move(self, addresses: tuple[Address, ...], now: float) -> list[Effect]:
        """We are to be found somewhere else now."""
        return self._translate(self._swim.move(addresses, now), now)

    def leave(self, now: float) -> list[Effect]:
        """Say good-bye, and stay until some have heard it."""
        return self._translate(self._swim.leave(now), now)

    # -- machinery --------------------------------------------------------------------------------

    def _translate(self, effects: Iterable[gossip_effects.Effect], now: float) -> list[Effect]:
        """Answer what gossip asks and can be answered here."""
        translated: list[Effect] = []
        for effect in effects:
            match effect:
                case ChainsWanted(ask=ask, node_ids=node_ids):
                    translated.append(Exchange(ask=ask, node_ids=node_ids))
                case OperatorRecordHeard(record=record, source=source):
                    translated += self._hear_record(record, source, now)
                case _:
                    translated.append(effect)
        return translated

    def _hear_record(self, data: bytes, source: Address, now: float) -> list[Effect]:
        try:
            paper = decode_paper(data)
        except Malformed:
            return []
        if not isinstance(paper, SignedRecord):
            return []
        learned = self._roster.learn([paper])
        effects = self._obey(learned, None, now)
        is_waiting = any(one.hash == paper.hash for one in self._roster.log.waiting)
        if (learned is NOTHING or is_waiting) and now - self._asked.get(source, -math.inf) > 1.0:
            # Its signer or its predecessor is not known here: whoever sent it may know.
            if len(self._asked) > 1000:
                self._asked.clear()
            self._asked[source] = now
            effects.append(Exchange(ask=source, node_ids=(self._own.node_id,)))
        return effects

    def _obey(self, learned: Learned, source: Address | None, now: float) -> list[Effect]:
        """Do what follows from new papers: withdrawals first, then introductions."""
        effects: list[Effect] = []
        if learned.papers:
            effects.append(PersistPapers(papers=learned.papers))
        for record in learned.records:
            effects += self._relay(record, now)
            effects.append(OperatorSpoke(record=record))
        for node_id, reason in learned.excluded:
            effects += self._exclude(node_id, reason, now)
        for introduction in learned.readmitted:
            effects += self._translate(self._swim.readmit(introduction, now), now)
        if learned.introduced or (source is not None and learned.readmitted):
            introduced = (*learned.introduced, *learned.readmitted)
            effects += self._translate(self._swim.trust(introduced, source, now), now)
        effects += [Alarm(line=line) for line in learned.alarms]
        return effects

    def _exclude(self, node_id: NodeId, reason: str, now: float) -> list[Effect]:
        if node_id == self._own.node_id:
            return [Withdrawn(reason=reason)]
        return self._translate(self._swim.exclude(node_id, reason, now), now)

    def _relay(self, record: SignedRecord, now: float) -> list[Effect]:
        encoded = encode_paper(record)
        if len(encoded) <= OPAQUE_BYTES_MAX:
            return self._translate(self._swim.relay_operator_record(encoded, now), now)
        return self._offer((encoded,), _OFFERS, now)

    def _offer(self, offered: tuple[bytes, ...], count: int, now: float) -> list[Effect]:
        here = [one.address for one in self._swim.view(now).members if one.is_here and one.address]
        chosen = self._rng.sample(here, min(count, len(here)))
        own = (self._own.node_id,)
        return [Exchange(ask=address, node_ids=own, offered=offered) for address in chosen]
