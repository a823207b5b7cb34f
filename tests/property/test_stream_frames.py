"""Frames of streams: any value comes back, and any bytes give a frame or one kind of error."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.codec import DOCUMENT_BYTES_MAX, decode_document, encode_document
from cluster.errors import Malformed, Misuse
from cluster.gossip.messages import Address
from cluster.stream_frames import (
    BODY_BYTES_MAX,
    End,
    Fault,
    Frame,
    FrameReader,
    Hello,
    Part,
    Request,
    decode_frame,
    encode_frame,
)

words = st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), max_size=40)
certificates = st.binary(min_size=1, max_size=900)
frames: st.SearchStrategy[Frame] = st.one_of(
    st.builds(
        Hello,
        certificate=certificates,
        issuer_certificate=certificates,
        advertised=words.map(Address),
        seen=words.map(Address),
        agent_version=words,
    ),
    st.builds(Request, kind=words, body=st.binary(max_size=2000)),
    st.builds(Part, body=st.binary(max_size=2000)),
    st.just(End()),
    st.builds(Fault, line=words),
)
HELLO = Hello(
    certificate=b"c",
    issuer_certificate=b"i",
    advertised=Address("a:1"),
    seen=Address("b:2"),
    agent_version="0.2.0",
)


def read_all(reader: FrameReader) -> list[Frame | None]:
    found = []
    while (document := reader.next_document()) is not None:
        found.append(decode_frame(document))
    return found


@given(st.lists(frames, max_size=6), st.lists(st.integers(1, 700), min_size=1, max_size=40))
def test_frames_come_back_however_the_stream_is_cut(sent: list[Frame], sizes: list[int]) -> None:
    stream = b"".join(encode_frame(frame) for frame in sent)
    reader = FrameReader()
    found: list[Frame | None] = []

    offset = 0
    while offset < len(stream):
        size = sizes[len(found) % len(sizes)]
        reader.feed(stream[offset : offset + size])
        offset += size
        found.extend(read_all(reader))

    assert found == sent
    assert not reader.is_within_frame


@given(st.binary(max_size=400))
def test_any_bytes_are_a_frame_or_malformed(data: bytes) -> None:
    reader = FrameReader()
    reader.feed(data)

    try:
        read_all(reader)
        decode_frame(data)
    except Malformed:
        pass


@given(frames, st.data())
def test_one_changed_byte_is_a_frame_or_malformed(frame: Frame, data: st.DataObject) -> None:
    document = bytearray(encode_frame(frame)[4:])
    place = data.draw(st.integers(0, len(document) - 1))
    document[place] ^= data.draw(st.integers(1, 255))

    try:
        found = decode_frame(bytes(document))
    except Malformed:
        return

    assert found is None or encode_frame(found)


@given(frames)
def test_fields_of_a_later_version_are_ignored(frame: Frame) -> None:
    fields = decode_document(encode_frame(frame)[4:])

    again = decode_frame(encode_document((*fields, "later", (1, 2), None)))

    assert again == frame


@pytest.mark.parametrize(
    "document",
    [
        pytest.param((), id="empty"),
        pytest.param((1,), id="no-kind"),
        pytest.param((2, "end"), id="later-format"),
        pytest.param((True, "end"), id="truth-for-format"),
        pytest.param((1, 7), id="kind-is-a-number"),
        pytest.param((1, "x" * 65), id="kind-too-long"),
        pytest.param((1, "hello", b"c", b"i", "a:1", "b:2"), id="hello-lacks-a-field"),
        pytest.param((1, "hello", b"", b"i", "a:1", "b:2", ""), id="hello-without-certificate"),
        pytest.param((1, "hello", b"c" * 8193, b"i", "a", "b", ""), id="huge-certificate"),
        pytest.param((1, "hello", b"c", b"i", "a\n1", "b:2", ""), id="address-of-two-lines"),
        pytest.param((1, "hello", b"c", b"i", "a" * 263, "b:2", ""), id="address-too-long"),
        pytest.param((1, "request", "kind"), id="request-without-body"),
        pytest.param((1, "request", "kind", "text"), id="request-with-text"),
        pytest.param((1, "part"), id="empty-part"),
        pytest.param((1, "fault", b"bytes"), id="fault-without-line"),
    ],
)
def test_what_is_no_frame_is_malformed(document: tuple[object, ...]) -> None:
    with pytest.raises(Malformed):
        decode_frame(encode_document(document))  # type: ignore[arg-type]  # on purpose


def test_a_kind_of_a_later_version_is_none() -> None:
    assert decode_frame(encode_document((1, "gossip-about", b"x"))) is None


def test_a_fault_of_many_lines_is_shown_as_one() -> None:
    frame = decode_frame(encode_document((1, "fault", "no\x1b[31m\nreally" + "x" * 1000)))

    assert isinstance(frame, Fault)
    assert frame.line.startswith("no [31m really")
    assert len(frame.line) == 300


@pytest.mark.parametrize("length", [0, DOCUMENT_BYTES_MAX + 1, 2**32 - 1])
def test_a_length_that_no_document_has_is_malformed_before_anything_is_kept(length: int) -> None:
    reader = FrameReader()
    reader.feed(struct.pack(">I", length))

    with pytest.raises(Malformed, match=f"a frame of {length} bytes"):
        reader.next_document()


def test_the_largest_body_fits_and_a_larger_one_is_a_bug_of_ours() -> None:
    whole = Request(kind="k" * 64, body=bytes(BODY_BYTES_MAX))

    assert decode_frame(encode_frame(whole)[4:]) == whole
    with pytest.raises(Misuse, match="at most 65536 are sent"):
        encode_frame(Part(body=bytes(DOCUMENT_BYTES_MAX)))


def test_bytes_of_the_golden_frames() -> None:
    """What a second implementation has to write; a change here breaks every running cluster."""
    golden: dict[str, Frame] = {
        "00000006 92 01 a3656e64": End(),
        "0000001c 97 01 a568656c6c6f c40163 c40169 a3613a31 a3623a32 a5302e322e30": HELLO,
        "0000000f 94 01 a772657175657374 a16b c40162": Request(kind="k", body=b"b"),
        "0000000a 93 01 a470617274 c40162": Part(body=b"b"),
        "0000000b 93 01 a56661756c74 a26e6f": Fault(line="no"),
    }

    assert [encode_frame(frame) for frame in golden.values()] == [
        bytes.fromhex(written) for written in golden
    ]
