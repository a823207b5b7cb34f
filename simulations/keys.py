"""The keys of one world: keyed hashes or real keys for nodes, real ones for authority and operator.

Its own file because one verifier has to know both kinds: operators' records are signed as in a real
cluster, datagrams with what costs least. It must not know who holds which key.
"""

from cluster.keyring import Ed25519Signer, Ed25519Verifier
from cluster.signatures import KeyedHashKeyring, RandomBytes, Signer


class Keys:
    """Makes the keys of nodes, and verifies what anybody signed."""

    def __init__(self, *, are_real: bool = False) -> None:
        self._are_real = are_real
        self._hashed = KeyedHashKeyring()
        self._hashed_keys: dict[bytes, None] = {}
        self._real = Ed25519Verifier()

    def new_signer(self, random_bytes: RandomBytes) -> Signer:
        """The key of one more node."""
        if self._are_real:
            return Ed25519Signer.generate(random_bytes)
        signer = self._hashed.new_signer(random_bytes)
        self._hashed_keys[signer.public_key] = None
        return signer

    def verify(self, *, public_key: bytes, signature: bytes, message: bytes) -> bool:
        """Whether the holder of this key signed the message, whichever kind it is."""
        verifier = self._hashed if public_key in self._hashed_keys else self._real
        return verifier.verify(public_key=public_key, signature=signature, message=message)
