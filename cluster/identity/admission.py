"""Admission: a member countersigns that a node came by an invite, and how often that was used.

Its own file because an invite's `--ttl` and `--uses` cannot be judged from certificates: somebody
has to have been there. The member that first admits a node checks them, signs a record, and gossips
it. Records of several members are merged by `Admissions`, which only ever gathers, and weighed by
`settle`, which is a function of the set alone, so every member comes to the same verdict in
whatever order the records arrive. It must not know how records travel.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from cluster.codec import decode_document, encode_document
from cluster.errors import Malformed
from cluster.identity.refusals import Refused, Rule
from cluster.ids import (
    ClusterId,
    NodeId,
    NodeName,
    RackId,
    Role,
    parse_node_name,
    parse_rack,
    parse_roles,
)
from cluster.signatures import SIGNATURE_BYTES, Purpose, Signer, Verifier

_FORMAT = 1
_KIND = "admission"
_RECENT = 4096
"""Checking and merging ask for the same records again, and encoding one takes 30 microseconds."""
SERIAL_BYTES_MAX = 20
"""Source: RFC 5280, section 4.1.2.2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRecord:
    """That a node was let in, by whom, when, and as the how-manieth of its invite."""

    cluster_id: ClusterId
    invite_serial: int
    node_id: NodeId
    name: NodeName
    rack: RackId
    roles: tuple[Role, ...]
    """The most that a renewal may give it."""
    uses: int
    """How many nodes the invite has brought with this one, as far as the admitting member knew."""
    admitted_by: NodeId
    admitted_unix_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedAdmission:
    """A record and the admitting member's signature."""

    record: AdmissionRecord
    signature: bytes = field(repr=False)

    @property
    def payload(self) -> bytes:
        """What was signed."""
        return encode_admission(self.record)


@lru_cache(maxsize=_RECENT)
def encode_admission(record: AdmissionRecord) -> bytes:
    """The one encoding of a record."""
    return encode_document(
        (
            _FORMAT,
            _KIND,
            record.cluster_id,
            encode_serial(record.invite_serial),
            record.node_id,
            record.name,
            record.rack,
            ",".join(record.roles),
            record.uses,
            record.admitted_by,
            record.admitted_unix_seconds,
        )
    )


def decode_admission(payload: bytes) -> AdmissionRecord:
    """The record that was signed.

    Raises:
        Malformed: this is none.
    """
    match decode_document(payload):
        case (
            1,
            "admission",
            bytes() as cluster_id,
            bytes() as serial,
            bytes() as node_id,
            str() as name,
            str() as rack,
            str() as roles,
            int() as uses,
            bytes() as admitted_by,
            int() as admitted,
        ) if uses > 0 and admitted >= 0:
            record = AdmissionRecord(
                cluster_id=ClusterId.from_wire(cluster_id),
                invite_serial=decode_serial(serial),
                node_id=NodeId.from_wire(node_id),
                name=parse_node_name(name),
                rack=parse_rack(rack),
                roles=parse_roles(roles),
                uses=uses,
                admitted_by=NodeId.from_wire(admitted_by),
                admitted_unix_seconds=admitted,
            )
        case _:
            raise Malformed("not an admission")
    if encode_admission(record) != payload:
        raise Malformed("an admission that is not in its one encoding")
    return record


def sign_admission(record: AdmissionRecord, signer: Signer) -> SignedAdmission:
    """Countersign; the signer is the admitting member's."""
    message = Purpose.ADMISSION.wrap(encode_admission(record))
    return SignedAdmission(record=record, signature=signer.sign(message))


def check_admission(
    admission: SignedAdmission, *, cluster_id: ClusterId, public_key: bytes, verifier: Verifier
) -> Refused | None:
    """Whether the member with this key signed the record, for this cluster."""
    record = admission.record
    if record.cluster_id != cluster_id:
        line = f"an admission of {record.name} to cluster {record.cluster_id.short}, not this one"
        return Refused(rule=Rule.FOREIGN_CLUSTER, line=line)
    if NodeId.of_public_key(public_key) != record.admitted_by:
        line = f"the admission of {record.name} names another member than the one that signed"
        return Refused(rule=Rule.OTHER_SUBJECT, line=line)
    message = Purpose.ADMISSION.wrap(admission.payload)
    if len(admission.signature) == SIGNATURE_BYTES and verifier.verify(
        public_key=public_key, signature=admission.signature, message=message
    ):
        return None
    line = f"the admission of {record.name} is not signed by {record.admitted_by.short}"
    return Refused(rule=Rule.SIGNATURE, line=line)


Rank: TypeAlias = tuple[int, NodeId, NodeId, bytes, bytes]


@lru_cache(maxsize=_RECENT)
def rank(admission: SignedAdmission) -> Rank:
    """Earlier first; by ids where two times are the same, so that all members agree."""
    record = admission.record
    return (
        record.admitted_unix_seconds,
        record.node_id,
        record.admitted_by,
        admission.payload,
        admission.signature,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Admissions:
    """The admissions that one member knows, the earliest of each admitter, node and invite.

    Merging is commutative, associative and idempotent. Records of every admitter are kept apart, so
    that nobody can push another's record out with one that claims an earlier time.
    """

    records: tuple[SignedAdmission, ...] = ()
    """In the order of `rank`."""

    def merge(self, others: Iterable[SignedAdmission]) -> "Admissions":
        """With what another member knows; signatures have been checked before."""
        earliest: dict[tuple[int, NodeId, NodeId], SignedAdmission] = {}
        for admission in sorted((*self.records, *others), key=rank):
            record = admission.record
            key = (record.invite_serial, record.node_id, record.admitted_by)
            earliest.setdefault(key, admission)
        return Admissions(records=tuple(earliest.values()))


def encode_serial(serial: int) -> bytes:
    """A certificate's serial number, which no whole number of msgpack can hold."""
    return serial.to_bytes((serial.bit_length() + 7) // 8 or 1, "big")


def decode_serial(data: bytes) -> int:
    """A certificate's serial number.

    Raises:
        Malformed: it is none, or not in its shortest form.
    """
    if not 1 <= len(data) <= SERIAL_BYTES_MAX or data[0] == 0:
        raise Malformed("not a serial number")
    return int.from_bytes(data, "big")
