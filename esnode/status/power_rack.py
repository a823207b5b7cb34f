"""A whole rack in the document of rack power: what was decreed, and what became of it, by slot.

Its own file because here the operators' word, the members' accounts and what they told of
themselves meet. Pure. It must not know how any of them came.
"""

from cluster.ids import NodeId
from cluster.rack.activation import SILENT_SECONDS, Activation, SlotFact, activation
from cluster.rack.ledger.book import NO_VERSION
from cluster.rack.ledger.charter import Charter
from cluster.rack.ledger.decrees import MILLION, Slot
from cluster.rack.ledger.ledger import LedgerView
from cluster.rack.trading import ROW_ALIVE_SECONDS
from cluster.rack.units import SHARES_TOTAL, CurrencyId, watts_of
from esnode.status.gpu import Document
from esnode.status.power import (
    SCHEMA,
    MateFact,
    PowerKnown,
    RowFact,
    describe_cap,
    describe_devices,
    settle_alarm,
    whole,
)

FRESH_SECONDS = 10.0
"""Figures that a node told longer ago say nothing of now."""


def describe_power(known: PowerKnown) -> Document:
    """The whole document."""
    return {
        "schema": SCHEMA,
        "node": known.node,
        "rack": known.rack,
        "state": known.state,
        "detail": known.detail,
        "gate": {"is_open": known.is_gate_open, "reason": known.gate_reason},
        "cap": describe_cap(known),
        "devices": describe_devices(known),
        "currencies": [describe_currency(known, currency) for currency in sorted(known.charters)],
        "alarms": [line for line in (*known.alarms, settle_alarm(known)) if line],
    }


def describe_currency(known: PowerKnown, currency: CurrencyId) -> Document:
    """One constraint."""
    charter = known.charters[currency]
    ledger = known.ledger(currency)
    graded = grade(known, charter)
    slots = [_describe_slot(known, charter, slot, graded) for slot in charter.slots]
    caps = [slot["cap_watts"] for slot in slots]
    draws = [slot["draw_watts"] for slot in slots if slot["draw_watts"] is not None]
    epoch = None if ledger is None else ledger.epoch
    return {
        "currency": currency,
        "grade": graded.grade,
        "grade_reason": grade_reason(graded),
        "missing_slots": list(graded.missing),
        "outside_nodes": list(graded.outside),
        "budget_watts": charter.budget_watts,
        "margin_ratio": charter.founded.margin_ppm / MILLION,
        "floors_watts": sum(slot.floor_watts for slot in charter.slots),
        "shared_watts": charter.version.watts,
        "version": charter.version.sequence,
        "is_unanimous": charter.version.is_unanimous,
        "epoch": None if epoch is None else list(epoch),
        "closing": _closing(known, charter, ledger),
        "caps_watts": None if None in caps else _total(caps),
        "draw_watts": _total(draws) if draws else None,
        "draw_known_count": len(draws),
        "stranded_watts": stranded_watts(known, charter),
        "alarms": list(
            dict.fromkeys((*charter.alarms, *(() if ledger is None else ledger.alarms)))
        ),
        "slots": slots,
    }


def grade(known: PowerKnown, charter: Charter) -> Activation:
    """What may be claimed of a rack."""
    return activation(
        [_fact(known, charter, slot) for slot in charter.slots],
        charter.version,
        outside=_outside(known, charter),
    )


def grade_reason(graded: Activation) -> str:
    """The grade in a line."""
    reasons = []
    if graded.missing:
        reasons.append(f"nothing is known to hold {', '.join(graded.missing)}")
    if graded.outside:
        verb = "stands" if len(graded.outside) == 1 else "stand"
        reasons.append(f"{', '.join(graded.outside)} {verb} in no slot")
    if reasons:
        return f"unprotected: {'; '.join(reasons)}"
    if graded.late:
        return f"still on an older budget: {', '.join(graded.late)}"
    if graded.silent:
        return f"not heard for long, and held by what was heard: {', '.join(graded.silent)}"
    return "enforced and metered" if graded.grade == "A" else "enforced; some draws are modelled"


def stranded_watts(known: PowerKnown, charter: Charter) -> int | None:
    """What members hold who do not answer: nobody else can use it; None while it is not known.

    Only accounts of one epoch add up: while a member that answers has told nothing in the present
    one, what it holds is not known.
    """
    live = {
        fact.row.node_id: fact.row
        for (currency, _), fact in known.rows.items()
        if currency == charter.currency and fact.age_seconds <= ROW_ALIVE_SECONDS
    }
    if not live:
        return None
    ledger = known.ledger(charter.currency)
    if ledger is not None and ledger.epoch is not None:
        epoch, members = ledger.epoch, ledger.members
    else:
        epoch = max(row.epoch for row in live.values())
        members = charter.members_of(epoch)
    rows = [live[member] for member in members if member in live]
    if any(row.epoch != epoch for row in rows):
        return None
    held = sum(row.shares for row in rows)
    under_way = sum(
        promise.shares for row in rows for promise in row.promises if promise.to in live
    )
    return watts_of(max(0, SHARES_TOTAL - held - under_way), charter.version.watts)


def _outside(known: PowerKnown, charter: Charter) -> list[str]:
    """Machines of this node's rack that say something and stand in none of its slots.

    Who is retired stands nowhere, whatever was signed of it, once it is heard after that.
    """
    if charter.currency != f"rack:{known.rack}":
        return []
    standing = {slot.node_id: not _is_out(charter, slot) for slot in charter.slots}
    return [
        mate.name
        for node_id, mate in known.mates.items()
        if not standing.get(node_id, False)
        and mate.age_seconds is not None
        and mate.age_seconds <= (FRESH_SECONDS if node_id in standing else SILENT_SECONDS)
    ]


def _fact(known: PowerKnown, charter: Charter, slot: Slot) -> SlotFact:
    fact, mate = _row(known, charter, slot.node_id), _mate(known, slot.node_id)
    complied = None
    if fact is not None and fact.row.version.sequence != NO_VERSION.sequence:
        complied = fact.row.version
    return SlotFact(
        slot=slot.name,
        node_id=slot.node_id,
        floor_watts=slot.floor_watts,
        is_static=slot.is_static,
        # Who is retired, and what stands empty, is an operator's signed word.
        is_proven_off=not slot.is_static and (slot.node_id is None or _is_out(charter, slot)),
        complied=complied,
        row_age_seconds=None if fact is None else fact.age_seconds,
        is_metered=mate is not None and mate.draw_watts is not None and not mate.is_draw_estimated,
    )


def _describe_slot(known: PowerKnown, charter: Charter, slot: Slot, graded: Activation) -> Document:
    fact, mate = _row(known, charter, slot.node_id), _mate(known, slot.node_id)
    state, why = _state(known, charter, slot, dict(graded.states)[slot.name])
    is_fixed = state in ("static", "empty", "off")
    is_fresh = mate is not None and (mate.age_seconds or 0.0) <= FRESH_SECONDS
    share = None
    if fact is not None:
        share = slot.floor_watts + watts_of(fact.row.shares, charter.version.watts)
    cap = whole(mate.cap_watts) if mate is not None and is_fresh else None
    return {
        "slot": slot.name,
        "node": None if mate is None else mate.name,
        "node_id": None if slot.node_id is None else slot.node_id.hex(),
        "floor_watts": slot.floor_watts,
        "is_static": slot.is_static,
        "state": state,
        "share_watts": share,
        "cap_watts": slot.floor_watts if is_fixed else cap,
        "draw_watts": whole(mate.draw_watts) if mate is not None and is_fresh else None,
        "demand_watts": None if fact is None else slot.floor_watts + fact.row.wants.demand_watts,
        "minimum_watts": None if fact is None else slot.floor_watts + fact.row.wants.minimum_watts,
        "priority": None if fact is None else fact.row.wants.priority,
        "version": None if fact is None else fact.row.version.sequence or None,
        "epoch": None if fact is None else list(fact.row.epoch),
        "is_behind": slot.name in graded.late,
        "age_seconds": None if fact is None else round(fact.age_seconds, 1),
        "why": why,
    }


def _state(known: PowerKnown, charter: Charter, slot: Slot, claimed: str) -> tuple[str, str]:
    """A slot in a word, and why."""
    if claimed == "static":
        return "static", "counted at its maximum"
    if claimed == "proven_off":
        if slot.node_id is None:
            return "empty", "an operator has signed that nothing stands there"
        return "off", "an operator has signed that it is off"
    fact, ledger = _row(known, charter, slot.node_id), known.ledger(charter.currency)
    if slot.node_id == known.node_id and ledger is not None and ledger.quarantine:
        return "quarantined", ledger.quarantine
    if fact is None:
        if slot.node_id == known.node_id and known.detail:
            return "missing", known.detail
        return "missing", "it has told nothing of its power"
    if fact.age_seconds > ROW_ALIVE_SECONDS:
        return "silent", "it keeps the cap that it had; its watts stay reserved"
    if fact.row.is_frozen:
        return "closing", "it has said its last word in this epoch, or does not trust its ledger"
    if claimed == "missing":
        return "missing", "its cap is not set and settled yet"
    if fact.row.is_refusing:
        return "refusing", "its hardware does not take a lower cap"
    return "enforcing", ""


def _closing(known: PowerKnown, charter: Charter, ledger: LedgerView | None) -> Document | None:
    if ledger is None or not ledger.is_closing or ledger.epoch is None:
        return None
    records = charter.closings_of(ledger.epoch)
    names = {node_id: mate.name for node_id, mate in known.mates.items()}
    return {
        "rank": records[-1].rank if records else 0,
        "absent": [names.get(one, one.short) for one in ledger.absent],
    }


def _row(known: PowerKnown, charter: Charter, node_id: NodeId | None) -> RowFact | None:
    return None if node_id is None else known.rows.get((charter.currency, node_id))


def _mate(known: PowerKnown, node_id: NodeId | None) -> MateFact | None:
    return None if node_id is None else known.mates.get(node_id)


def _is_out(charter: Charter, slot: Slot) -> bool:
    """Whether who stands there was retired since, and nobody has come in its place."""
    return any(slot.node_id in record.out for record in charter.retired)


def _total(values: list[object]) -> int:
    return sum(value for value in values if isinstance(value, int))
