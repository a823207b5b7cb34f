"""What each kind of certificate shall say: authority, operator, invite, delegated issuer, node.

Its own file because the plans and the rules of `chains` are the two halves of one contract: what is
planned here is accepted there. It must not know how a plan is signed. Serials and windows are
handed in.
"""

from collections.abc import Sequence

from cluster.errors import Misuse
from cluster.identity.certificates import (
    CLIENT_AUTH_OID,
    DIGITAL_SIGNATURE,
    KEY_CERT_SIGN,
    SERVER_AUTH_OID,
    CertificatePlan,
    Window,
)
from cluster.identity.extensions import OPERATOR_USAGE_OID, Kind, Terms, write_terms
from cluster.identity.names import node_domain, rack_domain
from cluster.ids import KEY_BYTES, ClusterName, NodeName, RackId, Role
from cluster.signatures import RandomBytes

DAY_SECONDS = 86_400
AUTHORITY_LIFETIME_DAYS = 7305
"""Twenty years: the racks are gone before their cluster's name is."""
OPERATOR_LIFETIME_DAYS = 1826
INVITE_LIFETIME_DAYS = 730
"""An invite's certificate, hence those of the nodes that come by it. Two years: renewing is a
planned visit, not a monthly one."""
BACKDATING_SECONDS = 3600
"""A clock that is an hour late still sees a new certificate as begun."""
SERIAL_BYTES = 16
RACKS_PER_ISSUER_MAX = 64


def window_from(now_unix_seconds: int, lifetime_days: int) -> Window:
    """A lifetime that begins now, or rather an hour ago."""
    return Window(
        begin_unix_seconds=now_unix_seconds - BACKDATING_SECONDS,
        end_unix_seconds=now_unix_seconds + lifetime_days * DAY_SECONDS,
    )


def window_within(wanted: Window, issuer: Window) -> Window:
    """As much of a lifetime as the issuer's allows.

    Raises:
        Misuse: nothing of it.
    """
    begin = max(wanted.begin_unix_seconds, issuer.begin_unix_seconds)
    end = min(wanted.end_unix_seconds, issuer.end_unix_seconds)
    if begin > end:
        raise Misuse("a lifetime outside of the issuer's own")
    return Window(begin_unix_seconds=begin, end_unix_seconds=end)


def new_serial(random_bytes: RandomBytes) -> int:
    """A serial that nobody else has; positive, and below 2**128."""
    return int.from_bytes(random_bytes(SERIAL_BYTES), "big") | 1


def plan_authority(
    name: ClusterName, *, public_key: bytes, serial: int, window: Window
) -> CertificatePlan:
    """The root of a cluster: signs operators, invites and delegated issuers, nothing else."""
    return CertificatePlan(
        common_name=name,
        public_key=_checked(public_key),
        serial=serial,
        window=window,
        is_ca=True,
        path_length=1,
        key_usages=(KEY_CERT_SIGN,),
        private=write_terms(Terms(kind=Kind.AUTHORITY)),
    )


def plan_operator(
    name: NodeName, *, public_key: bytes, serial: int, window: Window
) -> CertificatePlan:
    """A person's or a team's key that signs operator records."""
    return CertificatePlan(
        common_name=name,
        public_key=_checked(public_key),
        serial=serial,
        window=window,
        is_ca=False,
        key_usages=(DIGITAL_SIGNATURE,),
        extended_key_usages=(OPERATOR_USAGE_OID,),
        private=write_terms(Terms(kind=Kind.OPERATOR)),
    )


def plan_invite(
    rack: RackId, *, terms: Terms, public_key: bytes, serial: int, window: Window
) -> CertificatePlan:
    """The right to make nodes of one rack, within the terms."""
    if terms.kind is not Kind.INVITE:
        raise Misuse(f"the terms of an invite, not of {terms.kind}")
    return CertificatePlan(
        common_name=f"invite to rack {rack}",
        public_key=_checked(public_key),
        serial=serial,
        window=window,
        is_ca=True,
        path_length=0,
        key_usages=(KEY_CERT_SIGN,),
        permitted_dns_names=(rack_domain(rack),),
        private=write_terms(terms),
    )


def plan_issuer(
    racks: Sequence[RackId],
    *,
    roles: tuple[Role, ...],
    public_key: bytes,
    serial: int,
    window: Window,
) -> CertificatePlan:
    """The right to renew the certificates of nodes that the racks already have."""
    if not 1 <= len(racks) <= RACKS_PER_ISSUER_MAX:
        raise Misuse(f"an issuer for {len(racks)} racks, not for 1 to {RACKS_PER_ISSUER_MAX}")
    return CertificatePlan(
        common_name="renewals",
        public_key=_checked(public_key),
        serial=serial,
        window=window,
        is_ca=True,
        path_length=0,
        key_usages=(KEY_CERT_SIGN,),
        permitted_dns_names=tuple(rack_domain(rack) for rack in sorted(set(racks))),
        private=write_terms(Terms(kind=Kind.ISSUER, roles=roles)),
    )


def plan_node(
    name: NodeName,
    rack: RackId,
    *,
    roles: tuple[Role, ...],
    public_key: bytes,
    serial: int,
    window: Window,
) -> CertificatePlan:
    """One node: its key, name, rack and roles. It serves and calls its peers over TLS."""
    return CertificatePlan(
        common_name=name,
        public_key=_checked(public_key),
        serial=serial,
        window=window,
        is_ca=False,
        key_usages=(DIGITAL_SIGNATURE,),
        extended_key_usages=(SERVER_AUTH_OID, CLIENT_AUTH_OID),
        dns_names=(node_domain(name, rack),),
        private=write_terms(Terms(kind=Kind.NODE, roles=roles)),
    )


def _checked(public_key: bytes) -> bytes:
    if len(public_key) != KEY_BYTES:
        raise Misuse(f"an Ed25519 public key has {KEY_BYTES} bytes, not {len(public_key)}")
    return public_key
