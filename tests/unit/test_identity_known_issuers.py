"""An invite is judged once, and what follows is as strict as if it were judged for each node."""

from dataclasses import replace

import pytest

from cluster.assembly import chain_of, judge_with
from cluster.identity.certificates import CertificateFacts
from cluster.identity.chains import (
    KnownIssuers,
    NodeIdentity,
    TrustedAuthority,
    judge_authority,
    judge_node,
)
from cluster.identity.operator_records import CertificateRevoked
from cluster.identity.refusals import Refused, Rule
from cluster.keyring import Ed25519Verifier
from cluster.papers import Chain
from tests.identities import NOW, Lab, with_altered_signature
from tests.identity_cases import BAD_CHAINS, BAD_PATHS, GOOD, ChainCase
from tests.identity_chains import planned
from tests.rosters import Club

VERIFIER = Ed25519Verifier()


class CountingVerifier:
    def __init__(self) -> None:
        self.count = 0

    def verify(self, *, public_key: bytes, signature: bytes, message: bytes) -> bool:
        self.count += 1
        return VERIFIER.verify(public_key=public_key, signature=signature, message=message)


def trusted(root: CertificateFacts) -> TrustedAuthority:
    authority = judge_authority(root, VERIFIER)
    assert isinstance(authority, TrustedAuthority)
    return authority


def test_the_second_node_of_an_invite_costs_one_signature_and_not_two() -> None:
    lab = Lab()
    invite = lab.invite()
    first, second = lab.join(invite, "gpu-01"), lab.join(invite, "gpu-02")
    known, verifier = KnownIssuers(lab.keys.authority), CountingVerifier()

    counts = []
    judged = []
    for keys in (first, second):
        judged.append(judge_node(keys.chain, lab.keys.authority, verifier, known=known))
        counts.append(verifier.count)

    assert counts == [2, 3]
    assert judged == [first.identity, second.identity]


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.id) for case in (*GOOD, *BAD_PATHS, *BAD_CHAINS)]
)
def test_whatever_is_known_changes_no_judgement(case: ChainCase) -> None:
    chain, root = case.build()
    authority = trusted(root)
    known = KnownIssuers(authority)
    (good_leaf, good_invite), good_root = planned()
    if good_root == root:
        # The case's own invite, where it is a good one, is known by another node.
        judge_node((good_leaf, good_invite), authority, VERIFIER, known=known)
    fresh = judge_node(chain, authority, VERIFIER)

    first = judge_node(chain, authority, VERIFIER, known=known)
    again = judge_node(chain, authority, VERIFIER, known=known)

    assert first == again == fresh


def test_a_leaf_that_the_known_invite_did_not_sign_is_refused() -> None:
    (leaf, invite), root = planned()
    authority = trusted(root)
    known = KnownIssuers(authority)
    judge_node((leaf, invite), authority, VERIFIER, known=known)
    verifier = CountingVerifier()

    refused = judge_node((with_altered_signature(leaf), invite), authority, verifier, known=known)

    assert isinstance(refused, Refused)
    assert refused.rule is Rule.SIGNATURE
    assert verifier.count == 1


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        pytest.param({"version": 1}, Rule.VERSION, id="an-older-form"),
        pytest.param({"is_ca": False}, Rule.CA_FLAG, id="no-issuer"),
        pytest.param({"signature": bytes(64)}, Rule.SIGNATURE, id="another-signature"),
    ],
)
def test_other_facts_under_the_bytes_of_a_known_invite_are_not_known(
    change: dict[str, object], rule: Rule
) -> None:
    (leaf, invite), root = planned()
    authority = trusted(root)
    known = KnownIssuers(authority)
    judge_node((leaf, invite), authority, VERIFIER, known=known)

    refused = judge_node((leaf, replace(invite, **change)), authority, VERIFIER, known=known)

    assert isinstance(refused, Refused)
    assert refused.rule is rule


def test_what_is_known_of_one_authority_is_nothing_to_another() -> None:
    ours, theirs = Lab(seed=1), Lab(seed=2)
    keys = ours.join(ours.invite(), "gpu-01")
    known = KnownIssuers(ours.keys.authority)
    judge_node(keys.chain, ours.keys.authority, VERIFIER, known=known)

    refused = judge_node(keys.chain, theirs.keys.authority, VERIFIER, known=known)

    assert isinstance(refused, Refused)
    assert refused.rule is Rule.FOREIGN_AUTHORITY


def test_a_refused_chain_makes_no_issuer_known() -> None:
    (leaf, invite), root = planned()
    authority = trusted(root)
    known = KnownIssuers(authority)

    judge_node((with_altered_signature(leaf), invite), authority, VERIFIER, known=known)

    assert known.get(invite) is None


def test_what_is_known_is_bounded() -> None:
    lab = Lab()
    authority = lab.keys.authority
    keys = lab.join(lab.invite(), "gpu-01")
    known = KnownIssuers(authority)
    judge_node(keys.chain, authority, VERIFIER, known=known)
    assert known.get(keys.chain[1]) is not None

    for number in range(256):
        known.keep(replace(keys.chain[1], der=b"%d" % number), keys.identity.rights)

    assert known.get(keys.chain[1]) is None


def test_a_revoked_invite_lets_nobody_in_although_it_is_known() -> None:
    club = Club()
    invite = club.lab.invite()
    first, late = club.lab.join(invite, "n2"), club.lab.join(invite, "n3")
    club.admit(first)
    revoked = CertificateRevoked(serial=first.identity.rights.serial, note="leaked")
    club.roster.learn([club.introduce_operator(), club.say(revoked)])

    _, refused = club.roster.welcome(chain_of(late), now_unix_seconds=NOW)

    assert refused is not None
    assert refused.rule is Rule.REVOKED
    assert club.roster.identity_of(first.identity.node_id) is not None


def test_an_invite_that_has_ended_lets_nobody_in_although_it_is_known() -> None:
    club = Club()
    invite = club.lab.invite()
    first, late = club.lab.join(invite, "n2"), club.lab.join(invite, "n3")
    club.admit(first)

    _, refused = club.roster.welcome(chain_of(late), now_unix_seconds=NOW + 10 * 365 * 86_400)

    assert refused is not None
    assert refused.rule is Rule.ADMISSION_ENDED


def test_a_chain_is_judged_the_same_however_often_it_is_shown() -> None:
    lab = Lab()
    keys = lab.join(lab.invite(), "gpu-01")
    judge = judge_with(lab.keys.authority)
    broken = Chain(node_der=with_altered_signature(keys.chain[0]).der, issuer_der=keys.chain[1].der)

    judged = [judge(chain) for chain in (chain_of(keys), broken, chain_of(keys), broken)]

    assert isinstance(judged[0], NodeIdentity)
    assert isinstance(judged[1], Refused)
    assert judged[2:] == judged[:2]
