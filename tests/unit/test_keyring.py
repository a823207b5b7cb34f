"""Keys, signatures and certificates at the library's one door; the stand-in keeps its promises."""

import hashlib
import random

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from cluster.errors import Malformed, Misuse
from cluster.identity.certificates import ED25519_OID
from cluster.ids import KeyId
from cluster.keyring import (
    Ed25519Signer,
    Ed25519Verifier,
    read_certificate,
    read_certificates_pem,
    write_certificates_pem,
)
from cluster.signatures import KeyedHashKeyring, Purpose, Signer, Verifier
from tests.identities import NOW, Lab

SEED = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
SIGNATURE = (
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555"
    "fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
)
"""Source: RFC 8032, section 7.1, test 1 (the empty message)."""


def ed25519_pair() -> tuple[Signer, Signer, Verifier]:
    dice = random.Random(1).randbytes
    return Ed25519Signer.generate(dice), Ed25519Signer.generate(dice), Ed25519Verifier()


def keyed_hash_pair() -> tuple[Signer, Signer, Verifier]:
    keyring, dice = KeyedHashKeyring(), random.Random(1).randbytes
    return keyring.new_signer(dice), keyring.new_signer(dice), keyring


def test_ed25519_is_that_of_the_standard() -> None:
    signer = Ed25519Signer.from_seed(SEED)

    assert signer.public_key.hex() == PUBLIC
    assert signer.sign(b"").hex() == SIGNATURE


@pytest.mark.parametrize("pair", [ed25519_pair, keyed_hash_pair])
def test_only_the_holder_of_a_key_signs_for_it(pair: type[tuple[Signer, Signer, Verifier]]) -> None:
    one, other, verifier = pair()
    signature = one.sign(b"message")

    def verify(public_key: bytes, signature: bytes, message: bytes) -> bool:
        return verifier.verify(public_key=public_key, signature=signature, message=message)

    assert len(signature) == 64
    assert len(one.public_key) == 32
    assert verify(one.public_key, signature, b"message")
    assert not verify(other.public_key, signature, b"message")
    assert not verify(one.public_key, signature, b"massage")
    assert not verify(one.public_key, other.sign(b"message"), b"message")
    assert not verify(one.public_key, b"", b"message")
    assert not verify(b"", signature, b"message")
    assert not verify(b"\xff" * 32, signature, b"message")


def test_two_simulated_nodes_of_one_stream_of_randomness_are_a_bug() -> None:
    keyring = KeyedHashKeyring()
    keyring.new_signer(random.Random(1).randbytes)

    with pytest.raises(Misuse, match="the same secret twice"):
        keyring.new_signer(random.Random(1).randbytes)


def test_no_two_purposes_sign_the_same_bytes() -> None:
    wrapped = [purpose.wrap(b"payload") for purpose in Purpose]

    assert len(set(wrapped)) == len(wrapped)
    # A certificate begins with 0x30, what TLS signs with 0x20.
    assert {one[0] for one in wrapped} == {ord("e")}
    # None is the beginning of another, so no payload can turn one into another.
    heads = [purpose.value for purpose in Purpose]
    assert not any(a != b and b.startswith(a) for a in heads for b in heads)


def test_a_key_goes_through_pem_and_seed_and_is_the_same() -> None:
    signer = Lab().new_signer()

    assert Ed25519Signer.from_pem(signer.to_pem()).public_key == signer.public_key
    assert Ed25519Signer.from_seed(signer.to_seed()).public_key == signer.public_key


def test_a_key_is_never_shown() -> None:
    signer = Lab().new_signer()
    stand_in = KeyedHashKeyring().new_signer(random.Random(1).randbytes)

    assert repr(signer) == f"Ed25519Signer({KeyId.of_public_key(signer.public_key).short}...)"
    assert repr(stand_in) == f"KeyedHashSigner({stand_in.public_key.hex()[:8]}...)"


def ec_key(password: bytes | None) -> bytes:
    return ec.derive_private_key(7, ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password)
        if password
        else serialization.NoEncryption(),
    )


@pytest.mark.parametrize(
    ("pem", "line"),
    [
        pytest.param(b"", "not a private key in PEM without a password", id="empty"),
        pytest.param(
            Lab().new_signer().to_pem()[:60],
            "not a private key in PEM without a password",
            id="torn",
        ),
        pytest.param(ec_key(None), "a private key, but not an Ed25519 one", id="other-kind"),
        pytest.param(
            ec_key(b"secret"), "not a private key in PEM without a password", id="password"
        ),
        pytest.param(
            write_certificates_pem(Lab().root),
            "not a private key in PEM without a password",
            id="certificate",
        ),
    ],
)
def test_what_is_no_key_is_said_in_one_line(pem: bytes, line: str) -> None:
    with pytest.raises(Malformed) as caught:
        Ed25519Signer.from_pem(pem)

    assert str(caught.value) == line


def test_a_seed_of_a_wrong_length_is_refused_without_being_quoted() -> None:
    with pytest.raises(Malformed) as caught:
        Ed25519Signer.from_seed(b"secret")

    assert str(caught.value) == "a private key of 6 bytes, not of 32"


def test_certificates_go_through_pem_and_are_the_same() -> None:
    lab = Lab()
    node = lab.join(lab.invite(), "gpu-17")

    read = read_certificates_pem(write_certificates_pem(*node.chain))

    assert read == node.chain


def test_a_certificate_says_what_was_planned() -> None:
    lab = Lab()
    signer = lab.new_signer()
    plan = lab.node_plan(signer)

    facts = lab.keys.signer.issue(plan, lab.root)

    assert (facts.version, facts.serial, facts.common_name) == (3, 78, "gpu-17")
    assert facts.window == plan.window
    assert facts.public_key == signer.public_key
    assert facts.signature_algorithm == ED25519_OID
    assert facts.has_matching_algorithms
    assert (facts.is_ca, facts.path_length) == (False, None)
    assert facts.key_usages == ("digital_signature",)
    assert [name.value for name in facts.alternative_names] == ["gpu-17.rack-r01.esnode.invalid"]
    assert facts.subject_key_id == hashlib.sha256(signer.public_key).digest()[:16]
    assert facts.authority_key_id == lab.root.subject_key_id
    assert facts.issuer == lab.root.subject
    assert facts.unknown_critical == ()


def test_an_algorithm_that_differs_within_the_certificate_is_seen() -> None:
    der = bytearray(Lab().root.der)
    # The second of the two places, which is not signed: id-Ed25519 becomes id-X25519.
    at = bytes(der).rindex(bytes.fromhex("2b6570"))
    der[at + 2] = 0x6E

    facts = read_certificate(bytes(der))

    assert not facts.has_matching_algorithms


def test_the_same_randomness_and_time_give_the_same_certificates() -> None:
    assert Lab(seed=5).root == Lab(seed=5).root
    assert Lab(seed=5).root != Lab(seed=6).root


@pytest.mark.parametrize(
    ("data", "line"),
    [
        pytest.param(b"", "not a certificate that can be read", id="empty"),
        pytest.param(Lab().root.der[:-1], "not a certificate that can be read", id="torn"),
        pytest.param(Lab().root.der + b"\0", "not a certificate that can be read", id="longer"),
        pytest.param(b"\x30" * 9000, "a certificate of 9000 bytes; at most 8192", id="too-large"),
    ],
)
def test_what_is_no_certificate_is_said_in_one_line(data: bytes, line: str) -> None:
    with pytest.raises(Malformed) as caught:
        read_certificate(data)

    assert str(caught.value) == line


def test_a_file_without_certificates_is_said_in_one_line() -> None:
    with pytest.raises(Malformed, match="not certificates in PEM"):
        read_certificates_pem(b"hello\n")


def test_a_plan_that_is_no_certificate_is_a_bug_of_ours() -> None:
    lab = Lab()
    plan = lab.node_plan(lab.new_signer())
    wrong = type(plan)(
        **{
            **{name: getattr(plan, name) for name in plan.__dataclass_fields__},
            "common_name": "x" * 65,
        }
    )

    with pytest.raises(Misuse, match="this plan is no certificate"):
        lab.keys.signer.issue(wrong, lab.root)


def test_a_far_away_time_can_be_written() -> None:
    lab = Lab()

    assert lab.root.window.end_unix_seconds == NOW + 7305 * 86_400
