"""Chains of certificates, good ones and ones with one fault, each signed by the right keys."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cryptography import x509

from cluster.identity.certificates import (
    CertificateFacts,
    CertificatePlan,
    PrivateExtension,
)
from cluster.identity.extensions import Kind, Terms, write_terms
from cluster.ids import POWER
from cluster.keyring import Ed25519Signer
from tests.identities import (
    NOW,
    Lab,
    reissue,
    sign_with_ecdsa,
    with_altered_signature,
)

Chain = tuple[tuple[CertificateFacts, ...], CertificateFacts]
"""Leaf first without the authority; then the authority."""


def same(plan: CertificatePlan) -> CertificatePlan:
    return plan


Change = Callable[[CertificatePlan], CertificatePlan]


def planned(*, node: Change = same, invite: Change = same, name: str = "gpu-17") -> Chain:
    """A good chain but for changes of the plans, signed by the right keys."""
    lab, invite_signer, node_signer = parts()
    invited = lab.keys.signer.issue(invite(lab.invite_plan(invite_signer)), lab.root)
    leaf = invite_signer.issue(node(lab.node_plan(node_signer, name)), invited)
    return (leaf, invited), lab.root


def parts() -> tuple[Lab, Ed25519Signer, Ed25519Signer]:
    lab = Lab()
    return lab, lab.new_signer(), lab.new_signer()


def with_terms(**terms: Any) -> Change:
    written = write_terms(Terms(kind=Kind.INVITE, **{**_INVITE_TERMS, **terms}))
    return lambda plan: replace(plan, private=written)


_INVITE_TERMS: dict[str, Any] = {"roles": (POWER,), "admit_until_unix_seconds": NOW + 86_400}


def reissued_node(**how: Any) -> Chain:
    (_, invited), root = planned()
    _, invite_signer, node_signer = parts()
    leaf = invite_signer.issue(Lab().node_plan(node_signer), invited)
    return (reissue(leaf, invite_signer, **how), invited), root


def reissued_invite(**how: Any) -> Chain:
    (_, invited), root = planned()
    lab, invite_signer, _ = parts()
    changed = reissue(invited, lab.keys.signer, **how)
    return (invite_signer.issue(lab.node_plan(parts()[2]), changed), changed), root


def altered(which: int) -> Chain:
    chain, root = planned()
    changed = tuple(
        with_altered_signature(one) if at == which else one for at, one in enumerate(chain)
    )
    return changed, root


def foreign() -> Chain:
    chain, _ = planned()
    return chain, Lab(seed=2).root


def foreign_with_our_name() -> Chain:
    chain, root = planned()
    other = Lab(seed=2)
    return chain, reissue(other.root, other.keys.signer, named_like=root)


def ecdsa_signed() -> Chain:
    (leaf, invited), root = planned()
    return (sign_with_ecdsa(leaf), invited), root


def without_invite() -> Chain:
    lab, _, node_signer = parts()
    return (lab.keys.signer.issue(lab.node_plan(node_signer), lab.root),), lab.root


def wrong_invite() -> Chain:
    lab, invite_signer, _ = parts()
    (leaf, _), root = planned()
    other = lab.keys.signer.issue(lab.invite_plan(lab.new_signer()), root)
    assert invite_signer.public_key != other.public_key
    return (leaf, other), root


def invite_of_an_invite(path_length: int | None) -> Chain:
    lab, invite_signer, node_signer = parts()
    plan = replace(lab.invite_plan(invite_signer), path_length=path_length)
    invited = lab.keys.signer.issue(plan, lab.root)
    second_signer = lab.new_signer()
    second = invite_signer.issue(
        replace(lab.invite_plan(second_signer), common_name="another", serial=79), invited
    )
    leaf = second_signer.issue(lab.node_plan(node_signer), second)
    return (leaf, second, invited), lab.root


def node_of_a_node() -> Chain:
    (leaf, invited), root = planned()
    lab, _, node_signer = parts()
    second = node_signer.issue(lab.node_plan(lab.new_signer(), "gpu-18"), leaf)
    return (second, leaf, invited), root


def too_long() -> Chain:
    (leaf, invited), root = planned()
    return (leaf, invited, invited, invited, invited), root


def revealing(oid: str, value: bytes = b"\x05\x00") -> Change:
    extension = PrivateExtension(oid=oid, value=value, is_critical=True)
    return lambda plan: replace(plan, private=(*plan.private, extension))


def constrained(permitted: list[x509.GeneralName] | None, excluded: Any = None) -> Chain:
    constraint = x509.NameConstraints(permitted, excluded)
    return reissued_invite(drop=(x509.NameConstraints,), add=((constraint, True),))
