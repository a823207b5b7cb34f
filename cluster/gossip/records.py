"""The newest that each node said, and the digest of it all.

Its own file because the digest must follow every change. It is the exclusive or of one hash per
member entry: the same for the same entries in any order, and kept up to date entry by entry. Where
this node stands on a ground, only what differs from it is kept here. It must not know keys: what
comes in was verified.
"""

from collections.abc import Iterator
from enum import Enum

from cluster.gossip.ground import BARE, Ground
from cluster.gossip.held import Held, Slot, bucket_of, entry_hash, hold, merge, slot_of
from cluster.gossip.messages import NEVER, Statement
from cluster.gossip.wire import BUCKETS
from cluster.ids import NodeId


class Outcome(Enum):
    """What a statement was to the table."""

    NEWER = "newer"
    KNOWN = "known"
    OLDER = "older"
    EQUIVOCATION = "equivocation"


class Records:
    """The newest entry of each slot of each origin."""

    def __init__(self, ground: Ground = BARE) -> None:
        self._ground = ground
        self._held: dict[Slot, dict[NodeId, Held | None]] = {slot: {} for slot in Slot}
        """None for what is on the ground and was dropped here."""
        self._digest = ground.digest
        self._buckets = list(ground.bucket_hashes) or [0] * BUCKETS
        self._ids: dict[int, dict[NodeId, None]] = {}
        """Of each bucket, those that are not on the ground."""

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
        own = self._held[slot]
        if origin in own or slot is not Slot.MEMBER:
            return own.get(origin)
        return self._ground.held.get(origin)

    def summaries(self) -> Iterator[tuple[NodeId, Held]]:
        """What speakers said of their racks."""
        for origin, held in self._held[Slot.SUMMARY].items():
            if held is not None:
                yield origin, held

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
            held = self.get(slot, origin)
            if held is not None:
                self._replace(slot, origin, held, None)

    def bucket(self, bucket: int) -> list[tuple[NodeId, Held]]:
        """The member entries of a bucket, by id."""
        ids = list(self._ids.get(bucket, ()))
        if self._ground.buckets:
            ids.extend(self._ground.buckets[bucket])
        found = ((node_id, self.get(Slot.MEMBER, node_id)) for node_id in sorted(ids))
        return [(node_id, held) for node_id, held in found if held is not None]

    def _replace(self, slot: Slot, origin: NodeId, old: Held | None, new: Held | None) -> None:
        own = self._held[slot]
        is_on_ground = slot is Slot.MEMBER and origin in self._ground.held
        if new is None and not is_on_ground:
            own.pop(origin, None)
        else:
            own[origin] = new
        if slot is not Slot.MEMBER:
            return
        bucket = bucket_of(origin)
        if not is_on_ground:
            ids = self._ids.setdefault(bucket, {})
            if new is None:
                ids.pop(origin, None)
            else:
                ids[origin] = None
        change = 0
        for held in (old, new):
            if held is not None:
                change ^= entry_hash(origin, held)
        self._digest ^= change
        self._buckets[bucket] ^= change
