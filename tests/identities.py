"""Clusters, invites and nodes for tests, and a forge for certificates that nobody should accept."""

import random
from collections.abc import Sequence
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from cluster.enrolment import (
    AuthorityKeys,
    InviteWish,
    NodeKeys,
    OpenedInvite,
    found_cluster,
    issue_invite,
    join,
    open_invite,
)
from cluster.identity.certificates import CertificateFacts, CertificatePlan
from cluster.identity.extensions import Kind, Terms, write_terms
from cluster.identity.plans import plan_invite, plan_node, window_from
from cluster.ids import RackId, Role, parse_cluster_name, parse_node_name
from cluster.keyring import Ed25519Signer, read_certificate

NOW = 1_800_000_000
"""A Friday in January 2027."""
HOUR = 3600
DAY = 86_400
R01 = RackId("r01")
R02 = RackId("r02")
POWER = Role("power")


class Lab:
    """One cluster and a stream of randomness; the same seed gives the same keys."""

    def __init__(self, seed: int = 1, name: str = "lab", now: int = NOW) -> None:
        self.now = now
        self.random_bytes = random.Random(seed).randbytes
        self.keys: AuthorityKeys = found_cluster(
            parse_cluster_name(name), now_unix_seconds=now, random_bytes=self.random_bytes
        )

    @property
    def root(self) -> CertificateFacts:
        return self.keys.authority.certificate

    def new_signer(self) -> Ed25519Signer:
        return Ed25519Signer.generate(self.random_bytes)

    def invite(self, rack: RackId = R01, **wish: Any) -> OpenedInvite:
        asked = InviteWish(rack=rack, **{"ttl_seconds": DAY, **wish})
        return open_invite(
            issue_invite(
                self.keys,
                asked,
                now_unix_seconds=self.now,
                random_bytes=self.random_bytes,
                seeds=(),
            )
        )

    def join(self, invite: OpenedInvite, name: str, now: int | None = None) -> NodeKeys:
        return join(
            invite,
            parse_node_name(name),
            now_unix_seconds=self.now if now is None else now,
            random_bytes=self.random_bytes,
        )

    def invite_plan(self, signer: Ed25519Signer, **terms: Any) -> CertificatePlan:
        asked = {"roles": (POWER,), "admit_until_unix_seconds": NOW + DAY, **terms}
        return plan_invite(
            R01,
            terms=Terms(kind=Kind.INVITE, **asked),
            public_key=signer.public_key,
            serial=77,
            window=window_from(NOW, 730),
        )

    def node_plan(self, signer: Ed25519Signer, name: str = "gpu-17") -> CertificatePlan:
        return plan_node(
            parse_node_name(name),
            R01,
            roles=(POWER,),
            public_key=signer.public_key,
            serial=78,
            window=window_from(NOW, 730),
        )


def node_terms(**terms: Any) -> tuple[Any, ...]:
    return write_terms(Terms(kind=Kind.NODE, **{"roles": (POWER,), **terms}))


def reissue(
    certificate: CertificateFacts,
    signer: Ed25519Signer,
    *,
    drop: Sequence[type[x509.ExtensionType]] = (),
    add: Sequence[tuple[x509.ExtensionType, bool]] = (),
    named_like: CertificateFacts | None = None,
    public_key: ec.EllipticCurvePublicKey | None = None,
) -> CertificateFacts:
    """The same certificate with other extensions, another name or key, signed again."""
    old = x509.load_der_x509_certificate(certificate.der)
    like = old if named_like is None else x509.load_der_x509_certificate(named_like.der)
    name = like.subject
    # Who signs itself names itself: a changed subject is then a changed issuer.
    is_self_issued = old.subject == old.issuer
    builder = x509.CertificateBuilder(
        issuer_name=name if is_self_issued else old.issuer,
        subject_name=name,
        public_key=public_key or old.public_key(),
        serial_number=old.serial_number,
        not_valid_before=old.not_valid_before_utc,
        not_valid_after=old.not_valid_after_utc,
    )
    for extension in old.extensions:
        if not isinstance(extension.value, tuple(drop)):
            builder = builder.add_extension(extension.value, extension.critical)
    for value, is_critical in add:
        builder = builder.add_extension(value, is_critical)
    key = serialization.load_pem_private_key(signer.to_pem(), password=None)
    return read_certificate(
        builder.sign(key, algorithm=None).public_bytes(serialization.Encoding.DER)
    )


def sign_with_ecdsa(certificate: CertificateFacts) -> CertificateFacts:
    """The same certificate, signed by an elliptic-curve key that nobody knows."""
    old = x509.load_der_x509_certificate(certificate.der)
    builder = x509.CertificateBuilder(
        issuer_name=old.issuer,
        subject_name=old.subject,
        public_key=old.public_key(),
        serial_number=old.serial_number,
        not_valid_before=old.not_valid_before_utc,
        not_valid_after=old.not_valid_after_utc,
    )
    for extension in old.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    signed = builder.sign(ec.derive_private_key(7, ec.SECP256R1()), hashes.SHA256())
    return read_certificate(signed.public_bytes(serialization.Encoding.DER))


def with_altered_signature(certificate: CertificateFacts) -> CertificateFacts:
    """One bit of the signature is another."""
    der = bytearray(certificate.der)
    der[-40] ^= 1
    return read_certificate(bytes(der))
