"""What one node keeps on disk of one currency, and the entries by which it changes.

Its own file because a book is rebuilt at each start by applying the entries of the log again, and
because invariants are checked against books. Entries are applied in the order in which they came
to disk; one that contradicts the book is refused, and then the log is not to be believed. It must
not know files, time or messages.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from cluster.errors import Malformed
from cluster.ids import NodeId
from cluster.rack.units import SHARES_TOTAL, BudgetVersion, CurrencyId, Epoch

NO_VERSION = BudgetVersion(sequence=0, watts=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Debt:
    """Shares that have left this node, until the taker says that it has them."""

    sequence: int
    shares: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """The last word of this node in the epoch was said, for one retirement."""

    rank: int
    digest: bytes = field(repr=False)
    """Of the operator's record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """The account of one node in one currency."""

    node_id: NodeId
    currency: CurrencyId
    incarnation: int = 0
    """How often this node has started with this book."""
    epoch: Epoch | None = None
    """None before an operator's record opened the account."""
    members: tuple[NodeId, ...] = ()
    own_shares: int = 0
    version: BudgetVersion = NO_VERSION
    """The newest budget that is kept here."""
    complied: BudgetVersion = NO_VERSION
    """The newest budget that the hardware is known to have obeyed."""
    outbox: Mapping[NodeId, Debt] = field(default_factory=dict)
    out_sequences: Mapping[NodeId, int] = field(default_factory=dict)
    last_in: Mapping[NodeId, int] = field(default_factory=dict)
    frozen: Frozen | None = None
    last_statement: bytes | None = field(default=None, repr=False)
    """Signed; of the epoch before, in case that others still wait for it."""
    founded: bytes = field(default=b"", repr=False)
    """Digest of the genesis by which the account was opened; empty where that was not kept yet."""
    quarantine: str = ""
    """Why this book is not to be believed; empty while it is."""

    @property
    def is_open(self) -> bool:
        """Whether this node is a member."""
        return self.epoch is not None

    @property
    def is_blank(self) -> bool:
        """Whether nothing was ever owned or moved: such an account can be opened, also again."""
        return not (self.own_shares or self.last_in or self.out_sequences or self.quarantine)

    @property
    def sent_shares(self) -> int:
        """All that is on its way to others."""
        return sum(debt.shares for debt in self.outbox.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """Another life of this node; written before anything is said."""

    incarnation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An operator's record made this node a member."""

    epoch: Epoch
    members: tuple[NodeId, ...]
    own_shares: int
    version: BudgetVersion
    founded: bytes = field(default=b"", repr=False)
    """Digest of the genesis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Debited:
    """Shares were given away; the hardware had been lowered before."""

    to: NodeId
    sequence: int
    shares: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Credited:
    """Shares came."""

    giver: NodeId
    sequence: int
    shares: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The taker has them: nothing more to send."""

    to: NodeId
    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetTaken:
    """Another budget is in force."""

    version: BudgetVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Complied:
    """The hardware obeys this budget."""

    version: BudgetVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAdded:
    """An operator let one more identity in."""

    node_id: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class Froze:
    """The last word of this epoch has been said."""

    frozen: Frozen


@dataclass(frozen=True, slots=True, kw_only=True)
class Switched:
    """The epoch ended, and the next began: one record, so that it is one or the other."""

    epoch: Epoch
    members: tuple[NodeId, ...]
    own_shares: int
    statement: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """Others remember what this book does not: it is an old copy, or parts of it are lost."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summed:
    """The whole book, in the place of all entries before it."""

    book: Book


Entry: TypeAlias = (
    Started
    | Opened
    | Debited
    | Credited
    | Settled
    | BudgetTaken
    | Complied
    | MemberAdded
    | Froze
    | Switched
    | Quarantined
    | Summed
)


def apply_entry(book: Book, entry: Entry) -> Book:
    """The book after this entry.

    Raises:
        Malformed: it contradicts the book; one line.
    """
    match entry:
        case Started(incarnation=incarnation) if incarnation > book.incarnation:
            return replace(book, incarnation=incarnation)
        case Opened() if _can_open(book, entry):
            return replace(
                book,
                epoch=entry.epoch,
                members=entry.members,
                own_shares=entry.own_shares,
                version=entry.version,
                founded=entry.founded,
                frozen=None,
            )
        case Debited():
            return _debit(book, entry)
        case Credited(giver=giver, sequence=sequence, shares=shares):
            if sequence != book.last_in.get(giver, 0) + 1 or shares <= 0 or not book.is_open:
                raise Malformed(f"a credit from {giver.short} out of turn")
            return replace(
                book,
                own_shares=book.own_shares + shares,
                last_in={**book.last_in, giver: sequence},
            )
        case Settled(to=to, sequence=sequence):
            debt = book.outbox.get(to)
            if debt is None or debt.sequence != sequence:
                raise Malformed(f"a receipt of {to.short} for what was not sent")
            left = {node_id: one for node_id, one in book.outbox.items() if node_id != to}
            return replace(book, outbox=left)
        case BudgetTaken(version=version):
            return replace(book, version=version)
        case Complied(version=version):
            return replace(book, complied=version)
        case MemberAdded(node_id=node_id):
            return replace(book, members=tuple(dict.fromkeys((*book.members, node_id))))
        case Froze(frozen=frozen):
            before = book.frozen
            if before is not None and frozen != before and frozen.rank <= before.rank:
                raise Malformed("a last word of a rank that does not follow")
            return replace(book, frozen=frozen)
        case Switched():
            return _switch(book, entry)
        case Quarantined(reason=reason):
            return replace(book, quarantine=reason)
        case Summed(book=whole) if (whole.node_id, whole.currency) == (
            book.node_id,
            book.currency,
        ):
            return whole
        case _:
            raise Malformed(f"an entry that cannot follow: {type(entry).__name__}")


def _can_open(book: Book, entry: Opened) -> bool:
    is_later = book.epoch is None or entry.epoch > book.epoch
    return book.is_blank and is_later and 0 <= entry.own_shares <= SHARES_TOTAL


def _debit(book: Book, entry: Debited) -> Book:
    to = entry.to
    if entry.sequence != book.out_sequences.get(to, 0) + 1 or to in book.outbox:
        raise Malformed(f"a debit for {to.short} out of turn")
    if not 0 < entry.shares <= book.own_shares:
        raise Malformed(f"a debit of {entry.shares} of {book.own_shares} shares")
    return replace(
        book,
        own_shares=book.own_shares - entry.shares,
        outbox={**book.outbox, to: Debt(sequence=entry.sequence, shares=entry.shares)},
        out_sequences={**book.out_sequences, to: entry.sequence},
    )


def _switch(book: Book, entry: Switched) -> Book:
    if book.epoch is None or entry.epoch.number != book.epoch.number + 1:
        raise Malformed("an epoch that does not follow")
    return replace(
        book,
        epoch=entry.epoch,
        members=entry.members,
        own_shares=entry.own_shares,
        outbox={},
        out_sequences={},
        last_in={},
        frozen=None,
        last_statement=entry.statement,
    )


def replay(book: Book, entries: Iterable[Entry]) -> Book:
    """The book that these entries make of an empty one.

    Raises:
        Malformed: they contradict each other.
    """
    for entry in entries:
        book = apply_entry(book, entry)
    return book
