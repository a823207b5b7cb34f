"""Every way in which a chain can be wrong is refused by the rule that is meant for it."""

from dataclasses import replace

import pytest

from cluster.identity.certificates import DIGITAL_SIGNATURE, KEY_CERT_SIGN, GeneralName, Window
from cluster.identity.chains import (
    NodeIdentity,
    judge_authority,
    judge_issuer,
    judge_node,
    judge_operator,
)
from cluster.identity.extensions import Kind, Terms, write_terms
from cluster.identity.path import check_path
from cluster.identity.plans import plan_authority, plan_issuer, plan_operator, window_from
from cluster.identity.refusals import Refused, Rule
from cluster.ids import (
    POWER,
    WORK,
    ClusterId,
    NodeId,
    OperatorId,
    RackId,
    parse_cluster_name,
    parse_node_name,
)
from cluster.keyring import Ed25519Verifier
from tests.identities import NOW, R01, R02, Lab, with_altered_signature
from tests.identity_cases import ALL_CASES, BAD_CHAINS, BAD_PATHS, GOOD, ChainCase
from tests.identity_chains import planned

VERIFIER = Ed25519Verifier()


def judge(case: ChainCase) -> NodeIdentity | Refused:
    chain, root = case.build()
    authority = judge_authority(root, VERIFIER)
    if isinstance(authority, Refused):
        # Authorities that no cluster would trust stand for themselves.
        return check_path(chain, root, VERIFIER) or authority
    return judge_node(chain, authority, VERIFIER)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in GOOD])
def test_a_chain_that_keeps_the_rules_is_a_node(case: ChainCase) -> None:
    assert isinstance(judge(case), NodeIdentity)


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.id) for case in (*BAD_PATHS, *BAD_CHAINS)]
)
def test_a_chain_that_breaks_a_rule_is_refused_by_it(case: ChainCase) -> None:
    judged = judge(case)

    assert isinstance(judged, Refused)
    assert judged.rule is case.rule
    assert "\n" not in judged.line


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in ALL_CASES])
def test_the_path_alone_is_refused_where_its_own_rules_are_broken(case: ChainCase) -> None:
    chain, root = case.build()

    refused = check_path(chain, root, VERIFIER)

    assert (refused is not None) == (case in BAD_PATHS)


def test_a_node_is_what_its_certificate_says() -> None:
    lab = Lab()
    invite = lab.invite(R01, roles=(WORK, POWER), uses=3)

    node = lab.join(invite, "gpu-17")

    identity = node.identity
    assert (identity.name, identity.rack) == ("gpu-17", "r01")
    assert identity.roles == ("power", "work")
    assert identity.node_id == NodeId.of_public_key(node.signer.public_key)
    assert identity.cluster_id == ClusterId.of_public_key(lab.keys.signer.public_key)
    assert identity.rights.terms.uses == 3
    assert identity.rights.window.holds(identity.window)


OTHER_FORM = GeneralName(form="uri", value="")


@pytest.mark.parametrize(
    ("changed", "change", "rule"),
    [
        pytest.param("node", {"version": 1}, Rule.VERSION, id="an-old-version"),
        pytest.param("invite", {"version": 1}, Rule.VERSION, id="an-old-invite"),
        pytest.param("node", {"serial": 0}, Rule.PROFILE, id="serial-zero"),
        pytest.param("node", {"serial": -7}, Rule.PROFILE, id="serial-below-zero"),
        pytest.param("node", {"is_ca": None}, Rule.PROFILE, id="no-basic-constraints"),
        pytest.param("node", {"key_usages": None}, Rule.PROFILE, id="any-usage"),
        pytest.param("node", {"path_length": 0}, Rule.PROFILE, id="a-path-length"),
        pytest.param("node", {"permitted_names": ()}, Rule.PROFILE, id="constraints"),
        pytest.param("node", {"excluded_names": ()}, Rule.PROFILE, id="exclusions"),
        pytest.param("node", {"subject_key_id": b"x" * 16}, Rule.PROFILE, id="a-false-key-id"),
        pytest.param("node", {"subject_key_id": None}, Rule.PROFILE, id="no-key-id"),
        pytest.param("node", {"authority_key_id": None}, Rule.PROFILE, id="no-issuer-s-key-id"),
        pytest.param("node", {"alternative_names": (OTHER_FORM,)}, Rule.PROFILE, id="a-uri"),
        pytest.param(
            "node",
            {"window": Window(begin_unix_seconds=NOW + 1, end_unix_seconds=NOW)},
            Rule.LIFETIME,
            id="an-end-before-its-beginning",
        ),
        pytest.param(
            "invite", {"key_usages": ("crl_sign", KEY_CERT_SIGN)}, Rule.PROFILE, id="more-usages"
        ),
        pytest.param("invite", {"extended_key_usages": ()}, Rule.PROFILE, id="extended-usages"),
        pytest.param("invite", {"key_usages": None}, Rule.PROFILE, id="an-invite-for-any-usage"),
        pytest.param("invite", {"path_length": None}, Rule.PROFILE, id="an-invite-of-any-depth"),
    ],
)
def test_a_certificate_that_says_one_thing_more_or_less_is_refused(
    changed: str, change: dict[str, object], rule: Rule
) -> None:
    # What is changed are the facts, so that every signature still holds.
    (leaf, invite), root = planned()
    authority = judge_authority(root, VERIFIER)
    assert not isinstance(authority, Refused)
    chain = (
        (replace(leaf, **change), invite)
        if changed == "node"
        else (leaf, replace(invite, **change))
    )

    judged = judge_node(chain, authority, VERIFIER)

    assert isinstance(judged, Refused)
    assert judged.rule is rule


def test_an_authority_must_name_its_own_key_as_its_issuer_s() -> None:
    judged = judge_authority(replace(Lab().root, authority_key_id=None), VERIFIER)

    assert isinstance(judged, Refused)
    assert judged.rule is Rule.PROFILE


def test_an_invite_of_another_cluster_is_refused() -> None:
    judged = judge_issuer(Lab(seed=2).invite().certificate, Lab().keys.authority, VERIFIER)

    assert isinstance(judged, Refused)
    assert judged.rule is Rule.FOREIGN_AUTHORITY


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        pytest.param({"is_ca": False, "path_length": None}, Rule.CA_FLAG, id="not-a-ca"),
        pytest.param({"key_usages": (DIGITAL_SIGNATURE,)}, Rule.KEY_USAGE, id="may-not-sign"),
        pytest.param(
            {"key_usages": (DIGITAL_SIGNATURE, KEY_CERT_SIGN)}, Rule.PROFILE, id="may-sign-all"
        ),
        pytest.param({"path_length": None}, Rule.PROFILE, id="any-depth"),
        pytest.param({"path_length": 2}, Rule.PROFILE, id="too-deep"),
        pytest.param({"dns_names": ("a.example.org",)}, Rule.PROFILE, id="a-name"),
        pytest.param({"permitted_dns_names": ("example.org",)}, Rule.PROFILE, id="constrained"),
        pytest.param({"common_name": "Not A Label"}, Rule.NAME, id="no-name-of-a-cluster"),
        pytest.param({"private": ()}, Rule.TERMS, id="no-kind"),
        pytest.param(
            {"private": write_terms(Terms(kind=Kind.OPERATOR))}, Rule.KIND, id="other-kind"
        ),
        pytest.param({"serial": 1 << 159}, Rule.PROFILE, id="long-serial"),
    ],
)
def test_an_authority_that_is_not_made_as_ours_is_refused(
    change: dict[str, object], rule: Rule
) -> None:
    lab = Lab()
    plan = plan_authority(
        parse_cluster_name("lab"),
        public_key=lab.keys.signer.public_key,
        serial=1,
        window=window_from(NOW, 10),
    )

    judged = judge_authority(lab.keys.signer.issue(replace(plan, **change)), VERIFIER)

    assert isinstance(judged, Refused)
    assert judged.rule is rule


def test_an_authority_that_did_not_sign_itself_is_refused() -> None:
    judged = judge_authority(with_altered_signature(Lab().root), VERIFIER)

    assert isinstance(judged, Refused)
    assert judged.rule is Rule.SIGNATURE


def test_an_operator_of_the_cluster_is_known_by_the_hash_of_its_key() -> None:
    lab = Lab()
    signer = lab.new_signer()
    plan = plan_operator(
        parse_node_name("alice"),
        public_key=signer.public_key,
        serial=5,
        window=window_from(NOW, 30),
    )

    operator = judge_operator(lab.keys.signer.issue(plan, lab.root), lab.keys.authority, VERIFIER)

    assert not isinstance(operator, Refused)
    assert operator.operator_id == OperatorId.of_public_key(signer.public_key)
    assert operator.name == "alice"


def test_an_operator_of_another_cluster_is_refused() -> None:
    lab, other = Lab(), Lab(seed=2)
    signer = lab.new_signer()
    plan = plan_operator(
        parse_node_name("alice"), public_key=signer.public_key, serial=5, window=window_from(NOW, 9)
    )

    judged = judge_operator(other.keys.signer.issue(plan, other.root), lab.keys.authority, VERIFIER)

    assert isinstance(judged, Refused)
    assert judged.rule is Rule.FOREIGN_AUTHORITY


def test_a_node_is_no_operator_and_an_operator_no_issuer() -> None:
    lab = Lab()
    signer = lab.new_signer()
    plan = plan_operator(
        parse_node_name("alice"), public_key=signer.public_key, serial=5, window=window_from(NOW, 9)
    )
    operator = lab.keys.signer.issue(plan, lab.root)
    node = lab.keys.signer.issue(lab.node_plan(signer), lab.root)

    as_operator = judge_operator(node, lab.keys.authority, VERIFIER)
    as_issuer = judge_issuer(operator, lab.keys.authority, VERIFIER)

    assert isinstance(as_operator, Refused)
    assert isinstance(as_issuer, Refused)
    assert (as_operator.rule, as_issuer.rule) == (Rule.KIND, Rule.KIND)


def test_a_delegated_issuer_may_be_for_several_racks_but_for_no_other() -> None:
    lab = Lab()
    signer, node_signer = lab.new_signer(), lab.new_signer()
    plan = plan_issuer(
        (R02, R01),
        roles=(POWER,),
        public_key=signer.public_key,
        serial=9,
        window=window_from(NOW, 730),
    )
    issuer = lab.keys.signer.issue(plan, lab.root)
    within = signer.issue(lab.node_plan(node_signer), issuer)
    beyond = signer.issue(
        replace(lab.node_plan(node_signer), dns_names=("gpu-17.rack-r03.esnode.invalid",)), issuer
    )

    accepted = judge_node((within, issuer), lab.keys.authority, VERIFIER)
    refused = judge_node((beyond, issuer), lab.keys.authority, VERIFIER)

    assert isinstance(accepted, NodeIdentity)
    assert accepted.rights.racks == (RackId("r01"), RackId("r02"))
    assert isinstance(refused, Refused)
    assert refused.rule is Rule.NAME_CONSTRAINT


def test_a_refusal_names_the_certificate_and_the_two_racks() -> None:
    chain, root = planned(
        node=lambda plan: replace(plan, dns_names=("gpu-17.rack-r02.esnode.invalid",))
    )

    refused = check_path(chain, root, VERIFIER)

    assert refused is not None
    assert refused.line == (
        "certificate of 'gpu-17': its name 'gpu-17.rack-r02.esnode.invalid' is not below what its "
        "issuer may name"
    )
