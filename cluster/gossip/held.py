"""An entry: one version of what one node said, or the proof that it said two things under it.

Its own file because here it is decided which statement wins, and all members must decide alike
whatever came first. Merging takes the higher version; at equal versions it keeps both contents, the
two of lowest hash if there are more. So merging is commutative, associative and idempotent, and an
entry with two contents is a proof that anybody can check: the origin, or a clone of it, signed
twice under one number. It must not know who holds it.
"""

import hashlib
from dataclasses import dataclass
from enum import Enum

from cluster.errors import Misuse
from cluster.gossip.messages import Kind, Statement, Version
from cluster.gossip.wire import BUCKETS
from cluster.ids import NodeId
from cluster.signatures import SIGNATURE_BYTES

_CONTENTS_MAX = 2


class Slot(Enum):
    """What of a node a statement replaces."""

    MEMBER = "member"
    STATE = "state"
    SUMMARY = "summary"


_SLOTS = {
    Kind.MEMBER: Slot.MEMBER,
    Kind.LEFT: Slot.MEMBER,
    Kind.STATE: Slot.STATE,
    Kind.SUMMARY: Slot.SUMMARY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One version of one slot, with what was said under it: one content, or a proof of two."""

    version: Version
    statements: tuple[Statement, ...]

    @property
    def is_equivocal(self) -> bool:
        """Whether the origin contradicted itself."""
        return len(self.statements) > 1

    @property
    def content_hash(self) -> int:
        """Of all that was said under this version; 64 bits."""
        return hash_of(*(content_of(one) for one in self.statements))


def slot_of(kind: Kind) -> Slot:
    """Which slot statements of a kind go to; claims have none."""
    slot = _SLOTS.get(kind)
    if slot is None:
        raise Misuse(f"{kind.name} is a claim, not a record")
    return slot


def content_of(statement: Statement) -> bytes:
    """What was said, without the signature: to sign the same twice is no contradiction."""
    return statement.encoded[:-SIGNATURE_BYTES]


def hold(statement: Statement) -> Held:
    """One statement as an entry."""
    return Held(version=statement.version, statements=(statement,))


def merge(left: Held, right: Held) -> Held:
    """Both as one entry, whichever came first."""
    if left.version != right.version:
        return left if left.version > right.version else right
    # Of two signatures under one content the lower is kept, so that the order does not matter.
    contents: dict[bytes, Statement] = {}
    for one in sorted((*left.statements, *right.statements), key=lambda one: one.encoded):
        contents.setdefault(content_of(one), one)
    kept = sorted(contents.values(), key=lambda one: (hash_of(content_of(one)), one.encoded))
    return Held(version=left.version, statements=tuple(kept[:_CONTENTS_MAX]))


def bucket_of(node_id: NodeId) -> int:
    """Which of the 64 buckets an id is in; ids are hashes, so all fill alike."""
    return node_id[0] % BUCKETS


def entry_hash(origin: NodeId, held: Held) -> int:
    """What an entry adds to the digest of a view."""
    return hash_of(bytes(origin), held.content_hash.to_bytes(8, "big"))


def hash_of(*parts: bytes) -> int:
    """Of some bytes, each with its length; 64 bits."""
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(len(part).to_bytes(4, "big"))
        digest.update(part)
    return int.from_bytes(digest.digest(), "big")
