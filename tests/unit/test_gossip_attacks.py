"""Whoever lies, repeats, floods or contradicts itself: what it costs, and that nobody else pays."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from cluster.codec import Value
from cluster.gossip.effects import Status
from cluster.gossip.envelope import Reason, seal
from cluster.gossip.inputs import Refused
from cluster.gossip.members import Introduction
from cluster.gossip.messages import (
    Address,
    Application,
    Claim,
    Kind,
    MemberRecord,
    Message,
    Ping,
    Statement,
    Version,
)
from cluster.gossip.statements import claim_body, member_body, sign_statement
from cluster.gossip.view import GossipView
from cluster.gossip.wire import encode_message, join_messages
from cluster.ids import ClusterId, NodeId
from cluster.signatures import SIGNATURE_BYTES, Signer
from tests.gossip_stories import joined
from tests.gossip_world import CLUSTER, Node, World

OTHER_CLUSTER = ClusterId(b"some-other-one!!")


def view(world: World, node: Node) -> GossipView:
    assert node.swim is not None
    return node.swim.view(world.now)


def datagram(
    messages: Sequence[Message],
    sender: NodeId,
    *,
    signer: Signer | None = None,
    version: Version | None = None,
    cluster_id: ClusterId = CLUSTER,
) -> bytes:
    return seal(
        join_messages(encode_message(one) for one in messages),
        cluster_id=cluster_id,
        sender=sender,
        version=version or Version(epoch=1, sequence=10**6),
        signer=signer,
    )


def statement(kind: Kind, version: Version, body: Sequence[Value], signer: Signer) -> Statement:
    return sign_statement(kind, version, body, cluster_id=CLUSTER, signer=signer)


def member_record(node: Node, version: Version, *, rack: str | None = None) -> Statement:
    record = MemberRecord(
        name=node.introduction.name,
        rack=node.introduction.rack if rack is None else type(node.introduction.rack)(rack),
        addresses=(node.address,),
    )
    return statement(Kind.MEMBER, version, member_body(record), node.signer)


def forged(real: Statement, signer: NodeId) -> Statement:
    """The same bytes, claiming to be somebody else's."""
    encoded = real.encoded[:1] + bytes(signer) + real.encoded[17:]
    return Statement(
        kind=real.kind, signer=signer, version=real.version, body=real.body, encoded=encoded
    )


def claim(by: Node, about: Node, version: Version, kind: Kind = Kind.SUSPECT) -> Statement:
    body = claim_body(Claim(subject=about.node_id, subject_version=version))
    return statement(kind, Version(epoch=1, sequence=999), body, by.signer)


def test_a_record_that_a_member_forges_for_another_changes_nothing() -> None:
    world = joined(6)
    victim, thief, observer = world.nodes[1], world.nodes[2], world.nodes[3]
    record = MemberRecord(
        name=victim.introduction.name, rack=victim.introduction.rack, addresses=(thief.address,)
    )
    own = statement(Kind.MEMBER, Version(epoch=9, sequence=9), member_body(record), thief.signer)
    raised = forged(own, victim.node_id)

    world.inject(observer, datagram([raised], thief.node_id))

    seen = view(world, observer).get(victim.node_id)
    assert seen is not None
    assert seen.version == Version(epoch=1, sequence=1)
    assert observer.rejected[Reason.SIGNATURE] == 1


def test_a_member_cannot_raise_the_version_of_another_by_accusing_it() -> None:
    world = joined(6)
    victim, thief = world.nodes[1], world.nodes[2]
    high = Version(epoch=2**64 - 1, sequence=2**64 - 1)

    for node in world.nodes:
        if node is not thief:
            world.inject(node, datagram([claim(thief, victim, high)], thief.node_id))
    world.run_for(2.0)

    assert {world.status(node, victim) for node in world.nodes if node is not victim} == {
        Status.ALIVE
    }
    assert view(world, victim).version == Version(epoch=1, sequence=1)


def test_one_liar_makes_nobody_fail() -> None:
    world = joined(10)
    liar, victim = world.nodes[2], world.nodes[1]

    for kind in (Kind.SUSPECT, Kind.FAILED):
        lie = claim(liar, victim, view(world, victim).version, kind)
        for node in world.nodes:
            world.inject(node, datagram([lie], liar.node_id))
    world.run_for(15.0)

    assert world.changes_to(Status.FAILED) == []
    assert {world.status(node, victim) for node in world.nodes if node is not victim} == {
        Status.ALIVE
    }


def test_an_accusation_is_answered_by_the_accused_with_a_higher_version() -> None:
    world = joined(10)
    liar, victim = world.nodes[2], world.nodes[1]
    before = view(world, victim).version

    lie = claim(liar, victim, before)
    world.inject(world.nodes[5], datagram([lie], liar.node_id))
    world.run_for(0.5)

    assert view(world, victim).version == before.next()
    assert all(
        seen is not None and seen.version == before.next()
        for node in world.nodes
        if node is not victim
        for seen in [view(world, node).get(victim.node_id)]
    )


def test_whoever_accuses_more_than_half_is_not_heard_any_more() -> None:
    world = joined(10)
    liar, observer = world.nodes[2], world.nodes[5]
    lies: list[Message] = [
        claim(liar, victim, Version(epoch=1, sequence=1), Kind.FAILED)
        for victim in world.nodes
        if victim not in (liar, observer)
    ]

    for lie in lies:
        world.inject(observer, datagram([lie], liar.node_id))

    suspects = [one for one in view(world, observer).members if one.status is Status.SUSPECT]
    assert len(suspects) == 5


def test_a_repeated_datagram_is_refused_before_its_signature_is_looked_at() -> None:
    world = joined(3)
    observer = world.nodes[0]
    taken: list[bytes] = []
    world.taps.append(lambda _, to, data: taken.append(data) if to == observer.address else None)
    world.run_for(2.0)
    signed = [data for data in taken if data[0] == 0xE1]
    before = view(world, observer).checks_total

    for data in signed:
        world.inject(observer, data)

    assert observer.rejected[Reason.REPLAYED] == len(signed) > 0
    assert view(world, observer).checks_total == before


def test_an_observer_that_restarts_cannot_be_fed_the_past() -> None:
    world = joined(4)
    observer, subject = world.nodes[0], world.nodes[1]
    old = member_record(subject, Version(epoch=1, sequence=1))
    world.ask(subject, lambda swim, now: swim.move((Address("10.0.0.1:1"),), now))
    world.run_for(40.0)
    for node in world.nodes:
        world.crash(node, is_host_up=True)

    world.start(observer)
    world.introduce_all()
    world.inject(observer, datagram([old], subject.node_id))

    assert observer.rejected[Reason.REPLAYED] == 1
    assert view(world, observer).get(subject.node_id) is None


def test_an_application_message_is_delivered_once_and_never_from_a_recording() -> None:
    world = joined(4)
    sender, observer = world.nodes[1], world.nodes[0]
    taken: list[bytes] = []
    world.taps.append(lambda _, to, data: taken.append(data) if to == observer.address else None)
    message = Application(channel=1, priority=0, payload=b"cap me at 300 W")
    world.ask(sender, lambda swim, now: swim.send_application(observer.node_id, message, now))
    world.run_for(0.1)
    recorded = taken[0]
    first = [one.message for one in observer.delivered]

    world.crash(observer, is_host_up=True)
    observer.delivered.clear()
    world.start(observer, [sender])
    world.introduce_all()
    world.inject(observer, recorded, sender.address)
    world.run_for(3.0)
    world.inject(observer, recorded, sender.address)

    assert first == [message]
    assert observer.delivered == []
    assert observer.rejected[Reason.UNANCHORED] == 1
    world.ask(sender, lambda swim, now: swim.send_application(observer.node_id, message, now))
    world.run_for(0.1)
    assert [one.message for one in observer.delivered] == [message]


def test_two_contents_under_one_version_are_proof_quarantined_and_told_to_all() -> None:
    world = joined(6)
    twin = world.nodes[1]
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
    world.crash(twin, is_host_up=False)

    world.inject(world.nodes[2], datagram([member_record(twin, version)], twin.node_id))
    world.inject(world.nodes[3], datagram([other], twin.node_id))
    world.run_for(3.0)

    observers = [node for node in world.nodes if node is not twin]
    assert all(len(node.equivocated) == 1 for node in observers)
    assert {len(node.equivocated[0].proof) for node in observers} == {2}
    seen = [view(world, node).get(twin.node_id) for node in observers]
    assert all(one is not None and one.is_quarantined for one in seen)
    assert len({view(world, node).digest for node in observers}) == 1


def test_a_record_that_contradicts_its_certificate_is_dropped() -> None:
    world = joined(3)
    mover, observer = world.nodes[1], world.nodes[0]
    lie = member_record(mover, Version(epoch=1, sequence=5), rack="r99")

    world.inject(observer, datagram([lie], mover.node_id))

    assert observer.rejected[Reason.CONTRADICTS_CERTIFICATE] == 1


def test_a_removed_node_is_ignored_at_once_and_by_all_within_a_second() -> None:
    world = joined(50)
    bad = world.nodes[4]
    others = [node for node in world.nodes if node is not bad]
    record = b"an operator's record"
    world.removals[record] = bad.node_id
    world.loss_ratio = 0.1

    world.obey(world.nodes[0], record)
    world.run_for(1.0)
    told = [world.status(node, bad) for node in others]
    heard = Counter(node.rejected[Reason.EXCLUDED] > 0 for node in others)
    world.run_for(3.0)

    assert told == [Status.REMOVED] * 49
    assert heard[True] > 0
    assert {world.status(node, bad) for node in others} == {Status.REMOVED}
    assert len({view(world, node).digest for node in others}) == 1


def test_a_node_that_was_cut_off_when_one_was_removed_is_told_when_it_is_back() -> None:
    world = joined(10)
    lone, bad = world.nodes[7], world.nodes[4]
    record = b"an operator's record"
    world.removals[record] = bad.node_id
    world.sides[lone.address] = 1

    world.obey(world.nodes[0], record)
    world.run_for(4.0)
    before = world.status(lone, bad)
    world.sides.clear()
    world.run_for(3.0)

    assert before is not Status.REMOVED
    assert world.status(lone, bad) is Status.REMOVED


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
    world = joined(2)
    before = view(world, world.nodes[0]).checks_total

    world.inject(world.nodes[0], data)

    assert world.nodes[0].rejected[reason] == 1
    assert view(world, world.nodes[0]).checks_total == before


def test_a_question_under_no_signature_is_not_answered() -> None:
    world = joined(2)
    node, other = world.nodes
    ping = Ping(nonce=1, target=node.node_id, view_digest=0)

    world.inject(node, datagram([ping], other.node_id))

    assert node.rejected[Reason.NOT_ALLOWED] == 1


def test_a_flood_of_junk_costs_a_bounded_number_of_checks_and_others_are_still_heard() -> None:
    world = joined(3)
    node, other = world.nodes[0], world.nodes[1]
    chance = random.Random(5)
    before = view(world, node).checks_total

    for count in range(5000):
        junk = datagram([], other.node_id, signer=other.signer)[:-SIGNATURE_BYTES]
        world.inject(node, junk + chance.randbytes(SIGNATURE_BYTES))
        if count % 500 == 0:
            world.run_for(0.1)

    assert view(world, node).checks_total - before <= 20 + 20 * 1.0 + 60
    assert node.rejected[Reason.BUDGET] > 4900
    world.run_for(2.0)
    assert world.changes_to(Status.FAILED) == []
    assert world.status(node, other) is Status.ALIVE


def test_evidence_of_a_refusal_counts_only_where_it_was_asked_for() -> None:
    world = joined(3)
    node = world.nodes[0]

    world.run_for(0.3)
    world.ask(node, lambda swim, now: swim.receive(Refused(address=Address("10.7.7.7:1")), now))

    assert world.changes_to(Status.SUSPECT) == []


def test_a_certificate_for_ourselves_from_elsewhere_is_passed_over() -> None:
    world = joined(2)
    node = world.nodes[0]
    other = Introduction(
        node_id=node.node_id,
        public_key=bytes(32),
        name=node.introduction.name,
        rack=node.introduction.rack,
    )

    world.ask(node, lambda swim, now: swim.trust([other], world.nodes[1].address, now))
    world.run_for(2.0)

    assert world.all_see(world.nodes)
