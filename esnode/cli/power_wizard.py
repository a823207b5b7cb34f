"""The questions of `esnode power genesis --wizard`: a rack from answers, each with a proposal.

Its own file because it asks; what it makes is the same wish that a file holds. Enter takes what is
proposed. It must not know what becomes of the answers.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

import click

from cluster.rack.ledger.decrees import MILLION, NAME_CHARACTERS_MAX
from cluster.rack.units import CurrencyId
from esnode.cli.cluster_places import note
from esnode.cli.context import EXIT_USAGE, fail
from esnode.power_orders.founding import check_new
from esnode.power_orders.genesis_file import Wish, WishedSlot
from esnode.power_orders.proposal import propose, read_own
from esnode.power_orders.quantities import (
    BadQuantity,
    percent_text,
    read_part,
    read_watts,
    read_weight,
)

if TYPE_CHECKING:
    from esnode.cli.power_speaker import Look

T = TypeVar("T")


def ask_wish(look: "Look", rack: str | None) -> Wish:
    """Ask somebody at the terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        fail("--wizard asks, and nobody is there; see --propose and --file", code=EXIT_USAGE)
    return ask_all(look, rack)


def ask_all(look: "Look", rack: str | None) -> Wish:
    """All questions, in the order of the file."""
    wanted = rack or _ask("Rack", _text, str(look.power["rack"]))
    check_new(CurrencyId(f"rack:{wanted}"), look.charters, look.racks)
    proposal = propose(wanted, look.machines, read_own(look.power))
    highest = proposal.wish.budget_watts
    note(f"\nWhat feeds the rack, in watts. Its nodes could draw {highest:,} W at once.")
    budget = _ask("Budget", read_watts, str(highest))
    margin = _ask("Margin for the meters' error", _margin, "3 %")
    note(
        "\nThe floor of a slot is what its machine draws without work at its lowest limits. It is\n"
        "charged always; too high costs performance, too low breaks the promise."
    )
    slots = []
    for proposed in proposal.slots:
        note(f"\n{proposed.machine.name}: {proposed.reason}")
        name = _ask("  Slot (or - to leave the node out)", _slot_name, proposed.slot.name)
        if name == "-":
            continue
        floor = _ask("  Floor", read_watts, str(proposed.slot.floor_watts))
        slots.append(replace(proposed.slot, name=name, floor_watts=floor))
    slots = _weighed(slots)
    slots += _others("static load (switch, pump, a machine that cannot be capped)", is_static=True)
    slots += _others("empty slot for a later machine", is_static=False)
    return Wish(
        currency=f"rack:{wanted}",
        budget_watts=budget,
        margin_ppm=int(margin * MILLION),
        slots=tuple(slots),
    )


def _weighed(slots: list[WishedSlot]) -> list[WishedSlot]:
    """Shares for all alike, or by weight; trading moves them later either way."""
    if len(slots) < 2 or click.confirm("\nBegin with equal shares?", default=True, err=True):
        return slots
    return [
        replace(slot, weight=_ask(f"  Weight of {slot.node}", read_weight, "1")) for slot in slots
    ]


def _others(what: str, *, is_static: bool) -> list[WishedSlot]:
    """Slots without a node, until there are no more."""
    slots: list[WishedSlot] = []
    question = f"\nIs there one more {what}?"
    while click.confirm(question, default=False, err=True):
        name = _ask("  Slot", _slot_name, None)
        watts = _ask("  Watts, at most" if is_static else "  Floor", read_watts, None)
        slots.append(WishedSlot(name=name, floor_watts=watts, is_static=is_static))
    return slots


def _ask(question: str, read: Callable[[object], T], proposed: str | None) -> T:
    """Until the answer can be read."""
    while True:
        answer = click.prompt(question, default=proposed, err=True, type=str)
        try:
            return read(answer)
        except BadQuantity as bad:
            note(f"  it {bad}")


def _text(value: object) -> str:
    return str(value).strip()


def _slot_name(value: object) -> str:
    name = str(value).strip()
    if not 0 < len(name) <= NAME_CHARACTERS_MAX or not name.isprintable():
        raise BadQuantity(f"needs a name of at most {NAME_CHARACTERS_MAX} characters")
    return name


def _margin(value: object) -> Fraction:
    margin = read_part(value)
    if margin > Fraction(1, 2):
        raise BadQuantity(f"is {percent_text(margin)}; at most half of the budget")
    return margin
