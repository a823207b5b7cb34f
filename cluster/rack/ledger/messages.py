"""What nodes say to each other about one currency, to bytes and back.

Its own file because these bytes are the protocol of the ledger (docs/protocol.md). A message comes
in an envelope that its sender signed, so a grant or a receipt needs no signature of its own; a
statement does, since others pass it on. It must not know what a message leads to.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from cluster.codec import Document, Value, decode_document, encode_document
from cluster.errors import Malformed
from cluster.ids import NodeId
from cluster.rack.ledger.book_wire import read_version
from cluster.rack.ledger.decrees import read_currency, read_epoch
from cluster.rack.rows import Credit, Promise, Row, Wants
from cluster.rack.units import SHARES_TOTAL, CurrencyId, Epoch
from cluster.signatures import SIGNATURE_BYTES

MESSAGE_BYTES_MAX = 1200
PROMISES_MAX = 24
"""Told at once; the rest is told later, and until then counts for nobody."""
CREDITS_MAX = 24
_FORMAT = 1
_THOUSANDTHS = 1000
_NUMBER_MAX = 2**63
_TEXT_MAX = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How the account of a node is."""

    row: Row
    is_urgent: bool = False
    """Its demand has changed: decide at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Shares for the receiver; sent until it says that it has them."""

    epoch: Epoch
    sequence: int
    shares: int
    row: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The shares of this number are on the receiver's disk."""

    epoch: Epoch
    sequence: int
    row: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """The last word of one node in an epoch, as an operator's retirement asks for it."""

    node_id: NodeId
    epoch: Epoch
    rank: int
    digest: bytes = field(repr=False)
    """Of the operator's record: so that two of one rank are never mixed."""
    own_shares: int
    outbox: tuple[tuple[int, int, int], ...]
    """To whom (a place in the record's members), sequence and shares of each open transfer."""
    last_in: tuple[int, ...]
    """Of each of the record's members, the last transfer that was credited; 0 for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedStatement:
    """A statement, the bytes that were signed, and the signature of its node."""

    statement: Statement
    payload: bytes = field(repr=False)
    signature: bytes = field(repr=False)

    @property
    def encoded(self) -> bytes:
        """For the disk, and for whoever asks again."""
        return encode_document((self.payload, self.signature))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """Somebody's statement, passed on by anybody."""

    signed: SignedStatement


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """The rack draws more than its budget: everybody lowers at once (power emergency)."""

    stamp: int
    """Of the witness: milliseconds of its own clock, so that a repeat is a new one."""
    cut_ppm: int
    """Of what each node has above its floor."""


Message: TypeAlias = Told | Grant | Receipt | Stated | Excess


def encode_message(currency: CurrencyId, message: Message) -> bytes:
    """The one encoding of a message."""
    return encode_document((_FORMAT, currency, *_encode(message)))


def _encode(message: Message) -> Document:
    match message:
        case Told(row=row, is_urgent=is_urgent):
            return "row", encode_row(row), is_urgent
        case Grant():
            fields = (message.epoch, message.sequence, message.shares)
            return "grant", *fields, encode_row(message.row)
        case Receipt():
            return "receipt", message.epoch, message.sequence, encode_row(message.row)
        case Stated(signed=signed):
            return "stated", signed.payload, signed.signature
        case Excess(stamp=stamp, cut_ppm=cut_ppm):
            return "excess", stamp, cut_ppm


def decode_message(data: bytes) -> tuple[CurrencyId, Message]:
    """A message and the currency that it is about.

    Raises:
        Malformed: it is none that this version reads.
    """
    document = decode_document(data)
    match document:
        case (1, str() as currency, *rest):
            return read_currency(currency), _decode(tuple(rest))
        case _:
            raise Malformed("no message of the power ledger")


def _decode(document: Document) -> Message:
    match document:
        case "row", tuple() as row, bool() as is_urgent:
            return Told(row=decode_row(row), is_urgent=is_urgent)
        case "grant", epoch, sequence, shares, tuple() as row:
            return Grant(
                epoch=read_epoch(epoch),
                sequence=_number(sequence),
                shares=_shares(shares),
                row=decode_row(row),
            )
        case "receipt", epoch, sequence, tuple() as row:
            return Receipt(epoch=read_epoch(epoch), sequence=_number(sequence), row=decode_row(row))
        case "stated", bytes() as payload, bytes() as signature:
            return Stated(signed=read_statement(payload, signature))
        case "excess", stamp, cut_ppm:
            return Excess(stamp=_number(stamp), cut_ppm=_number(cut_ppm))
        case _:
            raise Malformed("no message of the power ledger that this version reads")


def encode_row(row: Row) -> Document:
    """A row as it is written in documents; also in a node's state."""
    wants = row.wants
    return (
        row.node_id,
        row.stamp,
        row.epoch,
        row.shares,
        (row.version.sequence, row.version.watts),
        (
            wants.demand_watts,
            wants.minimum_watts,
            wants.maximum_watts,
            wants.priority,
            round(wants.gain_ratio * _THOUSANDTHS),
            wants.gang[:_TEXT_MAX],
        ),
        row.is_refusing,
        row.is_frozen,
        tuple((one.to, one.sequence, one.shares) for one in row.promises[:PROMISES_MAX]),
        tuple((one.giver, one.sequence) for one in row.credits[:CREDITS_MAX]),
    )


def decode_row(document: Document) -> Row:
    """A row as a peer sent it.

    Raises:
        Malformed: it is none.
    """
    match document:
        case (
            bytes() as node_id,
            stamp,
            epoch,
            shares,
            version,
            tuple() as wants,
            bool() as is_refusing,
            bool() as is_frozen,
            tuple() as promises,
            tuple() as credits,
        ):
            return Row(
                node_id=NodeId.from_wire(node_id),
                stamp=_number(stamp),
                epoch=read_epoch(epoch),
                shares=_shares(shares),
                version=read_version(version),
                wants=_wants(wants),
                is_refusing=is_refusing,
                is_frozen=is_frozen,
                promises=tuple(_promise(one) for one in promises[:PROMISES_MAX]),
                credits=tuple(_credit(one) for one in credits[:CREDITS_MAX]),
            )
        case _:
            raise Malformed("no row of the power ledger")


def _wants(document: Document) -> Wants:
    match document:
        case (demand, minimum, maximum, priority, gain, str() as gang) if len(gang) <= _TEXT_MAX:
            return Wants(
                demand_watts=_number(demand),
                minimum_watts=_number(minimum),
                maximum_watts=_number(maximum),
                priority=_number(priority),
                gain_ratio=_number(gain) / _THOUSANDTHS,
                gang=gang,
            )
        case _:
            raise Malformed("no demand of the power ledger")


def _promise(value: Value) -> Promise:
    match value:
        case (bytes() as to, sequence, shares):
            return Promise(
                to=NodeId.from_wire(to), sequence=_number(sequence), shares=_shares(shares)
            )
        case _:
            raise Malformed("no promise of the power ledger")


def _credit(value: Value) -> Credit:
    match value:
        case (bytes() as giver, sequence):
            return Credit(giver=NodeId.from_wire(giver), sequence=_number(sequence))
        case _:
            raise Malformed("no credit of the power ledger")


def encode_statement(currency: CurrencyId, statement: Statement) -> bytes:
    """What a node signs as its last word; it names the currency."""
    return encode_document(
        (
            _FORMAT,
            "closing-statement",
            currency,
            statement.node_id,
            statement.epoch,
            statement.rank,
            statement.digest,
            statement.own_shares,
            statement.outbox,
            statement.last_in,
        )
    )


def read_statement(payload: bytes, signature: bytes) -> SignedStatement:
    """A statement as it came; its signature is not judged yet.

    Raises:
        Malformed: it is none.
    """
    if len(signature) != SIGNATURE_BYTES:
        raise Malformed("a statement without a signature")
    match decode_document(payload):
        case (
            1,
            "closing-statement",
            str(),
            bytes() as node_id,
            epoch,
            rank,
            bytes() as digest,
            own,
            tuple() as outbox,
            tuple() as last_in,
        ):
            statement = Statement(
                node_id=NodeId.from_wire(node_id),
                epoch=read_epoch(epoch),
                rank=_number(rank),
                digest=digest,
                own_shares=_shares(own),
                outbox=tuple(_debt(one) for one in outbox),
                last_in=tuple(_number(one) for one in last_in),
            )
            return SignedStatement(statement=statement, payload=payload, signature=signature)
        case _:
            raise Malformed("no statement of the power ledger")


def statement_currency(signed: SignedStatement) -> CurrencyId:
    """Which currency a statement is about."""
    currency = decode_document(signed.payload)[2]
    return read_currency(currency)


def decode_signed_statement(encoded: bytes) -> SignedStatement:
    """A statement as it was kept.

    Raises:
        Malformed: it is none.
    """
    match decode_document(encoded):
        case (bytes() as payload, bytes() as signature):
            return read_statement(payload, signature)
        case _:
            raise Malformed("no statement of the power ledger")


def _debt(value: Value) -> tuple[int, int, int]:
    match value:
        case (place, sequence, shares):
            return _number(place), _number(sequence), _shares(shares)
        case _:
            raise Malformed("no debt of the power ledger")


def _number(value: Value) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _NUMBER_MAX:
        raise Malformed("a number of the power ledger that cannot be")
    return value


def _shares(value: Value) -> int:
    shares = _number(value)
    if shares > SHARES_TOTAL:
        raise Malformed("more shares than there are")
    return shares
