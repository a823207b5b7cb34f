"""Whoever lies, repeats, floods or contradicts itself: what it costs, and that nobody else pays."""

import random
from collections import Counter

import pytest

from cluster.gossip.effects import Status
from cluster.gossip.envelope import Reason
from cluster.gossip.inputs import Refused
from cluster.gossip.introduction import Introduction
from cluster.gossip.messages import (
    Address,
    Application,
    Kind,
    MemberRecord,
    Message,
    Ping,
    Version,
)
from cluster.gossip.statements import member_body
from cluster.ids import ClusterId, NodeId
from cluster.signatures import SIGNATURE_BYTES
from simulations import faults
from simulations.forgery import claim, datagram, forged, member_record, statement
from simulations.sightings import AllSee, changes_to, status_of, view_of
from tests.gossip_stories import joined

OTHER_CLUSTER = ClusterId(b"some-other-one!!")


def test_a_record_that_a_member_forges_for_another_changes_nothing() -> None:
    fleet = joined(6)
    victim, thief, observer = fleet.nodes[1], fleet.nodes[2], fleet.nodes[3]
    record = MemberRecord(
        name=victim.introduction.name, rack=victim.introduction.rack, addresses=(thief.address,)
    )
    own = statement(Kind.MEMBER, Version(epoch=9, sequence=9), member_body(record), thief.signer)
    raised = forged(own, victim.node_id)

    fleet.inject(observer, datagram([raised], thief.node_id))

    seen = view_of(fleet, observer).get(victim.node_id)
    assert seen is not None
    assert seen.version == Version(epoch=1, sequence=1)
    assert observer.told.rejected[Reason.SIGNATURE] == 1


def test_a_member_cannot_raise_the_version_of_another_by_accusing_it() -> None:
    fleet = joined(6)
    victim, thief = fleet.nodes[1], fleet.nodes[2]
    high = Version(epoch=2**64 - 1, sequence=2**64 - 1)

    for node in fleet.nodes:
        if node is not thief:
            fleet.inject(node, datagram([claim(thief, victim, high)], thief.node_id))
    fleet.run_for(2.0)

    assert {status_of(fleet, node, victim) for node in fleet.nodes if node is not victim} == {
        Status.ALIVE
    }
    assert view_of(fleet, victim).version == Version(epoch=1, sequence=1)


def test_one_liar_makes_nobody_fail() -> None:
    fleet = joined(10)
    liar, victim = fleet.nodes[2], fleet.nodes[1]

    for kind in (Kind.SUSPECT, Kind.FAILED):
        lie = claim(liar, victim, view_of(fleet, victim).version, kind)
        for node in fleet.nodes:
            fleet.inject(node, datagram([lie], liar.node_id))
    fleet.run_for(15.0)

    assert changes_to(fleet, Status.FAILED) == []
    assert {status_of(fleet, node, victim) for node in fleet.nodes if node is not victim} == {
        Status.ALIVE
    }


def test_an_accusation_is_answered_by_the_accused_with_a_higher_version() -> None:
    fleet = joined(10)
    liar, victim = fleet.nodes[2], fleet.nodes[1]
    before = view_of(fleet, victim).version

    lie = claim(liar, victim, before)
    fleet.inject(fleet.nodes[5], datagram([lie], liar.node_id))
    fleet.run_for(0.5)

    assert view_of(fleet, victim).version == before.next()
    assert all(
        seen is not None and seen.version == before.next()
        for node in fleet.nodes
        if node is not victim
        for seen in [view_of(fleet, node).get(victim.node_id)]
    )


def test_whoever_accuses_more_than_half_is_not_heard_any_more() -> None:
    fleet = joined(10)
    liar, observer = fleet.nodes[2], fleet.nodes[5]
    lies: list[Message] = [
        claim(liar, victim, Version(epoch=1, sequence=1), Kind.FAILED)
        for victim in fleet.nodes
        if victim not in (liar, observer)
    ]

    for lie in lies:
        fleet.inject(observer, datagram([lie], liar.node_id))

    suspects = [one for one in view_of(fleet, observer).members if one.status is Status.SUSPECT]
    assert len(suspects) == 5


def test_a_repeated_datagram_is_refused_before_its_signature_is_looked_at() -> None:
    fleet = joined(3)
    observer = fleet.nodes[0]
    taken: list[bytes] = []
    fleet.hooks.sent.append(
        lambda _, to, data: taken.append(data) if to == observer.address else None
    )
    fleet.run_for(2.0)
    signed = [data for data in taken if data[0] == 0xE1]
    before = view_of(fleet, observer).checks_total

    for data in signed:
        fleet.inject(observer, data)

    assert observer.told.rejected[Reason.REPLAYED] == len(signed) > 0
    assert view_of(fleet, observer).checks_total == before


def test_an_observer_that_restarts_cannot_be_fed_the_past() -> None:
    fleet = joined(4)
    observer, subject = fleet.nodes[0], fleet.nodes[1]
    old = member_record(subject, Version(epoch=1, sequence=1))
    fleet.ask(subject, lambda core, now: core.move((Address("10.0.0.1:1"),), now))
    fleet.run_for(40.0)
    for node in fleet.nodes:
        faults.crash(node, is_host_up=True)

    fleet.start(observer)
    fleet.introduce_all()
    fleet.inject(observer, datagram([old], subject.node_id))

    assert observer.told.rejected[Reason.REPLAYED] == 1
    assert view_of(fleet, observer).get(subject.node_id) is None


def test_an_application_message_is_delivered_once_and_never_from_a_recording() -> None:
    fleet = joined(4)
    sender, observer = fleet.nodes[1], fleet.nodes[0]
    taken: list[bytes] = []
    fleet.hooks.sent.append(
        lambda _, to, data: taken.append(data) if to == observer.address else None
    )
    message = Application(channel=1, priority=0, payload=b"cap me at 300 W")
    fleet.ask(sender, lambda core, now: core.send_application(observer.node_id, message, now))
    fleet.run_for(0.1)
    recorded = taken[0]
    first = [one.message for one in observer.told.delivered]

    faults.crash(observer, is_host_up=True)
    observer.told.delivered.clear()
    fleet.start(observer, [sender])
    fleet.introduce_all()
    fleet.inject(observer, recorded, sender.address)
    fleet.run_for(3.0)
    fleet.inject(observer, recorded, sender.address)

    assert first == [message]
    assert observer.told.delivered == []
    assert observer.told.rejected[Reason.UNANCHORED] == 1
    fleet.ask(sender, lambda core, now: core.send_application(observer.node_id, message, now))
    fleet.run_for(0.1)
    assert [one.message for one in observer.told.delivered] == [message]


def test_two_contents_under_one_version_are_proof_quarantined_and_told_to_all() -> None:
    fleet = joined(6)
    twin = fleet.nodes[1]
    version = Version(epoch=1, sequence=2)
    other = statement(
        Kind.MEMBER,
        version,
        member_body(
            MemberRecord(
                name=twin.introduction.name,
                rack=twin.introduction.rack,
                addresses=(Address("10.6.6.6:7947"),),
            )
        ),
        twin.signer,
    )
    faults.crash(twin, is_host_up=False)

    fleet.inject(fleet.nodes[2], datagram([member_record(twin, version)], twin.node_id))
    fleet.inject(fleet.nodes[3], datagram([other], twin.node_id))
    fleet.run_for(3.0)

    observers = [node for node in fleet.nodes if node is not twin]
    assert all(len(node.told.equivocated) == 1 for node in observers)
    assert {len(node.told.equivocated[0].proof) for node in observers} == {2}
    seen = [view_of(fleet, node).get(twin.node_id) for node in observers]
    assert all(one is not None and one.is_quarantined for one in seen)
    assert len({view_of(fleet, node).digest for node in observers}) == 1


def test_a_record_that_contradicts_its_certificate_is_dropped() -> None:
    fleet = joined(3)
    mover, observer = fleet.nodes[1], fleet.nodes[0]
    lie = member_record(mover, Version(epoch=1, sequence=5), rack="r99")

    fleet.inject(observer, datagram([lie], mover.node_id))

    assert observer.told.rejected[Reason.CONTRADICTS_CERTIFICATE] == 1


def test_a_removed_node_is_ignored_at_once_and_by_all_within_a_second() -> None:
    fleet = joined(50)
    bad = fleet.nodes[4]
    others = [node for node in fleet.nodes if node is not bad]
    record = b"an operator's record"
    fleet.removals[record] = bad.node_id
    fleet.network.change(loss_ratio=0.1)

    fleet.obey(fleet.nodes[0], record)
    fleet.run_for(1.0)
    told = [status_of(fleet, node, bad) for node in others]
    heard = Counter(node.told.rejected[Reason.EXCLUDED] > 0 for node in others)
    fleet.run_for(3.0)

    assert told == [Status.REMOVED] * 49
    assert heard[True] > 0
    assert {status_of(fleet, node, bad) for node in others} == {Status.REMOVED}
    assert len({view_of(fleet, node).digest for node in others}) == 1


def test_a_node_that_was_cut_off_when_one_was_removed_is_told_when_it_is_back() -> None:
    fleet = joined(10)
    lone, bad = fleet.nodes[7], fleet.nodes[4]
    record = b"an operator's record"
    fleet.removals[record] = bad.node_id
    faults.cut_off(fleet, [lone])

    fleet.obey(fleet.nodes[0], record)
    fleet.run_for(4.0)
    before = status_of(fleet, lone, bad)
    fleet.network.heal()
    fleet.run_for(3.0)

    assert before is not Status.REMOVED
    assert status_of(fleet, lone, bad) is Status.REMOVED


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", Reason.LENGTH, id="empty"),
        pytest.param(bytes(1401), Reason.LENGTH, id="too-long"),
        pytest.param(bytes(200), Reason.FORMAT, id="another-format"),
        pytest.param(
            datagram([], NodeId(bytes(16)), cluster_id=OTHER_CLUSTER),
            Reason.CLUSTER,
            id="another-cluster",
        ),
        pytest.param(datagram([], NodeId(bytes(16))), Reason.UNKNOWN, id="a-stranger"),
    ],
)
def test_what_is_not_ours_is_dropped_without_a_look_at_any_signature(
    data: bytes, reason: Reason
) -> None:
    fleet = joined(2)
    before = view_of(fleet, fleet.nodes[0]).checks_total

    fleet.inject(fleet.nodes[0], data)

    assert fleet.nodes[0].told.rejected[reason] == 1
    assert view_of(fleet, fleet.nodes[0]).checks_total == before


def test_a_question_under_no_signature_is_not_answered() -> None:
    fleet = joined(2)
    node, other = fleet.nodes
    ping = Ping(nonce=1, target=node.node_id, view_digest=0)

    fleet.inject(node, datagram([ping], other.node_id))

    assert node.told.rejected[Reason.NOT_ALLOWED] == 1


def test_a_flood_of_junk_costs_a_bounded_number_of_checks_and_others_are_still_heard() -> None:
    fleet = joined(3)
    node, other = fleet.nodes[0], fleet.nodes[1]
    chance = random.Random(5)
    before = view_of(fleet, node).checks_total

    for count in range(5000):
        junk = datagram([], other.node_id, signer=other.signer)[:-SIGNATURE_BYTES]
        fleet.inject(node, junk + chance.randbytes(SIGNATURE_BYTES))
        if count % 500 == 0:
            fleet.run_for(0.1)

    assert view_of(fleet, node).checks_total - before <= 20 + 20 * 1.0 + 60
    assert node.told.rejected[Reason.BUDGET] > 4900
    fleet.run_for(2.0)
    assert changes_to(fleet, Status.FAILED) == []
    assert status_of(fleet, node, other) is Status.ALIVE


def test_evidence_of_a_refusal_counts_only_where_it_was_asked_for() -> None:
    fleet = joined(3)
    node = fleet.nodes[0]

    fleet.run_for(0.3)
    fleet.ask(node, lambda core, now: core.receive(Refused(address=Address("10.7.7.7:1")), now))

    assert changes_to(fleet, Status.SUSPECT) == []


def test_a_certificate_for_ourselves_from_elsewhere_is_passed_over() -> None:
    fleet = joined(2)
    node = fleet.nodes[0]
    other = Introduction(
        node_id=node.node_id,
        public_key=bytes(32),
        name=node.introduction.name,
        rack=node.introduction.rack,
    )

    fleet.ask(node, lambda core, now: core.trust([other], fleet.nodes[1].address, now))
    fleet.run_for(2.0)

    assert AllSee(fleet, fleet.nodes)()
