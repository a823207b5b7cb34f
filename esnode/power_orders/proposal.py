"""A rack proposed from what its nodes tell: floors, a budget, and on what each figure rests.

Its own file because it guesses, and says so: what a machine draws at its lowest limits is measured
by nobody, so each floor comes with the reason for it, and an operator changes what is wrong. Floors
that are too high cost performance; floors that are too low cost the promise. So guesses are high.
It must not know files or terminals.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from esnode.power_orders.genesis_file import MARGIN_PPM_DEFAULT, Wish, WishedSlot
from esnode.power_orders.known import RETURNING, Document, Machine, find, whole_of
from esnode.power_orders.refusals import CannotOrder

REST_RATIO = 1.25
"""What a machine draws beside its GPUs, over what it draws beside them now: fans, processors and
memory at full load. A guess."""
REST_WATTS_MIN = 300
"""Two processors and the fans of a server under load. A guess."""
LOWEST_LIMIT_RATIO = 0.3
"""The lowest limit of a GPU beside its highest, where neither is known (H100: 200 of 700 W)."""
ALIKE_RATIO = 1.1
"""Of two machines with the same GPUs: how much more one may draw beside them to count as alike."""
ROUND_WATTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """What the agent that was asked knows of its own machine."""

    lowest_watts: int | None
    """What it can be held to."""
    highest_watts: int | None
    """What it can draw at most."""
    gpu_minimum_watts: int | None
    """The lowest limits of its GPUs together."""
    gpu_maximum_watts: int | None
    gpu_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedSlot:
    """One slot, and why it is proposed so."""

    slot: WishedSlot
    machine: Machine
    maximum_watts: int | None
    """What the machine could draw with all its limits at their highest."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A rack as its nodes suggest it."""

    wish: Wish
    slots: tuple[ProposedSlot, ...]
    budget_reason: str


def read_own(power: Document) -> Own:
    """The machine of the agent that was asked, by its power document."""
    devices = [one for one in power.get("devices") or () if find(one, "kind") == "gpu"]
    lowest = [whole_of(one, "minimum_watts") for one in devices]
    highest = [whole_of(one, "maximum_watts") for one in devices]
    return Own(
        lowest_watts=whole_of(power, "cap", "lowest_watts"),
        highest_watts=whole_of(power, "cap", "highest_watts"),
        gpu_minimum_watts=_sum(lowest),
        gpu_maximum_watts=_sum(highest),
        gpu_count=len(devices),
    )


def propose(
    rack: str, machines: Sequence[Machine], own: Own, *, budget_watts: int | None = None
) -> Proposal:
    """A slot for each node of the rack, in the order of their names.

    Raises:
        CannotOrder: the rack has no node.
    """
    here = sorted(
        (one for one in machines if one.rack == rack and one.state in RETURNING),
        key=lambda one: one.name,
    )
    if not here:
        racks = sorted({one.rack for one in machines if one.state in RETURNING})
        known = ", ".join(racks) or "none"
        raise CannotOrder(f"no node is in rack {rack}; racks with nodes are {known}", is_usage=True)
    slots = tuple(
        _propose_slot(number, machine, machines, own) for number, machine in enumerate(here, 1)
    )
    budget, reason = _budget(slots, budget_watts)
    wish = Wish(
        currency=f"rack:{rack}",
        budget_watts=budget,
        margin_ppm=MARGIN_PPM_DEFAULT,
        slots=tuple(one.slot for one in slots),
    )
    return Proposal(wish=wish, slots=slots, budget_reason=reason)


def _propose_slot(
    number: int, machine: Machine, machines: Sequence[Machine], own: Own
) -> ProposedSlot:
    asked = next((one for one in machines if one.is_asked), None)
    is_alike = (
        asked is not None
        and own.gpu_count > 0
        and (machine.gpu_count, machine.gpu_limit_watts) == (asked.gpu_count, asked.gpu_limit_watts)
    )
    rest = _rest_watts(machine)
    highest = _whole(machine.gpu_limit_watts)
    if (machine.is_asked or is_alike) and own.gpu_maximum_watts is not None:
        highest = own.gpu_maximum_watts
    maximum = None if highest is None else _round_up(rest + highest)
    said = own.highest_watts if machine.is_asked else _whole(machine.highest_watts)
    if said is not None:
        maximum = said
    floor, reason = _floor(machine, own, asked=asked, rest=rest, is_alike=is_alike, highest=highest)
    slot = WishedSlot(name=f"u{number:02}", node=machine.name, floor_watts=floor)
    return ProposedSlot(slot=slot, machine=machine, maximum_watts=maximum, reason=reason)


def _floor(
    machine: Machine,
    own: Own,
    *,
    asked: Machine | None,
    rest: int,
    is_alike: bool,
    highest: int | None,
) -> tuple[int, str]:
    """What to charge always, and why so much."""
    said = own.lowest_watts if machine.is_asked else machine.lowest_watts
    if said is not None:
        return _round_up(said), "by its own agent: lowest limits of its devices and rest"
    if is_alike and own.lowest_watts is not None and asked is not None:
        beside, of_asked = _beside_watts(machine), _beside_watts(asked)
        if beside is not None and of_asked is not None and beside <= of_asked * ALIKE_RATIO:
            return _round_up(own.lowest_watts), f"as {asked.name}, which has the same GPUs"
    lowest = own.gpu_minimum_watts if machine.is_asked or is_alike else None
    more = f"{rest} W beside its GPUs (a guess)"
    if lowest is not None:
        whose = "its own" if machine.is_asked else "the asked agent's, with the same GPUs"
        return _round_up(rest + lowest), f"GPUs at {lowest} W ({whose}), {more}"
    if highest is not None:
        guessed = math.ceil(highest * LOWEST_LIMIT_RATIO)
        return _round_up(rest + guessed), f"GPUs at {guessed} W (a guess), {more}"
    if machine.draw_watts is not None:
        return _round_up(rest), f"draws {machine.draw_watts:.0f} W now; no GPU is known (a guess)"
    return REST_WATTS_MIN, "nothing is known of it: measure it"


def _rest_watts(machine: Machine) -> int:
    """What it may draw beside its GPUs."""
    beside = _beside_watts(machine)
    return REST_WATTS_MIN if beside is None else max(REST_WATTS_MIN, math.ceil(beside * REST_RATIO))


def _beside_watts(machine: Machine) -> float | None:
    """What it draws beside its GPUs now."""
    if machine.draw_watts is None:
        return None
    return machine.draw_watts - (machine.gpu_draw_watts or 0.0)


def _budget(slots: Sequence[ProposedSlot], given: int | None) -> tuple[int, str]:
    if given is not None:
        return given, "as given"
    floors = sum(one.slot.floor_watts for one in slots)
    highest = [one.maximum_watts for one in slots]
    total = _sum(highest)
    if total is None:
        return _round_up(floors * 2), "twice the floors, for want of better: what feeds the rack?"
    return _round_up(total), "what all could draw at once: lower it to what feeds the rack"


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _whole(value: float | None) -> int | None:
    return None if value is None else math.ceil(value)


def _round_up(watts: float) -> int:
    return math.ceil(watts / ROUND_WATTS) * ROUND_WATTS
