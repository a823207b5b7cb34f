"""Merge laws of the records, and the codec under any bytes."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.gossip.envelope import Reason, look, seal
from cluster.gossip.fields import DecodeError
from cluster.gossip.held import Held, hold, merge
from cluster.gossip.messages import (
    Ack,
    Address,
    Application,
    Claim,
    Entry,
    Evidence,
    Kind,
    MemberRecord,
    Nack,
    OperatorNews,
    Page,
    Ping,
    PingRequest,
    Relayed,
    StateDigest,
    Statement,
    Summary,
    Version,
)
from cluster.gossip.records import Records
from cluster.gossip.statements import (
    claim_body,
    member_body,
    read_claim,
    read_member,
    read_statement,
    read_summary,
    sign_statement,
)
from cluster.gossip.wire import BUCKETS, decode_payload, encode_message, join_messages
from cluster.ids import ClusterId, NodeId, NodeName, RackId
from cluster.signatures import KeyedHashKeyring

CLUSTER = ClusterId(bytes(16))
SIGNERS = [KeyedHashKeyring().new_signer(random.Random(i).randbytes) for i in range(3)]

u64 = st.integers(min_value=0, max_value=2**64 - 1)
node_ids = st.binary(min_size=16, max_size=16).map(NodeId)
versions = st.builds(Version, epoch=u64, sequence=u64)
entries = st.builds(Entry, node_id=node_ids, version=versions, content_hash=u64)


def said(version: int, content: int, signer: int = 0) -> Statement:
    return sign_statement(
        Kind.MEMBER,
        Version(epoch=1, sequence=version),
        (content,),
        cluster_id=CLUSTER,
        signer=SIGNERS[signer],
    )


small = st.integers(min_value=1, max_value=3)
statements = st.builds(said, small, small)
held = st.lists(statements, min_size=1, max_size=4).map(
    lambda some: _fold([hold(one) for one in some])
)
messages = st.one_of(
    st.builds(Ping, nonce=u64, target=node_ids, view_digest=u64, is_bare=st.booleans()),
    st.builds(Ack, nonce=u64, view_digest=u64),
    st.builds(
        PingRequest,
        nonce=u64,
        target=node_ids,
        address=st.text(min_size=1, max_size=60).map(Address),
    ),
    st.builds(Nack, nonce=u64),
    st.builds(Relayed, datagram=st.binary(max_size=300)),
    st.builds(Summary, buckets=st.lists(u64, min_size=64, max_size=64).map(tuple)),
    st.builds(
        Page,
        begin=node_ids,
        end=node_ids,
        entries=st.lists(entries, max_size=5).map(tuple),
        is_reply=st.booleans(),
    ),
    st.builds(StateDigest, entries=st.lists(entries, max_size=5).map(tuple)),
    st.builds(OperatorNews, record=st.binary(max_size=300)),
    st.builds(
        Application,
        channel=st.integers(0, 255),
        priority=st.integers(0, 9),
        payload=st.binary(max_size=300),
    ),
    statements,
)


def _fold(some: list[Held]) -> Held:
    result = some[0]
    for one in some[1:]:
        result = merge(result, one)
    return result


@given(held, held, held)
def test_merging_is_commutative_associative_and_idempotent(a: Held, b: Held, c: Held) -> None:
    assert merge(a, b) == merge(b, a)
    assert merge(merge(a, b), c) == merge(a, merge(b, c))
    assert merge(a, a) == a


@given(st.lists(st.builds(said, small, small, st.integers(0, 2)), max_size=12), st.randoms())
def test_the_digest_is_the_same_whatever_the_order(
    some: list[Statement], chance: random.Random
) -> None:
    there, back = Records(), Records()

    for one in some:
        there.put(one)
    chance.shuffle(some)
    for one in [*some, *some]:
        back.put(one)

    assert there.digest == back.digest
    assert there.buckets == back.buckets
    entries = [[one.bucket(bucket) for bucket in range(BUCKETS)] for one in (there, back)]
    assert entries[0] == entries[1]


@given(st.lists(messages, max_size=4))
def test_what_is_encoded_is_decoded_to_the_same(some: list[Ping]) -> None:
    payload = join_messages(encode_message(one) for one in some)

    assert decode_payload(payload) == tuple(some)


@given(st.binary(max_size=400))
@settings(max_examples=300)
def test_any_payload_is_messages_or_one_error(data: bytes) -> None:
    for payload in (data, b"\x01\x01" + len(data).to_bytes(2, "big") + data):
        try:
            decode_payload(payload)
        except DecodeError:
            continue


@given(st.lists(messages, min_size=1, max_size=2), st.data())
@settings(max_examples=300)
def test_a_damaged_payload_is_messages_or_one_error(some: list[Ping], data: st.DataObject) -> None:
    payload = bytearray(join_messages(encode_message(one) for one in some))
    place = data.draw(st.integers(0, len(payload) - 1))
    payload[place] = data.draw(st.integers(0, 255))

    for damaged in (bytes(payload), bytes(payload[:place])):
        try:
            decode_payload(damaged)
        except DecodeError:
            continue


@given(st.binary(max_size=300))
@settings(max_examples=300)
def test_any_body_is_read_or_one_error(data: bytes) -> None:
    for read in (read_claim, read_member, read_summary, read_statement):
        try:
            read(data)
        except DecodeError:
            continue


@given(st.binary(max_size=1500))
def test_any_datagram_is_an_envelope_or_a_reason(data: bytes) -> None:
    for datagram in (data, b"\xe1" + bytes(CLUSTER) + data, b"\xe2" + bytes(CLUSTER) + data):
        seen = look(datagram, CLUSTER)

        assert isinstance(seen, Reason) or seen.datagram == datagram


@given(st.binary(min_size=1, max_size=200), versions, st.booleans())
def test_an_envelope_is_read_as_it_was_sealed(
    payload: bytes, version: Version, is_signed: bool
) -> None:
    sender = NodeId.of_public_key(SIGNERS[0].public_key)

    datagram = seal(
        payload,
        cluster_id=CLUSTER,
        sender=sender,
        version=version,
        signer=SIGNERS[0] if is_signed else None,
    )
    seen = look(datagram, CLUSTER)

    assert not isinstance(seen, Reason)
    assert (seen.payload, seen.sender, seen.version) == (payload, sender, version)
    assert seen.is_signed == is_signed


@given(node_ids, versions, st.sampled_from(Evidence))
def test_a_claim_is_read_as_it_was_made(
    subject: NodeId, version: Version, evidence: Evidence
) -> None:
    claim = Claim(subject=subject, subject_version=version, evidence=evidence)

    made = sign_statement(
        Kind.SUSPECT, version, claim_body(claim), cluster_id=CLUSTER, signer=SIGNERS[0]
    )

    assert read_claim(made.body) == claim


def test_a_member_record_is_read_as_it_was_made() -> None:
    record = MemberRecord(
        name=NodeName("gpu-01"),
        rack=RackId("r01"),
        addresses=(Address("10.0.0.1:7947"), Address("[fd00::1]:7947")),
        chain_hash=bytes(32),
    )

    made = sign_statement(
        Kind.MEMBER,
        Version(epoch=2, sequence=9),
        member_body(record),
        cluster_id=CLUSTER,
        signer=SIGNERS[0],
    )

    assert read_member(made.body) == record
