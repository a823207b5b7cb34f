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
from cluster.rack.ledger.decrees import read_currency, read_epoch
from cluster.rack.ledger.row_wire import decode_row, encode_row, read_number, read_shares
from cluster.rack.rows import Row
from cluster.rack.units import CurrencyId, Epoch
from cluster.signatures import SIGNATURE_BYTES

MESSAGE_BYTES_MAX = 1200
_FORMAT = 1


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

    currency: CurrencyId
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
class Switch:
    """That a node has begun the next epoch by one record, and so never states for another."""

    node_id: NodeId
    epoch: Epoch
    """The one that ended."""
    rank: int
    digest: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedSwitch:
    """The same, the bytes that were signed, and the signature of its node."""

    currency: CurrencyId
    switch: Switch
    payload: bytes = field(repr=False)
    signature: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HasSwitched:
    """Somebody's word that it is in the next epoch, passed on by anybody."""

    signed: SignedSwitch


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A life with a book of a life before asks what the receiver remembers of it."""

    life: int
    row: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """What the sender remembers of the receiver."""

    epoch: Epoch
    """Of the sender."""
    life: int
    """That asked."""
    known_life: int
    """The latest life of the receiver that was heard of."""
    sequence: int
    """The last transfer that was credited from the receiver; 0 for none."""
    row: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """The rack draws more than its budget: everybody lowers at once (power emergency)."""

    stamp: int
    """Of the witness: milliseconds of its own clock, so that a repeat is a new one."""
    cut_ppm: int
    """Of what each node has above its floor."""


Message: TypeAlias = Told | Grant | Receipt | Stated | HasSwitched | Asked | Recalled | Excess


def encode_message(currency: CurrencyId, message: Message) -> bytes:
    """The one encoding of a message."""
    return encode_document((_FORMAT, currency, *_encode(message)))


def _encode(message: Message) -> Document:
    match message:
        case Told(row=row, is_urgent=is_urgent):
            return "row", encode_row(row), is_urgent
        case Grant():
            given = (message.epoch, message.sequence, message.shares)
            return "grant", *given, encode_row(message.row)
        case Receipt():
            return "receipt", message.epoch, message.sequence, encode_row(message.row)
        case Stated(signed=signed):
            return "stated", signed.payload, signed.signature
        case HasSwitched(signed=switch):
            return "switched", switch.payload, switch.signature
        case Asked(life=life, row=row):
            return "ask", life, encode_row(row)
        case Recalled():
            fields = (message.epoch, message.life, message.known_life, message.sequence)
            return "recall", *fields, encode_row(message.row)
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
                sequence=read_number(sequence),
                shares=read_shares(shares),
                row=decode_row(row),
            )
        case "receipt", epoch, sequence, tuple() as row:
            return Receipt(
                epoch=read_epoch(epoch), sequence=read_number(sequence), row=decode_row(row)
            )
        case "stated", bytes() as payload, bytes() as signature:
            return Stated(signed=read_statement(payload, signature))
        case "switched", bytes() as payload, bytes() as signature:
            return HasSwitched(signed=read_switch(payload, signature))
        case "ask", life, tuple() as row:
            return Asked(life=read_number(life), row=decode_row(row))
        case "recall", epoch, life, known_life, sequence, tuple() as row:
            return Recalled(
                epoch=read_epoch(epoch),
                life=read_number(life),
                known_life=read_number(known_life),
                sequence=read_number(sequence),
                row=decode_row(row),
            )
        case "excess", stamp, cut_ppm:
            return Excess(stamp=read_number(stamp), cut_ppm=read_number(cut_ppm))
        case _:
            raise Malformed("no message of the power ledger that this version reads")


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
            str() as name,
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
                rank=read_number(rank),
                digest=digest,
                own_shares=read_shares(own),
                outbox=tuple(_debt(one) for one in outbox),
                last_in=tuple(read_number(one) for one in last_in),
            )
            return SignedStatement(
                currency=read_currency(name),
                statement=statement,
                payload=payload,
                signature=signature,
            )
        case _:
            raise Malformed("no statement of the power ledger")


def encode_switch(currency: CurrencyId, switch: Switch) -> bytes:
    """What a node signs when it is in the next epoch; it names the currency."""
    fields = (switch.node_id, switch.epoch, switch.rank, switch.digest)
    return encode_document((_FORMAT, "closing-switch", currency, *fields))


def read_switch(payload: bytes, signature: bytes) -> SignedSwitch:
    """A switch as it came; its signature is not judged yet.

    Raises:
        Malformed: it is none.
    """
    if len(signature) != SIGNATURE_BYTES:
        raise Malformed("a switch without a signature")
    match decode_document(payload):
        case (
            1,
            "closing-switch",
            str() as name,
            bytes() as node_id,
            epoch,
            rank,
            bytes() as digest,
        ):
            switch = Switch(
                node_id=NodeId.from_wire(node_id),
                epoch=read_epoch(epoch),
                rank=read_number(rank),
                digest=digest,
            )
            return SignedSwitch(
                currency=read_currency(name), switch=switch, payload=payload, signature=signature
            )
        case _:
            raise Malformed("no switch of the power ledger")


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
            return read_number(place), read_number(sequence), read_shares(shares)
        case _:
            raise Malformed("no debt of the power ledger")
