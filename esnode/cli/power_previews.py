"""What an order will do, as text: shown before it is signed.

Its own file because a preview is the last chance to see a mistake, and is tested as text. Watts are
written to the last one here. It must not know how orders are made.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from cluster.rack.ledger.decrees import MILLION, Joined
from esnode.cli.power_text import change_of, figures, name_or, sentence_list, whole_watts
from esnode.cli.text import UNKNOWN, table
from esnode.power_orders.quantities import percent_text, watts_text

if TYPE_CHECKING:
    from cluster.ids import NodeId
    from esnode.power_orders.budgets import BudgetPlan
    from esnode.power_orders.founding import FoundedSlot, Founding
    from esnode.power_orders.memberships import RetirePlan


def preview_genesis(plan: "Founding") -> str:
    """Every slot with its first cap, and how the sum stands beside the budget."""
    founded = plan.founded
    rows = [
        [
            slot.slot,
            name_or(None if slot.machine is None else slot.machine.name, _emptiness(slot)),
            whole_watts(None if slot.machine is None else slot.machine.draw_watts),
            whole_watts(slot.floor_watts),
            UNKNOWN if slot.share_ratio is None else percent_text(slot.share_ratio),
            whole_watts(slot.first_cap_watts),
        ]
        for slot in plan.slots
    ]
    rows.append(
        ["sum", "", "", whole_watts(plan.floors_watts), "", whole_watts(plan.first_caps_watts)]
    )
    head = ["SLOT", "NODE", "DRAWS NOW", "FLOOR", "SHARE", "FIRST CAP"]
    margin = percent_text(Fraction(founded.margin_ppm, MILLION))
    sums = figures(
        [
            ("budget", watts_text(founded.budget_watts), ""),
            ("floors", watts_text(plan.floors_watts), "charged for every slot, full or empty"),
            ("margin", watts_text(plan.margin_watts), f"{margin}: nobody's, the meters' error"),
            ("shared", watts_text(plan.shared_watts), "held by nodes, and traded"),
        ]
    )
    return _page(
        f"GENESIS of {founded.currency}",
        table(head, rows, right=(2, 3, 4, 5)),
        sums,
        _notes(plan.notes),
    )


def _emptiness(slot: "FoundedSlot") -> str:
    if slot.machine is not None:
        return slot.machine.name
    return "static load" if slot.is_static else "empty"


def preview_budget(plan: "BudgetPlan", names: "Mapping[NodeId, str]") -> str:
    """Each node's cap before and after, and who would have to stop."""
    rows = [
        [
            one.slot,
            names.get(one.node_id, one.node_id.short),
            whole_watts(one.floor_watts),
            whole_watts(one.before_watts),
            whole_watts(one.after_watts),
            change_of(one.before_watts, one.after_watts),
            whole_watts(one.minimum_watts),
            "parked" if one.slot in plan.parked else "",
        ]
        for one in plan.changes
    ]
    head = ["SLOT", "NODE", "FLOOR", "CAP NOW", "CAP THEN", "CHANGE", "NEEDS", ""]
    old, new = plan.old_watts, plan.new_watts
    sums = figures(
        [
            ("budget", watts_text(new), f"was {watts_text(old)} ({change_of(old, new)} W)"),
            ("floors", watts_text(plan.floors_watts), "charged for every slot"),
            ("shared", watts_text(plan.new_shared_watts), f"was {plan.old_shared_watts:,} W"),
        ]
    )
    notes = list(plan.notes)
    if plan.parked:
        slots = sentence_list(plan.parked)
        notes.insert(0, f"too little for all: {slots} would be parked, its work drained first")
    return _page(
        f"BUDGET of {plan.decree.currency}",
        table(head, rows, right=(2, 3, 4, 5, 6)),
        sums,
        "CAP THEN is by the shares held now; trading moves them to who needs them.",
        _notes(tuple(notes)),
    )


def preview_retire(plan: "RetirePlan", newcomers: Mapping[str, str]) -> str:
    """Who goes, who comes, and whose word it takes."""
    decree = plan.decree
    lines = [
        f"goes      {sentence_list(plan.gone)}",
        *(f"comes     {name} into slot {slot}" for name, slot in newcomers.items()),
        f"signers   {sentence_list(plan.signers)}",
        f"ends      epoch {decree.epoch.number}.{decree.epoch.rank}; "
        f"{decree.epoch.number + 1}.{decree.rank} follows",
        f"evidence  {decree.evidence or UNKNOWN}",
    ]
    notes = [*plan.notes, *(f"not heard: {one}; trading stops until it is" for one in plan.absent)]
    return _page(
        f"RETIREMENT in {decree.currency}, rank {decree.rank}",
        "\n".join(f"  {line}" for line in lines),
        _notes(tuple(notes)),
    )


def preview_join(decree: Joined, name: str) -> str:
    """One line."""
    return (
        f"JOIN {decree.currency}: {name} ({decree.node_id.short}) into slot {decree.slot}, "
        f"epoch {decree.epoch.number}.{decree.epoch.rank}, with no shares; it gets watts by trading"
    )


def _notes(notes: tuple[str, ...]) -> str:
    return "\n".join(f"! {note}" for note in notes)


def _page(*blocks: str) -> str:
    return "\n\n".join(block for block in blocks if block)
