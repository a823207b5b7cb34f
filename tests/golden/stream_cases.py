"""The same for what two nodes say over a stream: frames, papers, questions, reports, states."""

from dataclasses import replace

from cluster.assembly import chain_of
from cluster.codec import Value, encode_document
from cluster.gossip.messages import Address
from cluster.identity.admission import AdmissionRecord, SignedAdmission, sign_admission
from cluster.identity.operator_records import (
    NodeRevoked,
    OperatorRecord,
    SignedRecord,
    log_root,
    sign_record,
)
from cluster.ids import NodeName, OperatorId, RackId, Role
from cluster.papers import (
    PapersRequest,
    decode_paper,
    decode_request,
    encode_paper,
    encode_request,
    mark_of,
)
from cluster.rack.model import GpuDigest, NodeState, RackState, Total
from cluster.rack.report import NodeReport, decode_report, encode_report
from cluster.rack.rows import Credit, Promise, Row, Wants
from cluster.rack.units import BudgetVersion, CurrencyId, Epoch
from cluster.rack.wire import (
    decode_node_state,
    decode_rack_state,
    encode_node_state,
    encode_rack_state,
)
from cluster.stream_frames import (
    End,
    Fault,
    Frame,
    Hello,
    Part,
    Request,
    decode_frame,
    encode_frame,
)
from tests.golden.cases import Golden
from tests.golden.keys import AUTHORITY, CLUSTER, N1, NOW, SIGNER, A, B

CHAIN = chain_of(N1)
ADMISSION: SignedAdmission = sign_admission(
    AdmissionRecord(
        cluster_id=CLUSTER,
        invite_serial=0x0102030405,
        node_id=B,
        name=NodeName("gpu-02"),
        rack=RackId("r01"),
        roles=(Role("power"), Role("work")),
        uses=2,
        admitted_by=A,
        admitted_unix_seconds=NOW,
    ),
    SIGNER,
)
RECORD: SignedRecord = sign_record(
    OperatorRecord(
        cluster_id=CLUSTER,
        sequence=1,
        previous=log_root(CLUSTER),
        statement=NodeRevoked(node_id=B, note="stolen"),
        signed_by=OperatorId(CLUSTER),
        written_unix_seconds=NOW,
    ),
    AUTHORITY.signer,
)
HELLO = Hello(
    certificate=CHAIN.node_der,
    issuer_certificate=CHAIN.issuer_der,
    advertised=Address("10.0.0.1:7947"),
    seen=Address("10.0.0.2:41000"),
    agent_version="0.2.0",
)
RACK_CURRENCY = CurrencyId("rack:r01")
POWER_ROW = Row(
    node_id=A,
    stamp=(7 << 32) + 5,
    epoch=Epoch(2, 1),
    shares=250_000_000,
    version=BudgetVersion(sequence=4, watts=41_440),
    wants=Wants(demand_watts=2100, minimum_watts=0, maximum_watts=4000, priority=2, gang="g"),
    promises=(Promise(to=B, sequence=3, shares=1_000_000),),
    credits=(Credit(giver=B, sequence=8),),
)
PLAIN_ROW = (
    *(bytes(A), (7 << 32) + 5, (2, 1), 250_000_000, (4, 41_440)),
    *((2100, 0, 4000, 2, 1000, "g"), False, False),
    *(((bytes(B), 3, 1_000_000),), ((bytes(B), 8),)),
)
NODE_STATE = NodeState(
    agent_version="0.2.0",
    power_draw_watts=3210.5,
    power_draw_source="dcmi",
    power_draw_age_seconds=0.4,
    gpu_draw_watts=2400.0,
    gpu_count=1,
    gpu_healthy_count=1,
    gpus=(GpuDigest(index=0, is_up=True, power_draw_watts=600.0, is_throttled=False),),
    flags=("capped",),
    loop_lag_seconds=0.002,
)
PLAIN_GPU: Value = (0, True, 6000, None, None, None, None, False)
BOUNDED_STATE = replace(NODE_STATE, power_lowest_watts=1840.0, power_highest_watts=7100.0)
RACK_STATE = RackState(
    rack=RackId("r01"),
    counts=(("alive", 2),),
    power_draw_watts=Total(value=6400.0, known_count=2, age_seconds=1.5),
    gpu_count=16,
    versions=(("0.2.0", 2),),
)
REPORT = NodeReport(
    node_id=A,
    status="alive",
    status_age_seconds=60.0,
    heard_age_seconds=0.1,
    state=b"state",
    state_age_seconds=0.1,
    view_digest=2**64 - 1,
)


def frames() -> list[tuple[Frame, str, Value]]:
    """Each kind of frame: value, what it says, plain fields."""
    return [
        (
            HELLO,
            "the first of each side",
            (
                1,
                "hello",
                CHAIN.node_der,
                CHAIN.issuer_der,
                "10.0.0.1:7947",
                "10.0.0.2:41000",
                "0.2.0",
            ),
        ),
        (Request(kind="papers", body=b"body"), "a question", (1, "request", "papers", b"body")),
        (Part(body=b"paper"), "a piece of the answer", (1, "part", b"paper")),
        (End(), "the answer is complete", (1, "end")),
        (Fault(line="not for you"), "there is none", (1, "fault", "not for you")),
    ]


def _papers() -> list[Golden]:
    papers = (
        (CHAIN, "chain", "certificates of a node", (CHAIN.node_der, CHAIN.issuer_der)),
        (
            ADMISSION,
            "admission",
            "A let B in",
            (ADMISSION.payload, ADMISSION.signature),
        ),
        (
            RECORD,
            "operator-record",
            "the authority revoked B",
            (RECORD.payload, RECORD.signature),
        ),
    )
    return [
        Golden(f"paper-{kind}", says, encode_paper(paper), decode_paper, paper, (1, kind, *fields))
        for paper, kind, says, fields in papers
    ]


def _documents() -> list[Golden]:
    """Inner documents that the signatures of papers are over, and bodies of questions."""
    marks = tuple(mark_of(encode_paper(one)) for one in (CHAIN, ADMISSION))
    offered = (encode_paper(RECORD),)
    request = PapersRequest(node_ids=(A, B), marks=marks, offered=offered)
    return [
        Golden(
            "papers-request",
            "the body of a question for papers of A and B",
            encode_request(request),
            decode_request,
            request,
            (1, bytes(A) + bytes(B), marks[0] + marks[1], offered),
        ),
        Golden(
            "report",
            "a part of the answer to `rack` and `view`",
            encode_report(REPORT),
            decode_report,
            REPORT,
            (1, bytes(A), "alive", 600, 1, b"state", 1, 2**64 - 1),
        ),
        Golden(
            "node-state",
            "what kind 2 carries",
            encode_node_state(NODE_STATE),
            decode_node_state,
            NODE_STATE,
            (
                *(1, "0.2.0", 32105, "dcmi", False, 4, None, 24000, None, None, 1, 1, None),
                *((PLAIN_GPU,), None, None, None, None, None, ("capped",), 2),
            ),
        ),
        Golden(
            "node-state-with-power",
            "the same with an account of the power ledger",
            encode_node_state(replace(NODE_STATE, power_rows=((RACK_CURRENCY, POWER_ROW),))),
            decode_node_state,
            replace(NODE_STATE, power_rows=((RACK_CURRENCY, POWER_ROW),)),
            (
                *(1, "0.2.0", 32105, "dcmi", False, 4, None, 24000, None, None, 1, 1, None),
                *((PLAIN_GPU,), None, None, None, None, None, ("capped",), 2),
                (("rack:r01", encode_document(PLAIN_ROW)),),
            ),
        ),
        Golden(
            "rack-state",
            "what kind 3 carries",
            encode_rack_state(RACK_STATE),
            decode_rack_state,
            RACK_STATE,
            (
                *(1, "r01", (("alive", 2),), (64000, 2, False, 15), (None, 0, False, None)),
                *(None, 16, None, None, None, (("0.2.0", 2),)),
            ),
        ),
    ]


def _bounded() -> list[Golden]:
    """A state with what its machine can be held to."""
    return [
        Golden(
            "node-state-with-bounds",
            "the same with what the machine can be held to, and can draw",
            encode_node_state(BOUNDED_STATE),
            decode_node_state,
            BOUNDED_STATE,
            (
                *(1, "0.2.0", 32105, "dcmi", False, 4, None, 24000, None, None, 1, 1, None),
                *((PLAIN_GPU,), None, None, None, None, None, ("capped",), 2),
                *((), 18400, 71000),
            ),
        ),
    ]


def stream_cases() -> list[Golden]:
    """Frames, papers, and what is in them."""
    cases = [
        Golden(
            f"frame-{type(frame).__name__.lower()}",
            says,
            encode_frame(frame),
            _read_frame,
            frame,
            plain,
        )
        for frame, says, plain in frames()
    ]
    return [*cases, *_papers(), *_documents(), *_bounded()]


def _read_frame(data: bytes) -> Frame | None:
    return decode_frame(data[4:])
