"""What proves who is in: certificates, admissions and operators' records, as they travel and lie on
disk.

Its own file because the stream, the disk and the gossip carry the same bytes, so that what was
learned from a peer is kept as it came. A paper is one document; a kind that only a later version
knows is passed over. It judges nothing: see `roster`. Layout: `docs/protocol.md`, Streams.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from cluster.codec import decode_document, encode_document
from cluster.errors import Malformed
from cluster.identity.admission import SignedAdmission, decode_admission
from cluster.identity.operator_records import SignedRecord, read_signed_record
from cluster.ids import KEY_ID_BYTES, NodeId

_FORMAT = 1
MARK_BYTES = 8
"""Of a paper, for "I have this": a collision costs one paper that comes by another way."""
CERTIFICATE_BYTES_MAX = 4096
"""Six times what ours take; a bound on what a stranger can make us parse."""
OFFER_MAX = 64
"""Papers that may come with a request."""
WANTED_MAX = 512
"""Papers that are asked back for at once."""
_WANTED = "wanted"
MARKS_MAX = 6000
"""Of papers named in a request: 48 kB. Beyond that some come again, and are passed over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A node's certificate and that of the invite or issuer which signed it, in DER."""

    node_der: bytes = field(repr=False)
    issuer_der: bytes = field(repr=False)

    @property
    def hash(self) -> bytes:
        """What the node's member record names."""
        return hashlib.sha256(self.node_der + self.issuer_der).digest()[:KEY_ID_BYTES]


Paper: TypeAlias = Chain | SignedAdmission | SignedRecord


def encode_paper(paper: Paper) -> bytes:
    """The one encoding of a paper."""
    match paper:
        case Chain(node_der=node_der, issuer_der=issuer_der):
            return encode_document((_FORMAT, "chain", node_der, issuer_der))
        case SignedAdmission():
            return encode_document((_FORMAT, "admission", paper.payload, paper.signature))
        case SignedRecord(payload=payload, signature=signature):
            return encode_document((_FORMAT, "operator-record", payload, signature))


def decode_paper(data: bytes) -> Paper | None:
    """A paper; None for one of a kind that only a later version knows.

    Raises:
        Malformed: it is none.
    """
    match decode_document(data):
        case (1, "chain", bytes() as node_der, bytes() as issuer_der, *_):
            if max(len(node_der), len(issuer_der)) > CERTIFICATE_BYTES_MAX:
                raise Malformed("a certificate that is too large to be ours")
            return Chain(node_der=node_der, issuer_der=issuer_der)
        case (1, "admission", bytes() as payload, bytes() as signature, *_):
            return SignedAdmission(record=decode_admission(payload), signature=signature)
        case (1, "operator-record", bytes() as payload, bytes() as signature, *_):
            return read_signed_record(payload, signature)
        case (int() as form, str(), *_) if form >= _FORMAT:
            return None
        case _:
            raise Malformed("not a paper of a cluster")


def decode_papers(parts: Iterable[bytes]) -> tuple[Paper, ...]:
    """Those that this version can read. One that is damaged drops only itself."""
    papers: list[Paper] = []
    for part in parts:
        try:
            paper = decode_paper(part)
        except Malformed:
            continue
        if paper is not None:
            papers.append(paper)
    return tuple(papers)


def mark_of(encoded: bytes) -> bytes:
    """What stands for a paper where somebody says that they have it."""
    return hashlib.blake2b(encoded, digest_size=MARK_BYTES).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class PapersRequest:
    """What one node asks of another's papers, and shows of its own."""

    node_ids: tuple[NodeId, ...] = ()
    """Of whom; nobody named asks for all that is not marked."""
    marks: tuple[bytes, ...] = field(repr=False, default=())
    """What the asker has."""
    offered: tuple[bytes, ...] = field(repr=False, default=())
    """Papers for the other, encoded: those that prove the asker, and what shall be spread."""


def encode_request(request: PapersRequest) -> bytes:
    """The body of a request."""
    return encode_document(
        (
            _FORMAT,
            b"".join(request.node_ids),
            b"".join(request.marks[:MARKS_MAX]),
            request.offered[:OFFER_MAX],
        )
    )


def decode_request(body: bytes) -> PapersRequest:
    """What was asked.

    Raises:
        Malformed: nothing that this version understands.
    """
    match decode_document(body):
        case (1, bytes() as ids, bytes() as marks, tuple() as offered, *_):
            papers = tuple(one for one in offered if isinstance(one, bytes))
            return PapersRequest(
                node_ids=tuple(NodeId(one) for one in _split(ids, KEY_ID_BYTES)),
                marks=_split(marks, MARK_BYTES),
                offered=papers[:OFFER_MAX],
            )
        case _:
            raise Malformed("not a request for papers")


def encode_wanted(marks: Iterable[bytes]) -> bytes:
    """A part of an answer that asks back: these of the asker's papers are lacking here."""
    return encode_document((_FORMAT, _WANTED, b"".join(tuple(marks)[:WANTED_MAX])))


def read_wanted(parts: Iterable[bytes]) -> tuple[bytes, ...]:
    """The marks that an answer asks for."""
    marks: list[bytes] = []
    for part in parts:
        try:
            match decode_document(part):
                case (1, "wanted", bytes() as wanted, *_):
                    marks.extend(_split(wanted, MARK_BYTES))
                case _:
                    continue
        except Malformed:
            continue
    return tuple(dict.fromkeys(marks))[:WANTED_MAX]


def _split(data: bytes, size: int) -> tuple[bytes, ...]:
    if len(data) % size:
        raise Malformed(f"a list of {len(data)} bytes is not one of parts of {size}")
    return tuple(data[begin : begin + size] for begin in range(0, len(data), size))
