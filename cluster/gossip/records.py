"""The newest that each node said, and proof where it said two things at once.

Its own file because here it is decided which statement wins, and all members must decide alike
whatever came first. For each slot of each origin the table holds an entry: one version and what was
said under it. Merging takes the higher version; at equal versions it keeps both contents, the two
of lowest hash if there are more. So merging is commutative, associative and idempotent, and an
entry with two contents is a proof that anybody can check: the origin, or a clone of it, signed
twice under one number.

The digest is the exclusive or of one hash per member entry: the same for the same entries in any
order, and kept up to date entry by entry. It must not know keys: what comes in was verified.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from cluster.errors import Misuse
from cluster.gossip.messages import NEVER, Kind, Statement, Version
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


class Outcome(Enum):
    """What a statement was to the table."""

    NEWER = "newer"
    KNOWN = "known"
    OLDER = "older"
    EQUIVOCATION = "equivocation"


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
        return _hash(*(content_of(one) for one in self.statements))


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
    kept = sorted(contents.values(), key=lambda one: (_hash(content_of(one)), one.encoded))
    return Held(version=left.version, statements=tuple(kept[:_CONTENTS_MAX]))


class Records:
    """The newest entry of each slot of each origin."""

    def __init__(self) -> None:
        self._held: dict[Slot, dict[NodeId, Held]] = {slot: {} for slot in Slot}
        self._digest = 0
        self._buckets = [0] * BUCKETS
        self._ids: list[dict[NodeId, None]] = [{} for _ in range(BUCKETS)]

    @property
    def digest(self) -> int:
        """Of all member entries."""
        return self._digest

    @property
    def buckets(self) -> tuple[int, ...]:
        """The digest, apart for each bucket of ids."""
        return tuple(self._buckets)

    def get(self, slot: Slot, origin: NodeId) -> Held | None:
        """What is held of one slot."""
        return self._held[slot].get(origin)

    def all_of(self, slot: Slot) -> Iterator[tuple[NodeId, Held]]:
        """Every origin's entry of one slot."""
        yield from self._held[slot].items()

    def judge(self, statement: Statement) -> Outcome:
        """What this statement would be; costs no signature."""
        held = self.get(slot_of(statement.kind), statement.signer)
        version = NEVER if held is None else held.version
        if held is None or statement.version > version:
            return Outcome.NEWER
        if statement.version < version:
            return Outcome.OLDER
        is_known = merge(held, hold(statement)) == held
        return Outcome.KNOWN if is_known else Outcome.EQUIVOCATION

    def put(self, statement: Statement) -> Outcome:
        """Merge a verified statement into the table."""
        outcome = self.judge(statement)
        if outcome in (Outcome.NEWER, Outcome.EQUIVOCATION):
            slot = slot_of(statement.kind)
            held = self.get(slot, statement.signer)
            new = hold(statement) if held is None else merge(held, hold(statement))
            self._replace(slot, statement.signer, held, new)
        return outcome

    def drop(self, origin: NodeId) -> None:
        """Forget a node altogether."""
        for slot in Slot:
            held = self._held[slot].get(origin)
            if held is not None:
                self._replace(slot, origin, held, None)

    def bucket(self, bucket: int) -> list[tuple[NodeId, Held]]:
        """The member entries of a bucket, by id."""
        members = self._held[Slot.MEMBER]
        return [(node_id, members[node_id]) for node_id in sorted(self._ids[bucket])]

    def _replace(self, slot: Slot, origin: NodeId, old: Held | None, new: Held | None) -> None:
        if new is None:
            self._held[slot].pop(origin, None)
        else:
            self._held[slot][origin] = new
        if slot is not Slot.MEMBER:
            return
        change = 0
        for held in (old, new):
            if held is not None:
                change ^= _hash(bytes(origin), held.content_hash.to_bytes(8, "big"))
        bucket = bucket_of(origin)
        if new is None:
            self._ids[bucket].pop(origin, None)
        else:
            self._ids[bucket][origin] = None
        self._digest ^= change
        self._buckets[bucket] ^= change


def bucket_of(node_id: NodeId) -> int:
    """Which of the 64 buckets an id is in; ids are hashes, so all fill alike."""
    return node_id[0] % BUCKETS


def _hash(*parts: bytes) -> int:
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(len(part).to_bytes(4, "big"))
        digest.update(part)
    return int.from_bytes(digest.digest(), "big")
