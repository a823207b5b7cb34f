"""The private extensions of our certificates: what they mean, and their bytes.

Its own file because these bytes outlive every version of the program (`docs/identity.md` shows
them). All are non-critical: TLS and openssl pass over them, and only our own chain rules, which
refuse more, read them. It must not know how a certificate is built, or what follows from a term.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from cluster.errors import Malformed
from cluster.identity import der
from cluster.identity.certificates import PrivateExtension
from cluster.ids import ANY_NAME, NamePrefix, Role, parse_name_prefix, parse_roles

ARC = "1.2.840.113556.1.8000.2554.58382.35840.33803.18861.44226.6735114.1664308"
"""Ours alone: the GUID e40e8c00-840b-49ad-acc2-66c50a196534 under the arc that Microsoft keeps for
such identifiers. Unlike 2.25, every number in it fits 32 bits, which readers of X.509 in Go need.
Source: Microsoft, "Obtaining an Object Identifier from Microsoft" (the script there)."""

KIND_OID = f"{ARC}.1"
ROLES_OID = f"{ARC}.2"
NAME_PREFIX_OID = f"{ARC}.3"
ADMIT_UNTIL_OID = f"{ARC}.4"
USES_OID = f"{ARC}.5"
APPROVAL_OID = f"{ARC}.6"
FOUNDING_OID = f"{ARC}.7"
OPERATOR_USAGE_OID = f"{ARC}.100"
"""The extended key usage of operator certificates, so that TLS refuses them as a node's."""


_Read = TypeVar("_Read")


class Kind(StrEnum):
    """What a certificate is for."""

    AUTHORITY = "authority"
    OPERATOR = "operator"
    INVITE = "invite"
    ISSUER = "issuer"
    NODE = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the private extensions of one certificate say."""

    kind: Kind
    roles: tuple[Role, ...] = ()
    """Of a node: what it may do. Of an invite or an issuer: what its nodes may at most do."""
    name_prefix: NamePrefix = ANY_NAME
    admit_until_unix_seconds: int | None = None
    """When an invite ends (`--ttl`). Its certificate lives on, as long as those it has signed."""
    uses: int | None = None
    """How many nodes may come by an invite; None for any number."""
    needs_approval: bool = False
    """Each node waits for an operator's word."""
    may_found: bool = False
    """A node may admit itself: somebody has to be the first."""


_ALLOWED: Mapping[Kind, frozenset[str]] = {
    Kind.AUTHORITY: frozenset({KIND_OID}),
    Kind.OPERATOR: frozenset({KIND_OID}),
    Kind.INVITE: frozenset(
        {
            KIND_OID,
            ROLES_OID,
            NAME_PREFIX_OID,
            ADMIT_UNTIL_OID,
            USES_OID,
            APPROVAL_OID,
            FOUNDING_OID,
        }
    ),
    Kind.ISSUER: frozenset({KIND_OID, ROLES_OID}),
    Kind.NODE: frozenset({KIND_OID, ROLES_OID}),
}
_MISPLACED: Mapping[Kind, tuple[str, ...]] = {
    kind: tuple(sorted(_ALLOWED[Kind.INVITE] - allowed)) for kind, allowed in _ALLOWED.items()
}


def write_terms(terms: Terms) -> tuple[PrivateExtension, ...]:
    """The extensions that say these terms; what is at its default is left out."""
    written: list[tuple[str, bytes]] = [(KIND_OID, der.encode_text(terms.kind.value))]
    if terms.roles:
        written.append((ROLES_OID, der.encode_text(",".join(terms.roles))))
    if terms.name_prefix:
        written.append((NAME_PREFIX_OID, der.encode_text(terms.name_prefix)))
    if terms.admit_until_unix_seconds is not None:
        written.append((ADMIT_UNTIL_OID, der.encode_number(terms.admit_until_unix_seconds)))
    if terms.uses is not None:
        written.append((USES_OID, der.encode_number(terms.uses)))
    if terms.needs_approval:
        written.append((APPROVAL_OID, der.encode_true()))
    if terms.may_found:
        written.append((FOUNDING_OID, der.encode_true()))
    return tuple(PrivateExtension(oid=oid, value=value) for oid, value in written)


def read_terms(private: Mapping[str, PrivateExtension]) -> Terms:
    """The terms that these extensions say. Others', and later ones of ours, are passed over.

    Raises:
        Malformed: one cannot be read, is missing, or has no place in a certificate of its kind.
    """
    kind = _kind(private)
    for oid in _MISPLACED[kind]:
        if oid in private:
            raise Malformed(f"extension {_short(oid)} has no place in a certificate of {kind}")
    roles_text = _read(private, ROLES_OID, der.decode_text)
    roles = parse_roles(roles_text) if roles_text is not None else ()
    if roles_text is not None and (not roles or ",".join(roles) != roles_text):
        raise Malformed("roles that are not sorted, or empty")
    prefix = _read(private, NAME_PREFIX_OID, der.decode_text)
    if prefix == "":
        raise Malformed("a name prefix that is empty")
    uses = _read(private, USES_OID, der.decode_number)
    if uses == 0:
        raise Malformed("an invite for no node at all")
    until = _read(private, ADMIT_UNTIL_OID, der.decode_number)
    if kind is Kind.INVITE and until is None:
        raise Malformed("an invite without an end")
    return Terms(
        kind=kind,
        roles=roles,
        name_prefix=parse_name_prefix(prefix or ""),
        admit_until_unix_seconds=until,
        uses=uses,
        needs_approval=_read(private, APPROVAL_OID, der.decode_true) is not None,
        may_found=_read(private, FOUNDING_OID, der.decode_true) is not None,
    )


def _kind(private: Mapping[str, PrivateExtension]) -> Kind:
    text = _read(private, KIND_OID, der.decode_text)
    if text is None:
        raise Malformed("a certificate that does not say what it is for")
    try:
        return Kind(text)
    except ValueError:
        raise Malformed("a certificate for something that this version does not know") from None


def _read(
    private: Mapping[str, PrivateExtension], oid: str, decode: Callable[[bytes], _Read]
) -> _Read | None:
    extension = private.get(oid)
    if extension is None:
        return None
    try:
        return decode(extension.value)
    except Malformed as error:
        raise Malformed(f"extension {_short(oid)} is {error}") from None


def _short(oid: str) -> str:
    return oid.removeprefix(ARC)
