"""An operators' log says the same to everybody who has the same records."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.enrolment import add_operator
from cluster.identity.operator_log import gather, read_log
from cluster.identity.operator_records import (
    CertificateRevoked,
    NodeApproved,
    NodeRevoked,
    OperatorAdded,
    OperatorRecord,
    SignedRecord,
    Statement,
    log_root,
    sign_record,
)
from cluster.identity.refusals import Rule
from cluster.ids import NodeId, OperatorId, parse_node_name
from cluster.keyring import Ed25519Verifier, read_certificate
from tests.identities import NOW, Lab

LAB = Lab()
AUTHORITY = LAB.keys.authority
ALICE, BOB = (
    add_operator(
        LAB.keys, parse_node_name(name), now_unix_seconds=NOW, random_bytes=LAB.random_bytes
    )
    for name in ("alice", "bob")
)
SIGNERS = (ALICE.signer, BOB.signer, LAB.keys.signer)
STATEMENTS: tuple[Statement, ...] = (
    OperatorAdded(certificate_der=ALICE.certificate.der),
    OperatorAdded(certificate_der=BOB.certificate.der),
    CertificateRevoked(serial=ALICE.operator.serial),
    CertificateRevoked(serial=7),
    NodeRevoked(node_id=NodeId(b"1" * 16)),
    NodeApproved(node_id=NodeId(b"2" * 16), invite_serial=5),
)


@st.composite
def trees(draw: st.DrawFn) -> list[SignedRecord]:
    """Records that follow each other in any way, by any signer, often forked."""
    records: list[SignedRecord] = []
    for number in range(draw(st.integers(0, 8))):
        after = None if not records else records[draw(st.integers(0, len(records) - 1))]
        signer = draw(st.sampled_from(SIGNERS))
        record = OperatorRecord(
            cluster_id=AUTHORITY.cluster_id,
            sequence=1 if after is None else after.record.sequence + 1,
            previous=log_root(AUTHORITY.cluster_id) if after is None else after.hash,
            statement=STATEMENTS[number] if number < 2 else draw(st.sampled_from(STATEMENTS)),
            signed_by=OperatorId.of_public_key(signer.public_key),
            written_unix_seconds=NOW + number,
        )
        records.append(sign_record(record, signer))
    return records


def read(records: list[SignedRecord]) -> object:
    return read_log(
        records, AUTHORITY, verifier=Ed25519Verifier(), read_certificate=read_certificate
    )


@settings(max_examples=150, deadline=None)
@given(records=trees(), seed=st.integers(0, 1000))
def test_the_order_of_arrival_does_not_matter(records: list[SignedRecord], seed: int) -> None:
    shuffled = random.Random(seed).sample(records, len(records))

    assert read(shuffled) == read(records)
    assert read([*gather(shuffled, records)]) == read(records)


@settings(max_examples=150, deadline=None)
@given(records=trees())
def test_every_record_is_somewhere_and_only_once(records: list[SignedRecord]) -> None:
    log = read_log(
        records, AUTHORITY, verifier=Ed25519Verifier(), read_certificate=read_certificate
    )

    places = [*log.records, *log.waiting, *(signed for signed, _ in log.refused)]
    assert sorted(one.hash for one in places) == sorted({one.hash for one in records})
    for operator in (ALICE.operator, BOB.operator):
        if operator.operator_id in log.operators:
            assert operator.serial not in log.revocations.serials


@settings(max_examples=150, deadline=None)
@given(records=trees(), count=st.integers(0, 8))
def test_what_withdraws_trust_stays_withdrawn_as_records_arrive(
    records: list[SignedRecord], count: int
) -> None:
    verifier = Ed25519Verifier()
    some = read_log(
        records[:count], AUTHORITY, verifier=verifier, read_certificate=read_certificate
    )
    everything = read_log(records, AUTHORITY, verifier=verifier, read_certificate=read_certificate)

    taken_back = some.revocations.node_ids - everything.revocations.node_ids
    # Only where the operator who said so turns out to have been revoked.
    if taken_back:
        assert Rule.REVOKED_OPERATOR in {refused.rule for _, refused in everything.refused}
