"""Operators' records in one line each: events, logs and commands tell them alike."""

from cluster.errors import Malformed
from cluster.identity.operator_records import (
    CertificateRevoked,
    NameForgotten,
    NodeApproved,
    NodeRemoved,
    NodeRevoked,
    OperatorAdded,
    Other,
    SignedRecord,
)
from cluster.ids import parse_node_name
from cluster.keyring import read_certificate
from cluster.rack.ledger.decrees import (
    KINDS,
    BudgetSet,
    Founded,
    Joined,
    Retired,
    decode_decree,
)


def record_line(signed: SignedRecord) -> str:
    """What an operator said, and as which record of the log."""
    record = signed.record
    return f"record {record.sequence} by {record.signed_by.short}: {_said(signed)}"


def _said(signed: SignedRecord) -> str:
    match signed.record.statement:
        case OperatorAdded(certificate_der=der):
            return f"operator {_operator_name(der)} was added"
        case NodeApproved(node_id=node_id):
            return f"node {node_id.short} may come in"
        case NodeRemoved(node_id=node_id):
            return f"node {node_id.short} was removed"
        case NodeRevoked(node_id=node_id, note=note):
            return f"the key of node {node_id.short} was revoked{_noted(note)}"
        case CertificateRevoked(serial=serial, note=note):
            return f"certificate {serial:x} was revoked{_noted(note)}"
        case NameForgotten(name=name, node_id=node_id):
            return f"the name {name} no longer means {node_id.short}"
        case Other(kind=kind, body=body) if kind in KINDS:
            return _decreed(kind, body)
        case Other(kind=kind):
            return f"{kind} (this version does not read it)"


def _decreed(kind: str, body: bytes) -> str:
    """What was said about a rack's power."""
    try:
        decree = decode_decree(kind, body)
    except Malformed as error:
        return f"{kind} that nobody obeys ({error})"
    match decree:
        case Founded(currency=currency, budget_watts=watts, slots=slots):
            return f"{currency} was founded with {watts:,} W and {len(slots)} slots"
        case BudgetSet(currency=currency, budget_watts=watts, settles=settles):
            settled = ", which settles a fork of the log" if settles else ""
            return f"the budget of {currency} is {watts:,} W{settled}"
        case Joined(currency=currency, node_id=node_id, slot=slot):
            return f"node {node_id.short} came into slot {slot} of {currency}"
        case Retired(currency=currency, out=out, rank=rank, evidence=evidence):
            gone = ", ".join(node_id.short for node_id in out)
            return f"{gone} retired from {currency} as off, rank {rank}{_noted(evidence)}"


def _operator_name(der: bytes) -> str:
    """By the certificate, which members have judged where the record stands."""
    try:
        return parse_node_name(read_certificate(der).common_name or "")
    except Malformed:
        return "without a name"


def _noted(note: str) -> str:
    return f" ({note})" if note else ""
