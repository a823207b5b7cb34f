"""One life of a governed node: the core's effects meet disk, network and hardware.

Its own file because it is the whole of what may write a cap, in the order that the core asks for;
it decides nothing. A life ends when the host does, when the machine has started anew, or when the
node comes into another slot; the next one begins with what is on disk. **Nothing raises a cap at
the end of a life**, however it ends. It must not know how operators or members were heard of.
"""

import random
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import trio

from cluster.errors import Malformed
from cluster.gossip.effects import Deliver
from cluster.gossip.messages import Application
from cluster.host import Host
from cluster.ids import NodeId
from cluster.keyring import Ed25519Verifier
from cluster.rack.actuator import Actuator, GateClosed, GateOpened, HardwareRefused
from cluster.rack.ledger.book import Book
from cluster.rack.ledger.messages import Stated, decode_message
from cluster.rack.part import row_of
from cluster.rack.power import RackPower
from cluster.rack.power_effects import (
    Constraint,
    Effect,
    EmergencyChanged,
    EntryKept,
    KeepEntry,
    PowerAlarm,
    SendMessage,
    SetCap,
)
from cluster.rack.units import CurrencyId
from cluster.signatures import RememberingVerifier
from esnode.powering.alone import Alone
from esnode.powering.entries import describe_entry
from esnode.powering.fitting import fit_message
from esnode.powering.hardware import PowerHardware
from esnode.powering.heard import Rows, floor_of
from esnode.powering.means import Means, log
from esnode.powering.metering import rack_reading
from esnode.snapshot import Snapshot

POWER_CHANNEL = 1
"""Of application messages between members."""
LOOK_SECONDS = 0.2
ARRANGE_SECONDS = 1.0
COPY_SECONDS = 0.01
INBOX_MAX = 2000
STEP_SECONDS_MIN = 0.001
MAXIMUM_FACTOR = 1.25
"""The rest of a machine may come to draw more than is known when the life begins."""
NOT_SET = "the power cap of this machine is not set and settled yet"


class Governed:
    """One life."""

    def __init__(
        self,
        means: Means,
        hardware: PowerHardware,
        host: Host | Alone,
        currency: CurrencyId,
        books: Mapping[CurrencyId, Book],
        *,
        may_found: bool,
    ) -> None:
        self._means = means
        self._hardware = hardware
        self._host = host
        self._currency = currency
        self.identity = host.keys.identity
        self._own: NodeId = self.identity.node_id
        devices = hardware.devices
        floor = floor_of(means.heard.charters.values(), self._own)
        self._slot_floor = floor
        self.floor_watts = devices.lowest_watts if floor is None else floor
        """AC watts; a node outside of all slots is held at the lowest that it can keep."""
        self._inbox: deque[Deliver] = deque(maxlen=INBOX_MAX)
        self._has_news = trio.Event()
        self._is_log_new = True
        self._wake = trio.Event()
        self._order: SetCap | None = None
        self._has_order = trio.Event()
        self._scope = trio.CancelScope()
        self._nursery: trio.Nursery | None = None
        self._boot_id = means.read_boot_id()
        now = means.clock()
        self.actuator = Actuator(
            maximum_watts=max(0, round(MAXIMUM_FACTOR * devices.highest_watts) - self.floor_watts),
            is_gate_open=False,
            now=now,
            settle_seconds=means.terms.settle_seconds,
        )
        self.power = RackPower(
            own=self._own,
            rack_currency=currency,
            books=books,
            may_found=may_found,
            actuator=self.actuator,
            signer=host.keys.signer,
            verifier=RememberingVerifier(Ed25519Verifier()),
            public_key_of=self._public_key_of,
            rng=random.Random(means.rng.getrandbits(64)),
        )

    def _public_key_of(self, node_id: NodeId) -> bytes | None:
        identity = self._host.peer.roster.identity_of(node_id)
        return None if identity is None else identity.public_key

    # -- life -------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Govern until cancelled, or until a new life is wanted."""
        means, now = self._means, self._means.clock()
        means.gate.close(NOT_SET, is_governed=True)
        log.info("power_governed", rack=self._currency, floor_watts=self.floor_watts)
        with self._scope:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(means.logs.run, self._own, self._kept)
                self._do(self.power.start(now))
                in_force = self._above_floor(await self._hardware.look())
                now = means.clock()
                self._do(self.power.observed(in_force, now))
                if means.terms.limit_watts is not None:
                    watts = max(0, means.terms.limit_watts - self.floor_watts)
                    limit = Constraint(watts=watts, reason="power_limit_watts of this node")
                    self._do(self.power.constrain(limit, now))
                nursery.start_soon(self._keep_cap)
                nursery.start_soon(self._keep_time)
                nursery.start_soon(self._listen)

    def _kept(self, currency: CurrencyId, number: int) -> None:
        self._do(self.power.kept(currency, number, self._means.clock()))

    async def _keep_time(self) -> None:
        """Call the core when it wants to be called."""
        while True:
            self._wake = trio.Event()
            due = self.power.deadline()
            now = self._means.clock()
            if due is None or due > now:
                with trio.move_on_after(float("inf") if due is None else due - now):
                    await self._wake.wait()
                continue
            self._do(self.power.advance(now))
            await trio.sleep(STEP_SECONDS_MIN)

    async def _keep_cap(self) -> None:
        """Write caps as they are ordered, and look at the hardware between."""
        arranged = self._means.clock()
        while True:
            with trio.move_on_after(LOOK_SECONDS):
                await self._has_order.wait()
            order, self._order = self._order, None
            self._has_order = trio.Event()
            if order is not None:
                await self._write(order)
                continue
            if self._means.read_boot_id() != self._boot_id:
                self._means.alarm("the machine has started anew, and its limits are lost")
                self._means.gate.close(NOT_SET, is_governed=True)
                self._scope.cancel()
                return
            begun = self._means.clock()
            in_force = self._above_floor(await self._hardware.look())
            self._do(self.power.observed(in_force, self._means.clock(), begun=begun))
            devices, now = self._hardware.devices, self._means.clock()
            is_due = devices.is_raise_waiting or now - arranged >= ARRANGE_SECONDS
            if is_due and self._order is None:
                arranged = now
                await self._hardware.arrange("the same cap, divided anew")

    async def _write(self, order: SetCap) -> None:
        cap_watts = self.floor_watts + order.watts
        before = self._hardware.devices.in_force_watts
        in_force = await self._hardware.set_cap(
            cap_watts,
            order.reason,
            self._seen_meanwhile,
            is_overtaken=lambda: self.actuator.is_lower_wanted(order.watts),
        )
        self._means.counts["cap_writes"] += 1
        self._means.audit.add(
            "cap",
            reason=order.reason,
            asked_watts=cap_watts,
            before_watts=before,
            in_force_watts=in_force,
        )
        self._do(self.power.written(self._above_floor(in_force), self._means.clock()))

    def _seen_meanwhile(self, in_force_watts: int | None, begun: float) -> None:
        in_force = self._above_floor(in_force_watts)
        self._do(self.power.observed(in_force, self._means.clock(), begun=begun))

    def _above_floor(self, watts: int | None) -> int | None:
        return None if watts is None else max(0, watts - self.floor_watts)

    # -- what comes in ----------------------------------------------------------------------------

    def hear_message(self, delivered: Deliver) -> None:
        """A member has sent something on our channel."""
        self._inbox.append(delivered)
        self._has_news.set()

    def hear_set_back(self) -> None:
        """Gossip has outlived a later life of this node: a copy, or a disk that was set back."""
        self._means.alarm(
            "others have heard a later life of this node: its disk or its memory was set back, or "
            "somebody goes on with a copy of its key; all are asked what they remember of it"
        )
        self._do(self.power.doubt(self._means.clock()))

    def hear_operators(self) -> None:
        """Operators have decreed something, maybe about power."""
        self._is_log_new = True
        self._has_news.set()

    async def _listen(self) -> None:
        while True:
            if self._is_log_new:
                self._is_log_new = False
                self._obey(are_kept=False)
                if self._nursery is not None:
                    self._nursery.start_soon(self._obey_what_is_kept)
            while self._inbox:
                self._receive(self._inbox.popleft())
            await self._has_news.wait()
            self._has_news = trio.Event()

    def _obey(self, *, are_kept: bool) -> None:
        heard = self._means.heard
        heard.read_charters(self._host, self._currency)
        if floor_of(heard.charters.values(), self._own) != self._slot_floor:
            self._scope.cancel()  # another slot: the next life counts from its floor
            return
        now = self._means.clock()
        self._do(self.power.hear_charters(heard.charters, now, are_kept=are_kept))

    async def _obey_what_is_kept(self) -> None:
        """Budgets are obeyed at once; what is signed waits until the records are on disk."""
        host = self._host
        if not isinstance(host, Alone) and await host.kept() is not None:
            await trio.sleep(ARRANGE_SECONDS)  # the disk refuses: budgets are obeyed meanwhile
            self.hear_operators()
            return
        self._obey(are_kept=True)  # before anybody else has a turn

    def _receive(self, delivered: Deliver) -> None:
        try:
            currency, message = decode_message(delivered.message.payload)
        except Malformed:
            self._means.counts["malformed"] += 1
            return
        row, now = row_of(message), self._means.clock()
        with self._guarded(delivered.sender.short):
            if row is not None and row.node_id == delivered.sender:
                self._means.heard.hear_row(currency, row, now)
            self._do(self.power.receive(delivered.sender, currency, message, now))

    @contextmanager
    def _guarded(self, sender: str) -> Iterator[None]:
        """Whatever a member says ends no life of ours: an error of this code is told and counted.

        Whoever can end every agent with one message would else do so.
        """
        try:
            yield
        except Exception as error:
            self._means.counts["faults"] += 1
            self._means.alarm(
                f"what {sender} said of rack power could not be worked out and was dropped: "
                f"{type(error).__name__}; report it"
            )
            log.exception("power_message_failed", sender=sender)

    def tick(self, snapshot: Snapshot, rows: Rows) -> None:
        """A second has passed: what the machine does, and what rack mates have told."""
        means, now = self._means, self._means.clock()
        view = self.actuator.view(now)
        devices = self._hardware.devices
        means.wishes.take(snapshot, devices, is_settled=view.is_settled, now=now)
        wants = means.wishes.wants(
            snapshot, devices, self.floor_watts, is_short=self.power.is_short, now=now
        )
        self._do(self.power.want(wants, now))
        for currency, row in rows:
            with self._guarded(row.node_id.short):
                self._do(self.power.hear_rows([(currency, row)], now))
        reading = rack_reading(means.heard, self._currency, self._own, now)
        if reading is not None:
            self._do(self.power.measured(self._currency, reading.watts, reading.age_seconds, now))

    # -- effects ----------------------------------------------------------------------------------

    def _do(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._carry_out(effect)
        self._wake.set()

    def _carry_out(self, effect: Effect) -> None:
        means = self._means
        match effect:
            case KeepEntry(currency=currency, number=number, entry=entry):
                means.logs.keep(currency, number, entry)
            case SendMessage():
                self._send(effect)
            case SetCap():
                self._order = effect
                self._has_order.set()
            case EntryKept(currency=currency, entry=entry):
                means.counts[type(entry).__name__] += 1
                if (described := describe_entry(entry)) is not None:
                    kind, fields = described
                    means.audit.add(kind, currency=currency, **fields)
            case EmergencyChanged(currency=currency, cut_ppm=cut_ppm, reason=reason):
                means.counts["emergencies"] += 1
                log.warning("power_emergency", currency=currency, cut_ppm=cut_ppm, detail=reason)
                means.audit.add("emergency", currency=currency, cut_ppm=cut_ppm, reason=reason)
                means.tell(f"{currency}: power emergency, {cut_ppm / 10_000:.1f} % off: {reason}")
            case PowerAlarm(line=line):
                means.alarm(line)
            case GateOpened():
                means.gate.open(is_governed=True)
                means.audit.add("gate", is_open=True)
            case GateClosed(reason=reason):
                means.gate.close(reason, is_governed=True)
                means.audit.add("gate", is_open=False, reason=reason)
            case HardwareRefused(wanted_watts=wanted, in_force_watts=in_force):
                means.counts["refusals"] += 1
                means.audit.add("refused", wanted_watts=wanted, in_force_watts=in_force)
                log.warning("power_refused", wanted_watts=wanted, in_force_watts=in_force)

    def _send(self, effect: SendMessage) -> None:
        payload = fit_message(effect.currency, effect.message)
        if payload is None:
            self._means.counts["too_large"] += 1
            if isinstance(effect.message, Stated):
                self._means.alarm(
                    f"{effect.currency}: a last word does not fit into a datagram, so the epoch "
                    "cannot end; retire fewer at a time, or report it"
                )
            return
        message = Application(channel=POWER_CHANNEL, priority=0, payload=payload)
        self._send_once(effect.to, message)
        if self._nursery is not None:
            for copy in range(1, effect.copies):
                self._nursery.start_soon(self._send_later, copy, effect.to, message)

    async def _send_later(self, copy: int, to: tuple[NodeId, ...], message: Application) -> None:
        await trio.sleep(copy * COPY_SECONDS)
        self._send_once(to, message)

    def _send_once(self, to: tuple[NodeId, ...], message: Application) -> None:
        host = self._host
        if isinstance(host, Alone):
            return  # what must arrive is sent again by the next life
        for node_id in to:
            host.submit(host.peer.send_application(node_id, message, host.now))
            self._means.counts["sent"] += 1
