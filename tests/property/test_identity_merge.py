"""Whoever has the same records comes to the same verdict, in whatever order they came."""

from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.identity.admission import AdmissionRecord, Admissions, SignedAdmission
from cluster.identity.certificates import Window
from cluster.identity.chains import IssuingRights
from cluster.identity.extensions import Kind, Terms
from cluster.identity.operator_log import gather
from cluster.identity.operator_records import (
    NodeRevoked,
    OperatorRecord,
    SignedRecord,
    encode_record,
    log_root,
)
from cluster.identity.settlement import Settlement, settle
from cluster.ids import ClusterId, KeyId, NodeId, NodeName, OperatorId, RackId

CLUSTER = ClusterId(b"c" * 16)
RACK = RackId("r01")
NODES = [NodeId(bytes([number]) * 16) for number in range(1, 7)]
FOUNDING, LIMITED, OPEN = 1, 2, 3
END = 20


def rights(serial: int, uses: int | None, *, may_found: bool = False) -> IssuingRights:
    return IssuingRights(
        kind=Kind.INVITE,
        key_id=KeyId(bytes([serial]) * 16),
        serial=serial,
        racks=(RACK,),
        terms=Terms(kind=Kind.INVITE, admit_until_unix_seconds=END, uses=uses, may_found=may_found),
        window=Window(begin_unix_seconds=0, end_unix_seconds=1000),
    )


INVITES = {
    FOUNDING: rights(FOUNDING, 1, may_found=True),
    LIMITED: rights(LIMITED, 2),
    OPEN: rights(OPEN, None),
}


@st.composite
def admissions(draw: st.DrawFn) -> SignedAdmission:
    node_id = draw(st.sampled_from(NODES))
    record = AdmissionRecord(
        cluster_id=CLUSTER,
        invite_serial=draw(st.sampled_from((FOUNDING, LIMITED, OPEN))),
        node_id=node_id,
        name=NodeName(f"gpu-{node_id[0]}"),
        rack=RACK,
        roles=(),
        uses=draw(st.integers(1, 3)),
        admitted_by=draw(st.sampled_from(NODES)),
        admitted_unix_seconds=draw(st.integers(0, END + 2)),
    )
    # What a signature says is judged before records are gathered.
    return SignedAdmission(record=record, signature=draw(st.binary(min_size=1, max_size=1)) * 64)


SETS = st.lists(admissions(), max_size=12)


@settings(max_examples=300, deadline=None)
@given(one=SETS, two=SETS, three=SETS)
def test_admissions_merge_in_any_order_and_any_number_of_times(
    one: list[SignedAdmission], two: list[SignedAdmission], three: list[SignedAdmission]
) -> None:
    a, b, c = (Admissions().merge(records) for records in (one, two, three))

    assert a.merge(b.records) == b.merge(a.records)
    assert a.merge(b.records).merge(c.records) == a.merge(b.merge(c.records).records)
    assert a.merge(a.records) == a
    assert Admissions().merge(reversed(one)) == a


@settings(max_examples=300, deadline=None)
@given(records=SETS, approved=st.frozensets(st.tuples(st.sampled_from(NODES), st.just(LIMITED))))
def test_what_stands_keeps_the_invites(
    records: list[SignedAdmission], approved: frozenset[tuple[NodeId, int]]
) -> None:
    merged = Admissions().merge(records)

    settlement = settle(merged, invites=INVITES, approved=approved)

    _check_uses(settlement, approved)
    standing = {one.record.node_id for one in settlement.standing}
    for one in settlement.standing:
        record = one.record
        is_approved = (record.node_id, record.invite_serial) in approved
        assert record.admitted_unix_seconds <= END or is_approved
        assert record.admitted_by in standing or is_approved
    # Every record stands, is flagged, or repeats one that stands.
    flagged = [one.admission for one in settlement.flagged]
    for admission in merged.records:
        pair = (admission.record.node_id, admission.record.invite_serial)
        assert (pair in settlement.pairs) != (admission in flagged)


def _check_uses(settlement: Settlement, approved: frozenset[tuple[NodeId, int]]) -> None:
    for serial, limit in ((FOUNDING, 1), (LIMITED, 2)):
        counted = [pair for pair in settlement.pairs if pair[1] == serial and pair not in approved]
        assert len(counted) <= limit
        assert settlement.uses.get(serial, 0) == len(counted)


@settings(max_examples=200, deadline=None)
@given(records=SETS, word=st.tuples(st.sampled_from(NODES), st.just(LIMITED)))
def test_an_approval_lets_nobody_fall_out_of_an_invite(
    records: list[SignedAdmission], word: tuple[NodeId, int]
) -> None:
    merged = Admissions().merge(records)

    before = settle(merged, invites=INVITES)
    after = settle(merged, invites=INVITES, approved=frozenset({word}))

    if {pair for pair in after.pairs if pair not in before.pairs} <= {word}:
        assert before.pairs <= after.pairs


@st.composite
def operator_records(draw: st.DrawFn) -> SignedRecord:
    record = OperatorRecord(
        cluster_id=CLUSTER,
        sequence=draw(st.integers(1, 3)),
        previous=log_root(CLUSTER),
        statement=NodeRevoked(node_id=draw(st.sampled_from(NODES))),
        signed_by=OperatorId(b"o" * 16),
        written_unix_seconds=draw(st.integers(0, 2)),
    )
    signature = draw(st.binary(min_size=1, max_size=1)) * 64
    return SignedRecord(record=record, payload=encode_record(record), signature=signature)


LOGS = st.lists(operator_records(), max_size=8)


@settings(max_examples=200, deadline=None)
@given(one=LOGS, two=LOGS, three=LOGS)
def test_operator_records_gather_in_any_order_and_any_number_of_times(
    one: list[SignedRecord], two: list[SignedRecord], three: list[SignedRecord]
) -> None:
    assert gather(one, two) == gather(two, one)
    assert gather(gather(one, two), three) == gather(one, gather(two, three))
    assert gather(one, one) == gather(one)
