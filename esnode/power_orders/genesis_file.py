"""The file in which an operator writes down a rack: its budget, its slots, who stands where.

Its own file because it is a contract with people: every mistake is named with the slot in which it
stands, and a key that nobody knows is a mistake. The text is TOML or YAML by name; both become the
same mapping before they come here. It must not know which nodes exist.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from cluster.rack.ledger.decrees import MILLION, NAME_CHARACTERS_MAX
from esnode.power_orders.quantities import BadQuantity, read_part, read_watts, read_weight
from esnode.power_orders.refusals import check_none

RACK_KEYS = ("rack", "currency", "budget", "margin", "slots")
SLOT_KEYS = ("slot", "node", "floor", "static", "watts", "weight", "share")
MARGIN_PPM_DEFAULT = 30_000
"""Source: the error that node meters commonly have, 3 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WishedSlot:
    """One position of the rack as the operator wrote it."""

    name: str
    node: str | None = None
    """A name or an id; None for an empty slot and for a load without an agent."""
    floor_watts: int
    is_static: bool = False
    weight: int | None = None
    share_ratio: Fraction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A rack as the operator wants it to be founded."""

    currency: str
    budget_watts: int
    margin_ppm: int
    slots: tuple[WishedSlot, ...]


def read_wish(document: Mapping[str, object]) -> Wish:
    """The wish that a file holds.

    Raises:
        CannotOrder: with one line for each mistake.
    """
    reading = _Reading()
    reading.check_keys("the file", document, RACK_KEYS)
    currency = reading.currency(document)
    budget = reading.watts("budget", document.get("budget"))
    margin = reading.margin(document.get("margin"))
    slots = reading.slots(document.get("slots"))
    check_none(reading.lines, is_usage=True)
    return Wish(currency=currency, budget_watts=budget, margin_ppm=margin, slots=slots)


class _Reading:
    """One pass over a file: what it says, and all that is wrong with it."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def check_keys(self, where: str, found: Mapping[str, object], known: tuple[str, ...]) -> None:
        """A misspelt key would else be a missing one."""
        for key in found:
            if key not in known:
                near = difflib.get_close_matches(str(key), known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
                self.lines.append(f"{where}: unknown key {str(key)!r}; {hint}")

    def currency(self, document: Mapping[str, object]) -> str:
        rack, currency = document.get("rack"), document.get("currency")
        if isinstance(currency, str) and currency.partition(":")[2]:
            return currency
        if currency is not None:
            self.lines.append('currency: write what and where, e.g. "feed-a:r01"')
        elif isinstance(rack, str) and rack:
            return f"rack:{rack}"
        else:
            self.lines.append('rack: which one? e.g. rack = "r01"')
        return ""

    def watts(self, where: str, value: object) -> int:
        if value is None:
            self.lines.append(f"{where}: how many watts?")
            return 0
        try:
            return read_watts(value)
        except BadQuantity as bad:
            self.lines.append(f"{where} {bad}")
            return 0

    def margin(self, value: object) -> int:
        if value is None:
            return MARGIN_PPM_DEFAULT
        try:
            part = read_part(value)
        except BadQuantity as bad:
            self.lines.append(f"margin {bad}")
            return 0
        if part > Fraction(1, 2):
            self.lines.append(f"margin is {value!r}; at most half of the budget")
        return int(part * MILLION)

    def slots(self, value: object) -> tuple[WishedSlot, ...]:
        if not isinstance(value, list) or not value:
            self.lines.append("slots: none is listed; each position of the rack is one [[slots]]")
            return ()
        read = []
        for number, one in enumerate(value, start=1):
            if isinstance(one, Mapping):
                read.append(self.slot(number, one))
            else:
                self.lines.append(f"slot {number}: not a table of {', '.join(SLOT_KEYS)}")
        return tuple(read)

    def slot(self, number: int, one: Mapping[str, object]) -> WishedSlot:
        name = one.get("slot")
        is_named = isinstance(name, str | int) and not isinstance(name, bool)
        where = f"slot {name}" if is_named else f"slot number {number}"
        if not is_named or not 0 < len(str(name)) <= NAME_CHARACTERS_MAX:
            wanted = f"of at most {NAME_CHARACTERS_MAX} characters"
            self.lines.append(f'{where}: it needs a name {wanted}, e.g. slot = "u07"')
        self.check_keys(where, one, SLOT_KEYS)
        node = one.get("node")
        if node is not None and not isinstance(node, str):
            self.lines.append(f"{where}: node is no text; write the name of a node")
        is_static = one.get("static", False)
        if not isinstance(is_static, bool):
            self.lines.append(f"{where}: static is true or false")
        return WishedSlot(
            name=str(name),
            node=node if isinstance(node, str) and node else None,
            floor_watts=self.charge(where, one, is_static=is_static is True),
            is_static=is_static is True,
            weight=self.weight(where, one),
            share_ratio=self.share(where, one),
        )

    def charge(self, where: str, one: Mapping[str, object], *, is_static: bool) -> int:
        """What is always charged for the slot."""
        floor, watts = one.get("floor"), one.get("watts")
        if is_static:
            if watts is None:
                self.lines.append(
                    f"{where}: a static load needs watts: all that it can ever draw"
                    + (" (not a floor)" if floor is not None else "")
                )
                return 0
            if floor is not None:
                self.lines.append(f"{where}: a static load has watts and no floor")
            return self.watts(f"{where}: watts", watts)
        if watts is not None:
            self.lines.append(
                f"{where}: watts are those of a static load (static = true); a node has a floor"
            )
        elif floor is None:
            self.lines.append(
                f"{where}: it needs a floor: what its machine draws without work at its lowest "
                "limits"
            )
        return 0 if floor is None else self.watts(f"{where}: floor", floor)

    def weight(self, where: str, one: Mapping[str, object]) -> int | None:
        value = one.get("weight")
        try:
            return None if value is None else read_weight(value)
        except BadQuantity as bad:
            self.lines.append(f"{where}: weight {bad}")
            return None

    def share(self, where: str, one: Mapping[str, object]) -> Fraction | None:
        value = one.get("share")
        try:
            return None if value is None else read_part(value)
        except BadQuantity as bad:
            self.lines.append(f"{where}: share {bad}")
            return None
