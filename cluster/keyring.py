"""Ed25519 keys, signatures and X.509: the only importer of `cryptography`.

Its own file so that the library has one door, and its errors end here: whatever bytes come in, out
comes a value or `Malformed`. It turns certificates into facts and plans into certificates, and
judges neither; the rules are in `cluster.identity`. Private keys leave it only as the PEM or the
seed that a caller asks for, never in a `repr` or an error.
"""

import datetime
from collections.abc import Iterator
from types import MappingProxyType

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.x509.oid import NameOID

from cluster.errors import Malformed, Misuse
from cluster.identity import der
from cluster.identity.certificates import (
    DIGITAL_SIGNATURE,
    DNS,
    KEY_CERT_SIGN,
    CertificateFacts,
    CertificatePlan,
    GeneralName,
    PrivateExtension,
    Window,
)
from cluster.ids import KEY_BYTES, KeyId
from cluster.signatures import RandomBytes

CERTIFICATE_BYTES_MAX = 8192
"""Ours have 400 to 700; a bound on what a stranger can make us parse."""

_USAGES = (
    DIGITAL_SIGNATURE,
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    KEY_CERT_SIGN,
    "crl_sign",
)
_FORMS: dict[type[x509.GeneralName], str] = {
    x509.DirectoryName: "directory",
    x509.IPAddress: "ip",
    x509.OtherName: "other",
    x509.RegisteredID: "registered-id",
    x509.RFC822Name: "email",
    x509.UniformResourceIdentifier: "uri",
}
_LIBRARY_ERRORS = (
    ValueError,
    TypeError,
    OverflowError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
    # The library warns about oddities such as a serial of zero. Where warnings are errors they
    # arrive here; elsewhere the rules refuse the same certificates.
    Warning,
)


class Ed25519Signer:
    """A private key. It signs, and shows only its public half."""

    __slots__ = ("_private", "_public_key")

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self._public_key = private.public_key().public_bytes_raw()

    @classmethod
    def generate(cls, random_bytes: RandomBytes) -> "Ed25519Signer":
        """A new key from 32 random bytes, which are the whole of its secret."""
        return cls.from_seed(random_bytes(KEY_BYTES))

    @classmethod
    def from_seed(cls, seed: bytes) -> "Ed25519Signer":
        """The key that grows from these bytes.

        Raises:
            Malformed: there are not 32 of them.
        """
        if len(seed) != KEY_BYTES:
            raise Malformed(f"a private key of {len(seed)} bytes, not of {KEY_BYTES}")
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @classmethod
    def from_pem(cls, pem: bytes) -> "Ed25519Signer":
        """The key in a file.

        Raises:
            Malformed: the file holds none, or another kind of key, or one with a password.
        """
        try:
            private = serialization.load_pem_private_key(pem, password=None)
        except _LIBRARY_ERRORS:
            raise Malformed("not a private key in PEM without a password") from None
        if not isinstance(private, Ed25519PrivateKey):
            raise Malformed("a private key, but not an Ed25519 one")
        return cls(private)

    @property
    def public_key(self) -> bytes:
        """The 32 bytes that others verify with."""
        return self._public_key

    def sign(self, message: bytes) -> bytes:
        """The 64 bytes of signature; the same each time."""
        return self._private.sign(message)

    def to_pem(self) -> bytes:
        """The secret as a file holds it (PKCS #8, no password)."""
        return self._private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    def to_seed(self) -> bytes:
        """The secret as an invite's token holds it."""
        return self._private.private_bytes_raw()

    def issue(
        self, plan: CertificatePlan, issuer: CertificateFacts | None = None
    ) -> CertificateFacts:
        """Make the planned certificate and sign it; without an issuer it signs itself.

        Raises:
            Misuse: the plan cannot be written as a certificate.
        """
        try:
            certificate = _builder(plan, issuer).sign(self._private, algorithm=None)
        except _LIBRARY_ERRORS as error:
            raise Misuse(f"this plan is no certificate: {error}") from None
        return read_certificate(certificate.public_bytes(serialization.Encoding.DER))

    def __repr__(self) -> str:
        return f"Ed25519Signer({KeyId.of_public_key(self._public_key).short}...)"


class Ed25519Verifier:
    """Judges Ed25519 signatures. It keeps nothing: the key comes with each question."""

    def verify(self, *, public_key: bytes, signature: bytes, message: bytes) -> bool:
        """Whether the holder of the key signed the message; never raises."""
        try:
            Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
        except (InvalidSignature, *_LIBRARY_ERRORS):
            return False
        return True


def read_certificate(data: bytes) -> CertificateFacts:
    """What a certificate in DER says.

    Raises:
        Malformed: it cannot be read. No rule has been applied to what can.
    """
    if len(data) > CERTIFICATE_BYTES_MAX:
        raise Malformed(f"a certificate of {len(data)} bytes; at most {CERTIFICATE_BYTES_MAX}")
    try:
        return _facts(x509.load_der_x509_certificate(data), data)
    except _LIBRARY_ERRORS:
        raise Malformed("not a certificate that can be read") from None


def read_certificates_pem(pem: bytes) -> tuple[CertificateFacts, ...]:
    """What the certificates of a file say, in the order of the file.

    Raises:
        Malformed: one cannot be read, or there is none.
    """
    try:
        certificates = x509.load_pem_x509_certificates(pem)
        encoded = [one.public_bytes(serialization.Encoding.DER) for one in certificates]
    except _LIBRARY_ERRORS:
        raise Malformed("not certificates in PEM") from None
    return tuple(read_certificate(data) for data in encoded)


def write_certificates_pem(*certificates: CertificateFacts) -> bytes:
    """These certificates as a file holds them."""
    return b"".join(
        x509.load_der_x509_certificate(one.der).public_bytes(serialization.Encoding.PEM)
        for one in certificates
    )


def _builder(plan: CertificatePlan, issuer: CertificateFacts | None) -> x509.CertificateBuilder:
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, plan.common_name),
            # So that two invites to one rack, or two clusters of one name, have different names.
            x509.NameAttribute(NameOID.SERIAL_NUMBER, plan.key_id.hex()),
        ]
    )
    if issuer is None:
        issuer_name, issuer_key_id = subject, bytes(plan.key_id)
    else:
        issuer_name = x509.load_der_x509_certificate(issuer.der).subject
        issuer_key_id = issuer.subject_key_id or b""
    builder = x509.CertificateBuilder(
        issuer_name=issuer_name,
        subject_name=subject,
        public_key=Ed25519PublicKey.from_public_bytes(plan.public_key),
        serial_number=plan.serial,
        not_valid_before=_to_date(plan.window.begin_unix_seconds),
        not_valid_after=_to_date(plan.window.end_unix_seconds),
    )
    for extension, is_critical in _extensions(plan, issuer_key_id):
        builder = builder.add_extension(extension, critical=is_critical)
    return builder


def _extensions(
    plan: CertificatePlan, issuer_key_id: bytes
) -> Iterator[tuple[x509.ExtensionType, bool]]:
    yield x509.BasicConstraints(ca=plan.is_ca, path_length=plan.path_length), True
    usages = {name: name in plan.key_usages for name in _USAGES}
    yield x509.KeyUsage(**usages, encipher_only=False, decipher_only=False), True
    if plan.extended_key_usages:
        oids = [x509.ObjectIdentifier(oid) for oid in plan.extended_key_usages]
        yield x509.ExtendedKeyUsage(oids), False
    if plan.permitted_dns_names:
        permitted = [x509.DNSName(name) for name in plan.permitted_dns_names]
        yield x509.NameConstraints(permitted_subtrees=permitted, excluded_subtrees=None), True
    if plan.dns_names:
        yield x509.SubjectAlternativeName([x509.DNSName(name) for name in plan.dns_names]), False
    yield x509.SubjectKeyIdentifier(bytes(plan.key_id)), False
    yield (
        x509.AuthorityKeyIdentifier(
            key_identifier=issuer_key_id,
            authority_cert_issuer=None,
            authority_cert_serial_number=None,
        ),
        False,
    )
    for own in plan.private:
        oid = x509.ObjectIdentifier(own.oid)
        yield x509.UnrecognizedExtension(oid, own.value), own.is_critical


class _Extensions:
    """The extensions of a certificate while they are being read."""

    def __init__(self, extensions: x509.Extensions) -> None:
        self.constraints: x509.BasicConstraints | None = None
        self.key_usages: tuple[str, ...] | None = None
        self.extended_key_usages: tuple[str, ...] | None = None
        self.alternative_names: tuple[GeneralName, ...] = ()
        self.permitted_names: tuple[GeneralName, ...] | None = None
        self.excluded_names: tuple[GeneralName, ...] | None = None
        self.subject_key_id: bytes | None = None
        self.authority_key_id: bytes | None = None
        self.unknown_critical: list[str] = []
        self.private: dict[str, PrivateExtension] = {}
        for extension in extensions:
            self._read(extension)

    def _read(self, extension: x509.Extension[x509.ExtensionType]) -> None:
        value = extension.value
        # The library's classes are abstract ones' children, for which `isinstance` costs ten times
        # as much; it makes none of their subclasses.
        if type(value) is x509.BasicConstraints:
            self.constraints = value
        elif type(value) is x509.KeyUsage:
            self.key_usages = tuple(sorted(name for name in _USAGES if getattr(value, name)))
        elif type(value) is x509.ExtendedKeyUsage:
            self.extended_key_usages = tuple(oid.dotted_string for oid in value)
        elif type(value) is x509.SubjectAlternativeName:
            self.alternative_names = tuple(_general_name(name) for name in value)
        elif type(value) is x509.NameConstraints:
            self.permitted_names = _general_names(value.permitted_subtrees)
            self.excluded_names = _general_names(value.excluded_subtrees)
        elif type(value) is x509.SubjectKeyIdentifier:
            self.subject_key_id = value.digest
        elif type(value) is x509.AuthorityKeyIdentifier:
            self.authority_key_id = _authority_key_id(value)
        else:
            oid = extension.oid.dotted_string
            if extension.critical:
                self.unknown_critical.append(oid)
            if type(value) is x509.UnrecognizedExtension:
                self.private[oid] = PrivateExtension(
                    oid=oid, value=value.value, is_critical=extension.critical
                )


def _facts(certificate: x509.Certificate, data: bytes) -> CertificateFacts:
    signed_part = certificate.tbs_certificate_bytes
    extensions = _Extensions(certificate.extensions)
    constraints = extensions.constraints
    has_matching_algorithms, issuer, subject = _read_outline(data, signed_part)
    return CertificateFacts(
        der=data,
        signed_part=signed_part,
        signature=certificate.signature,
        version=certificate.version.value + 1,
        serial=certificate.serial_number,
        subject=subject,
        issuer=issuer,
        common_name=_common_name(certificate.subject),
        window=Window(
            begin_unix_seconds=int(certificate.not_valid_before_utc.timestamp()),
            end_unix_seconds=int(certificate.not_valid_after_utc.timestamp()),
        ),
        public_key=_public_key(certificate),
        signature_algorithm=certificate.signature_algorithm_oid.dotted_string,
        has_matching_algorithms=has_matching_algorithms,
        is_ca=constraints.ca if constraints else None,
        path_length=constraints.path_length if constraints else None,
        key_usages=extensions.key_usages,
        extended_key_usages=extensions.extended_key_usages,
        alternative_names=extensions.alternative_names,
        permitted_names=extensions.permitted_names,
        excluded_names=extensions.excluded_names,
        subject_key_id=extensions.subject_key_id,
        authority_key_id=extensions.authority_key_id,
        unknown_critical=tuple(extensions.unknown_critical),
        private=MappingProxyType(extensions.private),
    )


def _common_name(subject: x509.Name) -> str | None:
    names = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if len(names) != 1:
        return None
    value = names[0].value
    return value if isinstance(value, str) else None


def _public_key(certificate: x509.Certificate) -> bytes | None:
    try:
        key = certificate.public_key()
    except UnsupportedAlgorithm:
        return None
    return key.public_bytes_raw() if isinstance(key, Ed25519PublicKey) else None


def _read_outline(data: bytes, signed_part: bytes) -> tuple[bool, bytes, bytes]:
    """Whether both places name one algorithm; issuer and subject as they lie there.

    Only one of the two places is signed. The library gives names only as it would write them.
    Source: RFC 5280, sections 4.1 and 4.1.1.2.
    """
    _, offset, _ = der.read_element(signed_part, 0)
    tag, _, end = der.read_element(signed_part, offset)
    if tag == 0xA0:  # the version, which only v1 leaves out; the serial number follows
        _, _, end = der.read_element(signed_part, end)
    fields: list[bytes] = []
    for _ in ("algorithm", "issuer", "validity", "subject"):
        begin = end
        _, _, end = der.read_element(signed_part, begin)
        fields.append(signed_part[begin:end])
    algorithm, issuer, _, subject = fields
    _, offset, _ = der.read_element(data, 0)
    outer = offset + len(signed_part)
    _, _, outer_end = der.read_element(data, outer)
    return data[outer:outer_end] == algorithm, issuer, subject


def _authority_key_id(extension: x509.AuthorityKeyIdentifier) -> bytes | None:
    # One that names its issuer by name and serial is not of ours: no key id is like this one.
    return b"" if extension.authority_cert_issuer is not None else extension.key_identifier


def _general_names(names: list[x509.GeneralName] | None) -> tuple[GeneralName, ...] | None:
    return None if names is None else tuple(_general_name(name) for name in names)


def _general_name(name: x509.GeneralName) -> GeneralName:
    if isinstance(name, x509.DNSName):
        return GeneralName(form=DNS, value=name.value)
    return GeneralName(form=_FORMS.get(type(name), "unknown"), value="")


def _to_date(unix_seconds: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(unix_seconds, tz=datetime.UTC)
