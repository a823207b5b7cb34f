"""How an operator's word becomes the next record of the cluster's log.

Its own file because this is where keys of operators are used: the log is read from the agent and
judged here, since the agent only relays; the record is signed here, judged as every member will
judge it, and handed over. It must not know which command wants what said.
"""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster.errors import Malformed, PeerFault
from cluster.identity.operator_log import OperatorLog, read_log
from cluster.identity.operator_records import (
    OperatorAdded,
    OperatorRecord,
    SignedRecord,
    Statement,
    log_root,
    read_signed_record,
    sign_record,
)
from cluster.ids import OperatorId
from cluster.keyring import Ed25519Verifier, read_certificate
from esnode.client import AgentRefused, Door, ask

if TYPE_CHECKING:
    from cluster.credentials import OperatorFolder
    from cluster.enrolment import AuthorityKeys, OperatorKeys
    from cluster.identity.chains import TrustedAuthority

LOG_PATH = "/v1/cluster/operator-log"
POST_PATH = "/v1/control/cluster/records"


class CannotSign(PeerFault):
    """The key that this takes is not here, or does not count; one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidSoFar:
    """The log as the agent has it, judged by the authority's certificate."""

    signed: tuple[SignedRecord, ...]
    log: OperatorLog
    waiting: int
    """Records that the agent knows of and that miss one before them."""


def fetch_log(door: Door) -> dict[str, Any]:
    """The log's document.

    Raises:
        AgentUnreachable, AgentRefused: as `esnode.client.ask`.
    """
    return ask(door, LOG_PATH, schema="esnode.operator_log/")


def read_said(document: dict[str, Any], authority: "TrustedAuthority") -> SaidSoFar:
    """Judge what the agent has.

    Raises:
        AgentRefused: what it says is no log.
        PeerFault: it is the log of another cluster.
    """
    try:
        signed = tuple(
            read_signed_record(_decode(one["payload"]), _decode(one["signature"]))
            for one in document["records"]
        )
    except (Malformed, KeyError, TypeError) as error:
        raise AgentRefused(f"the agent's operator log cannot be read: {error}") from None
    for one in signed:
        if one.record.cluster_id != authority.cluster_id:
            raise PeerFault(
                f"the agent is in cluster {one.record.cluster_id.short}, the keys are those of "
                f"{authority.name} ({authority.cluster_id.short})"
            )
    log = _judged(signed, authority)
    return SaidSoFar(signed=signed, log=log, waiting=max(len(log.waiting), _waiting(document)))


def last_record(said: SaidSoFar) -> SignedRecord | None:
    """What the next record follows: at a fork the longest branch, else both would go on growing."""
    return max(said.log.heads, key=lambda one: one.record.sequence, default=None)


def next_records(
    said: SaidSoFar,
    folder: "OperatorFolder",
    statement: Statement,
    *,
    by_authority: bool,
    now_unix_seconds: int,
) -> tuple[SignedRecord, ...]:
    """The statement signed, after the head of the log.

    An operator whom the log does not know yet is first introduced: the certificate is the
    authority's word for it.

    Raises:
        CannotSign: the key is not here, or members would refuse the record.
    """
    authority = folder.authority
    statements: list[tuple[Statement, OperatorKeys | AuthorityKeys]] = []
    if by_authority or folder.operator_keys is None:
        if folder.authority_keys is None:
            what = "the authority's key alone may do this" if by_authority else "no key is there"
            raise CannotSign(f"{what}; put authority.key back into the operator's folder")
        statements.append((statement, folder.authority_keys))
    else:
        own = folder.operator_keys
        if own.operator.operator_id not in said.log.operators:
            statements.append((OperatorAdded(certificate_der=own.certificate.der), own))
        statements.append((statement, own))
    made: list[SignedRecord] = []
    before = last_record(said)
    for one, keys in statements:
        record = OperatorRecord(
            cluster_id=authority.cluster_id,
            sequence=1 if before is None else before.record.sequence + 1,
            previous=log_root(authority.cluster_id) if before is None else before.hash,
            statement=one,
            signed_by=OperatorId.of_public_key(keys.signer.public_key),
            written_unix_seconds=now_unix_seconds,
        )
        before = sign_record(record, keys.signer)
        made.append(before)
    _check_stands(said, made, authority)
    return tuple(made)


def post_records(door: Door, records: Sequence[SignedRecord]) -> list[str]:
    """Hand records to the agent, in their order; what it calls each of them.

    Raises:
        AgentUnreachable, AgentRefused: as `esnode.client.ask`.
    """
    lines = []
    for signed in records:
        answer = ask(
            door,
            POST_PATH,
            schema="esnode.operator_record/",
            order={
                "payload": base64.b64encode(signed.payload).decode(),
                "signature": base64.b64encode(signed.signature).decode(),
            },
        )
        lines.append(str(answer["line"]))
    return lines


def check_cluster(status: dict[str, Any], authority: "TrustedAuthority", folder: Path) -> None:
    """Whether the agent is in the cluster that these keys are of.

    Raises:
        PeerFault: it is in another one.
    """
    found = status["cluster"]
    if found["id"] != str(authority.cluster_id):
        raise PeerFault(
            f"the agent is in cluster {found['name']} ({str(found['id'])[:8]}), {folder} holds the "
            f"keys of {authority.name} ({authority.cluster_id.short}); choose with --cluster"
        )


def _check_stands(
    said: SaidSoFar, made: Sequence[SignedRecord], authority: "TrustedAuthority"
) -> None:
    """Judge our own records as every member will."""
    log = _judged((*said.signed, *made), authority)
    mine = {one.hash for one in made}
    for signed, refused in log.refused:
        if signed.hash in mine:
            raise CannotSign(f"members would refuse it: {refused.line}")
    if not mine <= {one.hash for one in log.records}:
        raise CannotSign("members could not place it: the agent's log has a gap; try again later")


def _judged(signed: Sequence[SignedRecord], authority: "TrustedAuthority") -> OperatorLog:
    return read_log(
        signed, authority, verifier=Ed25519Verifier(), read_certificate=read_certificate
    )


def _decode(text: object) -> bytes:
    if not isinstance(text, str):
        raise Malformed("a record without its bytes")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Malformed("a record that is not base64") from None


def _waiting(document: dict[str, Any]) -> int:
    value = document.get("waiting")
    return value if isinstance(value, int) else 0
