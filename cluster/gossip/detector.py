"""Finds out who does not answer: SWIM's probing with Lifeguard's care.

Its own file because it holds the timers of failure detection and nothing of what is believed. Every
`probe_interval_seconds` one member is asked, which `targets` chooses. It gets a ping; after a
time-out that suits it a second one, while helpers ask for us; when the interval is over without a
sign of life it is accused. The answer of a target comes back under its own signature even through a
helper: a helper can be silent, but it cannot lie.

It must not know bytes, or how claims are weighed.
"""

import math
import random

from cluster.gossip.doubts import Doubts
from cluster.gossip.effects import Status
from cluster.gossip.health import LocalHealth
from cluster.gossip.members import Member, Members
from cluster.gossip.messages import (
    Address,
    Evidence,
    Message,
    Nack,
    Ping,
    PingRequest,
    Relayed,
)
from cluster.gossip.outbox import Outbox
from cluster.gossip.probe import Errand, Favour, Round
from cluster.gossip.records import Records
from cluster.gossip.settings import GossipSettings
from cluster.gossip.targets import Targets
from cluster.ids import NodeId

_AGAIN_RATIO_MAX = 0.6
"""Of the interval: helpers need the rest."""
_REMIND_SECONDS = 1.0
"""Between two attempts to reach one of those that this node accuses."""
_CLAIMS_SHOWN = 2
_FAVOURS_MAX = 64
_ERRANDS_MAX = 64


class Detector:
    """Asks members whether they are there."""

    def __init__(
        self,
        *,
        settings: GossipSettings,
        outbox: Outbox,
        members: Members,
        doubts: Doubts,
        records: Records,
        own_id: NodeId,
        rng: random.Random,
    ) -> None:
        self._settings = settings
        self._outbox = outbox
        self._members = members
        self._doubts = doubts
        self._records = records
        self._rng = rng
        self.health = LocalHealth(settings.health_max_score)
        self.hush_until_seconds = 0.0
        self.answered_seconds: float | None = None
        """When anybody last answered us, or when we began."""
        self._round: Round | None = None
        self._favours: dict[int, Favour] = {}
        self._errands: dict[int, Errand] = {}
        self._own_id = own_id
        self._targets = Targets(settings=settings, members=members, own_id=own_id, rng=rng)
        self._next_seconds = 0.0
        self._remind_seconds = math.inf

    def start(self, now: float) -> None:
        """Begin to probe, not all members at the same moment."""
        if self.answered_seconds is None:
            self.answered_seconds = now
        self._next_seconds = now + self._rng.random() * self._settings.probe_interval_seconds

    def begin_anew(self, now: float) -> None:
        """We have slept: what was asked before that proves nothing."""
        self._round = None
        self._favours.clear()
        self._errands.clear()
        self.hush_until_seconds = now + self._settings.hush_seconds
        self.start(now)

    def deadline(self) -> float:
        """When to be called next."""
        due = min(self._next_seconds, self._remind_seconds)
        if self._round is not None:
            due = min(due, self._round.due_seconds)
        for favour in self._favours.values():
            due = min(due, favour.nack_seconds)
        return due

    def advance(self, now: float) -> None:
        """Do what is due."""
        self._end_favours(now)
        current = self._round
        if current is not None and now >= current.due_seconds:
            if not current.is_again:
                self._ask_again(current, now)
            if now >= current.ends_seconds:
                self._end_round(current, now)
        if now >= self._next_seconds:
            self._begin_round(now)
        if now >= self._remind_seconds:
            self._remind(now)

    def run_errand(self, member: Member, extra: list[Message], now: float) -> int | None:
        """Ping without judging; the nonce, or None where the member has no address."""
        if member.address is None:
            return None
        if len(self._errands) >= _ERRANDS_MAX:
            self._errands.pop(next(iter(self._errands)))
        nonce = self._rng.getrandbits(64)
        self._errands[nonce] = Errand(target=member.node_id, sent_seconds=now)
        self._outbox.send(member.address, [self._ping(nonce, member), *claims(member), *extra])
        return nonce

    def hear_ack(self, nonce: int, sender: NodeId, datagram: bytes, now: float) -> bool:
        """An answer; whether it is to a question of ours."""
        favour = self._favours.get(nonce)
        if favour is not None and favour.target == sender:
            del self._favours[nonce]
            self._outbox.send(favour.reply_to, [Relayed(datagram=datagram)], has_news=False)
        current = self._round
        errand = self._errands.get(nonce)
        if errand is not None and errand.target == sender:
            del self._errands[nonce]
        elif current is not None and (current.nonce, current.target) == (nonce, sender):
            self._end_well(current, now)
        else:
            return False
        self._note_heard(sender, now)
        return True

    def awaited_through_helpers(self) -> NodeId | None:
        """Whose answer a helper may bring."""
        return None if self._round is None else self._round.target

    def hear_relayed_ack(self, nonce: int, now: float) -> bool:
        """The answer that a helper brought, whose signature was checked."""
        current = self._round
        if current is None or current.nonce != nonce:
            return False
        self._round = None
        self.health.probe_succeeded()
        self._note_heard(current.target, now)
        return True

    def hear_nack(self, nonce: int, helper: NodeId) -> None:
        """A helper could not reach it either."""
        if self._round is not None and self._round.nonce == nonce and helper in self._round.helpers:
            self._round.nacks[helper] = None

    def hear_request(
        self, request: PingRequest, asker: Member, reply_to: Address, now: float
    ) -> None:
        """Ask somebody for somebody else."""
        target = self._members.get(request.target)
        if target is None or target.address is None or len(self._favours) >= _FAVOURS_MAX:
            return
        # The address that we know, not the one in the request: we ask no strangers for anybody.
        self._favours[request.nonce] = Favour(
            asker=asker.node_id,
            reply_to=reply_to,
            target=target.node_id,
            address=target.address,
            nack_seconds=now + self._settings.probe_timeout_max_seconds,
        )
        ping = self._ping(request.nonce, target, is_bare=True)
        self._outbox.send(target.address, [ping, *claims(target)])

    def hear_refused(self, address: Address, now: float) -> None:
        """Nobody listens there, says the machine itself. Believed only if we have just asked."""
        current = self._round
        if current is not None and current.address == address and not current.is_refused:
            current.is_refused = True
            self._accuse(current.target, Evidence.REFUSED, now, now)
            if not current.is_again:
                self._ask_again(current, now)
        for nonce, favour in list(self._favours.items()):
            if favour.address == address:
                self._accuse(favour.target, Evidence.REFUSED, now, now)
                self._nack(nonce, favour)

    def _begin_round(self, now: float) -> None:
        interval = self._settings.probe_interval_seconds * self.health.factor
        self._next_seconds = now + interval
        target = self._targets.next(now)
        if target is None or target.address is None:
            return
        timeout = target.round_trips.timeout_seconds(self._settings) * self.health.factor
        self._round = Round(
            target=target.node_id,
            version=target.version,
            address=target.address,
            nonce=self._rng.getrandbits(64),
            began_seconds=now,
            again_seconds=now + min(timeout, _AGAIN_RATIO_MAX * interval),
            ends_seconds=now + interval,
        )
        self._outbox.send(target.address, [self._ping(self._round.nonce, target), *claims(target)])

    def _ask_again(self, current: Round, now: float) -> None:
        current.is_again = True
        target = self._members.get(current.target)
        if target is None:
            return
        target.misses_count += 1
        for helper in self._helpers(target):
            if helper.address is not None:
                current.helpers[helper.node_id] = None
                request = PingRequest(
                    nonce=current.nonce, target=current.target, address=current.address
                )
                self._outbox.send(helper.address, [request])
        if not current.is_refused:
            self._outbox.send(current.address, [self._ping(current.nonce, target), *claims(target)])

    def _helpers(self, target: Member) -> list[Member]:
        """Some who take part, rather not those in doubt: half may have gone at once."""
        count = self._settings.helpers_count
        drawn = self._members.draw(self._rng, 3 * count, target.node_id)
        return sorted(drawn, key=_is_doubtful)[:count]

    def _end_round(self, current: Round, now: float) -> None:
        self._round = None
        target = self._members.get(current.target)
        if target is None or now < self.hush_until_seconds:
            return
        heard = target.heard_seconds
        if heard is not None and heard > current.began_seconds:
            return
        if target.version != current.version:
            return  # it has spoken since
        # A helper that has come into doubt meanwhile says nothing about us by its silence.
        asked = [one for one in current.helpers if self._is_sound(one)]
        missing = [one for one in asked if one not in current.nacks]
        self.health.probe_failed(
            helpers_asked_count=len(current.helpers),
            nacks_count=len(current.helpers) - len(missing),
        )
        if not current.is_refused:
            self._accuse(current.target, Evidence.SILENCE, current.began_seconds, now)

    def _is_sound(self, node_id: NodeId) -> bool:
        member = self._members.get(node_id)
        return member is not None and not _is_doubtful(member)

    def _end_well(self, current: Round, now: float) -> None:
        self._round = None
        self.health.probe_succeeded()
        target = self._members.get(current.target)
        if target is not None:
            target.misses_count = 0
            if not current.is_again:
                target.round_trips.add(now - current.began_seconds)

    def _note_heard(self, node_id: NodeId, now: float) -> None:
        self.answered_seconds = now
        member = self._members.get(node_id)
        if member is not None:
            member.heard_seconds = now

    def _accuse(self, node_id: NodeId, evidence: Evidence, began: float, now: float) -> None:
        member = self._members.get(node_id)
        if member is not None and now >= self.hush_until_seconds:
            self._doubts.accuse(member, evidence, began, now)
            self._remind_seconds = min(self._remind_seconds, now + _REMIND_SECONDS)

    def _remind(self, now: float) -> None:
        """Tell one that this node accuses so itself: the news of it may never have come there."""
        accused = [
            one
            for one in self._members.suspects
            if one.suspicion is not None and self._own_id in one.suspicion.accusers
        ]
        self._remind_seconds = now + _REMIND_SECONDS if accused else math.inf
        if accused:
            self.run_errand(self._rng.choice(accused), [], now)

    def _end_favours(self, now: float) -> None:
        for nonce, favour in list(self._favours.items()):
            if now >= favour.nack_seconds:
                self._nack(nonce, favour)

    def _nack(self, nonce: int, favour: Favour) -> None:
        del self._favours[nonce]
        self._outbox.send(favour.reply_to, [Nack(nonce=nonce)])

    def _ping(self, nonce: int, target: Member, *, is_bare: bool = False) -> Ping:
        return Ping(
            nonce=nonce,
            target=target.node_id,
            view_digest=self._records.digest,
            is_bare=is_bare,
        )


def claims(member: Member) -> list[Message]:
    """What is held against a member, to be shown to it so that it can refute."""
    return [*list(member.claims.values())[-_CLAIMS_SHOWN:]]


def _is_doubtful(member: Member) -> bool:
    return member.status is not Status.ALIVE
