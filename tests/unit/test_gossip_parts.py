"""The arithmetic of gossip: doubt, health, news, windows, members."""

import random

import pytest

from cluster.codec import encode_document
from cluster.errors import Misuse
from cluster.gossip.effects import Head, Status
from cluster.gossip.envelope import PAYLOAD_BYTES_MAX, Door, Envelope, Reason, seal
from cluster.gossip.health import LocalHealth
from cluster.gossip.introduction import Introduction
from cluster.gossip.members import Flaps, Member, Members, RoundTrips
from cluster.gossip.messages import (
    Ack,
    Address,
    Evidence,
    Kind,
    MemberRecord,
    Nack,
    Ping,
    Version,
)
from cluster.gossip.rumors import News, Urgency, copies
from cluster.gossip.settings import GossipSettings
from cluster.gossip.statements import read_statement, sign_statement, verify_statement
from cluster.gossip.suspicion import Suspicion, ends_seconds, suspicion_seconds
from cluster.gossip.wire import decode_message, decode_payload, encode_message, join_messages
from cluster.ids import ClusterId, NodeId, NodeName, RackId
from cluster.signatures import KeyedHashKeyring

SETTINGS = GossipSettings()
CLUSTER = ClusterId(bytes(16))
FIRST = Version(epoch=1, sequence=1)
SOURCE = Address("10.0.0.9:7947")


def node(number: int) -> NodeId:
    return NodeId(bytes([number]) * 16)


OWN, A, B, C = (node(number) for number in range(4))


def doubt(**accusers: Evidence) -> Suspicion:
    suspicion = Suspicion(version=FIRST, began_seconds=100.0)
    names = {"own": OWN, "a": A, "b": B, "c": C}
    for index, (name, evidence) in enumerate(accusers.items()):
        suspicion.accuse(names[name], evidence, 100.0 + index)
    return suspicion


SILENT, REFUSED = Evidence.SILENCE, Evidence.REFUSED


@pytest.mark.parametrize(
    ("suspicion", "others_count", "heard_seconds", "expected"),
    [
        pytest.param(doubt(own=SILENT), 9, None, 112.0, id="own-evidence-alone-takes-long"),
        pytest.param(
            doubt(own=SILENT, a=SILENT, b=SILENT), 9, None, 105.6, id="confirmed-it-is-short"
        ),
        pytest.param(doubt(a=SILENT, b=SILENT), 9, None, None, id="two-others-are-no-quorum"),
        pytest.param(doubt(a=SILENT, b=SILENT, c=SILENT), 9, None, 105.6, id="three-others-are"),
        pytest.param(doubt(own=SILENT), 1, None, 105.6, id="nobody-could-confirm"),
        pytest.param(doubt(own=SILENT, a=SILENT, b=SILENT), 9, 103.0, 108.6, id="heard-after-all"),
        pytest.param(doubt(a=REFUSED), 9, None, None, id="one-refusal-proves-nothing"),
        pytest.param(doubt(a=REFUSED, b=REFUSED), 9, 99.9, 101.0, id="two-refusals-do"),
        pytest.param(doubt(own=REFUSED), 1, None, 101.0, id="one-of-one-observer-does"),
    ],
)
def test_when_doubt_ends(
    suspicion: Suspicion, others_count: int, heard_seconds: float | None, expected: float | None
) -> None:
    ends = ends_seconds(
        suspicion,
        SETTINGS,
        own_id=OWN,
        others_count=others_count,
        heard_seconds=heard_seconds,
    )

    assert ends == (None if expected is None else pytest.approx(expected))


def test_each_confirmation_shortens_doubt_and_the_first_the_most() -> None:
    seconds = [suspicion_seconds(count, SETTINGS, possible=9) for count in range(4)]

    assert seconds == [12.0, pytest.approx(7.962, abs=0.001), 5.6, 5.6]


def test_an_accuser_counts_once_and_its_better_evidence_replaces_the_other() -> None:
    suspicion = doubt(a=SILENT)

    again = suspicion.accuse(A, SILENT, 101.0)
    better = suspicion.accuse(A, REFUSED, 102.0)
    worse = suspicion.accuse(A, SILENT, 103.0)

    assert (again, better, worse) == (False, True, False)
    assert suspicion.accusers == {A: REFUSED}
    assert suspicion.refused_seconds == 102.0


def test_missing_nacks_speak_against_oneself_and_answers_for_one() -> None:
    health = LocalHealth(score_max=7)

    health.probe_failed(helpers_asked_count=3, nacks_count=3)
    well = health.score
    health.probe_failed(helpers_asked_count=3, nacks_count=1)
    health.was_accused()
    health.probe_failed(helpers_asked_count=0, nacks_count=0)
    worse = health.score
    health.probe_succeeded()

    assert (well, worse, health.score, health.factor) == (0, 4, 3, 4.0)
    for _ in range(9):
        health.was_accused()
    assert health.score == 7


@pytest.mark.parametrize(
    ("members_count", "expected"),
    [pytest.param(1, 4, id="two"), pytest.param(9, 4, id="ten"), pytest.param(50, 8, id="51")],
)
def test_how_often_news_is_repeated(members_count: int, expected: int) -> None:
    assert copies(members_count, 4) == expected


def test_news_is_repeated_as_often_as_asked_and_everything_has_its_turn() -> None:
    news = News()
    for number in range(6):
        news.add((number,), bytes([number]) * 98, Urgency.MEMBER, 2)

    said = [news.fill(300) for _ in range(4)]

    assert [[one[0] for one in some] for some in said] == [
        [0, 1, 2],
        [3, 4, 5],
        [0, 1, 2],
        [3, 4, 5],
    ]
    assert not news


def test_what_is_urgent_goes_first_but_leaves_the_others_their_share() -> None:
    news = News()
    for number in range(20):
        news.add(("claim", number), b"c" * 98, Urgency.CLAIM, 9)
        news.add(("member", number), b"m" * 98, Urgency.MEMBER, 9)
        news.add(("summary", number), b"s" * 98, Urgency.SUMMARY, 9)

    said = b"".join(news.fill(1000))

    assert [said.count(one) // 98 for one in (b"c", b"m", b"s")] == [5, 3, 2]


def test_what_a_class_does_not_need_the_others_take() -> None:
    news = News()
    for number in range(20):
        news.add((number,), b"s" * 98, Urgency.SUMMARY, 9)

    assert len(news.fill(1000)) == 10


def test_an_item_larger_than_the_share_of_its_class_has_its_turn_all_the_same() -> None:
    news = News()
    news.add(("record",), b"r" * 800, Urgency.CLAIM, 1)
    for number in range(20):
        news.add((number,), b"m" * 98, Urgency.MEMBER, 9)

    said = b"".join(news.fill(1000))

    assert (said.count(b"r"), said.count(b"m") // 98) == (800, 1)


def test_newer_news_takes_the_place_of_the_older() -> None:
    news = News()
    news.add(("a",), b"old", Urgency.CLAIM, 5)
    news.add(("a",), b"new", Urgency.MEMBER, 5)

    assert news.fill(100) == [b"new"]


def member(status: Status = Status.ALIVE, number: int = 1, rack: str = "r01") -> Member:
    name, where = NodeName(f"n{number}"), RackId(rack)
    return Member(
        introduction=Introduction(
            node_id=node(number), public_key=bytes(32), name=name, rack=where
        ),
        record=MemberRecord(name=name, rack=where, addresses=(Address(f"10.0.0.{number}:1"),)),
        version=FIRST,
        status=status,
        changed_seconds=0.0,
    )


def test_an_alive_member_that_is_often_doubted_looks_degraded_and_recovers() -> None:
    one = member()
    for moment in (0.0, 10.0, 20.0):
        one.flaps.add(moment, SETTINGS.flap_half_life_seconds)

    assert one.shown(20.0, SETTINGS) is Status.DEGRADED
    assert one.shown(200.0, SETTINGS) is Status.ALIVE


@pytest.mark.parametrize("status", [s for s in Status if s not in (Status.ALIVE, Status.DEGRADED)])
def test_degraded_never_hides_what_is_worse(status: Status) -> None:
    one = member(status)
    one.misses_count, one.is_quarantined = 9, True

    assert one.shown(0.0, SETTINGS) is status


def test_a_flap_counts_half_after_its_half_life() -> None:
    flaps = Flaps()
    flaps.add(0.0, 60.0)

    assert flaps.score(60.0, 60.0) == pytest.approx(0.5)


def test_the_time_to_wait_for_a_peer_follows_its_answers_between_bounds() -> None:
    trips = RoundTrips()
    before = trips.timeout_seconds(SETTINGS)
    for _ in range(50):
        trips.add(0.02)
    steady = trips.timeout_seconds(SETTINGS)
    trips.add(0.9)

    assert before == 0.2
    assert steady == 0.05
    assert trips.timeout_seconds(SETTINGS) == 0.2


def test_heads_are_of_the_newest_and_keep_those_of_whoever_was_not_heard_again() -> None:
    members = Members(OWN, RackId("r01"))
    members.add(member(number=1))
    high, low = Version(epoch=7, sequence=1), Version(epoch=1, sequence=0)
    floors = {
        node(1): Head(node_id=node(1), member=low, state=high),
        node(2): Head(node_id=node(2), member=high),
    }

    heads = members.heads(floors)

    assert heads == (
        Head(node_id=node(1), member=FIRST, state=high),
        Head(node_id=node(2), member=high),
    )


class Gate:
    """A door, and one peer whose datagrams knock at it."""

    def __init__(self) -> None:
        keyring = KeyedHashKeyring()
        self.signer = keyring.new_signer(random.Random(1).randbytes)
        self.sender = NodeId.of_public_key(self.signer.public_key)
        self.door = Door(
            cluster_id=CLUSTER,
            own_id=OWN,
            verifier=keyring,
            settings=SETTINGS,
            public_key_of=lambda _: self.signer.public_key,
        )

    def knock(self, sequence: int, epoch: int = 1) -> Reason | None:
        datagram = seal(
            b"payload",
            cluster_id=CLUSTER,
            sender=self.sender,
            version=Version(epoch=epoch, sequence=sequence),
            signer=self.signer,
        )
        opened = self.door.open(datagram, SOURCE, 0.0)
        return None if isinstance(opened, Envelope) else opened


def test_reordered_datagrams_pass_and_repeated_or_ancient_ones_do_not() -> None:
    gate = Gate()

    answers = [gate.knock(sequence) for sequence in (5, 3, 4, 3, 100, 37, 36, 100)]

    late = Reason.REPLAYED
    assert answers == [None, None, None, late, None, None, late, late]


def test_a_later_life_opens_a_new_window_and_an_earlier_one_is_refused() -> None:
    gate = Gate()

    answers = [gate.knock(9, epoch=2), gate.knock(1, epoch=3), gate.knock(10, epoch=2)]

    assert answers == [None, None, Reason.REPLAYED]


def test_what_came_before_a_sender_answered_is_not_taken_afterwards() -> None:
    gate = Gate()
    gate.knock(10)

    gate.door.anchor(gate.sender)

    assert gate.door.is_anchored(gate.sender)
    assert [gate.knock(9), gate.knock(11)] == [Reason.REPLAYED, None]


def test_a_signature_for_one_cluster_is_worth_nothing_in_another() -> None:
    keyring = KeyedHashKeyring()
    signer = keyring.new_signer(random.Random(1).randbytes)
    made = sign_statement(Kind.STATE, FIRST, (b"x",), cluster_id=CLUSTER, signer=signer)

    verdicts = [
        verify_statement(
            made, cluster_id=cluster_id, public_key=signer.public_key, verifier=keyring
        )
        for cluster_id in (CLUSTER, ClusterId(bytes(15) + b"1"))
    ]

    assert verdicts == [True, False]
    assert read_statement(made.encoded) == made


def test_a_statement_that_fits_in_no_datagram_is_a_bug_of_ours() -> None:
    signer = KeyedHashKeyring().new_signer(random.Random(1).randbytes)

    with pytest.raises(Misuse, match="too large"):
        sign_statement(Kind.STATE, FIRST, (bytes(1100),), cluster_id=CLUSTER, signer=signer)


def test_fields_of_a_later_version_are_passed_over_and_missing_ones_have_defaults() -> None:
    ping = Ping(nonce=7, target=A, view_digest=9)

    later = decode_message(encode_document((1, 7, bytes(A), 9, False, "more")))
    earlier = decode_message(encode_document((1, 7, bytes(A), 9)))

    assert later == earlier == ping


def test_a_message_of_a_later_version_hides_none_of_the_others() -> None:
    payload = join_messages(
        [
            encode_message(Nack(nonce=1)),
            encode_document((99, "new")),
            encode_message(Ack(nonce=2, view_digest=3)),
        ]
    )

    assert decode_payload(payload) == (Nack(nonce=1), Ack(nonce=2, view_digest=3))


def test_the_envelope_leaves_the_room_that_the_document_promises() -> None:
    assert PAYLOAD_BYTES_MAX == 1400 - 49 - 64
