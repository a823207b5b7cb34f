"""From folders to keys and back: what an operator and a node keep, judged when it is read.

Its own file because it joins two doors that must not know each other: `identity.files` moves bytes
and knows no certificate, `keyring` reads certificates and knows no file. Here a torn or foreign
file becomes one line that names it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from cluster.enrolment import AuthorityKeys, NodeKeys, OperatorKeys
from cluster.errors import Malformed
from cluster.identity.certificates import CertificateFacts
from cluster.identity.chains import (
    TrustedAuthority,
    judge_authority,
    judge_node,
    judge_operator,
)
from cluster.identity.files import (
    AUTHORITY_CERTIFICATE,
    AUTHORITY_KEY,
    NODE_CHAIN,
    NODE_KEY,
    OPERATOR_CERTIFICATE,
    OPERATOR_KEY,
    SEEDS,
    IdentityUnusable,
    check_folder,
    create_folder,
    read_file,
    read_optional_file,
    replace_file,
)
from cluster.identity.refusals import Refused
from cluster.identity.tokens import parse_seed
from cluster.keyring import (
    Ed25519Signer,
    Ed25519Verifier,
    read_certificates_pem,
    write_certificates_pem,
)

_VERIFIER = Ed25519Verifier()
_Parsed = TypeVar("_Parsed")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorFolder:
    """What an operator keeps of one cluster. Either key may have been taken offline."""

    authority: TrustedAuthority
    authority_keys: AuthorityKeys | None
    operator_keys: OperatorKeys | None


def save_operator(folder: Path, authority: AuthorityKeys, operator: OperatorKeys) -> None:
    """Keep the keys of a new cluster.

    Raises:
        IdentityUnusable: there is one already, or the disk refuses.
    """
    create_folder(
        folder,
        {
            AUTHORITY_KEY: authority.signer.to_pem(),
            AUTHORITY_CERTIFICATE: write_certificates_pem(authority.authority.certificate),
            OPERATOR_KEY: operator.signer.to_pem(),
            OPERATOR_CERTIFICATE: write_certificates_pem(operator.certificate),
        },
    )


def load_operator(folder: Path) -> OperatorFolder:
    """The keys of a cluster, as far as they lie here.

    Raises:
        IdentityUnusable: a file is missing, torn, foreign or open to others.
    """
    check_folder(folder)
    authority = _load_authority(folder)
    authority_signer = _load_optional_key(folder / AUTHORITY_KEY)
    authority_keys = None
    if authority_signer is not None:
        _check_pair(folder / AUTHORITY_KEY, authority_signer, authority.certificate)
        authority_keys = AuthorityKeys(authority=authority, signer=authority_signer)
    operator_signer = _load_optional_key(folder / OPERATOR_KEY)
    operator = None
    if operator_signer is not None:
        operator = _load_operator_keys(folder, authority, operator_signer)
    return OperatorFolder(
        authority=authority,
        authority_keys=authority_keys,
        operator_keys=operator,
    )


def save_node(folder: Path, node: NodeKeys) -> None:
    """Keep what a new node needs to be itself after a restart.

    Raises:
        IdentityUnusable: this machine is a node already, or the disk refuses.
    """
    create_folder(
        folder,
        {
            NODE_KEY: node.signer.to_pem(),
            NODE_CHAIN: write_certificates_pem(*node.chain),
            AUTHORITY_CERTIFICATE: write_certificates_pem(node.authority.certificate),
            SEEDS: "".join(f"{seed}\n" for seed in ("# HOST:PORT", *node.seeds)).encode(),
        },
    )


def save_renewal(folder: Path, node: NodeKeys) -> None:
    """Put a renewed certificate in the place of the old one; the key stays.

    Raises:
        IdentityUnusable: the key here is another one, or the disk refuses.
    """
    check_folder(folder)
    kept = _load_key(folder / NODE_KEY)
    if kept.public_key != node.signer.public_key:
        raise IdentityUnusable(f"{folder / NODE_KEY}: is not the key of the renewed certificate")
    replace_file(folder / NODE_CHAIN, write_certificates_pem(*node.chain))


def load_node(folder: Path) -> NodeKeys:
    """Who this node is.

    Raises:
        IdentityUnusable: a file is missing, torn, foreign or open to others.
    """
    check_folder(folder)
    authority = _load_authority(folder)
    path = folder / NODE_CHAIN
    chain = _parse(path, read_certificates_pem)
    identity = _accept(path, judge_node(chain, authority, _VERIFIER))
    signer = _load_key(folder / NODE_KEY)
    _check_pair(folder / NODE_KEY, signer, chain[0])
    return NodeKeys(
        authority=authority,
        identity=identity,
        chain=chain,
        signer=signer,
        seeds=_parse(folder / SEEDS, _parse_seeds),
    )


def _load_authority(folder: Path) -> TrustedAuthority:
    path = folder / AUTHORITY_CERTIFICATE
    return _accept(path, judge_authority(_load_one(path), _VERIFIER))


def _load_operator_keys(
    folder: Path, authority: TrustedAuthority, signer: Ed25519Signer
) -> OperatorKeys:
    path = folder / OPERATOR_CERTIFICATE
    certificate = _load_one(path)
    operator = _accept(path, judge_operator(certificate, authority, _VERIFIER))
    _check_pair(folder / OPERATOR_KEY, signer, certificate)
    return OperatorKeys(operator=operator, certificate=certificate, signer=signer)


def _load_one(path: Path) -> CertificateFacts:
    certificates = _parse(path, read_certificates_pem)
    if len(certificates) != 1:
        raise IdentityUnusable(f"{path}: holds {len(certificates)} certificates, not one")
    return certificates[0]


def _load_key(path: Path) -> Ed25519Signer:
    return _parse(path, Ed25519Signer.from_pem)


def _load_optional_key(path: Path) -> Ed25519Signer | None:
    return None if read_optional_file(path) is None else _load_key(path)


def _check_pair(path: Path, signer: Ed25519Signer, certificate: CertificateFacts) -> None:
    if signer.public_key != certificate.public_key:
        raise IdentityUnusable(f"{path}: is not the key of the certificate beside it")


def _parse_seeds(content: bytes) -> tuple[str, ...]:
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError:
        raise Malformed("not a list of addresses") from None
    written = [line.strip() for line in lines]
    return tuple(parse_seed(line) for line in written if line and not line.startswith("#"))


def _parse(path: Path, parse: Callable[[bytes], _Parsed]) -> _Parsed:
    content = read_file(path)
    try:
        return parse(content)
    except Malformed as error:
        raise IdentityUnusable(f"{path}: {error}; restore it from a copy") from None


def _accept(path: Path, judged: _Parsed | Refused) -> _Parsed:
    if isinstance(judged, Refused):
        raise IdentityUnusable(f"{path}: {judged.line}")
    return judged
