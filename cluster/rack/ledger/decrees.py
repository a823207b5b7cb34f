"""What an operator can sign about power, and its one encoding in the operators' log.

Its own file because the bytes outlive a version and are signed: what cannot be obeyed is refused
here, before anybody could sign it. It must not know the log that the records stand in.
"""

import hashlib
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from cluster.codec import Document, Value, decode_document, encode_document
from cluster.errors import Malformed
from cluster.ids import NodeId
from cluster.rack.units import SHARES_TOTAL, WATTS_MAX, CurrencyId, Epoch

GENESIS = "power-genesis"
BUDGET = "power-budget"
JOIN = "power-join"
RETIRE = "power-retire"
KINDS = (GENESIS, BUDGET, JOIN, RETIRE)
MILLION = 1_000_000
MARGIN_PPM_MAX = 500_000
SLOTS_MAX = 200
TEXT_CHARACTERS_MAX = 200
NAME_CHARACTERS_MAX = 40
HASH_BYTES = 32
DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One position of the rack, full or empty, and what is always charged for it."""

    name: str
    floor_watts: int
    """What its machine draws without work at its lowest limits; all of a load that has no agent."""
    node_id: NodeId | None = None
    """Whose machine stands in it; None for an empty slot and for a load without an agent."""
    is_static: bool = False
    """Whether it is charged at its maximum and never trades: a switch, a pump, an uncapped node."""

    def filled_by(self, node_id: NodeId) -> "Slot":
        """The same slot with another machine."""
        return replace(self, node_id=node_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Founded:
    """Genesis: from here on the rack's budget is shared out."""

    currency: CurrencyId
    budget_watts: int
    margin_ppm: int
    """Parts per million of the budget that nobody is given: the error of the meters."""
    slots: tuple[Slot, ...]
    shares: tuple[tuple[NodeId, int], ...]
    """Who begins with what; together all of `SHARES_TOTAL`."""

    @property
    def digest(self) -> bytes:
        """Tells this genesis from another of the same currency."""
        return hashlib.sha256(encode_decree(self)[1]).digest()[:DIGEST_BYTES]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSet:
    """Another budget for the same rack."""

    currency: CurrencyId
    budget_watts: int
    settles: tuple[bytes, ...] = field(default=(), repr=False)
    """Hashes of the records at the end of other branches that this one makes void."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """One more identity, which begins with nothing."""

    currency: CurrencyId
    node_id: NodeId
    slot: str
    epoch: Epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Retired:
    """The end of an epoch: machines that are proven off give back what they held."""

    currency: CurrencyId
    epoch: Epoch
    """The one that it closes."""
    rank: int
    """A record of a higher rank names all that the lower ones did, and replaces them."""
    members: tuple[NodeId, ...]
    """Of the epoch, from the operators' log."""
    out: tuple[NodeId, ...]
    added: tuple[tuple[NodeId, str], ...] = ()
    """New identities, and the slots in which they stand."""
    evidence: str = ""
    """How the operator knows that the machines are off."""

    @property
    def signers(self) -> tuple[NodeId, ...]:
        """Whose statements it takes: members and newcomers, less those of both that go."""
        staying = tuple(one for one in self.members if one not in self.out)
        coming = (node_id for node_id, _ in self.added if node_id not in self.out)
        return (*staying, *coming)

    @property
    def digest(self) -> bytes:
        """Tells this record from another of the same rank."""
        return hashlib.sha256(encode_decree(self)[1]).digest()[:DIGEST_BYTES]

    @property
    def survivors(self) -> tuple[NodeId, ...]:
        """Members that stay."""
        return tuple(one for one in self.members if one not in self.out)


Decree: TypeAlias = Founded | BudgetSet | Joined | Retired


def dynamic_watts(founded: Founded, budget_watts: int) -> int:
    """What can be shared out of a budget: less the margin, less every floor; never below 0."""
    return max(0, _above_floors(founded, budget_watts))


def is_below_floors(founded: Founded, budget_watts: int) -> bool:
    """Whether a budget is less than what is charged for the slots alone."""
    return _above_floors(founded, budget_watts) < 0


def _above_floors(founded: Founded, budget_watts: int) -> int:
    floors = sum(slot.floor_watts for slot in founded.slots)
    return budget_watts * (MILLION - founded.margin_ppm) // MILLION - floors


def check_decree(decree: Decree) -> None:
    """Whether it can be obeyed at all.

    Raises:
        Malformed: it does not add up; one line that says where.
    """
    match decree:
        case Founded():
            _check_founded(decree)
        case BudgetSet(budget_watts=watts):
            _check_watts(watts, "the budget")
        case Joined(epoch=epoch):
            _check_epoch(epoch)
        case Retired():
            _check_retired(decree)


def _check_founded(decree: Founded) -> None:
    _check_watts(decree.budget_watts, "the budget")
    if not 0 <= decree.margin_ppm <= MARGIN_PPM_MAX:
        raise Malformed("a margin is 0 to 50 % of the budget")
    if not 1 <= len(decree.slots) <= SLOTS_MAX:
        raise Malformed(f"a rack has 1 to {SLOTS_MAX} slots, not {len(decree.slots)}")
    names = [slot.name for slot in decree.slots]
    for name in names:
        if names.count(name) > 1:
            raise Malformed(f"slot {name} is named twice")
    for slot in decree.slots:
        _check_watts(slot.floor_watts, f"the floor of slot {slot.name}")
    total = sum(shares for _, shares in decree.shares)
    if total != SHARES_TOTAL or any(shares < 0 for _, shares in decree.shares):
        raise Malformed(f"shares add up to {total}, not to {SHARES_TOTAL}")
    holders = [node_id for node_id, _ in decree.shares]
    if len(set(holders)) != len(holders):
        raise Malformed("a node is given shares twice")
    settled = {slot.node_id for slot in decree.slots if not slot.is_static}
    if strangers := [one.short for one in holders if one not in settled]:
        raise Malformed(f"shares for {', '.join(strangers)}, who stand in no slot")
    usable = decree.budget_watts * (MILLION - decree.margin_ppm) // MILLION
    floors = sum(slot.floor_watts for slot in decree.slots)
    if floors > usable:
        raise Malformed(
            f"floors add up to {floors} W, and {usable} W of the budget can be shared out"
        )


def _check_retired(decree: Retired) -> None:
    _check_epoch(decree.epoch)
    if not 0 <= decree.rank <= 1000:
        raise Malformed("a rank is 0 to 1000")
    for node_id in decree.out:
        if node_id not in (*decree.members, *(one for one, _ in decree.added)):
            raise Malformed(f"{node_id.short} is to retire and was no member")
    if not decree.survivors:
        raise Malformed("nobody would be left to hold the shares")
    named = (*decree.members, *(node_id for node_id, _ in decree.added))
    if len(set(named)) != len(named):
        raise Malformed("a node is named twice")


def _check_watts(watts: int, what: str) -> None:
    if not 0 <= watts <= WATTS_MAX:
        raise Malformed(f"{what} is {watts} W; 0 to {WATTS_MAX} W can be")


def _check_epoch(epoch: Epoch) -> None:
    if epoch.number < 1 or epoch.rank < 0:
        raise Malformed("an epoch that cannot be")


def encode_decree(decree: Decree) -> tuple[str, bytes]:
    """Kind and body for the operators' log.

    Raises:
        Malformed: it cannot be obeyed.
    """
    check_decree(decree)
    match decree:
        case Founded():
            slots = tuple(
                (slot.name, slot.floor_watts, slot.node_id, slot.is_static) for slot in decree.slots
            )
            body: Document = (decree.currency, decree.budget_watts, decree.margin_ppm, slots)
            return GENESIS, encode_document((*body, decree.shares))
        case BudgetSet():
            return BUDGET, encode_document((decree.currency, decree.budget_watts, decree.settles))
        case Joined():
            body = (decree.currency, decree.node_id, decree.slot, decree.epoch)
            return JOIN, encode_document(body)
        case Retired():
            body = (decree.currency, decree.epoch, decree.rank, decree.members, decree.out)
            return RETIRE, encode_document((*body, decree.added, decree.evidence))


def decode_decree(kind: str, body: bytes) -> Decree:
    """What an operator signed.

    Raises:
        Malformed: it says nothing that can be obeyed.
    """
    decree = _decode(kind, decode_document(body))
    check_decree(decree)
    return decree


def _decode(kind: str, document: Document) -> Decree:
    match kind, document:
        case "power-genesis", (str() as name, int() as budget, int() as margin, slots, shares):
            return Founded(
                currency=read_currency(name),
                budget_watts=budget,
                margin_ppm=margin,
                slots=tuple(_read_slot(one) for one in _tuple(slots)),
                shares=tuple(_read_share(one) for one in _tuple(shares)),
            )
        case "power-budget", (str() as name, int() as budget, settles):
            hashes = tuple(_read_hash(one) for one in _tuple(settles))
            return BudgetSet(currency=read_currency(name), budget_watts=budget, settles=hashes)
        case "power-join", (str() as name, bytes() as node_id, str() as slot, epoch):
            return Joined(
                currency=read_currency(name),
                node_id=NodeId.from_wire(node_id),
                slot=_read_text(slot, NAME_CHARACTERS_MAX),
                epoch=read_epoch(epoch),
            )
        case "power-retire", (str() as name, epoch, int() as rank, members, out, added, evidence):
            return Retired(
                currency=read_currency(name),
                epoch=read_epoch(epoch),
                rank=rank,
                members=tuple(NodeId.from_wire(one) for one in _tuple(members)),
                out=tuple(NodeId.from_wire(one) for one in _tuple(out)),
                added=tuple(_read_added(one) for one in _tuple(added)),
                evidence=_read_text(evidence, TEXT_CHARACTERS_MAX),
            )
        case _:
            raise Malformed(f"an operator's record of kind {kind} that this version cannot read")


def read_currency(value: Value) -> CurrencyId:
    """A currency's name.

    Raises:
        Malformed: it is none.
    """
    return CurrencyId(_read_text(value, NAME_CHARACTERS_MAX))


def read_epoch(value: Value) -> Epoch:
    """An epoch as it is written in documents.

    Raises:
        Malformed: it is none.
    """
    match value:
        case (int() as number, int() as rank) if number >= 1 and rank >= 0:
            return Epoch(number, rank)
        case _:
            raise Malformed("an epoch is two numbers")


def _read_slot(value: Value) -> Slot:
    match value:
        case (str() as name, int() as floor, bytes() | None as node_id, bool() as is_static):
            return Slot(
                name=_read_text(name, NAME_CHARACTERS_MAX),
                floor_watts=floor,
                node_id=None if node_id is None else NodeId.from_wire(node_id),
                is_static=is_static,
            )
        case _:
            raise Malformed("a slot is a name, a floor, a node and whether it is static")


def _read_share(value: Value) -> tuple[NodeId, int]:
    match value:
        case (bytes() as node_id, int() as shares):
            return NodeId.from_wire(node_id), shares
        case _:
            raise Malformed("shares are those of a node")


def _read_added(value: Value) -> tuple[NodeId, str]:
    match value:
        case (bytes() as node_id, str() as slot):
            return NodeId.from_wire(node_id), _read_text(slot, NAME_CHARACTERS_MAX)
        case _:
            raise Malformed("a newcomer is a node and its slot")


def _read_hash(value: Value) -> bytes:
    if not isinstance(value, bytes) or len(value) != HASH_BYTES:
        raise Malformed(f"a hash has {HASH_BYTES} bytes")
    return value


def _read_text(value: Value, characters_max: int) -> str:
    if not isinstance(value, str) or len(value) > characters_max or not value.isprintable():
        raise Malformed(f"not one line of at most {characters_max} characters")
    return value


def _tuple(value: Value) -> tuple[Value, ...]:
    if not isinstance(value, tuple):
        raise Malformed("a list was expected")
    return value
