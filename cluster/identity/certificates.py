"""What a certificate says, and what one shall say: the nouns between the rules and the keyring.

Its own file because both sides need the words: `cluster.keyring` makes facts out of DER and
certificates out of plans, the rules judge facts and make plans. It must not know cryptography.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from cluster.ids import KeyId

ED25519_OID = "1.3.101.112"
"""Source: RFC 8410, section 3; key and signature share it."""

DIGITAL_SIGNATURE = "digital_signature"
KEY_CERT_SIGN = "key_cert_sign"
SERVER_AUTH_OID = "1.3.6.1.5.5.7.3.1"
CLIENT_AUTH_OID = "1.3.6.1.5.5.7.3.2"

DNS = "dns"
"""The one form of general name that our certificates use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """From when to when, both included, in whole seconds of wall time since 1970."""

    begin_unix_seconds: int
    end_unix_seconds: int

    def holds(self, inner: "Window") -> bool:
        """Whether the other one lies within this one."""
        return (
            self.begin_unix_seconds <= inner.begin_unix_seconds
            and inner.end_unix_seconds <= self.end_unix_seconds
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralName:
    """A name of any form; `value` is empty where we do not read the form."""

    form: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateExtension:
    """An extension that X.509 does not define: ours, or a stranger's."""

    oid: str
    value: bytes
    is_critical: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFacts:
    """What one certificate says. Nothing of it is believed before the rules have judged it."""

    der: bytes = field(repr=False)
    signed_part: bytes = field(repr=False)
    signature: bytes = field(repr=False)
    version: int
    """As people count: 3 for X.509v3."""
    serial: int
    subject: bytes = field(repr=False)
    """The whole name in DER, compared byte by byte."""
    issuer: bytes = field(repr=False)
    common_name: str | None
    window: Window
    public_key: bytes | None = field(repr=False)
    """None where the key is not an Ed25519 key."""
    signature_algorithm: str
    """An OID in dotted form."""
    has_matching_algorithms: bool
    """The algorithm inside the signed part is the one outside of it."""
    is_ca: bool | None
    """None without basic constraints."""
    path_length: int | None
    key_usages: tuple[str, ...] | None
    """Sorted; None without the extension, which then restricts nothing."""
    extended_key_usages: tuple[str, ...] | None
    alternative_names: tuple[GeneralName, ...]
    permitted_names: tuple[GeneralName, ...] | None
    """None without name constraints, or where they only exclude."""
    excluded_names: tuple[GeneralName, ...] | None
    subject_key_id: bytes | None
    authority_key_id: bytes | None
    unknown_critical: tuple[str, ...]
    """OIDs of critical extensions that are none of the above."""
    private: Mapping[str, PrivateExtension] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def is_self_issued(self) -> bool:
        """Whether it names itself as its issuer."""
        return self.subject == self.issuer


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificatePlan:
    """What a certificate shall say; the issuer's name and key id come from the issuer's own."""

    common_name: str
    public_key: bytes = field(repr=False)
    serial: int
    window: Window
    is_ca: bool
    path_length: int | None = None
    key_usages: tuple[str, ...]
    extended_key_usages: tuple[str, ...] = ()
    dns_names: tuple[str, ...] = ()
    permitted_dns_names: tuple[str, ...] = ()
    private: tuple[PrivateExtension, ...] = ()

    @property
    def key_id(self) -> KeyId:
        """Written as subject key id and as serial number of the subject's name."""
        return KeyId.of_public_key(self.public_key)
