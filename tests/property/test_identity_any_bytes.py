"""Whatever comes in, out comes a value or our own error."""

import base64
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.codec import decode_document, encode_document
from cluster.enrolment import open_invite
from cluster.errors import PeerFault
from cluster.identity.admission import decode_admission
from cluster.identity.chains import NodeIdentity, judge_authority, judge_node
from cluster.identity.operator_records import decode_record
from cluster.identity.refusals import Refused
from cluster.identity.tokens import PREFIX, InviteToken, parse_token, print_token
from cluster.ids import NodeId, parse_node_name, parse_rack, parse_roles
from cluster.keyring import (
    Ed25519Signer,
    Ed25519Verifier,
    read_certificate,
    read_certificates_pem,
    write_certificates_pem,
)
from tests.identities import Lab

LAB = Lab()
NODE = LAB.join(LAB.invite(), "gpu-17")
VERIFIER = Ed25519Verifier()
CHAIN_PEM = write_certificates_pem(*NODE.chain)
KEY_PEM = NODE.signer.to_pem()


@st.composite
def mutations(draw: st.DrawFn, original: bytes) -> bytes:
    """Some bytes changed, some cut out, some put in."""
    data = bytearray(original)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        match draw(st.sampled_from(("change", "cut", "insert"))):
            case "change" if data:
                data[at] = draw(st.integers(0, 255))
            case "cut":
                del data[at : at + draw(st.integers(1, 40))]
            case _:
                data[at:at] = draw(st.binary(min_size=1, max_size=8))
    return bytes(data)


def attempt(parse: Callable[[Any], Any], argument: object) -> tuple[Any, str]:
    """The value, or nothing and the line that says why. Any other error ends the test."""
    try:
        return parse(argument), "read"
    except PeerFault as fault:
        return None, str(fault)


@settings(max_examples=400, deadline=None)
@given(data=st.one_of(mutations(NODE.chain[0].der), mutations(NODE.chain[1].der), st.binary()))
def test_a_changed_certificate_is_unreadable_or_refused(data: bytes) -> None:
    if data in {one.der for one in NODE.chain}:
        return

    certificate, line = attempt(read_certificate, data)

    assert "\n" not in line
    if certificate is None:
        return
    for chain in ((certificate, NODE.chain[1]), (NODE.chain[0], certificate), (certificate,)):
        assert isinstance(judge_node(chain, LAB.keys.authority, VERIFIER), Refused)


@settings(max_examples=200, deadline=None)
@given(data=mutations(LAB.root.der))
def test_a_changed_authority_is_unreadable_or_refused(data: bytes) -> None:
    if data == LAB.root.der:
        return

    certificate, _ = attempt(read_certificate, data)

    assert certificate is None or isinstance(judge_authority(certificate, VERIFIER), Refused)


@settings(max_examples=200, deadline=None)
@given(data=st.one_of(mutations(CHAIN_PEM), mutations(KEY_PEM), st.binary()))
def test_a_changed_file_is_unreadable_or_read(data: bytes) -> None:
    for parse in (read_certificates_pem, Ed25519Signer.from_pem):
        _, line = attempt(parse, data)
        assert "\n" not in line


@settings(max_examples=100, deadline=None)
@given(key=st.binary(max_size=40), signature=st.binary(max_size=80), message=st.binary())
def test_verifying_never_raises(key: bytes, signature: bytes, message: bytes) -> None:
    assert not VERIFIER.verify(public_key=key, signature=signature, message=message)


TOKEN = print_token(
    InviteToken(
        authority_der=LAB.root.der,
        invite_der=NODE.chain[1].der,
        invite_seed=b"s" * 32,
        seeds=("gpu-01:7947",),
    )
)


@settings(max_examples=300, deadline=None)
@given(
    text=st.one_of(
        st.text(),
        st.text().map(lambda text: PREFIX + text),
        st.binary().map(lambda data: PREFIX + base64.urlsafe_b64encode(data).decode()),
        mutations(TOKEN.encode()).map(lambda data: data.decode(errors="replace")),
    )
)
def test_any_text_is_a_token_or_one_line(text: str) -> None:
    token, line = attempt(parse_token, text)

    assert len(line.splitlines()) == 1
    assert len(line) < 200
    assert token is None or "".join(text.split()).rstrip("=") == print_token(token)


@settings(max_examples=100, deadline=None)
@given(authority=mutations(LAB.root.der), invite=mutations(NODE.chain[1].der))
def test_a_token_with_changed_certificates_opens_not(authority: bytes, invite: bytes) -> None:
    for authority_der, invite_der in (
        (authority, NODE.chain[1].der),
        (LAB.root.der, invite),
        (authority, invite),
    ):
        if (authority_der, invite_der) == (LAB.root.der, NODE.chain[1].der):
            continue
        token = InviteToken(
            authority_der=authority_der, invite_der=invite_der, invite_seed=b"s" * 32, seeds=()
        )
        opened, line = attempt(open_invite, token)
        assert opened is None
        assert len(line.splitlines()) == 1


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.binary(max_size=40),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    ),
    lambda inner: st.lists(inner, max_size=4).map(tuple),
    max_leaves=6,
)


def depth(value: object) -> int:
    return 1 + max(map(depth, value), default=0) if isinstance(value, tuple) else 0


@settings(max_examples=200, deadline=None)
@given(document=st.lists(VALUES, max_size=6).map(tuple).filter(lambda value: depth(value) <= 4))
def test_a_document_has_one_encoding_and_reads_back(document: tuple[object, ...]) -> None:
    data = encode_document(document)

    assert decode_document(data) == document
    assert encode_document(decode_document(data)) == data


@settings(max_examples=300, deadline=None)
@given(data=st.binary())
def test_any_bytes_are_a_document_or_refused(data: bytes) -> None:
    for decode in (decode_document, decode_admission, decode_record):
        attempt(decode, data)


@settings(max_examples=200, deadline=None)
@given(text=st.text())
def test_any_text_is_a_name_or_one_line(text: str) -> None:
    for parse in (parse_node_name, parse_rack, parse_roles, NodeId.parse):
        _, line = attempt(parse, text)
        assert len(line.splitlines()) == 1


def test_the_unchanged_chain_is_a_node() -> None:
    assert isinstance(judge_node(NODE.chain, LAB.keys.authority, VERIFIER), NodeIdentity)
