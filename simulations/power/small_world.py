"""Three ledgers, and all that can happen to them next.

Its own file because it is the adversary. The network is the worst there can be: whatever was ever
said can arrive at any later time, any number of times, or never. A node can die at every durable
write, which is then on disk or not; its machine goes on, or comes up without its limit; hardware
may refuse. Time is only the permission to send again. It must not know what has to hold.
"""

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cluster.ids import NodeId
from cluster.rack.ledger.account import Effect, Keep, Say
from cluster.rack.ledger.book import Book, apply_entry
from cluster.rack.ledger.ledger import Ledger
from cluster.signatures import KeyedHashKeyring, Signer
from simulations.power.checker import Account
from simulations.power.desk import CURRENCY, FLOOR_WATTS, Desk
from simulations.power.small_state import (
    MAXIMUM_WATTS,
    SmallNode,
    SmallState,
    fork,
    print_of,
    words_of,
)

COUNT = 3
DYNAMIC_WATTS = 1500
FLOORS_WATTS = COUNT * FLOOR_WATTS

Event = tuple[str, int, int]
"""What happens, at which node, and which of several."""
MakeLedger = Callable[..., Ledger]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gift:
    """Something that may be begun once."""

    giver: int
    to: int
    shares: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What may happen, beside messages, disks and hardware."""

    name: str
    summary: str
    gifts: Sequence[Gift]
    crashes: int
    """How many processes may die in all."""
    reboots: int = 0
    """How many of these take the machine along."""
    refusals: int = 0
    decrees: Callable[[Desk, Sequence[NodeId]], None] = lambda desk, ids: None
    """Signs what comes after genesis, one record after the other."""
    off: Mapping[int, int] = field(default_factory=dict)
    """Of a node: the number of the first decree that may only be heard once it is off."""


class SmallWorld:
    """One plan, played step by step."""

    def __init__(self, plan: Plan, *, make: MakeLedger = Ledger) -> None:
        self._plan = plan
        self._make = make
        self._keys = KeyedHashKeyring()
        rng = random.Random(1)
        self._rng = rng
        self._signers: list[Signer] = [self._keys.new_signer(rng.randbytes) for _ in range(3)]
        self.ids = [NodeId.of_public_key(one.public_key) for one in self._signers]
        self.places = {node_id: place for place, node_id in enumerate(self.ids)}
        self._keys_of = {
            NodeId.of_public_key(one.public_key): one.public_key for one in self._signers
        }
        slots: dict[str, NodeId | None] = {f"u{at}": one for at, one in enumerate(self.ids)}
        self._desk = Desk(FLOORS_WATTS + DYNAMIC_WATTS, slots)
        plan.decrees(self._desk, self.ids)
        self.charters = [
            self._desk.charters(count)[CURRENCY] for count in range(1, self._desk.count + 1)
        ]

    # -- what there is at first -------------------------------------------------------------------

    def first(self) -> SmallState:
        """All three have begun, and every cap is in force."""
        state = SmallState(
            nodes=(),
            said={},
            said_print=0,
            crashes_left=self._plan.crashes,
            reboots_left=self._plan.reboots,
            refusals_left=self._plan.refusals,
            gifts_left=(1 << len(self._plan.gifts)) - 1,
        )
        state.nodes = tuple(self._born(place) for place in range(3))
        for place, node in enumerate(state.nodes):
            self._live(state, place)
            while node.waiting:
                self._write(state, place)
            self._set_cap(state, place)
            self._let_settle(state, place)
            while node.waiting:
                self._write(state, place)
            node.print_ = print_of(node)
        return state

    def _born(self, place: int) -> SmallNode:
        book = Book(node_id=self.ids[place], currency=CURRENCY)
        return SmallNode(ledger=self._open(place, book), book=book, account=Account())

    def _open(self, place: int, book: Book) -> Ledger:
        return self._make(
            book=book,
            signer=self._signers[place],
            verifier=self._keys,
            public_key_of=self._keys_of.get,
            rng=self._rng,
        )

    def _live(self, state: SmallState, place: int) -> None:
        """A process begins, with what is on its disk."""
        node = state.nodes[place]
        self._take(state, place, node.ledger.start(node.now))
        charter = self.charters[node.heard - 1]
        self._take(state, place, node.ledger.hear_charter(charter, node.now))

    # -- what can happen --------------------------------------------------------------------------

    def events(self, state: SmallState) -> Iterator[Event]:
        """All that can happen now."""
        for place, node in enumerate(state.nodes):
            if node.is_off:
                continue
            if node.waiting:
                yield "disk", place, 0
            if state.crashes_left:
                for written in range(len(node.waiting) + 1):
                    yield "crash", place, written
                    if state.reboots_left:
                        yield "reboot", place, written
            allowed = min(MAXIMUM_WATTS, node.ledger.allowance_watts)
            if node.limit_watts != allowed or not node.is_told:
                yield "cap", place, 0
            if node.showing_watts or (node.is_told and node.assumed_watts):
                yield "settle", place, 0
            if state.refusals_left and node.ledger.view().reserved_shares:
                yield "refuse", place, 0
            if node.ledger.deadline() is not None:
                yield "time", place, 0
            if node.heard < len(self.charters) and self._may_hear(state, node.heard + 1):
                yield "decree", place, 0
            if place in self._plan.off:
                yield "off", place, 0
        for which, gift in enumerate(self._plan.gifts):
            if state.gifts_left >> which & 1 and not state.nodes[gift.giver].is_off:
                yield "give", gift.giver, which
        for which, (_, to, _) in enumerate(state.said.values()):
            if not state.nodes[to].is_off:
                yield "deliver", to, which

    def _may_hear(self, state: SmallState, decree: int) -> bool:
        """An operator signs a retirement only once the machine is off."""
        return all(
            state.nodes[place].is_off for place, needs in self._plan.off.items() if decree >= needs
        )

    def happen(self, before: SmallState, event: Event) -> SmallState:
        """What comes of it; the state before stays as it is."""
        _, place, _ = event
        state = fork(before, place)
        node = state.nodes[place]
        self._do(state, event)
        node.print_ = print_of(node)
        return state

    def _do(self, state: SmallState, event: Event) -> None:
        what, place, which = event
        node = state.nodes[place]
        match what:
            case "disk":
                self._write(state, place)
            case "crash" | "reboot":
                self._crash(state, place, which, is_reboot=what == "reboot")
            case "cap":
                self._set_cap(state, place)
            case "settle":
                self._let_settle(state, place)
            case "refuse":
                state.refusals_left -= 1
                self._take(state, place, node.ledger.refused(node.now))
            case "time":
                node.now = max(node.now, node.ledger.deadline() or node.now)
                self._take(state, place, node.ledger.advance(node.now))
            case "decree":
                node.heard += 1
                charter = self.charters[node.heard - 1]
                self._take(state, place, node.ledger.hear_charter(charter, node.now))
            case "off":
                node.is_off = True
            case "give":
                gift = self._plan.gifts[which]
                is_begun, effects = node.ledger.give(self.ids[gift.to], gift.shares, node.now)
                if is_begun:
                    state.gifts_left &= ~(1 << which)
                self._take(state, place, effects)
            case _:
                sender, _, message = tuple(state.said.values())[which]
                effects = node.ledger.receive(self.ids[sender], message, node.now)
                self._take(state, place, effects)

    def _write(self, state: SmallState, place: int) -> None:
        node = state.nodes[place]
        keep, *rest = node.waiting
        node.waiting = tuple(rest)
        self._put(node, keep)
        _, effects = node.ledger.kept(keep.number, node.now)
        self._take(state, place, effects)

    def _put(self, node: SmallNode, keep: Keep) -> None:
        node.book = apply_entry(node.book, keep.entry)
        node.account.read(keep.entry)

    def _crash(self, state: SmallState, place: int, written: int, *, is_reboot: bool) -> None:
        node = state.nodes[place]
        state.crashes_left -= 1
        for keep in node.waiting[:written]:
            self._put(node, keep)
        node.waiting, node.is_told, node.assumed_watts = (), False, MAXIMUM_WATTS
        if is_reboot:
            state.reboots_left -= 1
            node.limit_watts, node.showing_watts = MAXIMUM_WATTS, 0
            node.is_gate_open = False
        node.ledger = self._open(place, node.book)
        self._live(state, place)

    def _set_cap(self, state: SmallState, place: int) -> None:
        node = state.nodes[place]
        shown = max(node.showing_watts, node.limit_watts)
        node.limit_watts = min(MAXIMUM_WATTS, node.ledger.allowance_watts)
        node.showing_watts = shown if shown > node.limit_watts else 0
        node.is_told = True
        self._tell_bound(state, place)

    def _let_settle(self, state: SmallState, place: int) -> None:
        node = state.nodes[place]
        node.showing_watts = 0
        if node.is_told:
            node.assumed_watts = 0
            self._tell_bound(state, place)

    def _tell_bound(self, state: SmallState, place: int) -> None:
        node = state.nodes[place]
        bound = max(node.limit_watts, node.showing_watts, node.assumed_watts)
        if bound <= node.ledger.allowance_watts:
            node.is_gate_open = True
        self._take(state, place, node.ledger.bounded(bound, node.now))

    def _take(self, state: SmallState, place: int, effects: list[Effect]) -> None:
        node = state.nodes[place]
        for effect in effects:
            match effect:
                case Keep():
                    node.waiting = (*node.waiting, effect)
                case Say(to=receivers, message=message):
                    for to in receivers:
                        at = self.places[to]
                        words = repr((place, at, *words_of(message))).encode()
                        key = int.from_bytes(hashlib.blake2b(words, digest_size=12).digest())
                        if key not in state.said:
                            state.said_print ^= key
                        state.said[key] = (place, at, message)
                case _:
                    pass
