"""How sure one may be that a rack stays below its budget.

Its own file because a claim of safety must rest on one list of slots and nothing else. It must not
know what a slot could be doing beyond what was said of it: what is not known is missing, and a rack
with a missing slot is unprotected. So is one with a machine in no slot: nobody is charged for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cluster.ids import NodeId
from cluster.rack.units import BudgetVersion

SILENT_SECONDS = 60.0
"""A node that has not been heard for longer is named, whatever it last said."""

SlotState = Literal["enforcing", "static", "proven_off", "missing"]
Grade = Literal["A", "B", "C"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotFact:
    """What is known of one position of the rack."""

    slot: str
    node_id: NodeId | None
    """Who is in it by the operators' log; None for nobody, or for a load without an agent."""
    floor_watts: int | None
    """What is charged for it, full or empty; None where nobody said."""
    is_static: bool = False
    """Its floor is the most that it can draw: nothing enforces anything there."""
    is_proven_off: bool = False
    """Its outlet or its controller says so, or an operator has signed it; never its silence."""
    complied: BudgetVersion | None = None
    """By its newest row of this epoch: the budget that its hardware was seen to keep.

    None for a node that was never heard, or that has not lowered, read back and settled yet.
    """
    row_age_seconds: float | None = None
    is_metered: bool = False
    """Its draw is measured, and not a model's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """What may be claimed of a rack."""

    grade: Grade
    """A: enforced and metered. B: enforced, modelled. C: unprotected."""
    states: tuple[tuple[str, SlotState], ...]
    """By slot, in the order of their names."""
    missing: tuple[str, ...]
    """The slots for which the rack is unprotected."""
    outside: tuple[str, ...]
    """Machines of the rack in none of its slots: for these, too, it is unprotected."""
    late: tuple[str, ...]
    """Slots that enforce an older budget than the newest: until they follow, that one holds."""
    silent: tuple[str, ...]
    """Slots that enforce by what was heard long ago. Their hardware keeps what it was told."""


def slot_state(fact: SlotFact) -> SlotState:
    """What one slot contributes to the claim."""
    if fact.is_proven_off:
        return "proven_off"
    if fact.floor_watts is None:
        return "missing"
    if fact.is_static:
        return "static"
    if fact.node_id is None or fact.complied is None or fact.row_age_seconds is None:
        return "missing"
    return "enforcing"


def activation(
    slots: Sequence[SlotFact],
    newest: BudgetVersion | None,
    *,
    outside: Sequence[str] = (),
    is_rack_metered: bool = False,
) -> Activation:
    """The grade of a rack, by its slots as the operators' first record lists them.

    `outside` names the live machines that draw from it and stand in no slot of it.

    A rack without a list or without a budget is unprotected. It is metered if one meter sees all of
    it, or if each node that enforces has its own.
    """
    ordered = sorted(slots, key=lambda fact: fact.slot)
    states = tuple((fact.slot, slot_state(fact)) for fact in ordered)
    missing = tuple(slot for slot, state in states if state == "missing")
    enforcing = [fact for fact in ordered if slot_state(fact) == "enforcing"]
    grade: Grade = "B"
    if missing or outside or not states or newest is None:
        grade = "C"
    elif is_rack_metered or all(fact.is_metered for fact in enforcing):
        grade = "A"
    return Activation(
        grade=grade,
        states=states,
        missing=missing,
        outside=tuple(sorted(outside)),
        late=tuple(
            fact.slot
            for fact in enforcing
            if newest is not None and fact.complied is not None and newest.replaces(fact.complied)
        ),
        silent=tuple(
            fact.slot
            for fact in enforcing
            if fact.row_age_seconds is not None and fact.row_age_seconds > SILENT_SECONDS
        ),
    )
