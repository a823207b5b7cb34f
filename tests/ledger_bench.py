"""Ledgers on a bench: three members, a disk and a hardware bound that a test moves by hand.

Its own file because every rule of the ledger is told with the same few words.
"""

import random
from collections.abc import Iterable

from cluster.identity.operator_records import OperatorRecord, Other, SignedRecord, log_root
from cluster.ids import ClusterId, NodeId, OperatorId
from cluster.rack.ledger.account import Effect, Keep, Say
from cluster.rack.ledger.book import Book, Entry, apply_entry
from cluster.rack.ledger.charter import Charter, read_charters
from cluster.rack.ledger.decrees import BudgetSet, Decree, Founded, Slot, encode_decree
from cluster.rack.ledger.ledger import Ledger
from cluster.rack.ledger.messages import Message
from cluster.rack.units import SHARES_TOTAL, CurrencyId
from cluster.signatures import KeyedHashKeyring

CURRENCY = CurrencyId("rack:r01")
CLUSTER = ClusterId(bytes(16))
FLOOR_WATTS = 100
BUDGET_WATTS = 1300
"""1000 W to be shared by three slots of 100 W: a share in a million is a milliwatt."""
NOW = 100.0

_KEYS = KeyedHashKeyring()
SIGNERS = [_KEYS.new_signer(random.Random(number).randbytes) for number in range(5)]
IDS = [NodeId.of_public_key(signer.public_key) for signer in SIGNERS]
A, B, C, D, E = IDS
PUBLIC_KEYS = {node_id: signer.public_key for node_id, signer in zip(IDS, SIGNERS, strict=True)}


class OperatorsLog:
    """Decrees in their places; `after` begins a branch."""

    def __init__(self) -> None:
        self.records: list[SignedRecord] = []

    def sign(self, decree: Decree, *, after: SignedRecord | None = None) -> SignedRecord:
        """One more record, after the last one or after another."""
        kind, body = encode_decree(decree)
        before = after or (self.records[-1] if self.records else None)
        record = OperatorRecord(
            cluster_id=CLUSTER,
            sequence=1 if before is None else before.record.sequence + 1,
            previous=log_root(CLUSTER) if before is None else before.hash,
            statement=Other(kind=kind, body=body),
            signed_by=OperatorId(bytes(16)),
            written_unix_seconds=0,
        )
        payload = b"%d %d " % (len(self.records), record.sequence) + body
        signed = SignedRecord(record=record, payload=payload, signature=bytes(64))
        self.records.append(signed)
        return signed

    @property
    def charter(self) -> Charter:
        """By all records."""
        return self.first(len(self.records))

    def first(self, count: int) -> Charter:
        """By the first so many."""
        return read_charters(self.records[:count])[CURRENCY]


def genesis(shares: dict[NodeId, int] | None = None) -> Founded:
    """Three nodes, 500, 300 and 200 W."""
    held = shares or {A: SHARES_TOTAL // 2, B: SHARES_TOTAL * 3 // 10, C: SHARES_TOTAL // 5}
    return Founded(
        currency=CURRENCY,
        budget_watts=BUDGET_WATTS,
        margin_ppm=0,
        slots=tuple(
            Slot(name=f"u{place}", floor_watts=FLOOR_WATTS, node_id=node_id)
            for place, node_id in enumerate(held)
        ),
        shares=tuple(held.items()),
    )


def founded_log() -> OperatorsLog:
    """An operators' log that begins with the genesis."""
    log = OperatorsLog()
    log.sign(genesis())
    return log


def budget(watts: int, settles: Iterable[SignedRecord] = ()) -> BudgetSet:
    """So many watts to be shared, beside the floors."""
    return BudgetSet(
        currency=CURRENCY,
        budget_watts=watts + 3 * FLOOR_WATTS,
        settles=tuple(one.hash for one in settles),
    )


class BenchNode:
    """One ledger, with a disk that keeps what it is told to keep, when it is told to."""

    def __init__(
        self, node_id: NodeId, *, entries: Iterable[Entry] = (), may_found: bool = True
    ) -> None:
        book = Book(node_id=node_id, currency=CURRENCY)
        for entry in entries:
            book = apply_entry(book, entry)
        self.node_id = node_id
        self.disk: list[Entry] = list(entries)
        self.waiting: list[Keep] = []
        self.said: list[tuple[NodeId, Message]] = []
        self.alarms: list[str] = []
        self.ledger = Ledger(
            book=book,
            signer=SIGNERS[IDS.index(node_id)],
            verifier=_KEYS,
            public_key_of=PUBLIC_KEYS.get,
            rng=random.Random(1),
            may_found=may_found,
        )
        self.take(self.ledger.start(NOW))

    def take(self, effects: Iterable[Effect]) -> None:
        """Queue what is to be kept; note what is said."""
        for effect in effects:
            if isinstance(effect, Keep):
                self.waiting.append(effect)
            elif isinstance(effect, Say):
                self.said += [(to, effect.message) for to in effect.to]
            else:
                self.alarms.append(effect.line)

    def keep_one(self) -> Entry:
        """The disk has the next entry."""
        keep = self.waiting.pop(0)
        self.disk.append(keep.entry)
        entry, effects = self.ledger.kept(keep.number, NOW)
        self.take(effects)
        return entry

    def keep_all(self) -> None:
        """The disk has all that waits, and what follows from it."""
        while self.waiting:
            self.keep_one()

    def obey(self, log: OperatorsLog, *, count: int | None = None, is_kept: bool = True) -> None:
        """Hear all operators' records, or the first so many; on this node's disk or not."""
        charter = log.charter if count is None else log.first(count)
        self.take(self.ledger.hear_charter(charter, NOW, is_kept=is_kept))

    def bound(self, watts: int | None) -> None:
        """The hardware says what may show in the draw."""
        self.take(self.ledger.bounded(watts, NOW))

    def hear(self, sender: NodeId, message: Message) -> None:
        """A message has come."""
        self.take(self.ledger.receive(sender, message, NOW))

    def give(self, to: NodeId, watts: int) -> bool:
        """Begin to give what is worth so much in the first budget."""
        is_begun, effects = self.ledger.give(to, watts * SHARES_TOTAL // 1000, NOW)
        self.take(effects)
        return is_begun

    def drain(self) -> list[tuple[NodeId, Message]]:
        """What was said since the last time."""
        said, self.said = self.said, []
        return said

    def restart(self) -> "BenchNode":
        """Another life with what is on disk."""
        return BenchNode(self.node_id, entries=self.disk)

    @property
    def own_watts(self) -> int:
        """What the book on disk owns."""
        return self.ledger.view().own_watts


def opened(node_id: NodeId, log: OperatorsLog) -> BenchNode:
    """A member whose hardware obeys."""
    node = BenchNode(node_id)
    node.obey(log)
    node.keep_all()
    node.bound(node.ledger.allowance_watts)
    node.keep_all()
    node.drain()
    return node


def deliver(nodes: Iterable[BenchNode]) -> None:
    """Pass on all that is said until nobody says anything, with disks that keep at once."""
    by_id = {node.node_id: node for node in nodes}
    for _ in range(50):
        said = [
            (sender, to, message) for sender, node in by_id.items() for to, message in node.drain()
        ]
        if not said:
            return
        for sender, to, message in said:
            if to in by_id:
                by_id[to].hear(sender, message)
                by_id[to].keep_all()
