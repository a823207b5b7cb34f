"""The operators' log: chained, verified, forked, and the same for whoever has the same records."""

import random
from dataclasses import replace

import pytest

from cluster.codec import encode_document
from cluster.enrolment import OperatorKeys, add_operator
from cluster.errors import Malformed
from cluster.identity.operator_log import OperatorLog, gather, read_log
from cluster.identity.operator_records import (
    CertificateRevoked,
    NameForgotten,
    NodeApproved,
    NodeRemoved,
    NodeRevoked,
    OperatorAdded,
    OperatorRecord,
    Other,
    SignedRecord,
    Statement,
    check_record,
    decode_record,
    encode_record,
    log_root,
    read_signed_record,
    sign_record,
)
from cluster.identity.refusals import Rule
from cluster.ids import ClusterId, NodeId, OperatorId, parse_node_name
from cluster.keyring import Ed25519Verifier, read_certificate
from cluster.signatures import Signer
from tests.identities import NOW, Lab

VERIFIER = Ed25519Verifier()
LAB = Lab()
CLUSTER = LAB.keys.authority.cluster_id
NODE = NodeId(b"n" * 16)


def new_operator(name: str, lab: Lab = LAB) -> OperatorKeys:
    return add_operator(
        lab.keys, parse_node_name(name), now_unix_seconds=NOW, random_bytes=lab.random_bytes
    )


ALICE, BOB = new_operator("alice"), new_operator("bob")


def say(
    statement: Statement, after: SignedRecord | None, signer: Signer = ALICE.signer
) -> SignedRecord:
    record = OperatorRecord(
        cluster_id=CLUSTER,
        sequence=1 if after is None else after.record.sequence + 1,
        previous=log_root(CLUSTER) if after is None else after.hash,
        statement=statement,
        signed_by=OperatorId.of_public_key(signer.public_key),
        written_unix_seconds=NOW,
    )
    return sign_record(record, signer)


def read(*records: SignedRecord) -> OperatorLog:
    return read_log(
        records, LAB.keys.authority, verifier=VERIFIER, read_certificate=read_certificate
    )


def rules(log: OperatorLog) -> list[Rule]:
    return [refused.rule for _, refused in log.refused]


FIRST = say(OperatorAdded(certificate_der=ALICE.certificate.der), None)
SECOND = say(OperatorAdded(certificate_der=BOB.certificate.der), FIRST)

STATEMENTS = [
    pytest.param(OperatorAdded(certificate_der=b"der"), id="operator-added"),
    pytest.param(NodeApproved(node_id=NODE, invite_serial=2**127 + 1), id="node-approved"),
    pytest.param(NodeRemoved(node_id=NODE, serial=7), id="node-removed"),
    pytest.param(NodeRevoked(node_id=NODE, note="stolen"), id="node-revoked"),
    pytest.param(CertificateRevoked(serial=7), id="certificate-revoked"),
    pytest.param(NameForgotten(name=parse_node_name("gpu-1"), node_id=NODE), id="name-forgotten"),
    pytest.param(Other(kind="budget", body=b"\x91\x01"), id="of-another-room"),
    pytest.param(Other(kind="drain", body=b""), id="without-a-body"),
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_record_is_read_back_from_its_bytes(statement: Statement) -> None:
    signed = say(statement, FIRST)

    assert decode_record(encode_record(signed.record)) == signed.record
    assert read_signed_record(signed.payload, signed.signature) == signed


def body(kind: str, content: bytes) -> bytes:
    return encode_document(
        (1, "operator-record", CLUSTER, 1, bytes(32), kind, content, b"o" * 16, NOW)
    )


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"", id="empty"),
        pytest.param(encode_document((2, "operator-record")), id="another-format"),
        pytest.param(body("", b""), id="no-kind"),
        pytest.param(body("k" * 33, b""), id="long-kind"),
        pytest.param(body("budget", b"x" * 16_385), id="long-body"),
        pytest.param(body("node-revoked", b"\x01"), id="no-document-inside"),
        pytest.param(body("node-revoked", encode_document((b"n" * 16,))), id="too-little-inside"),
        pytest.param(
            body("node-revoked", encode_document((b"n" * 15, ""))), id="no-node-id-inside"
        ),
        pytest.param(
            body("node-revoked", encode_document((b"n" * 16, "a\nb"))), id="two-lines-inside"
        ),
        pytest.param(
            body("node-removed", encode_document((b"n" * 16, b"\0\1"))), id="a-padded-serial"
        ),
    ],
)
def test_what_is_no_record_is_refused(payload: bytes) -> None:
    with pytest.raises(Malformed):
        decode_record(payload)


def test_a_signature_of_a_wrong_length_is_refused() -> None:
    with pytest.raises(Malformed, match="a signature of 3 bytes, not of 64"):
        read_signed_record(FIRST.payload, b"abc")


def test_a_record_is_worth_nothing_elsewhere_or_altered() -> None:
    key = ALICE.signer.public_key
    altered = replace(FIRST, payload=SECOND.payload, record=SECOND.record)

    elsewhere = check_record(
        FIRST, cluster_id=ClusterId(b"x" * 16), public_key=key, verifier=VERIFIER
    )
    changed = check_record(altered, cluster_id=CLUSTER, public_key=key, verifier=VERIFIER)
    others = check_record(
        FIRST, cluster_id=CLUSTER, public_key=BOB.signer.public_key, verifier=VERIFIER
    )

    assert elsewhere is not None
    assert changed is not None
    assert others is not None
    assert (elsewhere.rule, changed.rule, others.rule) == (
        Rule.FOREIGN_CLUSTER,
        Rule.SIGNATURE,
        Rule.UNKNOWN_OPERATOR,
    )


def test_a_log_is_read_in_its_order_whatever_the_order_of_arrival() -> None:
    third = say(NodeRevoked(node_id=NODE), SECOND, BOB.signer)
    records = [FIRST, SECOND, third]

    logs = [read(*random.Random(seed).sample(records, 3)) for seed in range(6)]

    assert all(log == logs[0] for log in logs)
    assert logs[0].records == (FIRST, SECOND, third)
    assert logs[0].heads == (third,)
    assert set(logs[0].operators) == {ALICE.operator.operator_id, BOB.operator.operator_id}
    assert logs[0].revocations.node_ids == {NODE}


def test_what_follows_from_each_kind() -> None:
    two = say(NodeApproved(node_id=NODE, invite_serial=5), FIRST)
    three = say(NodeRemoved(node_id=NODE, serial=6), two)
    four = say(CertificateRevoked(serial=7), three)
    five = say(NameForgotten(name=parse_node_name("gpu-1"), node_id=NODE), four)
    six = say(Other(kind="budget", body=b"watts"), five)

    log = read(FIRST, two, three, four, five, six)

    assert log.approved == {(NODE, 5)}
    assert log.revocations.removals == {(NODE, 6)}
    assert log.revocations.serials == {7}
    assert log.forgotten == {("gpu-1", NODE)}
    assert log.records[-1].record.statement == Other(kind="budget", body=b"watts")


def test_two_records_after_one_are_a_fork_and_both_stand() -> None:
    here = say(NodeRevoked(node_id=NODE), SECOND)
    there = say(NodeRemoved(node_id=NODE, serial=6), SECOND, BOB.signer)

    log = read(FIRST, SECOND, here, there)

    assert set(log.records) == {FIRST, SECOND, here, there}
    assert len(log.forks) == 1
    assert set(log.forks[0].branches) == {here, there}
    assert log.forks[0].line.startswith("operator log forks at record 3: 2 records by ")
    assert set(log.heads) == {here, there}
    assert log.revocations.node_ids == {NODE}
    assert log.revocations.removals == {(NODE, 6)}


def test_a_record_whose_predecessor_is_missing_waits_unless_it_withdraws_trust() -> None:
    second = say(NodeApproved(node_id=NODE, invite_serial=5), FIRST)
    third = say(NodeApproved(node_id=NODE, invite_serial=6), second)
    fourth = say(NodeRevoked(node_id=NODE), third)

    log = read(FIRST, third, fourth)

    assert log.records == (FIRST,)
    assert set(log.waiting) == {third, fourth}
    assert log.approved == frozenset()
    assert log.revocations.node_ids == {NODE}


def test_nobody_else_writes_into_the_log() -> None:
    other = Lab(seed=9)
    mallory = new_operator("mallory", other)
    stranger = say(NodeRevoked(node_id=NODE), FIRST, LAB.new_signer())
    foreigner = say(OperatorAdded(certificate_der=mallory.certificate.der), FIRST, mallory.signer)
    broken = say(OperatorAdded(certificate_der=b"not a certificate"), FIRST)

    log = read(FIRST, stranger, foreigner, broken)

    assert log.records == (FIRST,)
    assert sorted(rules(log)) == sorted(
        [Rule.UNKNOWN_OPERATOR, Rule.FOREIGN_AUTHORITY, Rule.UNKNOWN_OPERATOR]
    )


def test_a_record_in_a_wrong_place_is_refused() -> None:
    wrong = sign_record(replace(SECOND.record, sequence=5), ALICE.signer)

    log = read(FIRST, wrong)

    assert rules(log) == [Rule.CHAIN_ORDER]
    assert log.refused[0][1].line == "operator record 5 stands where 2 should"


@pytest.mark.parametrize("written", [NOW - 3601, NOW + 1826 * 86_400 + 1])
def test_a_record_of_a_time_when_its_operator_was_none_is_refused(written: int) -> None:
    record = replace(SECOND.record, written_unix_seconds=written)

    log = read(FIRST, sign_record(record, ALICE.signer))

    assert rules(log) == [Rule.LIFETIME]


def test_only_the_authority_revokes_an_operator() -> None:
    by_bob = say(CertificateRevoked(serial=ALICE.operator.serial), SECOND, BOB.signer)

    log = read(FIRST, SECOND, by_bob)

    assert rules(log) == [Rule.AUTHORITY_ONLY]
    assert ALICE.operator.operator_id in log.operators


def test_of_a_revoked_operator_only_what_came_before_stands() -> None:
    before = say(NodeApproved(node_id=NODE, invite_serial=5), SECOND)
    revocation = say(
        CertificateRevoked(serial=ALICE.operator.serial, note="stolen"), before, LAB.keys.signer
    )
    after = say(NodeRevoked(node_id=NODE), revocation)
    beside = say(NodeApproved(node_id=NODE, invite_serial=6), before)
    by_bob = say(NodeRemoved(node_id=NODE, serial=9), revocation, BOB.signer)

    log = read(FIRST, SECOND, before, revocation, after, beside, by_bob)

    assert rules(log) == [Rule.REVOKED_OPERATOR, Rule.REVOKED_OPERATOR]
    assert set(log.records) == {FIRST, SECOND, before, revocation, by_bob}
    assert set(log.operators) == {BOB.operator.operator_id}
    assert log.approved == {(NODE, 5)}
    assert log.revocations.node_ids == frozenset()
    assert ALICE.operator.serial in log.revocations.serials


def test_records_that_several_members_know_are_gathered_once() -> None:
    assert gather((SECOND, FIRST), (FIRST,), ()) == (FIRST, SECOND)
