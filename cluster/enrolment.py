"""How a cluster begins and nodes come to it: keys are made, plans are signed, invites are used.

Its own file because it is where the rules (`cluster.identity`) and the keys (`cluster.keyring`)
meet. Whatever it makes it also judges, so that nobody carries home a certificate that the others
would refuse. Time and randomness are handed in. It must not know files or sockets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from cluster.errors import Misuse, PeerFault
from cluster.identity.certificates import CertificateFacts
from cluster.identity.chains import (
    IssuingRights,
    NodeIdentity,
    OperatorIdentity,
    TrustedAuthority,
    judge_authority,
    judge_issuer,
    judge_node,
    judge_operator,
)
from cluster.identity.extensions import Kind, Terms
from cluster.identity.plans import (
    AUTHORITY_LIFETIME_DAYS,
    INVITE_LIFETIME_DAYS,
    OPERATOR_LIFETIME_DAYS,
    new_serial,
    plan_authority,
    plan_invite,
    plan_issuer,
    plan_node,
    plan_operator,
    window_from,
    window_within,
)
from cluster.identity.refusals import Refused
from cluster.identity.settlement import check_time
from cluster.identity.tokens import InviteToken, parse_seed
from cluster.ids import ANY_NAME, POWER, WORK, ClusterName, NamePrefix, NodeName, RackId, Role
from cluster.keyring import Ed25519Signer, Ed25519Verifier, read_certificate
from cluster.signatures import RandomBytes

DEFAULT_ROLES = (POWER, WORK)
_VERIFIER = Ed25519Verifier()
_Judged = TypeVar("_Judged")


class NotAccepted(PeerFault):
    """A token or certificate from outside does not hold; `refused` says by which rule."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.line)
        self.refused = refused


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorityKeys:
    """A cluster's root, and the key that signs for it."""

    authority: TrustedAuthority
    signer: Ed25519Signer


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorKeys:
    """An operator, the certificate that says so, and the operator's key."""

    operator: OperatorIdentity
    certificate: CertificateFacts
    signer: Ed25519Signer


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerKeys:
    """A delegated issuer: what it may renew, its certificate and its key."""

    rights: IssuingRights
    certificate: CertificateFacts
    signer: Ed25519Signer


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedInvite:
    """A token whose certificates have been judged, with the key inside it."""

    authority: TrustedAuthority
    rights: IssuingRights
    certificate: CertificateFacts
    signer: Ed25519Signer = field(repr=False)
    seeds: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKeys:
    """A node's key, and all that proves to others whose it is."""

    authority: TrustedAuthority
    identity: NodeIdentity
    chain: tuple[CertificateFacts, ...]
    """The node's certificate, then its issuer's."""
    signer: Ed25519Signer
    seeds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InviteWish:
    """What an operator asks of an invite."""

    rack: RackId
    ttl_seconds: int
    roles: tuple[Role, ...] = DEFAULT_ROLES
    name_prefix: NamePrefix = ANY_NAME
    uses: int | None = None
    needs_approval: bool = False
    may_found: bool = False
    """For a cluster's first node, which nobody can admit but itself; such an invite has one use."""
    lifetime_days: int = INVITE_LIFETIME_DAYS


def found_cluster(
    name: ClusterName, *, now_unix_seconds: int, random_bytes: RandomBytes
) -> AuthorityKeys:
    """A new authority."""
    signer = Ed25519Signer.generate(random_bytes)
    plan = plan_authority(
        name,
        public_key=signer.public_key,
        serial=new_serial(random_bytes),
        window=window_from(now_unix_seconds, AUTHORITY_LIFETIME_DAYS),
    )
    authority = _own(judge_authority(signer.issue(plan), _VERIFIER))
    return AuthorityKeys(authority=authority, signer=signer)


def add_operator(
    keys: AuthorityKeys, name: NodeName, *, now_unix_seconds: int, random_bytes: RandomBytes
) -> OperatorKeys:
    """A new operator's key, certified by the authority."""
    signer = Ed25519Signer.generate(random_bytes)
    root = keys.authority.certificate
    plan = plan_operator(
        name,
        public_key=signer.public_key,
        serial=new_serial(random_bytes),
        window=window_within(window_from(now_unix_seconds, OPERATOR_LIFETIME_DAYS), root.window),
    )
    certificate = keys.signer.issue(plan, root)
    operator = _own(judge_operator(certificate, keys.authority, _VERIFIER))
    return OperatorKeys(operator=operator, certificate=certificate, signer=signer)


def issue_invite(
    keys: AuthorityKeys,
    wish: InviteWish,
    *,
    seeds: Sequence[str] = (),
    now_unix_seconds: int,
    random_bytes: RandomBytes,
) -> InviteToken:
    """A token by which nodes can come; its private key is in the token and nowhere else."""
    if wish.may_found and wish.uses != 1:
        raise Misuse("an invite whose node admits itself has exactly one use")
    if wish.ttl_seconds <= 0:
        raise Misuse("an invite that ends before it begins")
    signer = Ed25519Signer.generate(random_bytes)
    root = keys.authority.certificate
    plan = plan_invite(
        wish.rack,
        terms=Terms(
            kind=Kind.INVITE,
            roles=tuple(sorted(set(wish.roles))),
            name_prefix=wish.name_prefix,
            admit_until_unix_seconds=now_unix_seconds + wish.ttl_seconds,
            uses=wish.uses,
            needs_approval=wish.needs_approval,
            may_found=wish.may_found,
        ),
        public_key=signer.public_key,
        serial=new_serial(random_bytes),
        window=window_within(window_from(now_unix_seconds, wish.lifetime_days), root.window),
    )
    certificate = keys.signer.issue(plan, root)
    _own(judge_issuer(certificate, keys.authority, _VERIFIER))
    return InviteToken(
        authority_der=root.der,
        invite_der=certificate.der,
        invite_seed=signer.to_seed(),
        seeds=tuple(parse_seed(seed) for seed in seeds),
    )


def delegate_issuer(
    keys: AuthorityKeys,
    racks: Sequence[RackId],
    *,
    roles: tuple[Role, ...] = DEFAULT_ROLES,
    now_unix_seconds: int,
    random_bytes: RandomBytes,
) -> IssuerKeys:
    """The key and certificate with which a chosen member renews others online."""
    signer = Ed25519Signer.generate(random_bytes)
    root = keys.authority.certificate
    plan = plan_issuer(
        racks,
        roles=tuple(sorted(set(roles))),
        public_key=signer.public_key,
        serial=new_serial(random_bytes),
        window=window_within(window_from(now_unix_seconds, INVITE_LIFETIME_DAYS), root.window),
    )
    certificate = keys.signer.issue(plan, root)
    rights = _own(judge_issuer(certificate, keys.authority, _VERIFIER))
    return IssuerKeys(rights=rights, certificate=certificate, signer=signer)


def open_invite(token: InviteToken) -> OpenedInvite:
    """Judge what a token holds. Trust in the authority comes from the token itself.

    Raises:
        PeerFault: it does not hold, in one line.
    """
    authority = _accepted(judge_authority(read_certificate(token.authority_der), _VERIFIER))
    certificate = read_certificate(token.invite_der)
    rights = _accepted(judge_issuer(certificate, authority, _VERIFIER))
    signer = Ed25519Signer.from_seed(token.invite_seed)
    if rights.kind is not Kind.INVITE or signer.public_key != certificate.public_key:
        raise PeerFault("the invite token's key is not that of its invite; print a new one")
    return OpenedInvite(
        authority=authority,
        rights=rights,
        certificate=certificate,
        signer=signer,
        seeds=token.seeds,
    )


def join(
    invite: OpenedInvite, name: NodeName, *, now_unix_seconds: int, random_bytes: RandomBytes
) -> NodeKeys:
    """Make a node's key and sign its certificate. The caller forgets the invite then.

    Raises:
        NotAccepted: the invite does not allow it, or has ended.
    """
    signer = Ed25519Signer.generate(random_bytes)
    return _enrol(invite, name, signer, now_unix_seconds, random_bytes)


def renew(
    node: NodeKeys, invite: OpenedInvite, *, now_unix_seconds: int, random_bytes: RandomBytes
) -> NodeKeys:
    """A new certificate for the same key and name, by a fresh invite.

    Raises:
        NotAccepted: the invite does not allow it, or has ended.
        PeerFault: it is of another cluster.
    """
    if invite.authority.cluster_id != node.authority.cluster_id:
        raise PeerFault(
            f"the invite is to cluster {invite.authority.name} "
            f"({invite.authority.cluster_id.short}); this node is of {node.authority.name} "
            f"({node.authority.cluster_id.short})"
        )
    return _enrol(invite, node.identity.name, node.signer, now_unix_seconds, random_bytes)


def renew_by_issuer(
    issuer: IssuerKeys,
    node: NodeIdentity,
    authority: TrustedAuthority,
    *,
    now_unix_seconds: int,
    random_bytes: RandomBytes,
) -> CertificateFacts:
    """What a member with a delegated issuer does for another: a new certificate, nothing else new.

    Raises:
        NotAccepted: the issuer is not for this node's rack or roles.
    """
    plan = plan_node(
        node.name,
        node.rack,
        roles=node.roles,
        public_key=node.public_key,
        serial=new_serial(random_bytes),
        window=window_within(
            window_from(now_unix_seconds, INVITE_LIFETIME_DAYS), issuer.certificate.window
        ),
    )
    certificate = issuer.signer.issue(plan, issuer.certificate)
    _accepted(judge_node((certificate, issuer.certificate), authority, _VERIFIER))
    return certificate


def _enrol(
    invite: OpenedInvite,
    name: NodeName,
    signer: Ed25519Signer,
    now_unix_seconds: int,
    random_bytes: RandomBytes,
) -> NodeKeys:
    if refused := check_time(invite.rights, name, now_unix_seconds):
        raise NotAccepted(refused)
    plan = plan_node(
        name,
        invite.rights.racks[0],
        roles=invite.rights.terms.roles,
        public_key=signer.public_key,
        serial=new_serial(random_bytes),
        window=window_within(
            window_from(now_unix_seconds, INVITE_LIFETIME_DAYS), invite.certificate.window
        ),
    )
    chain = (invite.signer.issue(plan, invite.certificate), invite.certificate)
    identity = _accepted(judge_node(chain, invite.authority, _VERIFIER))
    return NodeKeys(
        authority=invite.authority,
        identity=identity,
        chain=chain,
        signer=signer,
        seeds=invite.seeds,
    )


def _accepted(judged: _Judged | Refused) -> _Judged:
    if isinstance(judged, Refused):
        raise NotAccepted(judged)
    return judged


def _own(judged: _Judged | Refused) -> _Judged:
    """What we made ourselves must hold."""
    if isinstance(judged, Refused):
        raise Misuse(f"made a certificate that does not hold: {judged.line}")
    return judged
