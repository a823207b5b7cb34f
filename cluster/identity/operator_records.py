"""What operators say to the whole cluster: one signed record, its kinds, its bytes.

Its own file because these bytes are kept for ever and read by every later version: a kind that this
one does not know is kept and passed on unread. The command line signs, agents only relay. It must
not know in which order records arrive, nor what follows from them (see `operator_log`).

A record names the hash of the one before it. The first names `log_root`, which only this cluster
has.
"""

import hashlib
from dataclasses import dataclass, field
from typing import TypeAlias

from cluster.codec import Value, decode_document, encode_document
from cluster.errors import Malformed
from cluster.identity.admission import decode_serial, encode_serial
from cluster.identity.refusals import Refused, Rule
from cluster.ids import ClusterId, NodeId, NodeName, OperatorId, parse_node_name
from cluster.signatures import SIGNATURE_BYTES, Purpose, Signer, Verifier

_FORMAT = 1
_DOCUMENT = "operator-record"
HASH_BYTES = 32
KIND_CHARACTERS_MAX = 32
BODY_BYTES_MAX = 16 * 1024
NOTE_CHARACTERS_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorAdded:
    """From now on this operator's records count. The certificate is the authority's word for it."""

    certificate_der: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeApproved:
    """A node may come by an invite that waits for approval, or whose uses were exceeded."""

    node_id: NodeId
    invite_serial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRemoved:
    """A node is retired. With a new certificate it may return."""

    node_id: NodeId
    serial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRevoked:
    """A node's key is not to be believed again."""

    node_id: NodeId
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRevoked:
    """One certificate is void: a node's, an invite's, an issuer's or an operator's."""

    serial: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameForgotten:
    """A name no longer means the key that had it: the machine was reimaged."""

    name: NodeName
    node_id: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """A kind that other rooms read (budgets, drains), or only a later version."""

    kind: str
    body: bytes = field(repr=False)


Statement: TypeAlias = (
    OperatorAdded
    | NodeApproved
    | NodeRemoved
    | NodeRevoked
    | CertificateRevoked
    | NameForgotten
    | Other
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRecord:
    """One statement in its place in the log."""

    cluster_id: ClusterId
    sequence: int
    """One more than that of the record before; the first has 1."""
    previous: bytes = field(repr=False)
    """The hash of the record before."""
    statement: Statement
    signed_by: OperatorId
    written_unix_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRecord:
    """A record, the very bytes that were signed, and the signature."""

    record: OperatorRecord
    payload: bytes = field(repr=False)
    signature: bytes = field(repr=False)

    @property
    def hash(self) -> bytes:
        """What the next record names; of the content alone, since that is what is said."""
        return hashlib.sha256(self.payload).digest()


def log_root(cluster_id: ClusterId) -> bytes:
    """What the first record of a cluster names as the one before it."""
    return hashlib.sha256(b"esnode operator-log 1\x00" + cluster_id).digest()


def sign_record(record: OperatorRecord, signer: Signer) -> SignedRecord:
    """Sign a record; the signer is the operator's, or the authority's."""
    payload = encode_record(record)
    signature = signer.sign(Purpose.OPERATOR_RECORD.wrap(payload))
    return SignedRecord(record=record, payload=payload, signature=signature)


def read_signed_record(payload: bytes, signature: bytes) -> SignedRecord:
    """A record as it came from a peer or from disk; its signature is not judged yet.

    Raises:
        Malformed: it is none.
    """
    if len(signature) != SIGNATURE_BYTES:
        raise Malformed(f"a signature of {len(signature)} bytes, not of {SIGNATURE_BYTES}")
    return SignedRecord(record=decode_record(payload), payload=payload, signature=signature)


def check_record(
    signed: SignedRecord, *, cluster_id: ClusterId, public_key: bytes, verifier: Verifier
) -> Refused | None:
    """Whether the holder of this key said this, to this cluster."""
    record = signed.record
    if record.cluster_id != cluster_id:
        line = f"an operator record of cluster {record.cluster_id.short}, not of this one"
        return Refused(rule=Rule.FOREIGN_CLUSTER, line=line)
    if OperatorId.of_public_key(public_key) != record.signed_by:
        line = f"operator record {record.sequence} names another operator than the one that signed"
        return Refused(rule=Rule.UNKNOWN_OPERATOR, line=line)
    message = Purpose.OPERATOR_RECORD.wrap(signed.payload)
    if verifier.verify(public_key=public_key, signature=signed.signature, message=message):
        return None
    line = f"operator record {record.sequence} is not signed by {record.signed_by.short}"
    return Refused(rule=Rule.SIGNATURE, line=line)


def encode_record(record: OperatorRecord) -> bytes:
    """The one encoding of a record."""
    kind, body = _encode_statement(record.statement)
    return encode_document(
        (
            _FORMAT,
            _DOCUMENT,
            record.cluster_id,
            record.sequence,
            record.previous,
            kind,
            body,
            record.signed_by,
            record.written_unix_seconds,
        )
    )


def decode_record(payload: bytes) -> OperatorRecord:
    """The record that was signed.

    Raises:
        Malformed: this is none.
    """
    match decode_document(payload):
        case (
            1,
            "operator-record",
            bytes() as cluster_id,
            int() as sequence,
            bytes() as previous,
            str() as kind,
            bytes() as body,
            bytes() as signed_by,
            int() as written,
        ) if sequence > 0 and written >= 0 and len(previous) == HASH_BYTES:
            return OperatorRecord(
                cluster_id=ClusterId.from_wire(cluster_id),
                sequence=sequence,
                previous=previous,
                statement=_decode_statement(kind, body),
                signed_by=OperatorId.from_wire(signed_by),
                written_unix_seconds=written,
            )
        case _:
            raise Malformed("not an operator record of a format that this version reads")


def _encode_statement(statement: Statement) -> tuple[str, bytes]:
    match statement:
        case OperatorAdded(certificate_der=der):
            return "operator-added", encode_document((der,))
        case NodeApproved(node_id=node_id, invite_serial=serial):
            return "node-approved", encode_document((node_id, encode_serial(serial)))
        case NodeRemoved(node_id=node_id, serial=serial):
            return "node-removed", encode_document((node_id, encode_serial(serial)))
        case NodeRevoked(node_id=node_id, note=note):
            return "node-revoked", encode_document((node_id, note))
        case CertificateRevoked(serial=serial, note=note):
            return "certificate-revoked", encode_document((encode_serial(serial), note))
        case NameForgotten(name=name, node_id=node_id):
            return "name-forgotten", encode_document((name, node_id))
        case Other(kind=kind, body=body):
            return kind, body


def _decode_statement(kind: str, body: bytes) -> Statement:
    if not 1 <= len(kind) <= KIND_CHARACTERS_MAX or len(body) > BODY_BYTES_MAX:
        raise Malformed("an operator record of a kind or size that cannot be")
    if kind not in _KINDS:
        return Other(kind=kind, body=body)
    match kind, decode_document(body):
        case "operator-added", (bytes() as der,):
            return OperatorAdded(certificate_der=der)
        case "node-approved", (bytes() as node_id, bytes() as serial):
            return NodeApproved(
                node_id=NodeId.from_wire(node_id), invite_serial=decode_serial(serial)
            )
        case "node-removed", (bytes() as node_id, bytes() as serial):
            return NodeRemoved(node_id=NodeId.from_wire(node_id), serial=decode_serial(serial))
        case "node-revoked", (bytes() as node_id, str() as note):
            return NodeRevoked(node_id=NodeId.from_wire(node_id), note=_note(note))
        case "certificate-revoked", (bytes() as serial, str() as note):
            return CertificateRevoked(serial=decode_serial(serial), note=_note(note))
        case "name-forgotten", (str() as name, bytes() as node_id):
            return NameForgotten(name=parse_node_name(name), node_id=NodeId.from_wire(node_id))
        case _:
            raise Malformed(f"an operator record of kind {kind} that does not say what it should")


_KINDS = frozenset(
    {
        "operator-added",
        "node-approved",
        "node-removed",
        "node-revoked",
        "certificate-revoked",
        "name-forgotten",
    }
)


def _note(note: Value) -> str:
    if not isinstance(note, str) or len(note) > NOTE_CHARACTERS_MAX or not note.isprintable():
        raise Malformed(f"a note that is not one line of at most {NOTE_CHARACTERS_MAX} characters")
    return note
