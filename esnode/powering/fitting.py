"""What is told of rack power, cut to what a datagram and a state hold.

Its own file because cutting is a decision: promises and credits are advice, the account is not. A
row that does not fit is told without some of them, and what still does not fit is not sent. It must
not know who listens.
"""

from dataclasses import replace

from cluster.rack.ledger.messages import (
    MESSAGE_BYTES_MAX,
    Grant,
    Message,
    Receipt,
    Told,
    encode_message,
)
from cluster.rack.model import NodeState
from cluster.rack.rows import Row
from cluster.rack.units import CurrencyId
from cluster.rack.wire import encode_node_state

STATE_BYTES_MAX = 980
"""A state's own bytes; a statement of 1100 has the names and the signature besides."""
_LINES = (24, 12, 6, 3, 1, 0)
"""How many promises and credits are tried."""


def fit_message(currency: CurrencyId, message: Message) -> bytes | None:
    """The bytes of a message that a datagram holds; None where nothing would do."""
    for count in _LINES:
        if isinstance(message, Told | Grant | Receipt):
            message = replace(message, row=cut_row(message.row, count))
        data = encode_message(currency, message)
        if len(data) <= MESSAGE_BYTES_MAX:
            return data
    return None


def fit_state(state: NodeState, rows: tuple[tuple[CurrencyId, Row], ...]) -> NodeState:
    """The state with as much of the rows as it can hold."""
    for count in _LINES:
        cut = tuple((currency, cut_row(row, count)) for currency, row in rows)
        told = replace(state, power_rows=cut)
        if len(encode_node_state(told)) <= STATE_BYTES_MAX:
            return told
    return state


def cut_row(row: Row, count: int) -> Row:
    """A row with at most so many promises and credits."""
    if len(row.promises) <= count and len(row.credits) <= count:
        return row
    return replace(row, promises=row.promises[:count], credits=row.credits[:count])
