"""Two members whose views differ find out where, and send each other what is missing.

Its own file because it is what makes gossip certain: news is repeated a few times and may be lost;
a difference of digests is noticed with the next ping. The conversation:

    A pings B, digests differ
    B -> A   summary: 64 hashes, one a bucket of ids
    A -> B   the records of buckets that B has nothing in; a page of what A has of each other bucket
             that differs
    B -> A   what A lacks or has an older version of; a page (reply) where A is ahead
    A -> B   what B lacks

With the record of one that has failed goes what its accusers signed, so that whoever comes later
need not find it out alone. What a member does not know that it lacks it finds in the other's page,
so one summary serves both sides. Each step is bounded; what is left over is found again at the next
ping. It must not know probing.
"""

import random

from cluster.gossip.doubts import Doubts
from cluster.gossip.held import Held, Slot, bucket_of
from cluster.gossip.messages import NEVER, Address, Entry, Page, Statement, Summary
from cluster.gossip.outbox import Outbox
from cluster.gossip.records import Records
from cluster.gossip.wire import BUCKETS
from cluster.ids import KEY_ID_BYTES, NodeId

_DATAGRAMS_MAX = 16
_ENTRIES_MAX = 25
"""Of at most 46 bytes each, in one datagram."""
_PAGES_MAX = 16
_FIRST = bytes(KEY_ID_BYTES)
_LAST = b"\xff" * KEY_ID_BYTES


class Reconciler:
    """Compares this node's member records with those of others."""

    def __init__(
        self, records: Records, outbox: Outbox, doubts: Doubts, rng: random.Random
    ) -> None:
        self._doubts = doubts
        self._records = records
        self._outbox = outbox
        self._rng = rng

    def summary(self) -> Summary:
        """Our side of the first step."""
        return Summary(buckets=self._records.buckets)

    def answer_summary(self, summary: Summary, to: Address) -> None:
        """The second step."""
        given: list[Statement] = []
        verdicts: list[Statement] = []
        pages: list[Page] = []
        buckets = list(range(BUCKETS))
        # With too much for one exchange, another part comes first each time.
        self._rng.shuffle(buckets)
        ours = self._records.buckets
        for bucket in buckets:
            theirs = summary.buckets[bucket]
            if theirs == ours[bucket]:
                continue
            held = self._records.bucket(bucket)
            if theirs == 0:
                for node_id, entry in held:
                    given.extend(entry.statements)
                    verdicts.extend(self._doubts.verdicts(node_id))
            else:
                pages.extend(_pages(bucket, held))
        # A verdict counts only where its signer is a member already.
        self._outbox.send_all(to, [*given, *verdicts], _DATAGRAMS_MAX)
        self._send_pages(to, pages[:_PAGES_MAX])

    def answer_page(self, page: Page, to: Address) -> None:
        """The third step, and the fourth."""
        bucket = bucket_of(NodeId(page.begin))
        theirs = {entry.node_id: entry for entry in page.entries}
        held = [
            (node_id, entry)
            for node_id, entry in self._records.bucket(bucket)
            if page.begin <= node_id <= page.end
        ]
        given: list[Statement] = []
        for node_id, entry in held:
            known = theirs.get(node_id)
            version = NEVER if known is None else known.version
            is_other = known is None or known.content_hash != entry.content_hash
            if entry.version > version or (entry.version == version and is_other):
                given.extend([*entry.statements, *self._doubts.verdicts(node_id)])
        self._outbox.send_all(to, given, _DATAGRAMS_MAX)
        if not page.is_reply and any(self._is_behind(entry) for entry in page.entries):
            reply = Page(
                begin=page.begin,
                end=page.end,
                entries=tuple(_entry(*one) for one in held[:_ENTRIES_MAX]),
                is_reply=True,
            )
            self._outbox.send(to, [reply])

    def _is_behind(self, theirs: Entry) -> bool:
        held = self._records.get(Slot.MEMBER, theirs.node_id)
        return held is None or theirs.version > held.version

    def _send_pages(self, to: Address, pages: list[Page]) -> None:
        batch: list[Page] = []
        count = 0
        for page in pages:
            size = len(page.entries) + 1
            if count + size > _ENTRIES_MAX:
                self._outbox.send(to, batch, has_news=False)
                batch, count = [], 0
            batch.append(page)
            count += size
        if batch:
            self._outbox.send(to, batch, has_news=False)


def _pages(bucket: int, held: list[tuple[NodeId, Held]]) -> list[Page]:
    """All of a bucket; together the pages leave no gap between ids."""
    chunks = [held[i : i + _ENTRIES_MAX - 1] for i in range(0, len(held), _ENTRIES_MAX - 1)] or [[]]
    pages = []
    begin = bytes([bucket]) + _FIRST[1:]
    for index, chunk in enumerate(chunks):
        end = _LAST if index == len(chunks) - 1 else bytes(chunk[-1][0])
        entries = tuple(_entry(*one) for one in chunk)
        pages.append(Page(begin=begin, end=end, entries=entries))
        begin = end
    return pages


def _entry(node_id: NodeId, held: Held) -> Entry:
    return Entry(node_id=node_id, version=held.version, content_hash=held.content_hash)
