"""Agents of this version and of one that has added something understand each other."""

from collections.abc import Callable

import pytest

from cluster.codec import Document, Value, decode_document, encode_document
from cluster.errors import Malformed
from cluster.gossip.effects import Status
from cluster.gossip.messages import Evidence, Kind, Page, Ping, StateDigest, Statement
from cluster.gossip.statements import (
    read_claim,
    read_member,
    read_state,
    read_statement,
    read_summary,
    sign_statement,
)
from cluster.gossip.wire import decode_message, decode_payload, encode_message, join_messages
from cluster.papers import (
    decode_paper,
    decode_papers,
    decode_request,
    encode_paper,
)
from cluster.rack.report import decode_report, encode_report
from cluster.rack.wire import (
    decode_node_state,
    decode_rack_state,
    encode_node_state,
    encode_rack_state,
)
from cluster.stream_frames import decode_frame, encode_frame
from simulations.forgery import FAR, datagram, statement
from simulations.sightings import status_of, view_of
from tests.golden import cases, stream_cases
from tests.golden.keys import CLUSTER, FIRST, SIGNER
from tests.gossip_stories import joined

LATER: Document = ("of a later version", (1, b"x"), None)


def extended(encoded: bytes) -> bytes:
    """The same document with fields behind its end that this version does not know."""
    return encode_document((*decode_document(encoded), *LATER))


def with_longer_items(encoded: bytes, *path: int) -> bytes:
    """The same, in each item of the array at this place of the document."""

    def extend(value: Value, places: tuple[int, ...]) -> Value:
        assert isinstance(value, tuple)
        if not places:
            return tuple((*item, *LATER) for item in value if isinstance(item, tuple))
        at, *rest = places
        return (*value[:at], extend(value[at], tuple(rest)), *value[at + 1 :])

    longer = extend(decode_document(encoded), path)
    assert isinstance(longer, tuple)
    return encode_document(longer)


@pytest.mark.parametrize(("name", "says", "message", "plain"), cases.messages())
def test_a_message_with_more_fields_is_read(
    name: str, says: str, message: object, plain: Value
) -> None:
    assert decode_message(extended(encode_document(plain))) == message  # type: ignore[arg-type]  # each is an array


@pytest.mark.parametrize(
    ("message", "place"),
    [
        pytest.param(Page(begin=b"\x07" + bytes(15), end=b"\xff" * 16, entries=()), 3, id="page"),
        pytest.param(StateDigest(entries=()), 1, id="state-digest"),
    ],
)
def test_an_entry_with_more_fields_is_read(message: Page | StateDigest, place: int) -> None:
    _, _, full, _ = next(one for one in cases.messages() if type(one[2]) is type(message))

    assert decode_message(with_longer_items(encode_message(full), place)) == full


def test_a_ping_of_a_version_that_did_not_know_the_bare_kind_is_read() -> None:
    ping = cases.PING
    fields = (1, ping.nonce, bytes(ping.target), ping.view_digest)

    assert decode_message(encode_document(fields)) == Ping(
        nonce=ping.nonce, target=ping.target, view_digest=ping.view_digest, is_bare=False
    )


@pytest.mark.parametrize(
    ("kind", "read"),
    [
        pytest.param(Kind.MEMBER, read_member, id="member"),
        pytest.param(Kind.STATE, read_state, id="state"),
        pytest.param(Kind.SUMMARY, read_summary, id="summary"),
        pytest.param(Kind.SUSPECT, read_claim, id="suspect"),
        pytest.param(Kind.FAILED, read_claim, id="failed"),
    ],
)
def test_the_body_of_a_statement_with_more_fields_is_read(
    kind: Kind, read: Callable[[bytes], object]
) -> None:
    body = cases.BODIES[kind]
    longer = sign_statement(kind, FIRST, (*body, *LATER), cluster_id=CLUSTER, signer=SIGNER)

    again = read_statement(longer.encoded)

    assert again is not None
    assert read(again.body) == read(encode_document(body))


def test_evidence_of_a_later_version_counts_for_no_more_than_silence() -> None:
    *fields, _ = cases.BODIES[Kind.SUSPECT]

    assert read_claim(encode_document((*fields, 7))).evidence is Evidence.SILENCE


@pytest.mark.parametrize(("frame", "says", "plain"), stream_cases.frames())
def test_a_frame_with_more_fields_is_read(frame: object, says: str, plain: Value) -> None:
    encoded = encode_frame(frame)  # type: ignore[arg-type]  # each is a frame

    assert decode_frame(extended(encoded[4:])) == frame


@pytest.mark.parametrize(
    "paper", [stream_cases.CHAIN, stream_cases.ADMISSION, stream_cases.RECORD], ids=type
)
def test_a_paper_with_more_fields_is_read(paper: object) -> None:
    encoded = encode_paper(paper)  # type: ignore[arg-type]  # each is a paper

    assert decode_paper(extended(encoded)) == paper


@pytest.mark.parametrize(
    ("encoded", "decode"),
    [
        pytest.param(encode_report(stream_cases.REPORT), decode_report, id="report"),
        pytest.param(
            encode_node_state(stream_cases.NODE_STATE), decode_node_state, id="node-state"
        ),
        pytest.param(
            encode_rack_state(stream_cases.RACK_STATE), decode_rack_state, id="rack-state"
        ),
    ],
)
def test_what_is_told_with_more_fields_is_read(
    encoded: bytes, decode: Callable[[bytes], object]
) -> None:
    assert decode(extended(encoded)) == decode(encoded)


def test_a_gpu_and_a_sum_with_more_fields_are_read() -> None:
    state = encode_node_state(stream_cases.NODE_STATE)
    rack = encode_rack_state(stream_cases.RACK_STATE)
    fields = list(decode_document(rack))
    fields[3:5] = [(*total, *LATER) for total in fields[3:5] if isinstance(total, tuple)]

    assert decode_node_state(with_longer_items(state, 13)) == stream_cases.NODE_STATE
    assert decode_rack_state(encode_document(fields)) == stream_cases.RACK_STATE


def test_a_state_of_an_earlier_version_leaves_unknown_what_it_lacks() -> None:
    state = decode_node_state(encode_document((1, "0.1.9", 12)))

    assert state.agent_version == "0.1.9"
    assert state.power_draw_watts == 1.2
    assert state.gpu_count is None
    assert state.gpus == ()


def test_a_request_for_papers_with_more_fields_is_read() -> None:
    request = next(one for one in stream_cases.stream_cases() if one.name == "papers-request")

    assert decode_request(extended(request.encoded)) == request.value


def test_what_is_wholly_unknown_is_passed_over_and_what_is_beside_it_is_read() -> None:
    unknown_statement = bytes([99]) + bytes(110)
    payload = join_messages(
        [
            encode_document((99, "a message of a later version")),
            encode_message(cases.PING),
            encode_document((11, unknown_statement)),
            encode_message(cases.ACK),
        ]
    )
    papers = [encode_document((1, "deed", b"x")), encode_paper(stream_cases.CHAIN)]

    assert decode_payload(payload) == (cases.PING, cases.ACK)
    assert decode_papers(papers) == (stream_cases.CHAIN,)
    assert decode_frame(encode_document((1, "gossip-about", b"x"))) is None


def test_another_format_is_refused_and_not_guessed_at() -> None:
    for decode in (decode_report, decode_node_state, decode_rack_state, decode_request):
        with pytest.raises(Malformed):
            decode(encode_document((2, "something", b"else")))


def test_a_member_whose_record_says_more_is_a_member_and_its_bytes_are_passed_on() -> None:
    """What a relay does not understand still has its origin's signature when it arrives."""
    fleet = joined(4)
    later, observer = fleet.nodes[1], fleet.nodes[0]
    body = (later.introduction.name, later.introduction.rack, (later.address,), b"", *LATER)
    longer: Statement = statement(Kind.MEMBER, FAR, body, later.signer)

    fleet.inject(observer, datagram([longer], later.node_id))
    fleet.run_for(2.0)

    seen = [view_of(fleet, fleet.nodes[at]).get(later.node_id) for at in (0, 2, 3)]
    assert {status_of(fleet, fleet.nodes[at], later) for at in (0, 2, 3)} == {Status.ALIVE}
    assert {None if one is None else one.version.epoch for one in seen} == {2}
