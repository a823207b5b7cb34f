"""Stories of whoever lies, repeats or pretends to be somebody: that nobody else pays for it."""

from collections.abc import Callable

from cluster.gossip.effects import Status
from cluster.gossip.envelope import Reason
from cluster.gossip.messages import Address, Application, Kind, Statement, Version
from simulations import faults
from simulations.forgery import claim, datagram, forged, member_record
from simulations.node import Node
from simulations.sightings import AllSee, status_of, view_of
from simulations.stage import Stage

_EVERY_SECONDS = 0.1
_ATTACK_SECONDS = 20.0
_RECORDED_MAX = 20_000
_EPOCHS_MAX = 20
"""Two machines with one key outdo each other, but ever more slowly."""
_HIGH = Version(epoch=2**63, sequence=2**63)


def forger(stage: Stage) -> None:
    """A member tells lies in the names of others, raises their versions, accuses everybody."""
    fleet = stage.settle()
    liar = stage.pick(1)[0]
    others = stage.others(liar)
    began = fleet.now
    stage.checkers.excuse(liar)

    def lie() -> None:
        victim, target = stage.chance.sample(others, 2)
        numbers = stage.chance.randrange(1000, 10**6)
        lies: list[Statement] = [
            forged(member_record(victim, _HIGH, signer=liar.signer), victim.node_id),
            forged(claim(liar, target, _HIGH), victim.node_id),
            claim(liar, victim, _HIGH, Kind.FAILED, numbers),
            claim(liar, victim, _current(stage, liar, victim), Kind.FAILED, numbers + 1),
        ]
        fleet.inject(target, datagram(lies, liar.node_id), source=liar.address)

    _repeat(stage, lie)
    fleet.run_for(8.0)
    took = stage.demand("all see all", AllSee(fleet, others), within_seconds=5.0)

    failed = stage.count_changes(Status.FAILED, began)
    stage.require(failed == 0, f"lies made somebody fail {failed} times")
    stage.measure(
        failed_total=failed,
        suspicions_total=stage.count_changes(Status.SUSPECT, began),
        false_signatures_total=sum(node.told.rejected[Reason.SIGNATURE] for node in others),
        dropped_unread_total=sum(node.told.rejected[Reason.BUDGET] for node in others),
        all_see_all_seconds=took,
    )


def replayer(stage: Stage) -> None:
    """Somebody records all datagrams and sends them again, also to nodes that have restarted."""
    fleet = stage.settle()
    began = fleet.now
    recorded: list[tuple[Address, Address, bytes]] = []

    def record(node: Node, to: Address, data: bytes) -> None:
        if len(recorded) < _RECORDED_MAX:
            recorded.append((node.address, to, data))

    def again() -> None:
        for _ in range(20):
            source, to, data = stage.chance.choice(recorded)
            fleet.inject(fleet.by_address[to], data, source=source)

    fleet.hooks.sent.append(record)
    sender, receiver = stage.pick(2)
    words = [f"cap {number}".encode() for number in range(5)]
    opening = b"hello"
    # The first may be dropped: the receiver has not heard an answer of the sender yet.
    for word in (opening, *words):
        message = Application(channel=1, priority=0, payload=word)
        fleet.ask(
            sender,
            lambda core, now, message=message: core.send_application(  # type: ignore[misc]  # bound early
                receiver.node_id, message, now
            ),
        )
        fleet.run_for(1.0)
    _repeat(stage, again)
    stage.checkers.excuse(receiver)
    faults.restart(fleet, receiver)
    _repeat(stage, again)
    stage.checkers.vouch(receiver)
    took = stage.demand("all see all", AllSee(fleet, fleet.nodes), within_seconds=5.0)

    heard = [one.message.payload for one in receiver.told.delivered]
    heard = heard[1:] if heard[:1] == [opening] else heard
    stage.require(heard == words, f"of {len(words)} messages {len(heard)} were delivered")
    failed = stage.count_changes(Status.FAILED, began)
    stage.require(failed == 0, f"recordings made somebody fail {failed} times")
    stage.measure(
        recorded_total=len(recorded),
        refused_as_replayed_total=sum(one.told.rejected[Reason.REPLAYED] for one in fleet.nodes),
        delivered_total=len(heard),
        suspicions_total=stage.count_changes(Status.SUSPECT, began),
        all_see_all_seconds=took,
    )


def cloned_node(stage: Stage) -> None:
    """A disk is copied: two machines with one key, one epoch and two addresses run side by side."""
    fleet = stage.settle()
    original = stage.pick(1)[0]
    others = stage.others(original)
    began = fleet.now

    stage.checkers.excuse(original)
    twin = faults.clone(fleet, original, Address("10.99.0.1:7947"))
    fleet.start(twin, [others[0]])
    told = stage.demand(
        "somebody reports it",
        lambda: any(one.told.equivocated for one in fleet.nodes),
        within_seconds=10.0,
    )
    fleet.run_for(20.0)

    well = sum(status_of(fleet, one, original) is Status.ALIVE for one in others)
    stage.require(well == 0, f"shown as well by {well} of {len(others)}")
    epoch = max(original.epoch, twin.epoch)
    stage.require(epoch <= _EPOCHS_MAX, f"the two have outdone each other up to epoch {epoch}")
    failed = sum(
        change.after is Status.FAILED and change.node_id != original.node_id
        for one in others
        for when, change in one.told.changes
        if when >= began
    )
    stage.require(failed == 0, f"others were given up {failed} times")
    stage.measure(
        reported_seconds=told,
        reported_by_ratio=sum(bool(one.told.equivocated) for one in others) / len(others),
        shown_well_by=well,
        epoch_of_original=original.epoch,
        epoch_of_twin=twin.epoch,
    )


def _repeat(stage: Stage, attack: Callable[[], None]) -> None:
    for _ in range(round(_ATTACK_SECONDS / _EVERY_SECONDS)):
        attack()
        stage.fleet.run_for(_EVERY_SECONDS)


def _current(stage: Stage, observer: Node, subject: Node) -> Version:
    member = view_of(stage.fleet, observer).get(subject.node_id)
    return Version(epoch=1, sequence=1) if member is None else member.version
