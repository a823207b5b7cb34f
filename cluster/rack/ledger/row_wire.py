"""A row to bytes and back: what a node tells of its account, in messages and in its state.

Its own file because rows travel in two ways, and both must cut and refuse alike. It must not know
which way a row came.
"""

from cluster.codec import Document, Value
from cluster.errors import Malformed
from cluster.ids import NodeId
from cluster.rack.ledger.book_wire import read_version
from cluster.rack.ledger.decrees import read_epoch
from cluster.rack.rows import Credit, Promise, Row, Wants
from cluster.rack.units import SHARES_TOTAL

PROMISES_MAX = 24
"""Told at once; the rest is told later, and until then counts for nobody."""
CREDITS_MAX = 24
_THOUSANDTHS = 1000
_NUMBER_MAX = 2**63
_TEXT_MAX = 40


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
                stamp=read_number(stamp),
                epoch=read_epoch(epoch),
                shares=read_shares(shares),
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
                demand_watts=read_number(demand),
                minimum_watts=read_number(minimum),
                maximum_watts=read_number(maximum),
                priority=read_number(priority),
                gain_ratio=read_number(gain) / _THOUSANDTHS,
                gang=gang,
            )
        case _:
            raise Malformed("no demand of the power ledger")


def _promise(value: Value) -> Promise:
    match value:
        case (bytes() as to, sequence, shares):
            return Promise(
                to=NodeId.from_wire(to), sequence=read_number(sequence), shares=read_shares(shares)
            )
        case _:
            raise Malformed("no promise of the power ledger")


def _credit(value: Value) -> Credit:
    match value:
        case (bytes() as giver, sequence):
            return Credit(giver=NodeId.from_wire(giver), sequence=read_number(sequence))
        case _:
            raise Malformed("no credit of the power ledger")


def read_number(value: Value) -> int:
    """A number that is not negative, and not larger than any that is.

    Raises:
        Malformed: it is none.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _NUMBER_MAX:
        raise Malformed("a number of the power ledger that cannot be")
    return value


def read_shares(value: Value) -> int:
    """A part of the whole.

    Raises:
        Malformed: it is none.
    """
    shares = read_number(value)
    if shares > SHARES_TOTAL:
        raise Malformed("more shares than there are")
    return shares
