"""What somebody sends again and again leaves nothing behind, costs little and crowds nobody out."""

import random

import pytest

from cluster.gossip.envelope import Reason
from cluster.gossip.messages import Address, OperatorNews, Version
from cluster.identity.operator_records import NodeRevoked, SignedRecord
from cluster.ids import NodeId
from cluster.papers import encode_paper
from simulations import faults
from simulations.forgery import datagram, member_record
from tests.gossip_stories import joined
from tests.rosters import Club

GONE = NodeRevoked(node_id=NodeId(bytes(16)), note="gone")


def under(signature: bytes, real: SignedRecord) -> SignedRecord:
    return SignedRecord(record=real.record, payload=real.payload, signature=signature)


@pytest.mark.parametrize(
    "signature", [pytest.param(bytes(64), id="lower"), pytest.param(b"\xff" * 64, id="higher")]
)
def test_a_record_that_stands_does_not_come_again_under_a_false_signature(
    signature: bytes,
) -> None:
    club = Club()
    club.roster.learn([club.introduce_operator(), real := club.say(GONE)])
    before, marks = club.roster.log, club.roster.marks()

    learned = club.roster.learn([under(signature, real)])

    assert learned.papers == ()
    assert club.roster.marks() == marks
    assert club.roster.log == before
    assert club.roster.judge_record(under(signature, real)) is not None
    assert club.roster.judge_record(real) is None


def test_a_false_signature_that_comes_first_does_not_keep_the_true_one_out() -> None:
    club = Club()
    club.roster.learn([club.introduce_operator()])
    real = club.say(GONE)

    first = club.roster.learn([under(bytes(64), real)])
    second = club.roster.learn([real])

    assert first.papers == ()
    assert [encode_paper(one) for one in second.papers] == [encode_paper(real)]


def test_a_flood_of_false_records_is_judged_twenty_times_a_second() -> None:
    fleet = joined(3)
    node, other = fleet.nodes[0], fleet.nodes[1]
    chance = random.Random(3)

    for _ in range(2000):
        news = OperatorNews(record=chance.randbytes(80))
        fleet.inject(node, datagram([news], other.node_id))

    assert node.told.rejected[Reason.BUDGET] == 2000 - 64


def test_a_member_that_contradicts_itself_without_end_is_repeated_only_as_it_did_last() -> None:
    fleet = joined(3)
    node, twin = fleet.nodes[0], fleet.nodes[1]
    faults.cut_off(fleet, [node])
    sizes: list[int] = []
    fleet.hooks.sent.append(lambda by, _, data: sizes.append(len(data)) if by is node else None)

    for number in range(100):
        version = Version(epoch=2, sequence=10 + number)
        for port in (1, 2):
            place = (Address(f"10.0.0.2:{port}"),)
            lie = member_record(twin, version, addresses=place)
            fleet.inject(node, datagram([lie], twin.node_id))
    sizes.clear()
    fleet.run_for(1.0)

    # With a hundred pairs to repeat, each datagram would be full.
    assert len(node.told.equivocated) == 100
    assert max(sizes) < 1000
