"""Why a node's cap is what it is, in sentences, out of the power document.

Its own file because the same facts are a table elsewhere, and here they are reasons. Only what the
document says is said: of other nodes than the asked one less is known. It must not know terminals.
"""

from collections.abc import Mapping
from typing import Any

from esnode.power_orders.known import Document, find, number_of, whole_of
from esnode.power_orders.quantities import percent_text, watts_text
from esnode.power_orders.refusals import CannotOrder

PREFIX_DIGITS_MIN = 6
CLASS_WORDS = ("first", "second", "third", "last")
UNGOVERNED = (
    "{rack} has no power budget: nothing caps {node}. `esnode power genesis --propose > FILE` "
    "begins one."
)
OUT_OF_SLOTS = (
    "{node} stands in no slot of its rack's budget. Until it does, it is parked at its lowest cap "
    "and may run no work: `esnode power join {node} --slot SLOT`."
)
STATE_SENTENCES = {
    "static": "It is charged at its maximum: nothing enforces a cap there, and it never trades.",
    "off": "An operator has signed that its machine is off: it may draw nothing.",
    "missing": "Nothing is known to hold it below a cap, so the rack counts as unprotected.",
    "silent": (
        "It is silent. Its hardware goes on holding the cap that it had, and its watts stay "
        "reserved for it, until it answers or an operator retires it."
    ),
    "refusing": "Its hardware does not take a lower cap; the others plan around what it holds.",
    "quarantined": (
        "Its ledger contradicts what others remember, so it holds no watts above its floor until "
        "it is retired under this identity and joins under a new one."
    ),
    "closing": "It has said its last word in this epoch: nothing moves until the next one begins.",
}


def explain(document: Document, text: str) -> list[str]:
    """One sentence or two for each constraint that holds the node, then its own hardware.

    Raises:
        CannotOrder: nobody of this name is known there.
    """
    own, rack = str(document["node"]), str(document["rack"])
    is_own = text == own
    sentences: list[str] = []
    for one in document["currencies"]:
        slot = _find_slot(one, text)
        if slot is not None:
            is_own = is_own or slot.get("node") == own
            sentences += _in_currency(one, slot, slot.get("node") or text)
    if not sentences and not is_own:
        known = sorted(
            {str(slot["node"]) for one in document["currencies"] for slot in one["slots"]
             if slot.get("node")}
        )  # fmt: skip
        hint = f"known are {', '.join(known)}" if known else "no node of this rack has a budget"
        raise CannotOrder(f"no slot of rack {rack} is {text}'s; {hint}", is_usage=True)
    if not sentences:
        words = OUT_OF_SLOTS if document["currencies"] else UNGOVERNED
        sentences.append(words.format(node=own, rack=rack))
    return [*sentences, *(_own(document, own) if is_own else _of_others(own))]


def _find_slot(one: Mapping[str, Any], text: str) -> Mapping[str, Any] | None:
    written = text.lower()
    for slot in one["slots"]:
        is_id = len(written) >= PREFIX_DIGITS_MIN and str(slot.get("node_id")).startswith(written)
        if is_id or text in (slot.get("node"), slot["slot"]):
            return dict(slot)
    return None


def _in_currency(one: Mapping[str, Any], slot: Mapping[str, Any], name: str) -> list[str]:
    """What one constraint gives to a node."""
    currency, state = one["currency"], str(slot["state"])
    floor, share = whole_of(slot, "floor_watts"), whole_of(slot, "share_watts")
    shared = whole_of(one, "shared_watts")
    sentences = [_worth(name, slot["slot"], str(currency), floor, share, shared)]
    if state in STATE_SENTENCES:
        why = slot.get("why")
        sentences.append(STATE_SENTENCES[state] + (f" ({why})" if why else ""))
    demand, priority = whole_of(slot, "demand_watts"), whole_of(slot, "priority")
    if share is not None and demand is not None:
        sentences.append(_wish(share, demand, priority))
    if slot.get("is_behind") is True:
        sentences.append(
            f"It still keeps an older budget than the one of record {one.get('version')}; until it "
            "follows, the others hold themselves lower by its part of the difference."
        )
    if one.get("closing"):
        absent = ", ".join(str(absent) for absent in find(one, "closing", "absent") or ())
        sentences.append(
            f"Nothing is traded in {currency} now: a retirement is closing its epoch"
            + (f", and waits for the word of {absent}." if absent else ".")
        )
    if one.get("is_unanimous") is False:
        sentences.append(
            "The operators' log forks, so the lowest of its budgets holds until `esnode power "
            "budget set` settles it."
        )
    return sentences


def _worth(
    name: str, slot: str, currency: str, floor: int | None, share: int | None, shared: int | None
) -> str:
    if floor is None or share is None:
        charged = "an unknown floor" if floor is None else f"a floor of {watts_text(floor)}"
        return (
            f"{name} stands in slot {slot} of {currency} with {charged}; what it holds above it "
            "is not known here."
        )
    above = max(0, share - floor)
    part = "" if not shared else f", {percent_text(above / shared)} of what the nodes share out"
    return (
        f"{name} may draw {watts_text(share)} by {currency}: {watts_text(floor)} are the floor of "
        f"slot {slot}, charged always, and {watts_text(above)} are its shares{part}."
    )


def _wish(share: int, demand: int, priority: int | None) -> str:
    """Whether it has enough."""
    known = priority is not None and 0 <= priority < len(CLASS_WORDS)
    words = f"in the {CLASS_WORDS[priority or 0]} of four classes" if known else "of unknown class"
    if demand > share:
        return (
            f"Its work would use {watts_text(demand)}, {watts_text(demand - share)} more than it "
            f"holds; {words} it gets more when others need less."
        )
    return (
        f"Its work would use {watts_text(demand)}, so it has enough; what it does not use goes to "
        f"whoever is short ({words})."
    )


def _own(document: Document, name: str) -> list[str]:
    """What the asked node knows of its own hardware."""
    cap, state = document.get("cap") or {}, str(document["state"])
    in_force, wanted = whole_of(cap, "in_force_watts"), whole_of(cap, "wanted_watts")
    sentences = []
    detail = document.get("detail")
    if detail and detail != cap.get("reason"):
        sentences.append(f"{name} is {state}: {detail}.".replace("..", "."))
    if in_force is not None:
        settled = "has settled" if cap.get("is_settled") is True else "has not settled yet"
        sentences.append(f"In its hardware {watts_text(in_force)} are in force; that {settled}.")
    if wanted is not None and cap.get("reason"):
        sentences.append(f"What binds it is: {cap['reason']} ({watts_text(wanted)}).")
    draw = number_of(cap, "draw_watts")
    if draw is not None and in_force:
        source = cap.get("draw_source") or "unknown source"
        sentences.append(
            f"It draws {watts_text(round(draw))}, {percent_text(draw / in_force)} of its cap "
            f"(by {source})."
        )
    for key, words in (
        ("cover_watts", "are given up while nodes have not confirmed a lower budget"),
        ("throttle_watts", "are given up because the rack was measured to draw too much"),
    ):
        if watts := whole_of(cap, key):
            sentences.append(f"{watts_text(watts)} {words}.")
    lowest = whole_of(cap, "lowest_watts")
    if lowest is not None and wanted is not None and wanted < lowest:
        sentences.append(
            f"Its machine cannot be held below {watts_text(lowest)}: the floor of its slot is too "
            "low, or it is parked."
        )
    if cap.get("is_refusing") is True:
        sentences.append("Its hardware does not take a lower cap; `esnode power status --gpus`.")
    if not document["gate"]["is_open"]:
        sentences.append(f"No work may start on it: {document['gate']['reason']}.")
    return sentences


def _of_others(asked: str) -> list[str]:
    return [f"This is what {asked} knows; the node itself tells more: ask it with --agent URL."]
