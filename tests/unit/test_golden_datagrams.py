"""The bytes of the wire are those of the golden file, and say what `docs/protocol.md` says."""

import hashlib

import pytest

from cluster.gossip.envelope import Reason, look
from cluster.gossip.held import entry_hash, hold
from cluster.gossip.messages import Kind
from cluster.identity.admission import encode_admission
from cluster.ids import ClusterId
from tests.golden import reader
from tests.golden.cases import SIGNED, STATEMENTS, Golden
from tests.golden.file import PATH, all_cases, read, write
from tests.golden.keys import AUTHORITY, CLUSTER, SIGNER, A
from tests.golden.stream_cases import ADMISSION, CHAIN

CASES = all_cases()
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
PUBLIC_KEYS = {
    "admission": SIGNER.public_key,
    "operator-record": AUTHORITY.signer.public_key,
}


@every_case
def test_this_version_writes_the_pinned_bytes(case: Golden) -> None:
    assert case.encoded == read()[case.name], "the wire has changed; see tests/golden"


@every_case
def test_the_pinned_bytes_are_read_as_what_they_say(case: Golden) -> None:
    assert case.decode(read()[case.name]) == case.value


@every_case
def test_whoever_has_only_the_document_reads_the_same(case: Golden) -> None:
    data = read()[case.name]

    match case.name.partition("-")[0]:
        case "datagram":
            plain = reader.read_datagram(data, SIGNER.public_key)
        case "statement":
            plain = reader.read_statement(data, CLUSTER, SIGNER.public_key)
        case "frame":
            plain = reader.read_frame(data)
        case "paper":
            plain = reader.read_paper(data, PUBLIC_KEYS)
        case _:
            plain = reader.read_array(data)

    assert plain == case.plain


def test_the_file_is_as_it_would_be_written() -> None:
    assert PATH.read_text(encoding="utf-8") == write(), "run `python -m tests.golden`"


def test_every_tag_and_every_kind_is_pinned() -> None:
    pinned = read()

    tags = {reader.read_array(data)[0] for name, data in pinned.items() if "message-" in name}
    kinds = {data[0] for name, data in pinned.items() if name.startswith("statement-")}
    forms = {data[0] for name, data in pinned.items() if name.startswith("datagram-")}
    frames = {reader.read_frame(data)[1] for name, data in pinned.items() if "frame-" in name}
    assert tags == set(range(1, 12))
    assert kinds == set(range(1, 7)) == {int(kind) for kind in Kind}
    assert forms == {0xE1, 0xE2}
    assert frames == {"hello", "request", "part", "end", "fault"}


def test_one_other_bit_is_no_longer_signed() -> None:
    for at in (0, 20, 60, len(SIGNED) - 1):
        damaged = bytearray(SIGNED)
        damaged[at] ^= 1

        with pytest.raises(Exception, match=r"^$"):  # InvalidSignature says nothing
            reader.check_signature(
                SIGNER.public_key, bytes(damaged[-64:]), b"esnode datagram 1\0" + damaged[:-64]
            )


def test_a_datagram_of_another_cluster_is_told_by_its_head() -> None:
    assert look(SIGNED, ClusterId(bytes(16))) is Reason.CLUSTER


def test_the_hash_of_an_entry_is_the_one_of_the_document() -> None:
    content = STATEMENTS[Kind.MEMBER].encoded[:-64]

    content_hash = _blake(content)

    held = hold(STATEMENTS[Kind.MEMBER])
    assert held.content_hash == int.from_bytes(content_hash, "big")
    assert entry_hash(A, held) == int.from_bytes(_blake(bytes(A), content_hash), "big")


def test_the_hash_of_certificates_and_the_marks_of_papers_are_those_of_the_document() -> None:
    both = CHAIN.node_der + CHAIN.issuer_der

    assert CHAIN.hash == hashlib.sha256(both).digest()[:16]
    assert ADMISSION.payload == encode_admission(ADMISSION.record)


def _blake(*parts: bytes) -> bytes:
    joined = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return hashlib.blake2b(joined, digest_size=8).digest()
