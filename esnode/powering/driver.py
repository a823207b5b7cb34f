"""Rack power at one node, through all that its cluster's part goes through.

Its own file because an agent joins, leaves and is withdrawn while it runs, and because a node that
never trades still shows its rack. The order is a promise: the ledgers are read, or begun, before
operators are heard, and nothing is written to the hardware before an operator has decreed a budget
for this rack. A machine that may hold watts is governed without a host, too, by its books alone. It
must not know how a cap is kept (`governing`).
"""

from collections.abc import Mapping
from dataclasses import replace

import trio

from cluster.gossip.effects import Deliver, PersistEpoch
from cluster.host import Host
from cluster.peer import Effect, OperatorSpoke
from cluster.rack.ledger.book import Book
from cluster.rack.model import NodeState
from cluster.rack.units import CurrencyId
from esnode.powering.alone import Alone, open_alone
from esnode.powering.audit import keep_gate_file
from esnode.powering.fitting import fit_state
from esnode.powering.governing import POWER_CHANNEL, Governed
from esnode.powering.logs import LedgerUnusable
from esnode.powering.means import Hardwareless, MachineHardware, Means
from esnode.snapshot import Snapshot

READ_AGAIN_SECONDS = 10.0
"""A ledger that cannot be read now may be, once somebody has put it right."""

ALONE = (
    "this machine has an account of its rack's power, and takes no part in its cluster now: its "
    "cap is not set; see `esnode cluster status`"
)
ALONE_SECONDS = 3.0
"""For a host to begin, before this machine is governed without one."""


class Powering:
    """Rack power at one node."""

    def __init__(self, means: Means, hardware: MachineHardware) -> None:
        self.means = means
        self.hardware = hardware
        self.static_reason = means.terms.static_reason
        """Why this node never trades; empty where it may."""
        self.trouble = ""
        """Why there is no ledger to rely on."""
        self.governed: Governed | None = None
        self.host: Host | None = None
        self._host_changed = trio.Event()
        self._life = trio.CancelScope()
        self._has_news = trio.Event()
        self._is_first = True

    # -- the host ---------------------------------------------------------------------------------

    def begin(self, host: Host) -> None:
        """A host runs from now on; what it knows now is what was on disk."""
        self.host = host
        self._life.cancel()  # of a machine that was governed alone
        self.means.heard.forget()
        self.means.heard.read_charters(host, rack_currency(host))
        self._host_changed.set()

    def end(self) -> None:
        """It runs no more, if it ever did; the hardware keeps its caps."""
        if self.host is None:
            return  # who is governed alone goes on being so while a host cannot begin
        self.host, self.governed = None, None
        self._life.cancel()
        self._host_changed.set()

    def hear(self, effect: Effect) -> None:
        """What the host's peer brings: messages of members, records of operators."""
        if isinstance(effect, Deliver):
            if effect.message.channel == POWER_CHANNEL and self.governed is not None:
                self.governed.hear_message(effect)
        elif isinstance(effect, PersistEpoch):
            if self.governed is not None:
                self.governed.hear_set_back()
        elif isinstance(effect, OperatorSpoke):
            self._has_news.set()
            if self.governed is not None:
                self.governed.hear_operators()

    # -- each second ------------------------------------------------------------------------------

    def tick(self, snapshot: Snapshot) -> None:
        """What the machine does now."""
        host, now = self.host, self.means.clock()
        rows = [] if host is None else self.means.heard.hear_states(host, now)
        if self.governed is not None:
            self.governed.tick(snapshot, rows)
        elif not isinstance(self.hardware, Hardwareless):
            self.means.wishes.take(snapshot, self.hardware.devices, is_settled=False, now=now)

    def dress(self, state: NodeState) -> NodeState:
        """The state of this node with its cap and its accounts."""
        governed, host, now = self.governed, self.host, self.means.clock()
        state = self._with_bounds(state)
        if governed is not None:
            in_force = governed.actuator.view(now).in_force_watts
            cap = None if in_force is None else float(governed.floor_watts + in_force)
            state = replace(state, power_cap_watts=cap)
            state = fit_state(state, governed.power.rows(now))
        if host is not None:
            identity = host.keys.identity
            self.means.heard.hear_own(identity.name, identity.node_id, state, now)
        return state

    def _with_bounds(self, state: NodeState) -> NodeState:
        """The state with what this machine can be held to, and what it can draw."""
        if isinstance(self.hardware, Hardwareless) or not self.hardware.devices.parts():
            return state
        devices = self.hardware.devices
        return replace(
            state,
            power_lowest_watts=float(devices.lowest_watts) if devices.is_any_settable else None,
            power_highest_watts=float(devices.highest_watts),
        )

    @property
    def budget_watts(self) -> int | None:
        """Of this node's rack; None while none is decreed."""
        if self.host is None:
            return None
        charter = self.means.heard.charters.get(rack_currency(self.host))
        return None if charter is None else charter.budget_watts

    # -- life -------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Govern this machine's power whenever there is a host, until cancelled."""
        means = self.means
        async with trio.open_nursery() as nursery:
            nursery.start_soon(means.audit.run)
            nursery.start_soon(keep_gate_file, means.gate, means.logs.folder, means.read_boot_id)
            await self._prepare()
            while True:
                self._host_changed = trio.Event()
                host = self.host
                if host is not None:
                    with trio.CancelScope() as self._life:
                        await self._take_part(host)
                else:
                    await self._begin_alone()
                if self.host is host:
                    await self._host_changed.wait()

    async def _prepare(self) -> None:
        if isinstance(self.hardware, Hardwareless):
            self.static_reason = self.static_reason or self.hardware.reason
            return
        absent = await self.hardware.discover()
        if not self.hardware.devices.is_any_settable:
            why = absent[0] if absent else "no device takes a limit"
            self.static_reason = self.static_reason or why

    async def _begin_alone(self) -> None:
        """Without a host a machine that may hold watts keeps the cap that its books say."""
        means = self.means
        holds_any = await trio.to_thread.run_sync(means.logs.holds_any, abandon_on_cancel=True)
        if self.host is not None:
            return
        if not holds_any:
            if not means.gate.is_governed:
                means.gate.open()
            return
        if not means.gate.is_governed:
            means.gate.close(ALONE, is_governed=True)
        if self.static_reason:
            return
        with trio.move_on_after(ALONE_SECONDS):
            await self._host_changed.wait()
            return
        alone = await trio.to_thread.run_sync(
            open_alone, means.logs.state_folder, abandon_on_cancel=True
        )
        if alone is not None and not self._host_changed.is_set():
            with trio.CancelScope() as self._life:
                await self._take_part(alone)

    async def _take_part(self, host: Host | Alone) -> None:
        means, currency = self.means, rack_currency(host)
        if self.static_reason or isinstance(self.hardware, Hardwareless):
            if not means.gate.is_governed:
                means.gate.open()
            await self._watch(host, currency, is_once=False)
        named = self._named(host)
        while True:
            self._has_news = trio.Event()
            try:
                books, is_lost = await self._read_ledgers(host, currency, named)
            except LedgerUnusable as error:
                await self._wait_unusable(str(error))
                continue
            named = frozenset()  # from now on a log may be missing because its currency is new
            means.heard.read_charters(host, currency)
            if not means.heard.charters and not any(book.is_open for book in books.values()):
                means.gate.open()
                await self._watch(host, currency, is_once=True)
                continue
            await self._govern(host, currency, books, is_lost=is_lost)

    async def _read_ledgers(
        self, host: Host | Alone, currency: CurrencyId, named: frozenset[CurrencyId]
    ) -> tuple[Mapping[CurrencyId, Book], bool]:
        own = host.keys.identity.node_id
        ledgers = await trio.to_thread.run_sync(
            self.means.logs.begin, own, currency, named, abandon_on_cancel=True
        )
        self.trouble = ""
        for note in ledgers.notes:
            self.means.alarm(note)
        # A ledger that nobody has opened is no account yet.
        begun = {one: book for one, book in ledgers.books.items() if book.incarnation}
        return begun, ledgers.is_lost

    async def _wait_unusable(self, line: str) -> None:
        self.trouble = line
        self.means.alarm(line)
        self.means.gate.close(line, is_governed=True)
        await trio.sleep(READ_AGAIN_SECONDS)

    async def _govern(
        self,
        host: Host | Alone,
        currency: CurrencyId,
        books: Mapping[CurrencyId, Book],
        *,
        is_lost: bool,
    ) -> None:
        assert not isinstance(self.hardware, Hardwareless)
        governed = Governed(self.means, self.hardware, host, currency, books, may_found=not is_lost)
        self.governed = governed
        try:
            await governed.run()
        finally:
            self.governed = None

    async def _watch(self, host: Host | Alone, currency: CurrencyId, *, is_once: bool) -> None:
        """Only listen to operators; until they decree something where that is asked."""
        while True:
            await self._has_news.wait()
            self._has_news = trio.Event()
            self.means.heard.read_charters(host, currency)
            if is_once and self.means.heard.charters:
                return

    def _named(self, host: Host | Alone) -> frozenset[CurrencyId]:
        """In which currencies operators had given shares to this node before this life."""
        own = host.keys.identity.node_id
        return frozenset(
            currency
            for currency, charter in self.means.heard.charters.items()
            if any(node_id == own and shares for node_id, shares in charter.founded.shares)
        )


def rack_currency(host: Host | Alone) -> CurrencyId:
    """What every machine of the rack of this node is under."""
    return CurrencyId(f"rack:{host.keys.identity.rack}")
