"""One node, its disk and its machine in a small world, and the world at one instant.

Its own file because states are copied and told apart a hundred thousand times: what decides the
next step is in the fingerprint, and stamps and due times are not, since nothing that a ledger does
for safety depends on them. It must not know what may happen.
"""

import copy
import hashlib
from collections import deque
from dataclasses import dataclass, replace
from typing import TypeVar

from cluster.rack.ledger.account import Keep
from cluster.rack.ledger.book import Book, Summed
from cluster.rack.ledger.book_wire import encode_entry
from cluster.rack.ledger.ledger import Ledger
from cluster.rack.ledger.messages import (
    Asked,
    Grant,
    HasSwitched,
    Message,
    Recalled,
    Receipt,
    Stated,
)
from simulations.power.checker import Account

MAXIMUM_WATTS = 1000
_Thing = TypeVar("_Thing")


@dataclass(slots=True)
class SmallNode:
    """One ledger, its disk and its machine."""

    ledger: Ledger
    book: Book
    """As the log reads."""
    account: Account
    waiting: tuple[Keep, ...] = ()
    limit_watts: int = MAXIMUM_WATTS
    showing_watts: int = 0
    """An older limit that may still show in the draw."""
    assumed_watts: int = MAXIMUM_WATTS
    """What a process that has just begun has to reckon with."""
    is_told: bool = False
    """Whether the ledger knows of the hardware in this life."""
    is_gate_open: bool = False
    is_off: bool = False
    heard: int = 1
    """Decrees."""
    now: float = 0.0
    print_: bytes = b""

    @property
    def bound_watts(self) -> int:
        """What the machine may draw."""
        if self.is_off or not self.is_gate_open:
            return 0
        return max(self.limit_watts, self.showing_watts)


@dataclass(slots=True)
class SmallState:
    """All of it at one instant."""

    nodes: tuple[SmallNode, ...]
    said: dict[int, tuple[int, int, Message]]
    """By a hash of what a ledger acts on."""
    said_print: int
    crashes_left: int
    reboots_left: int
    refusals_left: int
    gifts_left: int
    """A bit for each."""


def words_of(message: Message) -> tuple[object, ...]:
    """What of a message a ledger acts on."""
    match message:
        case Grant(epoch=epoch, sequence=sequence, shares=shares, row=row):
            return "grant", epoch, sequence, shares, row.epoch, row.credits
        case Receipt(epoch=epoch, sequence=sequence, row=row):
            return "receipt", epoch, sequence, row.epoch, row.credits
        case Stated(signed=signed):
            return "stated", signed.payload
        case HasSwitched(signed=switch):
            return "switched", switch.payload
        case Asked(row=row):
            return "ask", row.epoch
        case Recalled(epoch=epoch, sequence=sequence):
            return "recall", epoch, sequence
        case _:
            return ("other",)


def fingerprint(state: SmallState) -> bytes:
    """Equal for states from which the same can follow."""
    prints = b"".join(node.print_ for node in state.nodes)
    counts = (state.crashes_left, state.reboots_left, state.refusals_left, state.gifts_left)
    rest = repr((state.said_print, counts)).encode()
    return hashlib.blake2b(prints + rest, digest_size=16).digest()


def print_of(node: SmallNode) -> bytes:
    """Of all that decides what a node does next."""
    ledger = node.ledger
    account, closings, recollections = ledger._account, ledger._closings, ledger._recollections
    seen = (
        _print_of_book(node.book),
        _print_of_book(account.ahead),
        [type(keep.entry).__name__ for keep in node.waiting],
        sorted(account.reserved.items()),
        (ledger._bound_watts, ledger._is_known_low, ledger._transfers.is_refusing),
        sorted(ledger._transfers._resends),
        sorted(closings._words._statements),
        sorted(closings._words._switches),
        (recollections._began_seconds is None, recollections._is_fresh),
        sorted(recollections._confirmed),
        sorted(recollections._claims),
        sorted(recollections._distrusted),
        (node.limit_watts, node.showing_watts, node.assumed_watts, node.is_told),
        (node.is_gate_open, node.is_off, node.heard, ledger.deadline() is None),
    )
    return hashlib.blake2b(repr(seen).encode(), digest_size=16).digest()


def _print_of_book(book: Book) -> bytes:
    return encode_entry(Summed(book=replace(book, incarnation=0)))


def fork(state: SmallState, place: int) -> SmallState:
    """The same state once more, in which one node can be changed."""
    one = state.nodes[place]
    changed = replace(one, ledger=_fork_ledger(one.ledger), account=_fork_account(one.account))
    nodes = (*state.nodes[:place], changed, *state.nodes[place + 1 :])
    return replace(state, nodes=nodes, said=dict(state.said))


def _fork_account(account: Account) -> Account:
    return replace(
        account,
        outbox=dict(account.outbox),
        last_in=dict(account.last_in),
        closed_last_in=dict(account.closed_last_in),
    )


def _fork_ledger(ledger: Ledger) -> Ledger:
    account = _fork_parts(ledger._account)
    other = _fork_parts(ledger)
    other._account = account
    other._recollections = _fork_parts(ledger._recollections)
    other._recollections._account = account
    other._transfers = _fork_parts(ledger._transfers)
    other._transfers._account = account
    other._transfers._recollections = other._recollections
    other._closings = _fork_parts(ledger._closings)
    other._closings._account = account
    other._closings._words = _fork_parts(ledger._closings._words)
    other._closings._words._account = account
    return other


def _fork_parts(thing: _Thing) -> _Thing:
    """A copy with containers of its own; what they contain is never changed in place."""
    other = copy.copy(thing)
    for name, value in vars(other).items():
        if isinstance(value, dict | list | deque):
            setattr(other, name, copy.copy(value))
    return other
