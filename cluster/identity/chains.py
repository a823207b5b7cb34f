"""Our own rules of a chain, on top of those of X.509: what each kind of certificate may be and say.

Its own file so that the stricter half can be read alone: it is asked only where `path` is content,
and only ever refuses more. Every certificate must look exactly as `plans` makes its kind, so that
there is nothing to interpret. It must not know time (see `standing`) or who was admitted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cluster.errors import Malformed
from cluster.identity.certificates import (
    CLIENT_AUTH_OID,
    DIGITAL_SIGNATURE,
    DNS,
    KEY_CERT_SIGN,
    SERVER_AUTH_OID,
    CertificateFacts,
    Window,
)
from cluster.identity.extensions import OPERATOR_USAGE_OID, Kind, Terms, read_terms
from cluster.identity.names import parse_node_domain, parse_rack_domain
from cluster.identity.path import check_path, shown_subject
from cluster.identity.refusals import Refused, Rule
from cluster.ids import (
    ClusterId,
    ClusterName,
    KeyId,
    NodeId,
    NodeName,
    OperatorId,
    RackId,
    Role,
    parse_cluster_name,
    parse_node_name,
)
from cluster.signatures import Verifier

_KNOWN_MAX = 256
_SERIAL_BITS_MAX = 159
"""Source: RFC 5280, section 4.1.2.2: at most 20 octets, and positive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedAuthority:
    """An authority whose certificate has been judged; `judge_authority` alone makes one."""

    cluster_id: ClusterId
    name: ClusterName
    certificate: CertificateFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorIdentity:
    """Who may sign operator records."""

    operator_id: OperatorId
    name: NodeName
    public_key: bytes = field(repr=False)
    serial: int
    window: Window


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuingRights:
    """What an invite or a delegated issuer allows."""

    kind: Kind
    key_id: KeyId
    serial: int
    racks: tuple[RackId, ...]
    terms: Terms
    window: Window


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeIdentity:
    """What the chain of a node's certificate proves; not whether the node was admitted."""

    node_id: NodeId
    cluster_id: ClusterId
    name: NodeName
    rack: RackId
    roles: tuple[Role, ...]
    """Those that the certificate names; `standing` tells which are in force."""
    public_key: bytes = field(repr=False)
    serial: int
    window: Window
    rights: IssuingRights
    """Of the invite or the issuer that signed it."""


class KnownIssuers:
    """Invites and issuers of one authority whose chains were found good: each is judged once.

    What is remembered follows from two certificates alone. Whether an invite has ended, was revoked
    or is used up is asked elsewhere, each time (`settlement`).
    """

    def __init__(self, authority: TrustedAuthority) -> None:
        self.authority = authority
        self._held: dict[bytes, tuple[CertificateFacts, IssuingRights]] = {}

    def get(self, certificate: CertificateFacts) -> IssuingRights | None:
        """What this very certificate allows, if it is known."""
        held = self._held.get(certificate.der)
        if held is None or (held[0] is not certificate and held[0] != certificate):
            return None
        return held[1]

    def keep(self, certificate: CertificateFacts, rights: IssuingRights) -> None:
        """One that was judged above a node's certificate."""
        if len(self._held) >= _KNOWN_MAX:
            self._held.clear()
        self._held[certificate.der] = (certificate, rights)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Profile:
    is_ca: bool
    path_length: int | None
    key_usages: tuple[str, ...]
    extended_key_usages: tuple[str, ...] | None = None
    names: int = 0
    has_constraints: bool = False


_PROFILES: Mapping[Kind, _Profile] = {
    Kind.AUTHORITY: _Profile(is_ca=True, path_length=1, key_usages=(KEY_CERT_SIGN,)),
    Kind.OPERATOR: _Profile(
        is_ca=False,
        path_length=None,
        key_usages=(DIGITAL_SIGNATURE,),
        extended_key_usages=(OPERATOR_USAGE_OID,),
    ),
    Kind.INVITE: _Profile(
        is_ca=True, path_length=0, key_usages=(KEY_CERT_SIGN,), has_constraints=True
    ),
    Kind.ISSUER: _Profile(
        is_ca=True, path_length=0, key_usages=(KEY_CERT_SIGN,), has_constraints=True
    ),
    Kind.NODE: _Profile(
        is_ca=False,
        path_length=None,
        key_usages=(DIGITAL_SIGNATURE,),
        extended_key_usages=(SERVER_AUTH_OID, CLIENT_AUTH_OID),
        names=1,
    ),
}


def judge_authority(
    certificate: CertificateFacts, verifier: Verifier
) -> TrustedAuthority | Refused:
    """Whether this can be a cluster's root; trust in it comes from where it was found."""
    # A path of one certificate below itself: the form of both, and the signature by its own key.
    refused = check_path((certificate,), certificate, verifier)
    terms = refused or _terms(certificate, (Kind.AUTHORITY,))
    if isinstance(terms, Refused):
        return terms
    if refused := _check_profile(certificate, terms.kind):
        return refused
    if certificate.authority_key_id != certificate.subject_key_id:
        return _refused(Rule.PROFILE, "does not name its own key as its issuer's", certificate)
    try:
        name = parse_cluster_name(certificate.common_name or "")
    except Malformed as error:
        return _refused(Rule.NAME, str(error), certificate)
    return TrustedAuthority(
        cluster_id=ClusterId.of_public_key(certificate.public_key or b""),
        name=name,
        certificate=certificate,
    )


def judge_operator(
    certificate: CertificateFacts, authority: TrustedAuthority, verifier: Verifier
) -> OperatorIdentity | Refused:
    """Whether the authority made this an operator of its cluster."""
    if refused := check_path((certificate,), authority.certificate, verifier):
        return refused
    terms = _judge_below(certificate, authority.certificate, (Kind.OPERATOR,))
    if isinstance(terms, Refused):
        return terms
    try:
        name = parse_node_name(certificate.common_name or "")
    except Malformed as error:
        return _refused(Rule.NAME, str(error), certificate)
    public_key = certificate.public_key or b""
    return OperatorIdentity(
        operator_id=OperatorId.of_public_key(public_key),
        name=name,
        public_key=public_key,
        serial=certificate.serial,
        window=certificate.window,
    )


def judge_issuer(
    certificate: CertificateFacts, authority: TrustedAuthority, verifier: Verifier
) -> IssuingRights | Refused:
    """What an invite or a delegated issuer of this cluster allows."""
    if refused := check_path((certificate,), authority.certificate, verifier):
        return refused
    return _issuing_rights(certificate, authority)


def judge_node(
    chain: Sequence[CertificateFacts],
    authority: TrustedAuthority,
    verifier: Verifier,
    *,
    known: KnownIssuers | None = None,
) -> NodeIdentity | Refused:
    """Who a node is, from its certificate and the invite's or issuer's that signed it.

    `known` remembers what was found of the second one; it must be of the same authority.
    """
    rights = None
    if known is not None and len(chain) == 2 and known.authority is authority:
        rights = known.get(chain[1])
    is_known = rights is not None
    if refused := check_path(chain, authority.certificate, verifier, is_rest_known=is_known):
        return refused
    if len(chain) != 2:
        line = f"a chain of {len(chain)} certificates, not of node and invite"
        return Refused(rule=Rule.CHAIN_LENGTH, line=line)
    certificate, issuer = chain
    judged = rights or _issuing_rights(issuer, authority)
    if isinstance(judged, Refused):
        return judged
    if known is not None and not is_known and known.authority is authority:
        known.keep(issuer, judged)
    return _judge_node(certificate, issuer, judged, authority)


def _judge_node(
    certificate: CertificateFacts,
    issuer: CertificateFacts,
    rights: IssuingRights,
    authority: TrustedAuthority,
) -> NodeIdentity | Refused:
    """What is left to ask of a node's certificate, once its chain and its issuer are good."""
    terms = _judge_below(certificate, issuer, (Kind.NODE,))
    if isinstance(terms, Refused):
        return terms
    try:
        name, rack = parse_node_domain(certificate.alternative_names[0].value)
    except Malformed as error:
        return _refused(Rule.NAME, str(error), certificate)
    # That the rack is one of the issuer's is the name constraint, which `path` has judged.
    if refused := _check_node(certificate, terms, rights, name):
        return refused
    public_key = certificate.public_key or b""
    return NodeIdentity(
        node_id=NodeId.of_public_key(public_key),
        cluster_id=authority.cluster_id,
        name=name,
        rack=rack,
        roles=terms.roles,
        public_key=public_key,
        serial=certificate.serial,
        window=certificate.window,
        rights=rights,
    )


def _check_node(
    certificate: CertificateFacts, terms: Terms, rights: IssuingRights, name: NodeName
) -> Refused | None:
    if certificate.common_name != name:
        return _refused(Rule.NAME, f"its names differ: {name!r} is the other", certificate)
    if not name.startswith(rights.terms.name_prefix):
        line = f"its name does not begin with {rights.terms.name_prefix!r}"
        return _refused(Rule.NAME_PREFIX, line, certificate)
    extra = [role for role in terms.roles if role not in rights.terms.roles]
    if extra:
        line = f"claims roles that its issuer may not give: {', '.join(extra)}"
        return _refused(Rule.ROLES, line, certificate)
    return None


def _issuing_rights(
    certificate: CertificateFacts, authority: TrustedAuthority
) -> IssuingRights | Refused:
    terms = _judge_below(certificate, authority.certificate, (Kind.INVITE, Kind.ISSUER))
    if isinstance(terms, Refused):
        return terms
    try:
        racks = tuple(parse_rack_domain(name.value) for name in certificate.permitted_names or ())
    except Malformed as error:
        return _refused(Rule.RACK, str(error), certificate)
    if terms.kind is Kind.INVITE and len(racks) != 1:
        return _refused(Rule.RACK, f"invites to {len(racks)} racks, not to one", certificate)
    return IssuingRights(
        kind=terms.kind,
        key_id=KeyId.of_public_key(certificate.public_key or b""),
        serial=certificate.serial,
        racks=racks,
        terms=terms,
        window=certificate.window,
    )


def _judge_below(
    certificate: CertificateFacts, issuer: CertificateFacts, kinds: tuple[Kind, ...]
) -> Terms | Refused:
    """What every certificate below an authority must keep, whatever its kind."""
    terms = _terms(certificate, kinds)
    if isinstance(terms, Refused):
        return terms
    if refused := _check_profile(certificate, terms.kind):
        return refused
    if certificate.authority_key_id is None:
        return _refused(Rule.PROFILE, "does not name its issuer's key", certificate)
    if not issuer.window.holds(certificate.window):
        return _refused(Rule.LIFETIME, "lives longer than its issuer", certificate)
    return terms


def _terms(certificate: CertificateFacts, kinds: tuple[Kind, ...]) -> Terms | Refused:
    try:
        terms = read_terms(certificate.private)
    except Malformed as error:
        return _refused(Rule.TERMS, str(error), certificate)
    if terms.kind not in kinds:
        line = f"is one of {terms.kind}, not of {' or '.join(kinds)}"
        return _refused(Rule.KIND, line, certificate)
    return terms


def _check_profile(certificate: CertificateFacts, kind: Kind) -> Refused | None:
    """Whether a certificate looks exactly as one of its kind is made."""
    profile = _PROFILES[kind]
    window = certificate.window
    if window.begin_unix_seconds > window.end_unix_seconds:
        return _refused(Rule.LIFETIME, "ends before it begins", certificate)
    names = certificate.alternative_names
    key_id = KeyId.of_public_key(certificate.public_key or b"")
    for is_kept, what in (
        (0 < certificate.serial < 1 << _SERIAL_BITS_MAX, "serial number"),
        (certificate.is_ca is profile.is_ca, "basic constraints"),
        (certificate.path_length == profile.path_length, "path length"),
        (certificate.key_usages == profile.key_usages, "key usage"),
        (certificate.extended_key_usages == profile.extended_key_usages, "extended key usage"),
        (len(names) == profile.names, "number of names"),
        (all(name.form == DNS for name in names), "form of names"),
        ((certificate.permitted_names is not None) is profile.has_constraints, "constraints"),
        (certificate.excluded_names is None, "excluded names"),
        (certificate.subject_key_id == key_id, "subject key id"),
    ):
        if not is_kept:
            line = f"its {what} is not that of a certificate of {kind}"
            return _refused(Rule.PROFILE, line, certificate)
    return None


def _refused(rule: Rule, line: str, certificate: CertificateFacts) -> Refused:
    return Refused(rule=rule, line=f"certificate of {shown_subject(certificate)}: {line}")
