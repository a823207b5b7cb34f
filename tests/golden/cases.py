"""One case of every kind of thing that travels: its bytes, its value, and its plain fields.

`value` is what this version's code makes of the bytes; `plain` is what somebody reads out of them
who has `docs/protocol.md` and nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass

from cluster.codec import Document, Value, encode_document
from cluster.gossip.envelope import Envelope, Reason, look, seal
from cluster.gossip.messages import (
    Ack,
    Application,
    Claim,
    Entry,
    Evidence,
    Kind,
    MemberRecord,
    Message,
    Nack,
    OperatorNews,
    Page,
    Ping,
    PingRequest,
    RackSummary,
    Relayed,
    StateDigest,
    Statement,
    Summary,
    Version,
)
from cluster.gossip.statements import claim_body, member_body, sign_statement, summary_body
from cluster.gossip.wire import decode_message, decode_payload, encode_message, join_messages
from cluster.ids import NodeName, RackId
from cluster.signatures import Signer
from tests.golden.keys import ADDRESSES, CLUSTER, FIRST, LAST, SIGNER, A, B

CHAIN_HASH = bytes(range(16))
RECORD = b"an operator's record, opaque to gossip"
STATE = encode_document((1, "0.2.0", 32105))


@dataclass(frozen=True)
class Golden:
    """One line of the file."""

    name: str
    says: str
    encoded: bytes
    decode: Callable[[bytes], object]
    value: object
    plain: Value


def _statement(kind: Kind, version: Version, body: Document) -> Statement:
    return sign_statement(kind, version, body, cluster_id=CLUSTER, signer=SIGNER)


CLAIM = Claim(subject=B, subject_version=Version(epoch=5, sequence=9), evidence=Evidence.REFUSED)
_MEMBER = MemberRecord(
    name=NodeName("gpu-01"), rack=RackId("r01"), addresses=ADDRESSES, chain_hash=CHAIN_HASH
)
BODIES: dict[Kind, Document] = {
    Kind.MEMBER: tuple(member_body(_MEMBER)),
    Kind.STATE: (STATE,),
    Kind.SUMMARY: tuple(summary_body(RackSummary(rack=RackId("r01"), payload=STATE))),
    Kind.SUSPECT: tuple(claim_body(CLAIM)),
    Kind.FAILED: tuple(claim_body(CLAIM)),
    Kind.LEFT: (),
}
PLAIN_BODIES: dict[Kind, Value] = {
    Kind.MEMBER: ("gpu-01", "r01", ("10.0.0.1:7947", "[fd00::1]:7947"), CHAIN_HASH),
    Kind.STATE: (STATE,),
    Kind.SUMMARY: ("r01", STATE),
    Kind.SUSPECT: (bytes(B), 5, 9, 1),
    Kind.FAILED: (bytes(B), 5, 9, 1),
    Kind.LEFT: (),
}
STATEMENTS = {kind: _statement(kind, FIRST, body) for kind, body in BODIES.items()}


def _seal(messages: list[Message], signer: Signer | None, sequence: int) -> bytes:
    return seal(
        join_messages(encode_message(one) for one in messages),
        cluster_id=CLUSTER,
        sender=A,
        version=Version(epoch=3, sequence=sequence),
        signer=signer,
    )


PING = Ping(nonce=0x1122334455667788, target=B, view_digest=2**64 - 1)
ACK = Ack(nonce=1, view_digest=0)
SIGNED = _seal([PING, STATEMENTS[Kind.MEMBER]], SIGNER, 1)
BARE = _seal([OperatorNews(record=RECORD), STATEMENTS[Kind.LEFT]], None, 0)
RELAYED_ACK = _seal([ACK], SIGNER, 2)
_ENTRY = Entry(node_id=B, version=LAST, content_hash=0xC0FFEE)
_PLAIN_ENTRY: Value = (bytes(B), 2**64 - 1, 2**64 - 1, 0xC0FFEE)
_BUCKETS = tuple(0 if bucket % 2 else bucket << 56 for bucket in range(64))
_PACKED = b"".join(one.to_bytes(8, "big") for one in _BUCKETS)
_FIRST_ID, _LAST_ID = b"\x07" + bytes(15), b"\xff" * 16


def messages() -> list[tuple[str, str, Message, Value]]:
    """Each kind of message: name, what it says, value, plain fields."""
    statement = STATEMENTS[Kind.MEMBER]
    page = Page(begin=_FIRST_ID, end=_LAST_ID, entries=(_ENTRY,), is_reply=True)
    return [
        ("ping", "are you there?", PING, (1, PING.nonce, bytes(B), 2**64 - 1, False)),
        (
            "ping-bare",
            "the same, for whoever relays the answer",
            Ping(nonce=0, target=A, view_digest=0, is_bare=True),
            (1, 0, bytes(A), 0, True),
        ),
        ("ack", "I am", ACK, (2, 1, 0)),
        (
            "ping-request",
            "ask B for me",
            PingRequest(nonce=300, target=B, address=ADDRESSES[0]),
            (3, 300, bytes(B), "10.0.0.1:7947"),
        ),
        ("nack", "B did not answer me either", Nack(nonce=300), (4, 300)),
        ("relayed", "what B answered", Relayed(datagram=RELAYED_ACK), (5, RELAYED_ACK)),
        ("summary", "my view in 64 hashes", Summary(buckets=_BUCKETS), (6, _PACKED)),
        ("page", "bucket 7", page, (7, _FIRST_ID, _LAST_ID, (_PLAIN_ENTRY,), True)),
        (
            "page-empty",
            "nothing there",
            Page(begin=_FIRST_ID, end=_LAST_ID, entries=()),
            (7, _FIRST_ID, _LAST_ID, (), False),
        ),
        (
            "state-digest",
            "who has a newer state?",
            StateDigest(entries=(Entry(node_id=B, version=FIRST, content_hash=0),)),
            (8, ((bytes(B), 3, 1, 0),)),
        ),
        ("operator-news", "an operator's record", OperatorNews(record=RECORD), (9, RECORD)),
        (
            "application",
            "for the layer above",
            Application(channel=4, priority=0, payload=b"cap 300"),
            (10, 4, 0, b"cap 300"),
        ),
        ("statement", "somebody's signed word", statement, (11, statement.encoded)),
    ]


def _read_datagram(data: bytes) -> tuple[Envelope | Reason, tuple[Message, ...]]:
    seen = look(data, CLUSTER)
    return seen, () if isinstance(seen, Reason) else decode_payload(seen.payload)


def _opened(data: bytes, sequence: int, *, is_signed: bool) -> Envelope:
    return Envelope(
        sender=A,
        version=Version(epoch=3, sequence=sequence),
        is_signed=is_signed,
        payload=data[49:-64] if is_signed else data[49:],
        datagram=data,
    )


def _plain_statement(kind: Kind) -> Value:
    return (int(kind), bytes(A), 3, 1, PLAIN_BODIES[kind])


def _datagrams() -> list[Golden]:
    plain_ping: Value = (1, PING.nonce, bytes(B), 2**64 - 1, False)
    signed = (plain_ping, (11, STATEMENTS[Kind.MEMBER].encoded))
    bare = ((9, RECORD), (11, STATEMENTS[Kind.LEFT].encoded))
    return [
        Golden(
            "datagram-signed",
            "E1: a ping, and a member record in the room that it left",
            SIGNED,
            _read_datagram,
            (_opened(SIGNED, 1, is_signed=True), (PING, STATEMENTS[Kind.MEMBER])),
            (0xE1, bytes(CLUSTER), bytes(A), 3, 1, signed),
        ),
        Golden(
            "datagram-bare",
            "E2: an operator's record and a farewell",
            BARE,
            _read_datagram,
            (
                _opened(BARE, 0, is_signed=False),
                (OperatorNews(record=RECORD), STATEMENTS[Kind.LEFT]),
            ),
            (0xE2, bytes(CLUSTER), bytes(A), 3, 0, bare),
        ),
    ]


def gossip_cases() -> list[Golden]:
    """Datagrams, messages, statements."""
    cases = _datagrams()
    for name, says, message, plain in messages():
        encoded = encode_message(message)
        cases.append(Golden(f"message-{name}", says, encoded, decode_message, message, plain))
    for kind, statement in STATEMENTS.items():
        cases.append(
            Golden(
                f"statement-{kind.name.lower()}",
                f"kind {int(kind)}",
                statement.encoded,
                _read_statement,
                statement,
                _plain_statement(kind),
            )
        )
    return cases


def _read_statement(data: bytes) -> object:
    return decode_message(encode_document((11, data)))
