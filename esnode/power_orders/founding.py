"""From a wish to a genesis: nodes looked up, shares counted out, everything checked.

Its own file because this record is signed once and cannot be taken back. It must not know files or
terminals.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from cluster.errors import Malformed
from cluster.identity.operator_records import BODY_BYTES_MAX
from cluster.ids import NodeId
from cluster.rack.ledger.charter import Charter
from cluster.rack.ledger.decrees import (
    MILLION,
    Founded,
    Slot,
    check_decree,
    dynamic_watts,
    encode_decree,
)
from cluster.rack.share import split
from cluster.rack.units import SHARES_TOTAL, CurrencyId, watts_of
from esnode.power_orders.genesis_file import Wish, WishedSlot
from esnode.power_orders.known import RETURNING, Machine
from esnode.power_orders.machines import check_rack, find_machine, rack_of
from esnode.power_orders.quantities import percent_text, watts_text
from esnode.power_orders.refusals import CannotOrder, check_none


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundedSlot:
    """One line of what a genesis will do."""

    slot: str
    machine: Machine | None
    floor_watts: int
    is_static: bool
    share_ratio: float | None
    """None for a slot that holds no shares."""
    first_cap_watts: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Founding:
    """A genesis, and what it will do."""

    founded: Founded
    slots: tuple[FoundedSlot, ...]
    notes: tuple[str, ...]
    """What an operator should know before saying yes."""

    @property
    def floors_watts(self) -> int:
        """Charged always."""
        return sum(slot.floor_watts for slot in self.founded.slots)

    @property
    def shared_watts(self) -> int:
        """What nodes hold and trade."""
        return dynamic_watts(self.founded, self.founded.budget_watts)

    @property
    def margin_watts(self) -> int:
        """Nobody's."""
        return self.founded.budget_watts - self.floors_watts - self.shared_watts

    @property
    def first_caps_watts(self) -> int:
        """All caps and static loads together, empty slots at their floors."""
        return sum(
            slot.floor_watts if slot.first_cap_watts is None else slot.first_cap_watts
            for slot in self.slots
        )


def plan_genesis(
    wish: Wish, machines: Sequence[Machine], charters: Mapping[CurrencyId, Charter]
) -> Founding:
    """The record, and what follows from it.

    Raises:
        CannotOrder: it does not add up, or the rack is founded already.
    """
    currency = CurrencyId(wish.currency)
    racks = tuple(dict.fromkeys(one.rack for one in machines))
    check_new(currency, charters, racks)
    lines: list[str] = []
    standing = _look_up(wish, machines, racks, lines)
    holders = [slot for slot in wish.slots if slot.name in standing and not slot.is_static]
    lines += _share_problems(wish.slots)
    lines += _floor_problems(wish)
    check_none(lines)
    founded = Founded(
        currency=currency,
        budget_watts=wish.budget_watts,
        margin_ppm=wish.margin_ppm,
        slots=tuple(
            Slot(
                name=slot.name,
                floor_watts=slot.floor_watts,
                node_id=standing[slot.name].node_id if slot.name in standing else None,
                is_static=slot.is_static,
            )
            for slot in wish.slots
        ),
        shares=_count_out(holders, standing),
    )
    _check_decree(founded)
    slots = _slots(founded, standing)
    notes = _notes(founded, slots, [one for one in machines if one.rack == rack_of(currency)])
    return Founding(founded=founded, slots=slots, notes=tuple(notes))


def check_new(
    currency: CurrencyId, charters: Mapping[CurrencyId, Charter], racks: Sequence[str]
) -> None:
    """Whether it can be founded at all.

    Raises:
        CannotOrder: it has been, or nobody knows its rack.
    """
    if currency in charters:
        budget = watts_text(charters[currency].budget_watts)
        raise CannotOrder(
            f"{currency} has had its genesis, and a second one would be ignored (budget {budget}); "
            "see `esnode power budget set`, `join` and `retire`"
        )
    if currency.startswith("rack:") and rack_of(currency) not in racks:
        known = ", ".join(sorted(racks)) or "none"
        raise CannotOrder(f"unknown rack {rack_of(currency)}; known are {known}", is_usage=True)


def _look_up(
    wish: Wish, machines: Sequence[Machine], racks: Sequence[str], lines: list[str]
) -> dict[str, Machine]:
    """Who stands in which slot."""
    standing: dict[str, Machine] = {}
    slot_of: dict[NodeId, str] = {}
    for slot in wish.slots:
        if slot.node is None:
            continue
        try:
            machine = find_machine(machines, slot.node)
        except CannotOrder as refused:
            lines += [f"slot {slot.name}: {line}" for line in refused.lines]
            continue
        wrong_rack = check_rack(machine, CurrencyId(wish.currency), racks)
        lines += [f"slot {slot.name}: {line}" for line in wrong_rack]
        if machine.state not in RETURNING:
            lines.append(f"slot {slot.name}: {machine.name} is {machine.state}, no member any more")
        if machine.node_id in slot_of:
            lines.append(
                f"{machine.name} stands in two slots: {slot_of[machine.node_id]} and {slot.name}"
            )
        slot_of[machine.node_id] = slot.name
        standing[slot.name] = machine
    return standing


def _share_problems(slots: Sequence[WishedSlot]) -> list[str]:
    lines = []
    for slot in slots:
        if (slot.weight is not None or slot.share_ratio is not None) and (
            slot.is_static or slot.node is None
        ):
            what = "a static load" if slot.is_static else "an empty slot"
            lines.append(f"slot {slot.name}: {what} holds no shares; leave weight and share out")
    holders = [slot for slot in slots if slot.node is not None and not slot.is_static]
    if not holders:
        lines.append("no node holds shares: name the node of at least one slot")
    with_share = [slot for slot in holders if slot.share_ratio is not None]
    if with_share and any(slot.weight is not None for slot in holders):
        lines.append("shares are given by weight or as parts of the whole, not both")
    elif with_share and len(with_share) < len(holders):
        names = ", ".join(slot.name for slot in holders if slot.share_ratio is None)
        lines.append(f"where one slot has a share, each node needs one: {names} has none")
    elif with_share:
        total = sum((slot.share_ratio or Fraction(0) for slot in holders), Fraction(0))
        if total != 1:
            lines.append(
                f"shares add up to {float(total) * 100:.10g} %, not to 100 %; weights need not add "
                "up"
            )
    return lines


def _floor_problems(wish: Wish) -> list[str]:
    floors = sum(slot.floor_watts for slot in wish.slots)
    usable = wish.budget_watts * (MILLION - wish.margin_ppm) // MILLION
    if floors <= usable:
        return []
    return [
        f"floors and static loads add up to {watts_text(floors)}; the budget of "
        f"{watts_text(wish.budget_watts)}, less {percent_text(wish.margin_ppm / MILLION)} margin, "
        f"is {watts_text(usable)}"
    ]


def _count_out(
    holders: Sequence[WishedSlot], standing: Mapping[str, Machine]
) -> tuple[tuple[NodeId, int], ...]:
    """All shares, to the last one."""
    if any(slot.share_ratio is not None for slot in holders):
        ratios = [slot.share_ratio or Fraction(0) for slot in holders]
        whole = math.lcm(*(ratio.denominator for ratio in ratios))
        counted = split(SHARES_TOTAL, [int(ratio * whole) for ratio in ratios])
    else:
        counted = split(SHARES_TOTAL, [slot.weight or 1 for slot in holders])
    return tuple(
        (standing[slot.name].node_id, shares) for slot, shares in zip(holders, counted, strict=True)
    )


def _check_decree(founded: Founded) -> None:
    try:
        check_decree(founded)
        _, body = encode_decree(founded)
    except Malformed as error:
        raise CannotOrder(str(error)) from None
    if len(body) > BODY_BYTES_MAX:
        raise CannotOrder(
            f"a genesis has at most {BODY_BYTES_MAX} bytes, and this one has {len(body)}: shorter "
            "names of slots, or fewer slots"
        )


def _slots(founded: Founded, standing: Mapping[str, Machine]) -> tuple[FoundedSlot, ...]:
    shares = dict(founded.shares)
    shared = dynamic_watts(founded, founded.budget_watts)
    slots = []
    for slot in founded.slots:
        held = None if slot.is_static or slot.node_id is None else shares.get(slot.node_id)
        slots.append(
            FoundedSlot(
                slot=slot.name,
                machine=standing.get(slot.name),
                floor_watts=slot.floor_watts,
                is_static=slot.is_static,
                share_ratio=None if held is None else held / SHARES_TOTAL,
                first_cap_watts=(
                    None if held is None else slot.floor_watts + watts_of(held, shared)
                ),
            )
        )
    return tuple(slots)


def _notes(founded: Founded, slots: Sequence[FoundedSlot], of_rack: Sequence[Machine]) -> list[str]:
    notes = []
    named = {slot.node_id for slot in founded.slots}
    left_out = [one.name for one in of_rack if one.node_id not in named and one.state in RETURNING]
    if left_out:
        notes.append(
            f"{', '.join(left_out)}: of this rack and in no slot; parked at the lowest cap until "
            "`esnode power join`"
        )
    silent = [slot for slot in slots if slot.machine is not None and not slot.machine.is_heard]
    notes += [
        f"{slot.machine.name} does not answer: the rack is unprotected until it enforces its cap"
        for slot in silent
        if slot.machine is not None
    ]
    for slot in slots:
        draw = None if slot.machine is None else slot.machine.draw_watts
        if draw is None or slot.machine is None:
            continue
        if slot.first_cap_watts is not None and draw > slot.first_cap_watts:
            notes.append(
                f"{slot.machine.name} draws {watts_text(round(draw))} now and is lowered at once; "
                "trading gives it what others do not use"
            )
        elif slot.is_static and draw > slot.floor_watts:
            notes.append(
                f"{slot.machine.name} draws {watts_text(round(draw))} now, more than the "
                f"{watts_text(slot.floor_watts)} that are charged for it"
            )
    empty = [slot.slot for slot in slots if slot.machine is None and not slot.is_static]
    if empty:
        notes.append(f"empty, and charged all the same: {', '.join(empty)}")
    return notes
