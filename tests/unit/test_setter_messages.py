import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.codec import DOCUMENT_BYTES_MAX, encode_document
from cluster.errors import Malformed
from esnode.readings.host import Absence
from esnode.readings.limits import (
    EnforcedLimit,
    Limit,
    LimitOutcome,
    LimitRange,
    LimitRefused,
    LimitWritten,
)
from esnode.setter.messages import (
    DEVICES_MAX,
    NAME_MAX,
    TEXT_MAX,
    LimitsRead,
    LimitsSet,
    ListRanges,
    RangesListed,
    ReadLimits,
    Refused,
    Reply,
    Request,
    SetLimits,
    decode_reply,
    decode_request,
    encode_reply,
    encode_request,
)

REQUESTS = [
    pytest.param(ListRanges(), id="list"),
    pytest.param(ReadLimits(), id="read"),
    pytest.param(
        SetLimits(limits=(Limit(device="GPU-1", watts=400),), reason="less", source="rack"),
        id="set",
    ),
    pytest.param(SetLimits(limits=(), reason="", source=""), id="set-nothing"),
]

REPLIES = [
    pytest.param(
        RangesListed(
            ranges=(
                LimitRange(
                    device="GPU-1",
                    kind="gpu",
                    minimum_watts=200,
                    maximum_watts=700,
                    default_watts=700,
                ),
                LimitRange(device="intel-rapl:0", kind="cpu", minimum_watts=175, maximum_watts=350),
            ),
            absent=(Absence(what="limit:GPU-2", reason="lost"),),
        ),
        id="ranges",
    ),
    pytest.param(
        LimitsRead(
            limits=(
                EnforcedLimit(device="GPU-1", enforced_watts=500, requested_watts=700),
                EnforcedLimit(device="GPU-2", enforced_watts=None, requested_watts=None),
            ),
            absent=(Absence(what="limit:GPU-2", reason="lost"),),
        ),
        id="limits",
    ),
    pytest.param(
        LimitsSet(
            outcomes=(
                LimitWritten(device="a", asked_watts=400, before_watts=None, enforced_watts=700),
                LimitRefused(device="b", asked_watts=300, enforced_watts=None, reason="no"),
            ),
            journal_fault="full",
        ),
        id="outcomes",
    ),
    pytest.param(LimitsSet(outcomes=()), id="no-outcomes"),
    pytest.param(Refused(reason="no"), id="refused"),
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_request_arrives_as_it_was_sent(request_: Request) -> None:
    assert decode_request(encode_request(request_)) == request_


@pytest.mark.parametrize("reply", REPLIES)
def test_a_reply_arrives_as_it_was_sent(reply: Reply) -> None:
    assert decode_reply(encode_reply(reply)) == reply


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        pytest.param((), "ends too soon", id="empty"),
        pytest.param((1,), "ends too soon", id="no-tag"),
        pytest.param((2, 1), "another version", id="later-version"),
        pytest.param((True, 1), "a bool where a int", id="truth-as-version"),
        pytest.param((1, 9), "no request has the tag 9", id="unknown-tag"),
        pytest.param((1, 101, (), ()), "no request has the tag 101", id="a-reply"),
        pytest.param((1, 3, (), "why"), "ends too soon", id="no-source"),
        pytest.param((1, 3, "all", "why", "rack"), "no list", id="no-limits"),
        pytest.param((1, 3, ("a",), "why", "rack"), "not an array", id="bare-device"),
        pytest.param((1, 3, (("a", -1),), "why", "rack"), "-1 W are no limit", id="negative"),
        pytest.param((1, 3, (("a", "9"),), "why", "rack"), "a str where a int", id="text-watts"),
        pytest.param((1, 3, (("a", None),), "why", "rack"), "a NoneType where", id="no-watts"),
        pytest.param((1, 3, (("a" * 65, 1),), "why", "rack"), "65 characters", id="long-name"),
        pytest.param((1, 3, (), "w" * 301, "rack"), "301 characters", id="long-reason"),
        pytest.param(
            (1, 3, (("a", 1),) * (DEVICES_MAX + 1), "why", "rack"), "no list", id="too-many"
        ),
    ],
)
def test_what_is_no_request_is_malformed(document: tuple[object, ...], complaint: str) -> None:
    data = encode_document(document)  # type: ignore[arg-type]  # odd on purpose

    with pytest.raises(Malformed, match=complaint):
        decode_request(data)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param((1, 1), id="a-request"),
        pytest.param((1, 101, (("a", "tpu", 1, 2, None),), ()), id="unknown-kind"),
        pytest.param((1, 103, ((3, "a", 1, 2, 3),), None), id="unknown-outcome"),
        pytest.param((1, 103, ((1, "a", 1),), None), id="short-outcome"),
        pytest.param((1, 104, None), id="no-reason"),
    ],
)
def test_what_is_no_reply_is_malformed(document: tuple[object, ...]) -> None:
    data = encode_document(document)  # type: ignore[arg-type]  # odd on purpose

    with pytest.raises(Malformed):
        decode_reply(data)


def test_fields_of_a_later_writer_are_ignored() -> None:
    assert decode_request(encode_document((1, 2, "new"))) == ReadLimits()
    assert decode_reply(encode_document((1, 104, "no", 7))) == Refused(reason="no")


def test_long_and_odd_texts_are_cut_and_not_refused() -> None:
    sent = SetLimits(limits=(), reason="ä" * 1000 + "\ud800", source="s" * 1000)

    arrived = decode_request(encode_request(sent))

    assert isinstance(arrived, SetLimits)
    assert arrived.reason.startswith("ääää")
    assert arrived.reason.endswith("...")
    assert len(arrived.reason.encode()) <= TEXT_MAX
    assert len(arrived.source) == NAME_MAX


def test_the_longest_messages_fit_into_a_document() -> None:
    name = "n" * NAME_MAX
    text = "ä" * TEXT_MAX
    refused: LimitOutcome = LimitRefused(
        device=name, asked_watts=1 << 40, enforced_watts=1 << 40, reason=text
    )
    limits = LimitRange(
        device=name,
        kind="gpu",
        minimum_watts=1 << 40,
        maximum_watts=1 << 40,
        default_watts=1 << 40,
    )
    absent = (Absence(what=name, reason=text),) * DEVICES_MAX

    longest = [
        encode_reply(LimitsSet(outcomes=(refused,) * DEVICES_MAX, journal_fault=text)),
        encode_reply(RangesListed(ranges=(limits,) * DEVICES_MAX, absent=absent)),
    ]

    assert max(len(data) for data in longest) <= DOCUMENT_BYTES_MAX
    assert all(decode_reply(data) for data in longest)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_malformed(data: bytes) -> None:
    for decode in (decode_request, decode_reply):
        try:
            decode(data)
        except Malformed:
            continue


plain = st.none() | st.booleans() | st.integers(-3, 1 << 50) | st.text(max_size=70)
fields = st.lists(
    plain | st.lists(plain | st.lists(plain, max_size=6).map(tuple), max_size=4).map(tuple),
    max_size=4,
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([1, 2, 3, 101, 102, 103, 104]), fields)
def test_any_fields_are_a_message_or_malformed(tag: int, rest: list[object]) -> None:
    data = encode_document((1, tag, *rest))  # type: ignore[arg-type]  # odd on purpose

    for decode in (decode_request, decode_reply):
        try:
            decode(data)
        except Malformed:
            continue
