"""Which machine an order means: a name, an id, or the beginning of one, among those of the rack.

Its own file because a file of a whole rack and a single order look nodes up alike. What is
ambiguous is never guessed at. It must not know what will be done to the machine.
"""

import re
from collections.abc import Sequence

from cluster.rack.units import CurrencyId
from esnode.power_orders.known import RETURNING, Machine
from esnode.power_orders.refusals import CannotOrder

PREFIX_DIGITS_MIN = 6


def find_machine(machines: Sequence[Machine], text: str) -> Machine:
    """The one that is meant.

    Raises:
        CannotOrder: none is, or several are.
    """
    written = text.strip()
    named = [one for one in machines if one.name == written]
    # Of a machine that was reimaged, the key that was removed is not meant.
    found = [one for one in named if one.state in RETURNING] or named
    digits = written.lower()
    if not found and len(digits) >= PREFIX_DIGITS_MIN and re.fullmatch(r"[0-9a-f]+", digits):
        found = [one for one in machines if str(one.node_id).startswith(digits)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise CannotOrder(
            f"unknown node {written!r}; `esnode cluster members` lists them", is_usage=True
        )
    ids = ", ".join(str(one.node_id) for one in found)
    raise CannotOrder(f"node {written!r} is ambiguous, write its id: {ids}", is_usage=True)


def rack_of(currency: CurrencyId) -> str:
    """The rack that a currency is named after: the part behind the colon."""
    return currency.partition(":")[2]


def check_rack(machine: Machine, currency: CurrencyId, racks: Sequence[str]) -> list[str]:
    """Whether a machine may hold watts of a currency; a row or a hall feeds several racks."""
    rack = rack_of(currency)
    if rack not in racks or machine.rack == rack:
        return []
    return [f"{machine.name} is in rack {machine.rack}, not in {rack}"]
