"""How two nodes of one cluster meet over TLS: contexts that trust the cluster's authority alone.

Its own file so that the settings, which are the security of every stream, stand on one screen. TLS
proves that the peer holds a key that the authority's invites have certified, and nothing else: who
that is, whether it was admitted and whether its time has ended is judged afterwards (`roster`),
from the certificates of its hello, the first of which must be that of the connection. Hence no
check of host names, and no check of time: a certificate that has ended must not cut a node off (its
power still has to be counted). It must not know sockets: the contexts serve trio and the standard
library alike.
"""

import ssl
from pathlib import Path

from cluster.errors import Malformed
from cluster.identity.certificates import CertificateFacts
from cluster.identity.chains import TrustedAuthority
from cluster.identity.files import NODE_CHAIN, NODE_KEY, IdentityUnusable
from cluster.keyring import read_certificate

NO_CHECK_TIME = 0x200000
"""Source: openssl/x509_vfy.h, X509_V_FLAG_NO_CHECK_TIME; the ssl module has no name for it."""


def server_context(folder: Path, authority: TrustedAuthority) -> ssl.SSLContext:
    """For the node that is called; `folder` is the node's own identity folder.

    Raises:
        IdentityUnusable: TLS cannot use what lies there.
    """
    return _context(ssl.PROTOCOL_TLS_SERVER, folder, authority)


def client_context(folder: Path, authority: TrustedAuthority) -> ssl.SSLContext:
    """For the node that calls; otherwise the same."""
    return _context(ssl.PROTOCOL_TLS_CLIENT, folder, authority)


def read_peer_certificate(data: bytes | None) -> CertificateFacts:
    """What the peer's certificate says; TLS has checked its chain and that the peer has its key.

    `data` is what `getpeercert(binary_form=True)` of the connection returned.

    Raises:
        Malformed: there is none, or it cannot be read.
    """
    if not data:
        raise Malformed("a peer without a certificate")
    return read_certificate(data)


def _context(protocol: int, folder: Path, authority: TrustedAuthority) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags = ssl.VerifyFlags(
        context.verify_flags | NO_CHECK_TIME | ssl.VerifyFlags.VERIFY_X509_STRICT
    )
    context.load_verify_locations(cadata=authority.certificate.der)
    try:
        context.load_cert_chain(folder / NODE_CHAIN, folder / NODE_KEY)
    except OSError as error:  # of which ssl.SSLError is one
        reason = error.strerror or "cannot be used"
        raise IdentityUnusable(f"{folder}: TLS cannot use key and certificate: {reason}") from None
    return context
