"""A few real ledgers on a bench: messages and writes wait until a test lets them happen."""

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from cluster.ids import NodeId
from cluster.rack.ledger.account import Effect, Keep, LedgerAlarm, Say
from cluster.rack.ledger.book import Book, Entry, replay
from cluster.rack.ledger.ledger import Ledger, LedgerView
from cluster.rack.ledger.messages import Message
from cluster.rack.units import FIRST_EPOCH, SHARES_TOTAL
from cluster.signatures import KeyedHashKeyring, Signer
from simulations.power.desk import CURRENCY, FLOOR_WATTS, Desk

THIRD = SHARES_TOTAL // 3
_Message = TypeVar("_Message")


class BenchNode:
    """One ledger, its log, and what it has said and nobody has heard."""

    def __init__(self, bench: "Bench", name: str, signer: Signer) -> None:
        self.bench, self.name, self.signer = bench, name, signer
        self.id = NodeId.of_public_key(signer.public_key)
        self.log: list[Entry] = []
        self.waiting: list[Keep] = []
        self.said: list[tuple[NodeId, Message]] = []
        self.alarms: list[str] = []
        self.now = 0.0
        self.heard = bench.desk.count if hasattr(bench, "desk") else 1
        self.ledger: Ledger

    def start(self, *, book: Book | None = None, may_found: bool = True) -> None:
        """A life begins with what the log says, or with this book."""
        empty = Book(node_id=self.id, currency=CURRENCY)
        self.waiting, self.said = [], []
        self.ledger = Ledger(
            book=replay(empty, self.log) if book is None else book,
            signer=self.signer,
            verifier=self.bench.keys,
            public_key_of=self.bench.public_keys.get,
            rng=random.Random(1),
            may_found=may_found,
        )
        self.take(self.ledger.start(self.now))

    def take(self, effects: Sequence[Effect]) -> None:
        """Put effects aside."""
        for effect in effects:
            match effect:
                case Keep():
                    self.waiting.append(effect)
                case Say(to=receivers, message=message):
                    self.said += [(to, message) for to in receivers]
                case LedgerAlarm(line=line):
                    self.alarms.append(line)

    # -- the disk ---------------------------------------------------------------------------------

    def keep_one(self) -> Entry:
        """The oldest write comes to disk."""
        keep = self.waiting.pop(0)
        self.log.append(keep.entry)
        entry, effects = self.ledger.kept(keep.number, self.now)
        self.take(effects)
        return entry

    def keep_all(self) -> list[Entry]:
        """All writes come to disk."""
        kept = []
        while self.waiting:
            kept.append(self.keep_one())
        return kept

    @property
    def written(self) -> list[type[Entry]]:
        """Kinds of the entries that wait for the disk."""
        return [type(keep.entry) for keep in self.waiting]

    # -- inputs -----------------------------------------------------------------------------------

    def hear_decrees(self, count: int | None = None) -> None:
        """So many of the operators' records; all of them."""
        self.heard = self.bench.desk.count if count is None else count
        charter = self.bench.desk.charters(self.heard)[CURRENCY]
        self.take(self.ledger.hear_charter(charter, self.now))

    def bounded(self, watts: int | None) -> None:
        """The hardware may draw so much."""
        self.take(self.ledger.bounded(watts, self.now))

    def is_low(self) -> None:
        """The hardware may draw what it is allowed to."""
        self.bounded(self.ledger.allowance_watts)

    def give(self, to: "BenchNode", shares: int) -> bool:
        """Set shares aside."""
        is_begun, effects = self.ledger.give(to.id, shares, self.now)
        self.take(effects)
        return is_begun

    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now += seconds
        self.take(self.ledger.advance(self.now))

    def receive(self, sender: "BenchNode", message: Message) -> None:
        """A message comes."""
        self.take(self.ledger.receive(sender.id, message, self.now))

    # -- what was said ----------------------------------------------------------------------------

    def messages(self, kind: Callable[..., _Message]) -> list[_Message]:
        """All of this kind that were said and not heard."""
        return [one for _, one in self.said if isinstance(one, kind)]  # type: ignore[arg-type]  # a class

    @property
    def view(self) -> LedgerView:
        """The account."""
        return self.ledger.view()

    @property
    def book(self) -> Book:
        """What is on disk."""
        return self.ledger.book


class Bench:
    """Nodes of one currency of 3000 W, each with the same shares."""

    def __init__(self, count: int = 3, *, strangers: int = 0, dynamic_watts: int = 3000) -> None:
        self.keys = KeyedHashKeyring()
        chance = random.Random(7)
        signers = [self.keys.new_signer(chance.randbytes) for _ in range(count + strangers)]
        self.public_keys = {NodeId.of_public_key(one.public_key): one.public_key for one in signers}
        nodes = [BenchNode(self, f"n{at}", one) for at, one in enumerate(signers)]
        self.nodes, self.strangers = nodes[:count], nodes[count:]
        slots: dict[str, NodeId | None] = {f"u{at}": one.id for at, one in enumerate(self.nodes)}
        slots |= {f"spare{at}": None for at in range(strangers)}
        self.desk = Desk(dynamic_watts + FLOOR_WATTS * len(slots), slots)

    def begin(self) -> list[BenchNode]:
        """All have started, are members, and their hardware is known to obey."""
        for node in self.nodes:
            node.start()
            node.hear_decrees()
            node.keep_all()
            node.is_low()
            node.keep_all()
            node.said.clear()
        return self.nodes

    def deliver(self, sender: BenchNode) -> int:
        """What this node has said reaches everybody; how much that was."""
        said, sender.said = sender.said, []
        for to, message in said:
            for node in (*self.nodes, *self.strangers):
                if node.id == to and hasattr(node, "ledger"):
                    node.receive(sender, message)
        return len(said)

    def settle(self) -> None:
        """Messages and writes come, hardware follows, until nothing moves any more."""
        everybody = [one for one in (*self.nodes, *self.strangers) if hasattr(one, "ledger")]
        for _ in range(50):
            is_moved = False
            for node in everybody:
                is_moved = bool(node.waiting) or is_moved
                node.keep_all()
                node.is_low()
                is_moved = bool(node.waiting) or is_moved
                is_moved = bool(self.deliver(node)) or is_moved
            if not is_moved:
                return
        raise AssertionError("it never comes to rest")


__all__ = ["FIRST_EPOCH", "THIRD", "Bench", "BenchNode"]
