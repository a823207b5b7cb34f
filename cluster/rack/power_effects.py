"""What the power of a node asks of whoever drives it, and what it tells: values, in order.

Its own file because agents, simulations and tests match on these and on nothing else. It must not
know how any of it is done.
"""

from dataclasses import dataclass
from typing import TypeAlias

from cluster.ids import NodeId
from cluster.rack.actuator import ActuatorView, GateClosed, GateOpened, HardwareRefused
from cluster.rack.ledger.book import Entry
from cluster.rack.ledger.ledger import LedgerView
from cluster.rack.ledger.messages import Message
from cluster.rack.rows import Wants
from cluster.rack.units import CurrencyId


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepEntry:
    """Append this entry to the log of this currency; then say `kept`."""

    currency: CurrencyId
    number: int
    entry: Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class SendMessage:
    """Send a message about a currency to each of these; it may be lost."""

    to: tuple[NodeId, ...]
    currency: CurrencyId
    message: Message
    copies: int = 1
    """How often, some milliseconds apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCap:
    """Set the node's cap, this much above its floor; then say `written`."""

    watts: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryKept:
    """Something is on disk: for the audit and for whoever counts."""

    currency: CurrencyId
    entry: Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class EmergencyChanged:
    """The rack draws too much, or no longer."""

    currency: CurrencyId
    cut_ppm: int
    """Of the dynamic watts of the rack; 0 when all is let go."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerAlarm:
    """Something that operators should look at; said once."""

    line: str


Effect: TypeAlias = (
    KeepEntry
    | SendMessage
    | SetCap
    | EntryKept
    | EmergencyChanged
    | PowerAlarm
    | GateOpened
    | GateClosed
    | HardwareRefused
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """A reason other than shares to hold the cap down: heat, an operator, a profile."""

    watts: int
    """Above the floor."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerView:
    """The power of this node at one instant."""

    ledgers: tuple[LedgerView, ...]
    actuator: ActuatorView
    wants: Wants
    reason: str
    """What the wanted cap follows from."""
    cover_watts: int
    """Given up for nodes that have not confirmed a lower budget."""
    throttle_watts: int
    """Given up because the rack was measured to draw too much."""
    is_short: bool
    """Whether somebody in the rack lacks watts that it would use."""
    is_parked: bool
    """Whether the rack is governed, and this node was never let in."""
