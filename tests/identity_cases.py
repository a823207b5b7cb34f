"""Chains that hold and chains that do not: one table for our rules and for openssl."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from cluster.identity.certificates import (
    DIGITAL_SIGNATURE,
    KEY_CERT_SIGN,
    PrivateExtension,
    Window,
)
from cluster.identity.extensions import ARC, ROLES_OID, Kind, Terms, write_terms
from cluster.identity.refusals import Rule
from cluster.ids import POWER, WORK, NamePrefix
from tests.identities import (
    NOW,
    node_terms,
)
from tests.identity_chains import (
    Chain,
    altered,
    constrained,
    ecdsa_signed,
    foreign,
    foreign_with_our_name,
    invite_of_an_invite,
    node_of_a_node,
    planned,
    reissued_invite,
    reissued_node,
    revealing,
    too_long,
    with_terms,
    without_invite,
    wrong_invite,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainCase:
    """A chain, the rule of ours that it breaks, and what openssl thinks of it."""

    id: str
    build: Callable[[], Chain]
    rule: Rule | None
    does_openssl_accept: bool
    is_of_path: bool = True
    """The rule is one of `path`; else one of `chains`, which openssl cannot know."""


GOOD = [
    ChainCase(id="a node by an invite", build=planned, rule=None, does_openssl_accept=True),
    ChainCase(
        id="a node that does without some roles",
        build=lambda: planned(
            node=lambda plan: replace(plan, private=node_terms(roles=())),
            invite=with_terms(roles=(POWER, WORK)),
        ),
        rule=None,
        does_openssl_accept=True,
    ),
    ChainCase(
        id="a name with dots and the prefix",
        build=lambda: planned(
            name="gpu-17.hall-2", invite=with_terms(name_prefix=NamePrefix("gpu-"))
        ),
        rule=None,
        does_openssl_accept=True,
    ),
]

BAD_PATHS = [
    ChainCase(
        id="a node of another rack",
        build=lambda: planned(
            node=lambda plan: replace(plan, dns_names=("gpu-17.rack-r02.esnode.invalid",))
        ),
        rule=Rule.NAME_CONSTRAINT,
        does_openssl_accept=False,
    ),
    ChainCase(
        id="a rack whose name ends like the invite's",
        build=lambda: planned(
            node=lambda plan: replace(plan, dns_names=("gpu-17.xrack-r01.esnode.invalid",))
        ),
        rule=Rule.NAME_CONSTRAINT,
        does_openssl_accept=False,
    ),
    ChainCase(
        id="a second name outside",
        build=lambda: planned(
            node=lambda plan: replace(plan, dns_names=(*plan.dns_names, "www.example.org"))
        ),
        rule=Rule.NAME_CONSTRAINT,
        does_openssl_accept=False,
    ),
    ChainCase(
        id="a common name with a dot in the place of a name",
        build=lambda: planned(node=lambda plan: replace(plan, dns_names=()), name="gpu-17.hall-2"),
        rule=Rule.NAME_CONSTRAINT,
        does_openssl_accept=False,
    ),
    ChainCase(
        id="an excluded name",
        build=lambda: constrained(
            [x509.DNSName("rack-r01.esnode.invalid")],
            [x509.DNSName("gpu-17.rack-r01.esnode.invalid")],
        ),
        rule=Rule.NAME_CONSTRAINT,
        does_openssl_accept=False,
    ),
    ChainCase(
        id="a constraint of a form that we do not read",
        build=lambda: constrained(
            [x509.DNSName("rack-r01.esnode.invalid"), x509.RFC822Name("example.org")]
        ),
        rule=Rule.UNSUPPORTED_CONSTRAINT,
        does_openssl_accept=True,
    ),
    ChainCase(
        id="an invite that is no issuer",
        build=lambda: planned(invite=lambda plan: replace(plan, is_ca=False, path_length=None)),
        rule=Rule.CA_FLAG,
        does_openssl_accept=False,
    ),
    ChainCase(
        id="an invite without basic constraints",
        build=lambda: reissued_invite(drop=(x509.BasicConstraints,)),
        rule=Rule.CA_FLAG,
        does_openssl_accept=False,
    ),
    ChainCase(
        id="an invite whose key may not sign certificates",
        build=lambda: planned(invite=lambda plan: replace(plan, key_usages=(DIGITAL_SIGNATURE,))),
        rule=Rule.KEY_USAGE,
        does_openssl_accept=False,
    ),
    ChainCase(
        id="an invite of an invite",
        build=lambda: invite_of_an_invite(0),
        rule=Rule.PATH_LENGTH,
        does_openssl_accept=False,
    ),
    ChainCase(
        id="an invite of an invite that allows it, below an authority that does not",
        build=lambda: invite_of_an_invite(None),
        rule=Rule.PATH_LENGTH,
        does_openssl_accept=False,
    ),
    ChainCase(
        id="a node of a node", build=node_of_a_node, rule=Rule.CA_FLAG, does_openssl_accept=False
    ),
    ChainCase(
        id="a chain without end", build=too_long, rule=Rule.CHAIN_LENGTH, does_openssl_accept=True
    ),
    ChainCase(
        id="another cluster's authority",
        build=foreign,
        rule=Rule.FOREIGN_AUTHORITY,
        does_openssl_accept=False,
    ),
    ChainCase(
        id="another authority under our authority's name",
        build=foreign_with_our_name,
        rule=Rule.KEY_IDENTIFIER,
        does_openssl_accept=False,
    ),
    ChainCase(
        id="another invite than the one that signed",
        build=wrong_invite,
        rule=Rule.ISSUER_NAME,
        does_openssl_accept=False,
    ),
    ChainCase(
        id="a key id of another issuer",
        build=lambda: reissued_node(
            drop=(x509.AuthorityKeyIdentifier,),
            add=((x509.AuthorityKeyIdentifier(b"\x01" * 16, None, None), False),),
        ),
        rule=Rule.KEY_IDENTIFIER,
        does_openssl_accept=False,
    ),
    ChainCase(
        id="a node's altered signature",
        build=lambda: altered(0),
        rule=Rule.SIGNATURE,
        does_openssl_accept=False,
    ),
    ChainCase(
        id="an invite's altered signature",
        build=lambda: altered(1),
        rule=Rule.SIGNATURE,
        does_openssl_accept=False,
    ),
    ChainCase(
        id="a signature of another algorithm",
        build=ecdsa_signed,
        rule=Rule.SIGNATURE_ALGORITHM,
        does_openssl_accept=False,
    ),
    ChainCase(
        id="a key of another algorithm",
        build=lambda: reissued_node(
            public_key=ec.derive_private_key(9, ec.SECP256R1()).public_key()
        ),
        rule=Rule.KEY_ALGORITHM,
        does_openssl_accept=True,
    ),
    ChainCase(
        id="an unknown critical extension of a node",
        build=lambda: planned(node=revealing("1.2.3.4")),
        rule=Rule.UNKNOWN_CRITICAL_EXTENSION,
        does_openssl_accept=False,
    ),
    ChainCase(
        id="an unknown critical extension of an invite",
        build=lambda: planned(invite=revealing(f"{ARC}.99")),
        rule=Rule.UNKNOWN_CRITICAL_EXTENSION,
        does_openssl_accept=False,
    ),
]

BAD_CHAINS = [
    ChainCase(
        id="a node by the authority itself",
        build=without_invite,
        rule=Rule.CHAIN_LENGTH,
        does_openssl_accept=True,
        is_of_path=False,
    ),
    ChainCase(
        id="roles that the invite cannot give",
        build=lambda: planned(
            node=lambda plan: replace(plan, private=node_terms(roles=(POWER, WORK)))
        ),
        rule=Rule.ROLES,
        does_openssl_accept=True,
        is_of_path=False,
    ),
    ChainCase(
        id="a name without the invite's prefix",
        build=lambda: planned(invite=with_terms(name_prefix=NamePrefix("cpu-"))),
        rule=Rule.NAME_PREFIX,
        does_openssl_accept=True,
        is_of_path=False,
    ),
    ChainCase(
        id="two names that differ",
        build=lambda: planned(node=lambda plan: replace(plan, common_name="gpu-18")),
        rule=Rule.NAME,
        does_openssl_accept=True,
        is_of_path=False,
    ),
    ChainCase(
        id="a wildcard",
        build=lambda: planned(
            node=lambda plan: replace(plan, dns_names=("*.rack-r01.esnode.invalid",))
        ),
        rule=Rule.NAME,
        does_openssl_accept=True,
        is_of_path=False,
    ),
    ChainCase(
        id="no name at all",
        build=lambda: planned(node=lambda plan: replace(plan, dns_names=())),
        rule=Rule.PROFILE,
        does_openssl_accept=True,
        is_of_path=False,
    ),
    ChainCase(
        id="an address as a further name",
        build=lambda: reissued_node(
            drop=(x509.SubjectAlternativeName,),
            add=(
                (
                    x509.SubjectAlternativeName(
                        [x509.UniformResourceIdentifier("https://gpu-17.example.org")]
                    ),
                    False,
                ),
            ),
        ),
        rule=Rule.PROFILE,
        does_openssl_accept=True,
        is_of_path=False,
    ),
    ChainCase(
        id="a life longer than the invite's",
        build=lambda: planned(
            node=lambda plan: replace(
                plan,
                window=Window(begin_unix_seconds=NOW, end_unix_seconds=NOW + 731 * 86_400),
            )
        ),
        rule=Rule.LIFETIME,
        does_openssl_accept=True,
        is_of_path=False,
    ),
    ChainCase(
        id="a node that is an issuer too",
        build=lambda: planned(
            node=lambda plan: replace(
                plan, is_ca=True, key_usages=(DIGITAL_SIGNATURE, KEY_CERT_SIGN)
            )
        ),
        rule=Rule.PROFILE,
        does_openssl_accept=True,
        is_of_path=False,
    ),
    ChainCase(
        id="an extended usage too few",
        build=lambda: planned(node=lambda plan: replace(plan, extended_key_usages=())),
        rule=Rule.PROFILE,
        does_openssl_accept=True,
        is_of_path=False,
    ),
    ChainCase(
        id="an invite without a rack",
        build=lambda: planned(invite=lambda plan: replace(plan, permitted_dns_names=())),
        rule=Rule.PROFILE,
        does_openssl_accept=True,
        is_of_path=False,
    ),
    ChainCase(
        id="an invite to all racks",
        build=lambda: planned(
            invite=lambda plan: replace(plan, permitted_dns_names=("esnode.invalid",))
        ),
        rule=Rule.RACK,
        does_openssl_accept=True,
        is_of_path=False,
    ),
    ChainCase(
        id="an invite to two racks",
        build=lambda: planned(
            invite=lambda plan: replace(
                plan,
                permitted_dns_names=("rack-r01.esnode.invalid", "rack-r02.esnode.invalid"),
            )
        ),
        rule=Rule.RACK,
        does_openssl_accept=True,
        is_of_path=False,
    ),
    ChainCase(
        id="a rack within the rack",
        build=lambda: planned(
            node=lambda plan: replace(plan, dns_names=("gpu-17.rack-r02.rack-r01.esnode.invalid",))
        ),
        rule=Rule.NAME,
        does_openssl_accept=True,
        is_of_path=False,
    ),
    ChainCase(
        id="a node in the place of the invite's kind",
        build=lambda: planned(invite=lambda plan: replace(plan, private=node_terms())),
        rule=Rule.KIND,
        does_openssl_accept=True,
        is_of_path=False,
    ),
    ChainCase(
        id="an operator in the place of a node",
        build=lambda: planned(
            node=lambda plan: replace(plan, private=write_terms(Terms(kind=Kind.OPERATOR)))
        ),
        rule=Rule.KIND,
        does_openssl_accept=True,
        is_of_path=False,
    ),
    ChainCase(
        id="no private extension at all",
        build=lambda: planned(node=lambda plan: replace(plan, private=())),
        rule=Rule.TERMS,
        does_openssl_accept=True,
        is_of_path=False,
    ),
    ChainCase(
        id="roles that are no text",
        build=lambda: planned(
            node=lambda plan: replace(
                plan,
                private=(
                    plan.private[0],
                    PrivateExtension(oid=ROLES_OID, value=b"\x02\x01\x05"),
                ),
            )
        ),
        rule=Rule.TERMS,
        does_openssl_accept=True,
        is_of_path=False,
    ),
]

ALL_CASES = (*GOOD, *BAD_PATHS, *BAD_CHAINS)
