"""Operators' records in one line each: events, logs and commands tell them alike."""

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


def record_line(signed: SignedRecord) -> str:
    """What an operator said, and as which record of the log."""
    record = signed.record
    return f"record {record.sequence} by {record.signed_by.short}: {_said(signed)}"


def _said(signed: SignedRecord) -> str:
    match signed.record.statement:
        case OperatorAdded():
            return "a new operator was added"
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
        case Other(kind=kind):
            return f"{kind} (this version does not read it)"


def _noted(note: str) -> str:
    return f" ({note})" if note else ""
