"""Stories of what operators decide: who may come, and who has to go."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cluster.gossip.effects import Status
from cluster.gossip.envelope import Reason
from cluster.gossip.messages import Version
from cluster.identity.operator_records import NodeApproved, NodeRevoked
from simulations import faults
from simulations.forgery import datagram, member_record
from simulations.node import Node
from simulations.sightings import HERE, AllSee, status_of
from simulations.stage import Stage

_AGREE_SECONDS = 40.0
"""Two nodes compare their papers every 20 s at the latest, if nothing else tells them to."""
_CUT_SECONDS = 2.0
_KNOCKING_SECONDS = 8.0
_INSISTED_COUNT = 50
_INSIST_SECONDS = 0.1


def revocation(stage: Stage) -> None:
    """A member is revoked and its key used further, while a tenth is lost and one node is away."""
    fleet = stage.settle()
    bad, lone = stage.pick(2)
    others = stage.others(bad, lone)
    fleet.network.change(loss_ratio=0.1)
    stage.checkers.excuse(bad, lone)
    faults.cut_off(fleet, [lone])

    fleet.order(others[0], NodeRevoked(node_id=bad.node_id))
    told = stage.demand(
        "everybody ignores it", _Shows(others, bad, Status.REMOVED), within_seconds=1.0
    )
    stage.demand("it knows itself, and ends", lambda: bad.withdrawn is not None, within_seconds=4.0)
    _insist(stage, bad, others)
    heard_away = lone.knows_of(bad.node_id) is Status.REMOVED
    stage.require(not heard_away, "the node that was cut off cannot have heard of it")
    fleet.network.heal()
    back = stage.demand(
        "the one that was away knows it", _Shows([lone], bad, Status.REMOVED), within_seconds=10.0
    )
    fleet.network.change(loss_ratio=0.0)
    fleet.run_for(5.0)

    stage.measure(
        all_ignore_it_seconds=told,
        who_was_away_knows_seconds=back,
        refused_total=sum(one.told.rejected[Reason.EXCLUDED] for one in others),
    )


def _insist(stage: Stage, bad: Node, others: Sequence[Node]) -> None:
    """Whoever has its key goes on in its name."""
    for number in range(_INSISTED_COUNT):
        record = member_record(bad, Version(epoch=bad.epoch + 1, sequence=number))
        data = datagram([record], bad.node_id, signer=bad.signer, version=record.version)
        stage.fleet.inject(stage.chance.choice(others), data, source=bad.address)
        stage.fleet.run_for(_INSIST_SECONDS)
    shown = sum(status_of(stage.fleet, one, bad) in HERE for one in others)
    stage.require(shown == 0, f"{shown} nodes show one that was revoked and goes on")


def invites(stage: Stage) -> None:
    """One place for two that knock on both sides of a cut; an invite that ended; an approval."""
    fleet = stage.build()
    office = fleet.office
    assert office is not None
    members, (one, other, late, asking) = fleet.nodes[:-4], fleet.nodes[-4:]
    fleet.begin_old(members)
    fleet.run_for(4.0)
    rack = asking.introduction.rack

    rivals = _compete(stage, members, one, other)
    loser = rivals.loser
    stage.checkers.excuse(loser)
    ended = office.invite(rack, until_unix_seconds=fleet.now_unix_seconds - 1)
    waiting = office.invite(rack, needs_approval=True)
    for node, invite in ((late, ended), (asking, waiting)):
        fleet.enrol(node, invite)
        stage.checkers.bar(node)
        fleet.start(node, members[:3])
    fleet.run_for(_KNOCKING_SECONDS)
    shown = sum(status_of(fleet, mate, loser) in HERE for mate in members)
    stage.require(shown == 0, f"the flagged node is shown by {shown} members")
    for node in (late, asking):
        stage.require(bool(node.told.refusals), f"nobody told {node.name} why it is not in")

    took: dict[str, float | None] = {}
    for word, node, outside in (("waiting", asking, (late, loser)), ("flagged", loser, (late,))):
        stage.checkers.unbar(node)
        fleet.order(
            members[-1],
            NodeApproved(node_id=node.node_id, invite_serial=node.identity.rights.serial),
        )
        took[word] = stage.demand(
            f"all see the {word} one, for which an operator spoke",
            AllSee(fleet, [node], [one for one in fleet.nodes if one not in (node, *outside)]),
            within_seconds=_AGREE_SECONDS,
        )
    stage.checkers.vouch(loser)
    insiders = stage.others(late)
    stage.demand("all see all", AllSee(fleet, insiders), within_seconds=_AGREE_SECONDS)
    agreed = _Agree(insiders, insiders)
    stage.demand("all take the same for members", agreed, within_seconds=_AGREE_SECONDS)
    stage.demand("no alarm is left", lambda: not any(_alarms(insiders)), within_seconds=5.0)

    stage.measure(
        one_of_two_seconds=rivals.took_seconds,
        flagged_shown_by_total=shown,
        approved_waiting_seconds=took["waiting"],
        approved_flagged_seconds=took["flagged"],
        refusals_total=sum(len(node.told.refusals) for node in fleet.nodes),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rivals:
    """What became of two nodes and one place."""

    loser: Node
    took_seconds: float | None


def _compete(stage: Stage, members: Sequence[Node], one: Node, other: Node) -> _Rivals:
    """Two come at once by an invite for one, each to a half that cannot hear of the other."""
    fleet, half = stage.fleet, len(members) // 2
    assert fleet.office is not None
    invite = fleet.office.invite(one.introduction.rack, uses=1)
    faults.cut_off(fleet, (*members[half:], other))
    for node, mates in ((one, members[:half]), (other, members[half:])):
        fleet.enrol(node, invite)
        fleet.start(node, mates[:3])
    fleet.run_for(_CUT_SECONDS)
    for node, mates in ((one, members[:half]), (other, members[half:])):
        let_in = any(mate.peer.roster.identity_of(node.node_id) for mate in mates)
        stage.require(let_in, f"{node.name} was not let in by those whom it could reach")

    fleet.network.heal()
    insiders = (*members, one, other)
    outcomes = {
        loser: _Agree(insiders, [node for node in insiders if node is not loser])
        for loser in (other, one)
    }
    took = stage.demand(
        "all take one of the two for a member",
        lambda: any(agree() for agree in outcomes.values()),
        within_seconds=_AGREE_SECONDS,
    )
    loser = next((loser for loser, agree in outcomes.items() if agree()), other)
    stage.demand(
        f"all report {loser.name}, for which there was no place",
        lambda: all(loser.name in line for line in _alarms(insiders)),
        within_seconds=_AGREE_SECONDS,
    )
    return _Rivals(loser=loser, took_seconds=took)


class _Shows:
    """Whether all of these have somebody for this."""

    def __init__(self, observers: list[Node], subject: Node, status: Status) -> None:
        self._observers, self._subject, self._status = observers, subject.node_id, status

    def __call__(self) -> bool:
        return all(one.knows_of(self._subject) is self._status for one in self._observers)


class _Agree:
    """Whether all of these take the same nodes, and nobody else, for members."""

    def __init__(self, observers: Iterable[Node], members: Iterable[Node]) -> None:
        self._observers = tuple(observers)
        self._members = {node.node_id: None for node in members}

    def __call__(self) -> bool:
        return all(
            one.peer.roster.identities().keys() == self._members.keys() for one in self._observers
        )


def _alarms(nodes: Iterable[Node]) -> Iterator[str]:
    """What each of these has to report to operators, in one line; empty where it is nothing."""
    for node in nodes:
        yield "; ".join(node.peer.roster.standing_alarms())
