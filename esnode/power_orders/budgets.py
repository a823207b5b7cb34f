"""Another budget for a rack: what each node's cap becomes, and whether it can be done at all.

Its own file because a budget that is too low stops work, and that is to be seen before it is
signed. It must not know how a budget is carried out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cluster.ids import NodeId
from cluster.rack.ledger.charter import Charter
from cluster.rack.ledger.decrees import MILLION, BudgetSet, dynamic_watts
from cluster.rack.rows import Wants
from cluster.rack.share import parked
from cluster.rack.units import SHARES_TOTAL, WATTS_MAX, CurrencyId
from esnode.power_orders.known import CurrencyKnown, Machine
from esnode.power_orders.machines import rack_of
from esnode.power_orders.quantities import percent_text, watts_text
from esnode.power_orders.refusals import CannotOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class CapChange:
    """One node's cap before and after."""

    slot: str
    node_id: NodeId
    floor_watts: int
    before_watts: int | None
    """What its shares are worth now, with its floor; None where it has not told."""
    after_watts: int | None
    minimum_watts: int | None
    """Below this its work cannot run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPlan:
    """A budget, and what it will do."""

    decree: BudgetSet
    old_watts: int
    new_watts: int
    floors_watts: int
    old_shared_watts: int
    new_shared_watts: int
    changes: tuple[CapChange, ...]
    parked: tuple[str, ...]
    """Slots whose work has to stop, since the rest needs more than there is."""
    notes: tuple[str, ...]


def find_charter(
    text: str, charters: Mapping[CurrencyId, Charter], racks: Sequence[str]
) -> Charter:
    """The charter of a rack, or of a currency by its whole name.

    Raises:
        CannotOrder: there is none.
    """
    currency = CurrencyId(text if ":" in text else f"rack:{text}")
    found = charters.get(currency)
    if found is not None:
        return found
    rack = rack_of(currency)
    if rack not in racks:
        known = ", ".join(sorted(racks)) or "none"
        raise CannotOrder(f"unknown rack {rack}; known are {known}", is_usage=True)
    raise CannotOrder(
        f"{currency} has no budget yet; `esnode power genesis --propose > {rack}.toml` begins one"
    )


def lowest_budget_watts(charter: Charter) -> int:
    """The lowest that still pays for every floor."""
    floors = sum(slot.floor_watts for slot in charter.founded.slots)
    kept = MILLION - charter.founded.margin_ppm
    return -(-floors * MILLION // kept)


def plan_budget(
    charter: Charter,
    watts: int,
    *,
    known: CurrencyKnown | None,
    machines: Sequence[Machine],
    settles: tuple[bytes, ...],
) -> BudgetPlan:
    """The record, and what follows from it.

    Raises:
        CannotOrder: it does not even pay for the floors.
    """
    lowest = lowest_budget_watts(charter)
    floors = sum(slot.floor_watts for slot in charter.founded.slots)
    if watts < lowest:
        margin = percent_text(charter.founded.margin_ppm / MILLION)
        raise CannotOrder(
            f"{watts_text(watts)} are too few: floors and static loads of {charter.currency} are "
            f"{watts_text(floors)}, with {margin} margin at least {watts_text(lowest)}"
        )
    if watts > WATTS_MAX:
        raise CannotOrder(f"at most {watts_text(WATTS_MAX)} can be a budget", is_usage=True)
    shared = dynamic_watts(charter.founded, watts)
    changes = _changes(charter, shared, known)
    return BudgetPlan(
        decree=BudgetSet(currency=charter.currency, budget_watts=watts, settles=settles),
        old_watts=charter.budget_watts,
        new_watts=watts,
        floors_watts=floors,
        old_shared_watts=charter.version.watts,
        new_shared_watts=shared,
        changes=changes,
        parked=_parked(changes, shared, known),
        notes=tuple(_notes(charter, watts, changes, machines, settles)),
    )


def _changes(
    charter: Charter, shared_watts: int, known: CurrencyKnown | None
) -> tuple[CapChange, ...]:
    gone = {node_id for record in charter.retired for node_id in record.out}
    changes = []
    for slot in charter.slots:
        if slot.is_static or slot.node_id is None or slot.node_id in gone:
            continue
        told = None if known is None else known.slot_of(slot.node_id)
        before = None if told is None else told.share_watts
        changes.append(
            CapChange(
                slot=slot.name,
                node_id=slot.node_id,
                floor_watts=slot.floor_watts,
                before_watts=before,
                after_watts=_scaled(before, slot.floor_watts, charter.version.watts, shared_watts),
                minimum_watts=None if told is None else told.minimum_watts,
            )
        )
    return tuple(changes)


def _scaled(before: int | None, floor: int, old_shared: int, new_shared: int) -> int | None:
    """What the same shares are worth in another budget."""
    if before is None:
        return None
    if old_shared <= 0:
        return None if new_shared > 0 else floor
    return floor + max(0, before - floor) * new_shared // old_shared


def _parked(
    changes: Sequence[CapChange], shared_watts: int, known: CurrencyKnown | None
) -> tuple[str, ...]:
    """By the rule of the nodes themselves: the lowest class first, then by id."""
    wants = {}
    for change in changes:
        told = None if known is None else known.slot_of(change.node_id)
        if change.minimum_watts is None or told is None:
            continue
        above = max(0, change.minimum_watts - change.floor_watts)
        wants[change.node_id] = Wants(
            demand_watts=above,
            minimum_watts=above,
            maximum_watts=above,
            priority=1 if told.priority is None else told.priority,
        )
    stopped = parked(SHARES_TOTAL, wants, shared_watts)
    return tuple(change.slot for change in changes if change.node_id in stopped)


def _notes(
    charter: Charter,
    watts: int,
    changes: Sequence[CapChange],
    machines: Sequence[Machine],
    settles: Sequence[bytes],
) -> list[str]:
    notes = []
    if not charter.version.is_unanimous and settles:
        notes.append(
            f"the log of operators forks; until now the lowest of its budgets holds, "
            f"{watts_text(charter.budget_watts)}, and this one settles it"
        )
    if watts == charter.budget_watts and not settles:
        notes.append("this is the budget already; the record changes nothing")
    silent = [one for one in machines if _is_silent(one, changes)]
    if silent and watts < charter.budget_watts:
        names = ", ".join(one.name for one in silent)
        notes.append(
            f"{names}: silent, and may still be at the old caps; the others lower further for them"
        )
    untold = [change.slot for change in changes if change.before_watts is None]
    if untold:
        notes.append(f"not known here: what {', '.join(untold)} hold now")
    if changes and all(change.minimum_watts is None for change in changes):
        notes.append("not known here: below which caps the work of each node cannot run")
    return notes


def _is_silent(machine: Machine, changes: Sequence[CapChange]) -> bool:
    return not machine.is_heard and any(one.node_id == machine.node_id for one in changes)
