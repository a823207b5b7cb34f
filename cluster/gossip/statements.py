"""What one node signs and others pass on byte for byte: made, looked at, verified, read.

Its own file because these bytes outlive the datagram that they came in. The head is of fixed size,
so that an old statement is known for one before anything is verified or decoded. It must not know
what a statement leads to.
"""

import struct

from cluster.codec import encode_document
from cluster.errors import Malformed, Misuse
from cluster.gossip.fields import (
    DecodeError,
    Fields,
    read_address,
    read_array,
    read_body,
    read_bytes,
    read_node_id,
    read_text,
    read_version,
)
from cluster.gossip.messages import (
    Claim,
    Evidence,
    Kind,
    MemberRecord,
    RackSummary,
    Statement,
    Version,
)
from cluster.ids import ClusterId, NodeId, parse_node_name, parse_rack
from cluster.signatures import SIGNATURE_BYTES, Purpose, Signer, Verifier

ADDRESSES_MAX = 8
_HEAD = struct.Struct(">B16sQQ")
"""Kind, signer, epoch, sequence: what is looked at before the signature."""
STATEMENT_OVERHEAD_BYTES = _HEAD.size + SIGNATURE_BYTES
STATEMENT_BYTES_MAX = 1100
"""So that one always fits into a datagram beside a ping."""
_KINDS = {int(kind): kind for kind in Kind}


def sign_statement(
    kind: Kind, version: Version, body: Fields, *, cluster_id: ClusterId, signer: Signer
) -> Statement:
    """A statement of our own.

    Raises:
        Misuse: it would not fit into a datagram.
    """
    node_id = NodeId.of_public_key(signer.public_key)
    encoded_body = encode_document(body)
    head = _HEAD.pack(kind, node_id, version.epoch, version.sequence)
    signed = head + encoded_body
    if len(signed) + SIGNATURE_BYTES > STATEMENT_BYTES_MAX:
        raise Misuse(f"a statement of {len(signed) + SIGNATURE_BYTES} bytes is too large")
    signature = signer.sign(Purpose.STATEMENT.wrap(cluster_id + signed))
    return Statement(
        kind=kind,
        signer=node_id,
        version=version,
        body=encoded_body,
        encoded=signed + signature,
    )


def read_statement(encoded: bytes) -> Statement | None:
    """A statement, as far as its head tells; neither its body nor its signature was looked at.

    None for one of a kind that only a later version knows.

    Raises:
        DecodeError: it is none.
    """
    if not STATEMENT_OVERHEAD_BYTES < len(encoded) <= STATEMENT_BYTES_MAX:
        raise DecodeError(f"a statement of {len(encoded)} bytes")
    kind, signer, epoch, sequence = _HEAD.unpack_from(encoded)
    known = _KINDS.get(kind)
    if known is None:
        return None
    return Statement(
        kind=known,
        signer=NodeId(signer),
        version=Version(epoch=epoch, sequence=sequence),
        body=encoded[_HEAD.size : -SIGNATURE_BYTES],
        encoded=encoded,
    )


def verify_statement(
    statement: Statement, *, cluster_id: ClusterId, public_key: bytes, verifier: Verifier
) -> bool:
    """Whether its signer signed it, for this cluster."""
    signed = statement.encoded[:-SIGNATURE_BYTES]
    return verifier.verify(
        public_key=public_key,
        signature=statement.encoded[-SIGNATURE_BYTES:],
        message=Purpose.STATEMENT.wrap(cluster_id + signed),
    )


def member_body(record: MemberRecord) -> Fields:
    """The body of MEMBER."""
    return (record.name, record.rack, record.addresses, record.chain_hash)


def read_member(body: bytes) -> MemberRecord:
    """The body of MEMBER, read.

    Raises:
        DecodeError: it is none.
    """
    name, rack, addresses, chain_hash = read_body(body, 4)
    try:
        return MemberRecord(
            name=parse_node_name(read_text(name)),
            rack=parse_rack(read_text(rack)),
            addresses=tuple(read_address(one) for one in read_array(addresses, ADDRESSES_MAX)),
            chain_hash=read_bytes(chain_hash),
        )
    except Malformed as error:
        raise DecodeError(str(error)) from None


def claim_body(claim: Claim) -> Fields:
    """The body of SUSPECT and FAILED."""
    version = claim.subject_version
    return (claim.subject, version.epoch, version.sequence, int(claim.evidence))


def read_claim(body: bytes) -> Claim:
    """The body of SUSPECT and FAILED, read.

    Raises:
        DecodeError: it is none.
    """
    subject, epoch, sequence, evidence = read_body(body, 4)
    return Claim(
        subject=read_node_id(subject),
        subject_version=read_version(epoch, sequence),
        # Evidence that a later version knows counts for no more than silence.
        evidence=Evidence.REFUSED if evidence == Evidence.REFUSED else Evidence.SILENCE,
    )


def summary_body(summary: RackSummary) -> Fields:
    """The body of SUMMARY."""
    return (summary.rack, summary.payload)


def read_summary(body: bytes) -> RackSummary:
    """The body of SUMMARY, read.

    Raises:
        DecodeError: it is none.
    """
    rack, payload = read_body(body, 2)
    try:
        return RackSummary(rack=parse_rack(read_text(rack)), payload=read_bytes(payload))
    except Malformed as error:
        raise DecodeError(str(error)) from None


def read_state(body: bytes) -> bytes:
    """The body of STATE, read.

    Raises:
        DecodeError: it is none.
    """
    return read_bytes(read_body(body, 1)[0])
