"""Entries of the book to bytes and back.

Its own file because the bytes outlive a version: kinds are never renamed, only added to, and an
entry that a version cannot read is refused, never skipped: a book with a hole is worth nothing. It
must not know files.
"""

from collections.abc import Mapping, Sequence

from cluster.codec import Document, Value, decode_document, encode_document
from cluster.errors import Malformed
from cluster.ids import NodeId
from cluster.rack.ledger.book import (
    Book,
    BudgetTaken,
    Complied,
    Credited,
    Debited,
    Debt,
    Entry,
    Froze,
    Frozen,
    MemberAdded,
    Opened,
    Quarantined,
    Settled,
    Started,
    Summed,
    Switched,
)
from cluster.rack.ledger.decrees import read_currency, read_epoch
from cluster.rack.units import BudgetVersion

_FORMAT = 1


def encode_entry(entry: Entry) -> bytes:
    """The one encoding of an entry."""
    return encode_document((_FORMAT, *_encode(entry)))


def _encode(entry: Entry) -> Document:
    match entry:
        case Started(incarnation=incarnation):
            return "started", incarnation
        case Opened():
            version = _version(entry.version)
            opened = ("opened", entry.epoch, entry.members, entry.own_shares, version)
            return (*opened, entry.founded) if entry.founded else opened
        case Debited(to=to, sequence=sequence, shares=shares):
            return "debited", to, sequence, shares
        case Credited(giver=giver, sequence=sequence, shares=shares):
            return "credited", giver, sequence, shares
        case Settled(to=to, sequence=sequence):
            return "settled", to, sequence
        case BudgetTaken(version=version):
            return "budget", _version(version)
        case Complied(version=version):
            return "complied", _version(version)
        case MemberAdded(node_id=node_id):
            return "member", node_id
        case Froze(frozen=frozen):
            return "froze", frozen.rank, frozen.digest
        case Switched():
            return "switched", entry.epoch, entry.members, entry.own_shares, entry.statement
        case Quarantined(reason=reason):
            return "quarantined", reason
        case Summed(book=book):
            return "summed", _encode_book(book)


def _encode_book(book: Book) -> Document:
    frozen = book.frozen
    later = (book.founded,) if book.founded else ()
    return (
        book.node_id,
        book.currency,
        book.incarnation,
        book.epoch,
        book.members,
        book.own_shares,
        _version(book.version),
        _version(book.complied),
        tuple((to, debt.sequence, debt.shares) for to, debt in sorted(book.outbox.items())),
        tuple(sorted(book.out_sequences.items())),
        tuple(sorted(book.last_in.items())),
        None if frozen is None else (frozen.rank, frozen.digest),
        book.last_statement,
        book.quarantine,
        *later,
    )


def decode_entry(data: bytes) -> Entry:
    """An entry as it was kept.

    Raises:
        Malformed: it is none that this version reads.
    """
    document = decode_document(data)
    if document[:1] != (_FORMAT,):
        raise Malformed("an entry of a later version of the ledger")
    return _decode(document[1:])


def _decode(document: Document) -> Entry:
    match document:
        case "started", int() as incarnation:
            return Started(incarnation=incarnation)
        case "opened", epoch, members, int() as shares, version, *later:
            return Opened(
                epoch=read_epoch(epoch),
                members=_nodes(members),
                own_shares=shares,
                version=read_version(version),
                founded=_founded(later),
            )
        case "debited", bytes() as to, int() as sequence, int() as shares:
            return Debited(to=NodeId.from_wire(to), sequence=sequence, shares=shares)
        case "credited", bytes() as giver, int() as sequence, int() as shares:
            return Credited(giver=NodeId.from_wire(giver), sequence=sequence, shares=shares)
        case "settled", bytes() as to, int() as sequence:
            return Settled(to=NodeId.from_wire(to), sequence=sequence)
        case "budget", version:
            return BudgetTaken(version=read_version(version))
        case "complied", version:
            return Complied(version=read_version(version))
        case "member", bytes() as node_id:
            return MemberAdded(node_id=NodeId.from_wire(node_id))
        case "froze", int() as rank, bytes() as digest:
            return Froze(frozen=Frozen(rank=rank, digest=digest))
        case "switched", epoch, members, int() as shares, bytes() as statement:
            return Switched(
                epoch=read_epoch(epoch),
                members=_nodes(members),
                own_shares=shares,
                statement=statement,
            )
        case "quarantined", str() as reason:
            return Quarantined(reason=reason)
        case "summed", tuple() as book:
            return Summed(book=_decode_book(book))
        case _:
            raise Malformed("an entry that this version of the ledger cannot read")


def _decode_book(document: Document) -> Book:
    match document:
        case (
            bytes() as node_id,
            str() as currency,
            int() as incarnation,
            epoch,
            members,
            int() as own,
            version,
            complied,
            tuple() as outbox,
            tuple() as out_sequences,
            tuple() as last_in,
            frozen,
            bytes() | None as statement,
            str() as quarantine,
            *later,
        ):
            return Book(
                node_id=NodeId.from_wire(node_id),
                currency=read_currency(currency),
                incarnation=incarnation,
                epoch=None if epoch is None else read_epoch(epoch),
                members=_nodes(members),
                own_shares=own,
                version=read_version(version),
                complied=read_version(complied),
                outbox=dict(_debt(one) for one in outbox),
                out_sequences=_sequences(out_sequences),
                last_in=_sequences(last_in),
                frozen=_frozen(frozen),
                last_statement=statement,
                quarantine=quarantine,
                founded=_founded(later),
            )
        case _:
            raise Malformed("a book that this version of the ledger cannot read")


def _founded(later: Sequence[Value]) -> bytes:
    """The digest of the genesis; entries from before it was kept have none."""
    match later:
        case []:
            return b""
        case [bytes() as digest]:
            return digest
        case _:
            raise Malformed("an entry with more than this version of the ledger can read")


def _frozen(value: Value) -> Frozen | None:
    match value:
        case None:
            return None
        case (int() as rank, bytes() as digest):
            return Frozen(rank=rank, digest=digest)
        case _:
            raise Malformed("a last word is a rank and a digest")


def _debt(value: Value) -> tuple[NodeId, Debt]:
    match value:
        case (bytes() as to, int() as sequence, int() as shares):
            return NodeId.from_wire(to), Debt(sequence=sequence, shares=shares)
        case _:
            raise Malformed("a debt is a node, a number and shares")


def _sequences(values: Document) -> Mapping[NodeId, int]:
    return dict(_sequence(value) for value in values)


def _sequence(value: Value) -> tuple[NodeId, int]:
    match value:
        case (bytes() as node_id, int() as sequence):
            return NodeId.from_wire(node_id), sequence
        case _:
            raise Malformed("a number belongs to a node")


def _nodes(value: Value) -> tuple[NodeId, ...]:
    if not isinstance(value, tuple):
        raise Malformed("members are a list of nodes")
    return tuple(NodeId.from_wire(one) for one in value)


def _version(version: BudgetVersion) -> Document:
    return version.sequence, version.watts


def read_version(value: Value) -> BudgetVersion:
    """A budget as it is written in documents.

    Raises:
        Malformed: it is none.
    """
    match value:
        case (int() as sequence, int() as watts) if sequence >= 0 and watts >= 0:
            return BudgetVersion(sequence=sequence, watts=watts)
        case _:
            raise Malformed("a budget is two numbers")
