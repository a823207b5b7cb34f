"""A book on disk, the same book with all that is on its way there, and what is set aside.

Its own file because every rule of the ledger is about the difference: what may be spent counts
debits as soon as they are written and credits only once they are on disk; what others are told
waits for the disk. An entry that was once handed out for keeping stays handed out until it is
kept: a disk that refuses delays, and nothing is taken back. It must not know why anything changes.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from cluster.errors import Misuse
from cluster.ids import NodeId
from cluster.rack.ledger.book import Book, Debited, Entry, Quarantined, apply_entry
from cluster.rack.ledger.messages import Message
from cluster.rack.units import BudgetVersion, watts_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Append this entry to the log, after those of lower numbers; then say `kept`.

    Where the disk refuses, try again until it does not: the entry is not taken back.
    """

    number: int
    entry: Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """Send a message; it may be lost."""

    to: tuple[NodeId, ...]
    message: Message
    copies: int = 1
    """How often, a few milliseconds apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerAlarm:
    """Something that operators should look at; said once."""

    line: str


Effect: TypeAlias = Keep | Say | LedgerAlarm


class Account:
    """The account of this node in one currency."""

    def __init__(self, book: Book) -> None:
        self.book = book
        """What is on disk."""
        self.ahead = book
        """What will be, once all that was handed out is kept."""
        self.reserved: dict[NodeId, int] = {}
        """Shares that this node prepares to give: the hardware is being lowered for them."""
        self.decreed = book.version
        """The budget that operators decree now; a cut is obeyed before it is kept."""
        self.held: dict[str, str] = {}
        """Why nothing is spent for now, by kind of reason; unlike a quarantine it can end."""
        self.has_slot = True
        """Whether this node stands in a slot of the rack; in none it draws nothing above a floor,
        and its shares are there for others."""
        self._in_flight: deque[Keep] = deque()
        self._number = 0
        self._effects: list[Effect] = []
        self._alarmed: dict[str, None] = {}

    # -- effects ----------------------------------------------------------------------------------

    def say(self, to: Iterable[NodeId], message: Message, *, copies: int = 1) -> None:
        """One message to each of these."""
        receivers = tuple(to)
        if receivers:
            self._effects.append(Say(to=receivers, message=message, copies=copies))

    def alarm(self, line: str) -> None:
        """Tell operators, once."""
        if line not in self._alarmed:
            self._alarmed[line] = None
            self._effects.append(LedgerAlarm(line=line))

    @property
    def alarms(self) -> tuple[str, ...]:
        """All that was told in this life."""
        return tuple(self._alarmed)

    def drain(self) -> list[Effect]:
        """What is to be done, in order."""
        effects, self._effects = self._effects, []
        return effects

    # -- the disk ---------------------------------------------------------------------------------

    def keep(self, entry: Entry) -> None:
        """Hand an entry out for keeping."""
        self.ahead = apply_entry(self.ahead, entry)
        self._number += 1
        keep = Keep(number=self._number, entry=entry)
        self._in_flight.append(keep)
        self._effects.append(keep)

    def kept(self, number: int) -> Entry:
        """The entry of this number is on disk; they come there in order."""
        if not self._in_flight or self._in_flight[0].number != number:
            raise Misuse(f"entry {number} was kept out of turn")
        entry = self._in_flight.popleft().entry
        self.book = apply_entry(self.book, entry)
        return entry

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being given, and everything is on disk."""
        return not self._in_flight and not self.reserved

    @property
    def is_deaf(self) -> bool:
        """Whether the last word of the epoch is said, or the next one is on its way to disk.

        Then `ahead` has forgotten the numbers of the epoch in which `book` still is.
        """
        return self.ahead.frozen is not None or self.ahead.epoch != self.book.epoch

    def quarantine(self, reason: str) -> None:
        """Stop believing this book: nothing is spent from now on."""
        if self.ahead.quarantine:
            return
        self.reserved.clear()
        self.alarm(f"{self.book.currency}: {reason}; this node holds no watts above its floor")
        self.keep(Quarantined(reason=reason))

    def hold(self, kind: str, reason: str) -> None:
        """Spend nothing for a reason that may end."""
        if kind not in self.held:
            self.reserved.clear()
            self.alarm(f"{self.book.currency}: {reason}; this node holds no watts above its floor")
        self.held[kind] = reason

    def release(self, kind: str) -> None:
        """That reason has ended."""
        self.held.pop(kind, None)

    @property
    def is_believed(self) -> bool:
        """Whether this book may be acted upon: neither in quarantine nor held."""
        return not (self.ahead.quarantine or self.held)

    # -- what may be spent ------------------------------------------------------------------------

    @property
    def spendable_shares(self) -> int:
        """What is owned beyond doubt and not set aside.

        Debits count from the moment that they are written down, credits from that on that they
        are on disk.
        """
        if not self.is_believed or not self.book.is_open:
            return 0
        leaving = sum(
            keep.entry.shares for keep in self._in_flight if isinstance(keep.entry, Debited)
        )
        return self.book.own_shares - leaving - sum(self.reserved.values())

    @property
    def budget_watts(self) -> int:
        """The lowest of the budgets that are decreed, on their way to disk, and on disk."""
        return min(self.decreed.watts, self.ahead.version.watts, self.book.version.watts)

    @property
    def allowance_watts(self) -> int:
        """No cap above the floor may be higher than this, now; rounded down."""
        if not self.has_slot:
            return 0
        return watts_of(self.spendable_shares, self.budget_watts)

    def takes(self, version: BudgetVersion) -> bool:
        """Whether a budget is newer than what is written down."""
        return version.replaces(self.ahead.version)
