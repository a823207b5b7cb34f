"""Deliberate mistakes: what the checker must catch, or its silence is worth nothing.

Its own file because none of this may ever be in the product: each is a subclass that breaks one
rule of the ledger, switched in by a simulation alone. The names are those of `power.md`, section 5.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from cluster.ids import NodeId
from cluster.rack.ledger.account import Effect, Keep, Say
from cluster.rack.ledger.book import Book, Credited, Debited, Entry, Summed
from cluster.rack.ledger.ledger import Ledger
from cluster.rack.ledger.messages import Grant
from cluster.rack.power import RackPower
from cluster.rack.power_effects import Effect as PowerEffect
from cluster.rack.units import CurrencyId
from simulations.power.rivals import FormulaPower, LeasePower
from simulations.power.runs import MakeSite
from simulations.power.site import Site

REFUND_SECONDS = 5.0
LAZY_SECONDS = 1.0


class EagerLedger(Ledger):
    """Grants before the hardware is low: it always believes that it is."""

    def bounded(self, bound_watts: int | None, now: float) -> list[Effect]:
        """Whatever the hardware says."""
        return super().bounded(0, now)


class HastyLedger(Ledger):
    """Sends a grant before the debit is on disk."""

    def _go_on(self, now: float) -> list[Effect]:
        effects: list[Effect] = []
        for effect in super()._go_on(now):
            if isinstance(effect, Keep) and isinstance(effect.entry, Debited):
                effects.append(self._grant(effect.entry, now))
            effects.append(effect)
        return effects

    def _grant(self, entry: Debited, now: float) -> Say:
        epoch, row = self.book.epoch, self.row(now)
        assert epoch is not None
        assert row is not None
        grant = Grant(epoch=epoch, sequence=entry.sequence, shares=entry.shares, row=row)
        return Say(to=(entry.to,), message=grant, copies=2)


class RefundingLedger(Ledger):
    """Takes back what has no receipt after some seconds."""

    _sent_seconds: dict[tuple[NodeId, int], float]

    def _go_on(self, now: float) -> list[Effect]:
        account = self._account
        if not hasattr(self, "_sent_seconds"):
            self._sent_seconds = {}
        for to, debt in account.book.outbox.items():
            since = self._sent_seconds.setdefault((to, debt.sequence), now)
            if now - since > REFUND_SECONDS and account.is_idle:
                left = {other: one for other, one in account.ahead.outbox.items() if other != to}
                own = account.ahead.own_shares + debt.shares
                account.keep(Summed(book=replace(account.ahead, own_shares=own, outbox=left)))
                break
        return super()._go_on(now)


class EagerPower(RackPower):
    """With that ledger."""

    ledger_class: type[Ledger] = EagerLedger

    def _open_ledger(self, book: Book) -> Ledger:
        ledger = super()._open_ledger(book)
        ledger.__class__ = self.ledger_class
        return ledger


class HastyPower(EagerPower):
    """With that ledger."""

    ledger_class = HastyLedger


class RefundingPower(EagerPower):
    """With that ledger."""

    ledger_class = RefundingLedger


@dataclass(slots=True)
class _Late:
    """Numbers of one node that are not on disk yet."""

    credited: dict[NodeId, tuple[int, float]]
    last_seconds: float = 0.0


class LazyPower(RackPower):
    """Writes the number of a credited transfer a second after the credit, and not with it."""

    late: _Late

    def kept(self, currency: CurrencyId, number: int, now: float) -> list[PowerEffect]:
        """Note when a credit came."""
        entry = self._in_flight(currency)
        if isinstance(entry, Credited):
            self.late.credited[entry.giver] = entry.sequence, now
        self.late.last_seconds = now
        return super().kept(currency, number, now)

    def _in_flight(self, currency: CurrencyId) -> Entry | None:
        waiting = self._parts[currency].ledger._account._in_flight
        return waiting[0].entry if waiting else None

    def _settle(self, now: float) -> list[PowerEffect]:
        self.late.last_seconds = now
        return super()._settle(now)

    def _open_ledger(self, book: Book) -> Ledger:
        last_in, late = dict(book.last_in), self.late
        for giver, (sequence, at) in late.credited.items():
            if late.last_seconds - at < LAZY_SECONDS and last_in.get(giver) == sequence:
                last_in[giver] = sequence - 1
        late.credited.clear()
        forgetful = replace(book, last_in=last_in)
        ledger = super()._open_ledger(forgetful)
        if forgetful != book:
            ledger._account.keep(Summed(book=forgetful))
        return ledger


def _lazy_site(count: int, seed: int, **options: object) -> Site:
    late: dict[NodeId, _Late] = {}

    def make(**given: object) -> RackPower:
        power = LazyPower(**given)  # type: ignore[arg-type]  # passed on as they come
        own = given["own"]
        assert isinstance(own, NodeId)
        power.late = late.setdefault(own, _Late({}))
        return power

    return Site(count, seed, make=make, **options)  # type: ignore[arg-type]  # the same


def _rival_site(make: Callable[..., RackPower], count: int, seed: int, **options: object) -> Site:
    site = Site(count, seed, make=make, **options)  # type: ignore[arg-type]  # passed on
    site.checker.checks_nodes = False
    return site


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One broken rule."""

    name: str
    summary: str
    make: MakeSite


MISTAKES: Mapping[str, Mistake] = {
    one.name: one
    for one in (
        Mistake(
            name="grant-before-lowering",
            summary="a giver debits and grants at once, and lowers its hardware meanwhile",
            make=partial(Site, make=EagerPower),
        ),
        Mistake(
            name="send-before-persist",
            summary="a grant leaves before its debit is on disk",
            make=partial(Site, make=HastyPower),
        ),
        Mistake(
            name="forgetful-duplicate-check",
            summary="the number of a credited transfer comes to disk a second after the credit",
            make=_lazy_site,
        ),
        Mistake(
            name="refund-on-time-out",
            summary="a giver takes back what has no receipt after 5 s",
            make=partial(Site, make=RefundingPower),
        ),
        Mistake(
            name="no-boot-gate",
            summary="work runs after a reboot although no cap is set",
            make=partial(Site, ignores_gate=True),
        ),
        Mistake(
            name="formula-on-gossip",
            summary="every node applies its part of the target, as its own view gives it",
            make=partial(_rival_site, FormulaPower),
        ),
        Mistake(
            name="leader-lease",
            summary="the lowest live id assigns caps for 10 s, and agents let them end",
            make=partial(_rival_site, LeasePower),
        ),
    )
}
