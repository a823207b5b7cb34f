"""Signed documents have one encoding, and nothing else is read."""

import msgpack
import pytest

from cluster.codec import decode_document, encode_document
from cluster.errors import Malformed, Misuse

DOCUMENT = (1, "kind", b"\x00\xff", None, True, (2, ("x", -7)), 2**63)


def test_a_document_has_these_bytes() -> None:
    assert encode_document((1, "kind", b"\x00\xff", None, True, (2,))).hex() == (
        "96" "01" "a46b696e64" "c40200ff" "c0" "c3" "9102"
    )  # fmt: skip


def test_a_document_is_read_back() -> None:
    assert decode_document(encode_document(DOCUMENT)) == DOCUMENT


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x01", id="no-array"),
        pytest.param(b"\x80", id="a-map"),
        pytest.param(b"\x91\x80", id="a-map-inside"),
        pytest.param(b"\x91\x81\x01\x02", id="a-full-map-inside"),
        pytest.param(b"\x91\xcc\x01", id="a-longer-number"),
        pytest.param(b"\x91\xd9\x01x", id="a-longer-text"),
        pytest.param(b"\xdc\x00\x01\x01", id="a-longer-array"),
        pytest.param(b"\x91\xcb" + bytes(8), id="a-float"),
        pytest.param(b"\x91\xd6\xff\x00\x00\x00\x00", id="a-timestamp"),
        pytest.param(b"\x91\xd4\x01\x00", id="an-extension"),
        pytest.param(b"\x91\xa1\xff", id="not-utf-8"),
        pytest.param(b"\x91\x01\x01", id="something-behind"),
        pytest.param(b"\x92\x01", id="cut-short"),
        pytest.param(b"\x91" * 100 + b"\x01", id="deep"),
        pytest.param(b"\x91" * 5000 + b"\x01", id="very-deep"),
        pytest.param(b"\xdd\xff\xff\xff\xff", id="a-huge-array"),
        pytest.param(msgpack.packb([b"x" * 70_000]), id="too-large"),
    ],
)
def test_bytes_that_are_not_the_one_encoding_are_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        decode_document(data)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param((1.5,), id="float"),
        pytest.param(({},), id="map"),
        pytest.param(([],), id="list"),
        pytest.param((2**64,), id="large"),
        pytest.param((((((1,),),),),), id="deep"),
        pytest.param(("\ud800",), id="half-a-character"),
    ],
)
def test_what_has_no_single_encoding_is_a_bug_of_ours(document: tuple[object, ...]) -> None:
    with pytest.raises(Misuse):
        encode_document(document)
