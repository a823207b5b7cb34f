"""Datagrams are counted as what their first message is."""

import random

import pytest

from cluster.gossip.envelope import seal
from cluster.gossip.messages import (
    Ack,
    Address,
    Application,
    Kind,
    Message,
    Nack,
    OperatorNews,
    Page,
    Ping,
    PingRequest,
    Relayed,
    StateDigest,
    Summary,
    Version,
)
from cluster.gossip.statements import sign_statement
from cluster.gossip.wire import encode_message, join_messages
from cluster.ids import ClusterId, NodeId
from cluster.signatures import KeyedHashKeyring
from cluster.traffic import CLASSES, Direction, class_of

CLUSTER = ClusterId(b"the-test-cluster")
SIGNER = KeyedHashKeyring().new_signer(random.Random(1).randbytes)
NODE = NodeId.of_public_key(SIGNER.public_key)
VERSION = Version(epoch=1, sequence=1)


def datagram_of(message: Message) -> bytes:
    payload = join_messages([encode_message(message)])
    return seal(payload, cluster_id=CLUSTER, sender=NODE, version=VERSION, signer=SIGNER)


def statement_of(kind: Kind, body_bytes: int = 20) -> Message:
    return sign_statement(kind, VERSION, (bytes(body_bytes),), cluster_id=CLUSTER, signer=SIGNER)


@pytest.mark.parametrize(
    ("message", "name"),
    [
        pytest.param(Ping(nonce=2**63, target=NODE, view_digest=1), "probe", id="ping"),
        pytest.param(Ack(nonce=1, view_digest=1), "probe", id="ack"),
        pytest.param(
            PingRequest(nonce=1, target=NODE, address=Address("a:1")), "probe", id="ping-request"
        ),
        pytest.param(Nack(nonce=1), "probe", id="nack"),
        pytest.param(Relayed(datagram=bytes(300)), "probe", id="relayed"),
        pytest.param(Summary(buckets=(0,) * 64), "reconciliation", id="summary"),
        pytest.param(Page(begin=b"", end=b"", entries=()), "reconciliation", id="page"),
        pytest.param(StateDigest(entries=()), "reconciliation", id="state-digest"),
        pytest.param(OperatorNews(record=b"r"), "operator", id="operator"),
        pytest.param(Application(channel=1, priority=0, payload=b""), "application", id="layers"),
        pytest.param(statement_of(Kind.MEMBER), "member", id="member"),
        pytest.param(statement_of(Kind.MEMBER, 400), "member", id="long-member"),
        pytest.param(statement_of(Kind.LEFT), "member", id="left"),
        pytest.param(statement_of(Kind.STATE, 600), "state", id="state"),
        pytest.param(statement_of(Kind.SUMMARY), "summary", id="rack-summary"),
        pytest.param(statement_of(Kind.SUSPECT), "claim", id="suspect"),
        pytest.param(statement_of(Kind.FAILED), "claim", id="failed"),
    ],
)
def test_a_datagram_has_the_class_of_its_first_message(message: Message, name: str) -> None:
    assert class_of(datagram_of(message)) == name


def test_any_bytes_have_one_of_a_few_classes() -> None:
    rng = random.Random(1)

    found = {class_of(rng.randbytes(rng.randrange(120))) for _ in range(20_000)}

    assert found <= set(CLASSES)
    assert class_of(b"") == class_of(bytes(54)) == class_of(bytes(54) + b"\x0b") == "other"


def test_datagrams_and_bytes_are_counted_by_class() -> None:
    direction = Direction()

    for one in (b"junk", datagram_of(Nack(nonce=1)), datagram_of(Nack(nonce=1))):
        direction.count(one)

    size = len(datagram_of(Nack(nonce=1)))
    assert direction.datagrams_total == {"other": 1, "probe": 2}
    assert direction.bytes_total == {"other": 4, "probe": 2 * size}
