"""The power of one node in its rack: ledgers, market, actuator and emergency as one state machine.

Its own file because this is where advice meets safety: the market says what to give, each ledger
says what may be in force, the actuator says what is. A node is fed by several constraints (rack,
feed, row); there is one ledger for each, and its cap is the least of what they allow. The five
verbs, without a clock, a disk, a device or a socket: agents and simulations drive the same object.
"""

import random
from collections.abc import Iterable, Mapping

from cluster.ids import NodeId
from cluster.rack import actuator as hardware
from cluster.rack.actuator import Actuator
from cluster.rack.ledger.book import Book, BudgetTaken, Credited, Opened, Switched
from cluster.rack.ledger.charter import Charter
from cluster.rack.ledger.ledger import Ledger
from cluster.rack.ledger.messages import Excess, Message, Told
from cluster.rack.ledger.words import PublicKeyOf
from cluster.rack.part import Part, row_of
from cluster.rack.power_effects import Constraint, Effect, EntryKept, PowerView, SetCap
from cluster.rack.rows import NOTHING_WANTED, Row, Wants
from cluster.rack.trading import deadband_watts
from cluster.rack.units import CurrencyId
from cluster.signatures import Signer, Verifier

TICK_SECONDS = 1.0
DECIDE_SECONDS = 0.03
"""After a change of demand: those of others come together with it."""
ROUNDS_MAX = 4
"""Of lowering, and telling the ledgers; two do, the others are for what crosses."""


class RackPower:
    """All that this node knows and does about its rack's power."""

    def __init__(
        self,
        *,
        own: NodeId,
        rack_currency: CurrencyId,
        books: Mapping[CurrencyId, Book],
        may_found: bool,
        actuator: Actuator,
        signer: Signer,
        verifier: Verifier,
        public_key_of: PublicKeyOf,
        rng: random.Random,
    ) -> None:
        """Begin with the books that are on disk.

        `rack_currency` holds for every machine of the rack, member or not. `may_found` is False
        where a book should be on disk, and is not.
        """
        self._own = own
        self._rack_currency = rack_currency
        self._may_found = may_found
        self._actuator = actuator
        self._signer = signer
        self._verifier = verifier
        self._public_key_of = public_key_of
        self._rng = rng
        self._books = dict(books)
        self._parts: dict[CurrencyId, Part] = {}
        self._wants = NOTHING_WANTED
        self._constraint: Constraint | None = None
        self._is_parked = False
        self._reason = ""
        self._tick_seconds: float | None = None
        self._decide_seconds: float | None = None
        self._is_refused = False
        """The hardware has just given up to be lowered."""
        self._told_demand_watts = 0
        """What all were told at once the last time."""
        self._effects: list[Effect] = []

    # -- the five verbs ---------------------------------------------------------------------------

    def start(self, now: float) -> list[Effect]:
        """Begin a life with the books of the one before."""
        self._tick_seconds = now + TICK_SECONDS * self._rng.random()
        for currency in sorted(self._books):
            self._begin(currency, now)
        return self._settle(now)

    def receive(
        self, sender: NodeId, currency: CurrencyId, message: Message, now: float
    ) -> list[Effect]:
        """A message that this sender signed."""
        part = self._parts.get(currency)
        if part is None:
            return []
        row = row_of(message)
        if row is not None and row.node_id == sender and sender != self._own:
            part.market.hear(row, now)
        if isinstance(message, Told) and message.is_urgent:
            self._decide_soon(now)
        if isinstance(message, Excess):
            part.hear_excess(sender, message, now)
        else:
            part.take(part.ledger.receive(sender, message, now))
        return self._settle(now)

    def advance(self, now: float) -> list[Effect]:
        """Time has passed."""
        for part in self._parts.values():
            part.advance(now)
        if self._decide_seconds is not None and now >= self._decide_seconds:
            self._decide_seconds = None
            self._trade(now)
        if self._tick_seconds is not None and now >= self._tick_seconds:
            self._tick_seconds = now + TICK_SECONDS
            self._trade(now)
            for part in self._parts.values():
                part.cover(now)
        self._take_hardware(self._actuator.advance(now))
        return self._settle(now)

    def deadline(self) -> float | None:
        """When `advance` is wanted."""
        wanted = [self._tick_seconds, self._decide_seconds, self._actuator.deadline()]
        for part in self._parts.values():
            wanted += part.deadlines()
        return min((one for one in wanted if one is not None), default=None)

    def view(self, now: float) -> PowerView:
        """All that can be told of this node's power."""
        return PowerView(
            ledgers=tuple(part.ledger.view() for part in self._parts.values()),
            actuator=self._actuator.view(now),
            wants=self._wants,
            reason=self._reason,
            cover_watts=max((part.cover_watts for part in self._parts.values()), default=0),
            throttle_watts=max(
                (part.throttle_watts(self._wants) for part in self._parts.values()), default=0
            ),
            is_short=self.is_short,
            is_parked=self._is_outside,
        )

    # -- requests ---------------------------------------------------------------------------------

    @property
    def is_short(self) -> bool:
        """Whether somebody in the rack lacks watts that it would use."""
        return any(part.is_short for part in self._parts.values())

    def row_of(self, currency: CurrencyId, node_id: NodeId) -> Row | None:
        """The newest that is known of a member's account, however old."""
        part = self._parts.get(currency)
        return None if part is None else part.market.row(node_id)

    def row_age_seconds(self, currency: CurrencyId, node_id: NodeId, now: float) -> float | None:
        """Since that row came; None where none did."""
        part = self._parts.get(currency)
        return None if part is None else part.market.age_seconds(node_id, now)

    def rows(self, now: float) -> tuple[tuple[CurrencyId, Row], ...]:
        """The accounts of this node, for the state that its rack hears each second."""
        rows = ((currency, part.ledger.row(now)) for currency, part in self._parts.items())
        return tuple((currency, row) for currency, row in rows if row is not None)

    def hear_rows(self, rows: Iterable[tuple[CurrencyId, Row]], now: float) -> list[Effect]:
        """Rows of peers, by gossip; whoever hands them in knows that their nodes signed them."""
        for currency, row in rows:
            part = self._parts.get(currency)
            if part is not None and row.node_id != self._own and part.market.hear(row, now):
                part.ledger.hear_row(row, now)
                part.take(part.ledger.advance(now))
        return self._settle(now)

    def hear_charters(
        self, charters: Mapping[CurrencyId, Charter], now: float, *, are_kept: bool = True
    ) -> list[Effect]:
        """What operators have decreed, by all records that are known now.

        `are_kept` is whether these records are on disk here; no retirement is signed before.
        """
        was_outside = self._is_outside
        self._is_parked = self._rack_currency in charters
        for currency, charter in charters.items():
            if currency not in self._parts:
                if not _concerns(charter, self._own):
                    continue
                self._begin(currency, now)
            self._parts[currency].hear_charter(charter, now, is_kept=are_kept)
        if was_outside and not self._is_outside and self._actuator.view(now).is_gate_open:
            self._effects.append(hardware.GateOpened())
        return self._settle(now)

    def kept(self, currency: CurrencyId, number: int, now: float) -> list[Effect]:
        """An entry is on disk."""
        part = self._parts[currency]
        entry, effects = part.ledger.kept(number, now)
        self._effects.append(EntryKept(currency=currency, entry=entry))
        part.take(effects)
        if isinstance(entry, Credited | Switched | BudgetTaken | Opened):
            part.announce_soon(now)
        return self._settle(now)

    def doubt(self, now: float) -> list[Effect]:
        """Memory and disk of this machine may have been set back together: gossip has seen it."""
        for part in self._parts.values():
            part.take(part.ledger.doubt(now))
        return self._settle(now)

    def want(self, wants: Wants, now: float) -> list[Effect]:
        """What this node could do with watts; told to all at once where it matters."""
        step = abs(wants.demand_watts - self._told_demand_watts)
        is_urgent = step > deadband_watts(wants) or wants.priority != self._wants.priority
        self._wants = wants
        for part in self._parts.values():
            part.ledger.want(wants)
            if is_urgent:
                part.announce(now, is_urgent=True)
        if is_urgent:
            self._told_demand_watts = wants.demand_watts
            self._decide_soon(now)
        return self._settle(now)

    def is_witness(self, currency: CurrencyId, now: float) -> bool:
        """Whether this node is to read the meter of the whole rack."""
        part = self._parts.get(currency)
        return part is not None and part.is_witness(now)

    def measured(
        self, currency: CurrencyId, watts: float | None, age_seconds: float, now: float
    ) -> list[Effect]:
        """A meter says what the whole rack draws, floors included; None for no answer."""
        part = self._parts.get(currency)
        if part is not None:
            part.measured(watts, age_seconds, now)
        return self._settle(now)

    def constrain(self, constraint: Constraint | None, now: float) -> list[Effect]:
        """Hold the cap down for another reason than shares; None when there is none any more."""
        self._constraint = constraint
        return self._settle(now)

    def written(self, in_force_watts: int | None, now: float) -> list[Effect]:
        """A `SetCap` has ended; what the hardware says is in force above the floor."""
        self._take_hardware(self._actuator.written(in_force_watts, now))
        self._is_refused = self._is_refused or self._actuator.is_refusing
        return self._settle(now)

    def observed(
        self, in_force_watts: int | None, now: float, *, begun: float | None = None
    ) -> list[Effect]:
        """A look at the hardware."""
        self._take_hardware(self._actuator.observed(in_force_watts, now, begun=begun))
        return self._settle(now)

    # -- one round --------------------------------------------------------------------------------

    def _settle(self, now: float) -> list[Effect]:
        """Lower first, then tell each ledger what bounds the draw; until nothing moves any more."""
        for _ in range(ROUNDS_MAX):
            wanted = self._wanted(now)
            if wanted is not None:
                self._take_hardware(self._actuator.want(wanted, now))
            bound = self._actuator.bound_watts(now)
            is_refused, self._is_refused = self._is_refused, False
            is_moved = is_refused
            for part in self._parts.values():
                if is_refused:
                    part.take(part.ledger.refused(now))
                is_moved = part.take(part.ledger.bounded(bound, now)) or is_moved
            if not is_moved:
                break
        effects = list(self._effects)
        self._effects.clear()
        return effects

    def _wanted(self, now: float) -> int | None:
        """The cap that should be in force; None where nobody has decreed anything.

        While a ledger asks whether its book is the newest, what is in force is not raised.
        """
        claims = [
            (part.ceiling_watts(self._wants), f"shares of {currency}")
            for currency, part in self._parts.items()
        ]
        if self._is_outside:
            claims.append((0, f"not a member of {self._rack_currency}"))
        if self._constraint is not None:
            claims.append((self._constraint.watts, self._constraint.reason))
        if any(part.ledger.is_asking for part in self._parts.values()):
            in_force = self._actuator.view(now).in_force_watts
            if in_force is None:
                return None
            claims.append((in_force, "what others remember of this ledger is asked for"))
        if not claims:
            return None
        watts, self._reason = min(claims)
        return watts

    @property
    def _is_outside(self) -> bool:
        """Whether the rack is governed, and this node was never let in."""
        return self._is_parked and self._rack_currency not in self._parts

    def _take_hardware(self, effects: Iterable[hardware.Effect]) -> None:
        for effect in effects:
            match effect:
                case hardware.WriteCap(watts=watts):
                    self._effects.append(SetCap(watts=watts, reason=self._reason))
                case hardware.HardwareRefused():
                    self._effects.append(effect)
                    self._is_refused = True
                case hardware.GateOpened() if self._is_outside:
                    reason = f"stands in no slot of {self._rack_currency}: its draw is charged to "
                    reason += "nobody; `esnode power join`"
                    self._effects.append(hardware.GateClosed(reason=reason))
                case _:
                    self._effects.append(effect)

    def _begin(self, currency: CurrencyId, now: float) -> None:
        book = self._books.get(currency, Book(node_id=self._own, currency=currency))
        ledger = self._open_ledger(book)
        ledger.want(self._wants)
        part = Part(currency, ledger, effects=self._effects, rng=self._rng, now=now)
        self._parts[currency] = part
        part.take(ledger.start(now))

    def _open_ledger(self, book: Book) -> Ledger:
        return Ledger(
            book=book,
            signer=self._signer,
            verifier=self._verifier,
            public_key_of=self._public_key_of,
            rng=self._rng,
            may_found=self._may_found,
        )

    def _decide_soon(self, now: float) -> None:
        if self._decide_seconds is None:
            self._decide_seconds = now + DECIDE_SECONDS

    def _trade(self, now: float) -> None:
        for part in self._parts.values():
            part.trade(now)


def _concerns(charter: Charter, own: NodeId) -> bool:
    """Whether this node holds, or may come to hold, shares of it."""
    named = [node_id for node_id, _ in charter.founded.shares]
    named += [one.node_id for one in charter.joined]
    named += [node_id for record in charter.retired for node_id, _ in record.added]
    return own in named
