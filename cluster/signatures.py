"""What it means to sign and to verify, and a keyed-hash stand-in for large simulations.

Its own file so that everything that signs or verifies can be handed either kind of key, and so
that simulations need no cryptography library. What is signed always begins with what it is for, so
that a signature made for one purpose is worth nothing for another. It must not know X.509.

The keyed hash is a simulation's: all verifiers share one table of secrets, which no real cluster
could. Within a simulation it holds what signatures hold: without a node's signer nobody can speak
for it.
"""

import hashlib
import hmac
import struct
from collections.abc import Callable
from enum import Enum
from typing import Protocol

from cluster.errors import Misuse
from cluster.ids import KEY_BYTES

SIGNATURE_BYTES = 64
"""Source: RFC 8032, section 5.1.6; the stand-in keeps the size."""

RandomBytes = Callable[[int], bytes]
"""So many bytes from the system's source of randomness, or from a seeded one in a simulation."""


_REMEMBERED_MAX = 4096


class Purpose(Enum):
    """What a signature is for. The first byte differs from those of a certificate and of TLS."""

    OPERATOR_RECORD = b"esnode operator-record 1\x00"
    ADMISSION = b"esnode admission 1\x00"
    DATAGRAM = b"esnode datagram 1\x00"
    STATEMENT = b"esnode statement 1\x00"
    POWER_STATEMENT = b"esnode power-statement 1\x00"

    def wrap(self, payload: bytes) -> bytes:
        """What is really signed."""
        return self.value + payload


class Signer(Protocol):
    """Holds a private key and shows it to nobody."""

    @property
    def public_key(self) -> bytes:
        """The 32 bytes that others verify with."""
        ...

    def sign(self, message: bytes) -> bytes:
        """The 64 bytes of signature over this message."""
        ...


class Verifier(Protocol):
    """Tells whether a message was signed by the holder of a key."""

    def verify(self, *, public_key: bytes, signature: bytes, message: bytes) -> bool:
        """Whether it was; never raises, whatever the bytes."""
        ...


class RememberingVerifier:
    """A verifier that checks each signature once: logs and admissions are read again and again."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self._known: dict[bytes, bool] = {}
        """By a hash of the question: strangers choose what is asked, and records are large."""

    def verify(self, *, public_key: bytes, signature: bytes, message: bytes) -> bool:
        """Whether it was; the same question is answered from memory."""
        lengths = struct.pack(">II", len(public_key), len(signature))
        key = hashlib.sha256(lengths + public_key + signature + message).digest()
        held = self._known.get(key)
        if held is None:
            if len(self._known) >= _REMEMBERED_MAX:
                self._known.clear()
            held = self._verifier.verify(
                public_key=public_key, signature=signature, message=message
            )
            self._known[key] = held
        return held


class KeyedHashKeyring:
    """A simulation's keys: one secret a node, HMAC-SHA512 in the place of Ed25519."""

    def __init__(self) -> None:
        self._secrets: dict[bytes, bytes] = {}

    def new_signer(self, random_bytes: RandomBytes) -> "KeyedHashSigner":
        """A new secret, known from now on to this keyring."""
        secret = random_bytes(KEY_BYTES)
        public_key = hashlib.sha256(b"public half of " + secret).digest()
        if public_key in self._secrets:
            raise Misuse("the same secret twice: two nodes were given one stream of randomness")
        self._secrets[public_key] = secret
        return KeyedHashSigner(secret=secret, public_key=public_key)

    def verify(self, *, public_key: bytes, signature: bytes, message: bytes) -> bool:
        """Whether the holder of this key's secret signed the message."""
        secret = self._secrets.get(public_key)
        if secret is None:
            return False
        return hmac.compare_digest(hmac.digest(secret, message, "sha512"), signature)


class KeyedHashSigner:
    """One simulated node's secret."""

    __slots__ = ("_public_key", "_secret")

    def __init__(self, *, secret: bytes, public_key: bytes) -> None:
        self._secret = secret
        self._public_key = public_key

    @property
    def public_key(self) -> bytes:
        """What the node is known by; the secret cannot be found from it."""
        return self._public_key

    def sign(self, message: bytes) -> bytes:
        """The keyed hash of the message."""
        return hmac.digest(self._secret, message, "sha512")

    def __repr__(self) -> str:
        return f"KeyedHashSigner({self._public_key.hex()[:8]}...)"
