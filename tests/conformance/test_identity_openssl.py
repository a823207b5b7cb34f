"""Our path rules against `openssl verify`: whatever openssl refuses, we refuse.

Where we are the stricter, the rules by which are written down here.
"""

import itertools
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cluster.identity.certificates import (
    DIGITAL_SIGNATURE,
    KEY_CERT_SIGN,
    CertificateFacts,
    CertificatePlan,
    PrivateExtension,
)
from cluster.identity.chains import NodeIdentity, judge_authority, judge_node
from cluster.identity.path import check_path
from cluster.identity.refusals import Refused, Rule
from cluster.keyring import Ed25519Verifier, write_certificates_pem
from tests.identities import Lab, with_altered_signature
from tests.identity_cases import ALL_CASES, ChainCase
from tests.identity_chains import Chain, planned

VERIFIER = Ed25519Verifier()
STRICTER_RULES = {
    # Any key will do for openssl.
    Rule.KEY_ALGORITHM,
    # Forms of names that we never give.
    Rule.UNSUPPORTED_CONSTRAINT,
    # Certificates that nobody needed.
    Rule.CHAIN_LENGTH,
}
RANDOM_CHAINS = 120


@pytest.fixture(scope="module")
def openssl() -> str:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("no openssl on PATH")
    return program


def verify(
    openssl: str,
    folder: Path,
    chain: Sequence[CertificateFacts],
    root: CertificateFacts,
    *more: str,
) -> tuple[bool, str]:
    leaf, *issuers = chain
    (folder / "root.pem").write_bytes(write_certificates_pem(root))
    (folder / "leaf.pem").write_bytes(write_certificates_pem(leaf))
    between: list[str] = []
    if issuers:
        (folder / "issuers.pem").write_bytes(write_certificates_pem(*issuers))
        between = ["-untrusted", str(folder / "issuers.pem")]
    run = subprocess.run(
        [
            *(openssl, "verify", "-no_check_time", *more, "-no-CApath", "-no-CAstore"),
            *("-CAfile", str(folder / "root.pem"), *between, str(folder / "leaf.pem")),
        ],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in ALL_CASES])
def test_openssl_and_we_agree_on_every_written_case(
    case: ChainCase, openssl: str, tmp_path: Path
) -> None:
    chain, root = case.build()

    is_accepted, said = verify(openssl, tmp_path, chain, root)
    refused = check_path(chain, root, VERIFIER)

    assert is_accepted == case.does_openssl_accept, said
    if not is_accepted:
        assert refused is not None, said
    elif refused is not None:
        assert refused.rule in STRICTER_RULES


@pytest.mark.parametrize("purpose", ["sslserver", "sslclient"])
def test_a_good_chain_serves_tls_by_openssl_s_strictest_rules(
    purpose: str, openssl: str, tmp_path: Path
) -> None:
    chain, root = planned()

    is_accepted, said = verify(openssl, tmp_path, chain, root, "-x509_strict", "-purpose", purpose)

    assert is_accepted, said


def test_the_authority_and_the_invite_are_no_peers_for_tls(openssl: str, tmp_path: Path) -> None:
    (_, invite), root = planned()

    is_accepted, _ = verify(openssl, tmp_path, (invite,), root, "-purpose", "sslserver")

    assert not is_accepted


def test_random_chains_are_never_accepted_by_us_and_refused_by_openssl(
    openssl: str, tmp_path: Path
) -> None:
    verdicts: list[tuple[bool, bool]] = []
    for chain, root in itertools.islice(random_chains(), RANDOM_CHAINS):
        is_accepted, said = verify(openssl, tmp_path, chain, root)
        refused = check_path(chain, root, VERIFIER)
        authority = judge_authority(root, VERIFIER)
        assert not isinstance(authority, Refused)
        judged = judge_node(chain, authority, VERIFIER)

        assert is_accepted or refused is not None, said
        assert refused is None or not is_accepted or refused.rule in STRICTER_RULES, refused
        assert refused is None or not isinstance(judged, NodeIdentity)
        verdicts.append((is_accepted, isinstance(judged, NodeIdentity)))

    # The dice must throw all three kinds, else this shows nothing.
    assert {(True, True), (True, False), (False, False)} <= set(verdicts)


def random_chains() -> Iterator[Chain]:
    dice = random.Random(20_270_115)
    while True:
        chain, root = planned(
            node=lambda plan: _changed(plan, dice), invite=lambda plan: _changed(plan, dice)
        )
        leaf, invite = chain
        if dice.random() < 0.1:
            leaf = with_altered_signature(leaf)
        if dice.random() < 0.1:
            invite = with_altered_signature(invite)
        yield (leaf, invite), Lab(seed=2).root if dice.random() < 0.1 else root


def _changed(plan: CertificatePlan, dice: random.Random) -> CertificatePlan:
    """Each property is left alone in most throws, so that many chains have one fault or two."""
    if dice.random() < 0.15:
        plan = replace(plan, is_ca=not plan.is_ca, path_length=None)
    if plan.is_ca and dice.random() < 0.2:
        plan = replace(plan, path_length=dice.choice((None, 0, 1)))
    if dice.random() < 0.2:
        usages = ((DIGITAL_SIGNATURE,), (KEY_CERT_SIGN,), (DIGITAL_SIGNATURE, KEY_CERT_SIGN))
        plan = replace(plan, key_usages=dice.choice(usages))
    if dice.random() < 0.2:
        domains = ("gpu-17.rack-r02.esnode.invalid", "rack-r01.esnode.invalid", "Example.ORG")
        plan = replace(plan, dns_names=tuple(dice.sample(domains, dice.randint(0, 2))))
    if dice.random() < 0.2:
        permitted = ("rack-r01.esnode.invalid", "esnode.invalid", "example.org")
        plan = replace(plan, permitted_dns_names=tuple(dice.sample(permitted, dice.randint(0, 2))))
    if dice.random() < 0.05:
        extension = PrivateExtension(oid="1.2.3.4", value=b"\x05\x00", is_critical=True)
        plan = replace(plan, private=(*plan.private, extension))
    return plan
