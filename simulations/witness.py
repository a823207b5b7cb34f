"""What every key has really signed, kept beside the keys.

Its own file because whether a belief is true can only be asked of somebody who saw it being said. A
witnessed signer is handed to the core in the place of the bare one. It must not know who believes
what.
"""

import struct

from cluster.gossip.messages import Kind, Version
from cluster.ids import KEY_ID_BYTES, NodeId
from cluster.signatures import Purpose, Signer

_HEAD = struct.Struct(">B16sQQ")
_START = len(Purpose.STATEMENT.value) + KEY_ID_BYTES


class Witness:
    """Remembers the statements of all keys."""

    def __init__(self) -> None:
        self._said: dict[NodeId, dict[tuple[bool, Version], dict[bytes, None]]] = {}
        self._newest: dict[NodeId, Version] = {}

    def watch(self, signer: Signer) -> Signer:
        """The same signer, overheard."""
        return _Overheard(signer, self)

    def hear(self, node_id: NodeId, message: bytes) -> None:
        """A key has signed these bytes."""
        if not message.startswith(Purpose.STATEMENT.value):
            return
        kind, signer, epoch, sequence = _HEAD.unpack_from(message, _START)
        if signer != node_id or kind not in (Kind.MEMBER, Kind.LEFT, Kind.STATE):
            return
        version = Version(epoch=epoch, sequence=sequence)
        said = self._said.setdefault(node_id, {})
        said.setdefault((kind == Kind.STATE, version), {})[message[_START + _HEAD.size :]] = None
        if kind != Kind.STATE:
            self._newest[node_id] = max(version, self._newest.get(node_id, version))

    def bodies(self, node_id: NodeId, version: Version, *, is_state: bool) -> tuple[bytes, ...]:
        """What a key signed under a version: nothing, one thing, or a contradiction."""
        return tuple(self._said.get(node_id, {}).get((is_state, version), ()))

    def newest(self, node_id: NodeId) -> Version | None:
        """The highest version of a member record that a key has signed."""
        return self._newest.get(node_id)


class _Overheard:
    __slots__ = ("_node_id", "_signer", "_witness")

    def __init__(self, signer: Signer, witness: Witness) -> None:
        self._signer = signer
        self._witness = witness
        self._node_id = NodeId.of_public_key(signer.public_key)

    @property
    def public_key(self) -> bytes:
        return self._signer.public_key

    def sign(self, message: bytes) -> bytes:
        self._witness.hear(self._node_id, message)
        return self._signer.sign(message)
