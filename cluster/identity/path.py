"""The rules that any reader of X.509 applies to a chain, as far as our certificates use them.

Its own file so that it can be held against `openssl verify -no_check_time`: what openssl refuses is
refused here. Where RFC 5280 leaves room we are the stricter: names are compared byte by byte,
every constraint must be of a form that we read, and no certificate is let off for naming itself.
Time is not judged here (see `standing`), nor what only our own extensions say (see `chains`).
The costly check, the signatures, comes last.
Source: RFC 5280, section 6.1.
"""

from collections.abc import Sequence

from cluster.identity.certificates import (
    DNS,
    ED25519_OID,
    KEY_CERT_SIGN,
    CertificateFacts,
    GeneralName,
)
from cluster.identity.names import lies_below
from cluster.identity.refusals import Refused, Rule
from cluster.signatures import Verifier

CHAIN_CERTIFICATES_MAX = 4
"""Ours have two; a few more so that an over-long chain is refused for what is wrong with it."""


def check_path(
    chain: Sequence[CertificateFacts],
    authority: CertificateFacts,
    verifier: Verifier,
    *,
    is_rest_known: bool = False,
) -> Refused | None:
    """Why this chain does not lead to the authority; None when it does.

    `chain` begins with the certificate in question and ends below the authority. `is_rest_known`
    where a chain of the same length, with the same certificates but for the first, was found to
    lead to the same authority: what is not about the first one then has the same outcome again.
    """
    if not 1 <= len(chain) <= CHAIN_CERTIFICATES_MAX:
        return _refused(Rule.CHAIN_LENGTH, f"a chain of {len(chain)} certificates")
    path = (*chain, authority)
    judged = path[:1] if is_rest_known else path
    links = list(zip(judged, path[1:], strict=False))
    for depth, certificate in enumerate(judged):
        if refused := _check_form(certificate) or _check_issuer(certificate, depth):
            return refused
    for child, issuer in links:
        if refused := _check_link(child, issuer, is_top=issuer is authority):
            return refused
    for depth, issuer in enumerate(path):
        for place, below in enumerate(judged[:depth]):
            if refused := _check_names(below, issuer, is_leaf=place == 0):
                return refused
    for child, issuer in links:
        if refused := check_signature(child, issuer, verifier):
            return refused
    return None


def check_signature(
    certificate: CertificateFacts, issuer: CertificateFacts, verifier: Verifier
) -> Refused | None:
    """Whether the holder of the issuer's key signed this certificate."""
    is_signed = issuer.public_key is not None and verifier.verify(
        public_key=issuer.public_key,
        signature=certificate.signature,
        message=certificate.signed_part,
    )
    if is_signed:
        return None
    return _refused(Rule.SIGNATURE, "its signature is not its issuer's", certificate)


def _check_form(certificate: CertificateFacts) -> Refused | None:
    if certificate.version != 3:
        return _refused(Rule.VERSION, f"is X.509v{certificate.version}, not v3", certificate)
    if certificate.public_key is None:
        return _refused(Rule.KEY_ALGORITHM, "its key is not an Ed25519 key", certificate)
    is_ed25519 = certificate.signature_algorithm == ED25519_OID
    if not is_ed25519 or not certificate.has_matching_algorithms:
        return _refused(Rule.SIGNATURE_ALGORITHM, "is not signed with Ed25519", certificate)
    if certificate.unknown_critical:
        unknown = ", ".join(certificate.unknown_critical)
        line = f"has a critical extension that we do not know: {unknown}"
        return _refused(Rule.UNKNOWN_CRITICAL_EXTENSION, line, certificate)
    return None


def _check_issuer(certificate: CertificateFacts, depth: int) -> Refused | None:
    """What a certificate must be to stand above `depth` others."""
    if depth == 0:
        return None
    if not certificate.is_ca:
        return _refused(Rule.CA_FLAG, "may not issue certificates", certificate)
    usages = certificate.key_usages
    if usages is not None and KEY_CERT_SIGN not in usages:
        return _refused(Rule.KEY_USAGE, "its key may not sign certificates", certificate)
    # Between it and the certificate in question stand depth - 1 others.
    if certificate.path_length is not None and depth - 1 > certificate.path_length:
        line = f"allows {certificate.path_length} issuers below it, not {depth - 1}"
        return _refused(Rule.PATH_LENGTH, line, certificate)
    return None


def _check_link(
    child: CertificateFacts, issuer: CertificateFacts, *, is_top: bool
) -> Refused | None:
    if child.issuer != issuer.subject:
        if is_top:
            return _refused(Rule.FOREIGN_AUTHORITY, "comes from another cluster", child)
        return _refused(Rule.ISSUER_NAME, "names another issuer than the next one", child)
    if child.authority_key_id is not None and child.authority_key_id != issuer.subject_key_id:
        return _refused(Rule.KEY_IDENTIFIER, "was signed with another key of its issuer", child)
    return None


def _check_names(
    certificate: CertificateFacts, issuer: CertificateFacts, *, is_leaf: bool
) -> Refused | None:
    """Whether the names of a certificate are among those that this issuer may give."""
    permitted, excluded = issuer.permitted_names, issuer.excluded_names
    for constraint in (*(permitted or ()), *(excluded or ())):
        if constraint.form != DNS:
            line = f"constrains names of the form {constraint.form}, which we do not read"
            return _refused(Rule.UNSUPPORTED_CONSTRAINT, line, issuer)
    for name in _dns_names(certificate, is_leaf=is_leaf):
        if permitted is not None and not _is_among(name, permitted):
            line = f"its name {name!r} is not below what its issuer may name"
            return _refused(Rule.NAME_CONSTRAINT, line, certificate)
        if excluded is not None and _is_among(name, excluded):
            line = f"its name {name!r} is one that its issuer must not give"
            return _refused(Rule.NAME_CONSTRAINT, line, certificate)
    return None


def _dns_names(certificate: CertificateFacts, *, is_leaf: bool) -> list[str]:
    """The names that a constraint is about.

    Without an alternative name, a leaf's common name with a dot counts as one, as openssl has it.
    """
    names = [name.value for name in certificate.alternative_names if name.form == DNS]
    common_name = certificate.common_name
    if names or not is_leaf or common_name is None or "." not in common_name:
        return names
    return [common_name]


def _is_among(name: str, constraints: Sequence[GeneralName]) -> bool:
    return any(lies_below(name, constraint.value) for constraint in constraints)


def _refused(rule: Rule, line: str, certificate: CertificateFacts | None = None) -> Refused:
    if certificate is None:
        return Refused(rule=rule, line=line)
    return Refused(rule=rule, line=f"certificate of {shown_subject(certificate)}: {line}")


def shown_subject(certificate: CertificateFacts) -> str:
    """What a certificate calls itself, for a line; never longer than a line bears."""
    return repr(certificate.common_name[:64]) if certificate.common_name else "nobody"
