"""The racks of a demo under a budget: founded as operators found them, loaded in turn, and watched.

Its own file because the watcher takes nothing from the agents: what may be drawn is worked out
from the machines' own histories (`demo_witness`). It must not know how a screen is drawn.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cluster.credentials import load_operator
from esnode.cli.cluster_operator import Speaker
from esnode.cli.demo_cluster import Demo, DemoFailed, Machine, wait_for
from esnode.cli.demo_load import FULL, IDLE, play
from esnode.cli.demo_witness import Verdict, Witness
from esnode.cli.power_speaker import look_around, sign
from esnode.power_orders.refusals import CannotOrder

if TYPE_CHECKING:
    from esnode.power_orders.genesis_file import Wish

SHIFT_SECONDS = 12.0
PROTECTED_SECONDS = 60.0
SCHEMA = "esnode.power/"
DYNAMIC_RATIO = 0.5
"""How much of what GPUs could draw above their floors the budget leaves, unless one is given."""
ROUND_WATTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RackNow:
    """One rack as it is shown."""

    rack: str
    budget_watts: int
    document: dict[str, Any] | None
    """As the first agent says that answers."""
    verdict: Verdict


class Racks:
    """All racks of a demo, each under the same budget."""

    def __init__(self, demo: Demo, budget_watts: int | None) -> None:
        """`budget_watts` is of each rack; None: one that leaves half of what the GPUs could use."""
        self._demo = demo
        self._wanted_watts = budget_watts
        self._witnesses: dict[str, Witness] = {}
        self._budgets_watts: dict[str, int] = {}
        self._turn = -1
        self._shift_seconds: float | None = None

    def found(self, tell: Callable[[str], None]) -> None:
        """Put each rack under its budget, and wait until it is protected.

        Raises:
            DemoFailed: it cannot be founded, or is not protected in time.
        """
        first = self._demo.machines[0]
        power = wait_for(lambda: _power(first), PROTECTED_SECONDS, f"{first.name} tells no power")
        lowest, highest = power["cap"]["lowest_watts"], power["cap"]["highest_watts"]
        folder = self._demo.operator_folder
        speaks = Speaker(door=first.door, path=folder, folder=load_operator(folder))
        for rack, machines in self._demo.racks().items():
            wish = _wish(rack, machines, (lowest, highest), self._wanted_watts)
            _sign_genesis(speaks, wish)
            self._budgets_watts[rack] = wish.budget_watts
            tell(f"rack {rack} is founded with {wish.budget_watts:,} W")
        for rack, machines in self._demo.racks().items():
            for machine in machines:
                self._wait_protected(rack, machine)
            margin = 1.0 - _wish(rack, machines, (lowest, highest), None).margin_ppm / 1_000_000
            self._witnesses[rack] = Witness(
                [machine.hardware_path for machine in machines],
                allowed_watts=self._budgets_watts[rack] * margin,
                since_seconds=_boottime_seconds(),
            )

    def _wait_protected(self, rack: str, machine: Machine) -> None:
        """Until this agent has its cap, and knows that all the others have theirs."""

        def asked() -> dict[str, Any] | None:
            if not machine.is_running:
                raise DemoFailed(f"{machine.name} has ended: {machine.last_words()}")
            power = _power(machine)
            is_protected = power is not None and any(
                one["grade"] in ("A", "B") for one in power["currencies"]
            )
            return power if is_protected else None

        wait_for(asked, PROTECTED_SECONDS, f"rack {rack} is not protected at {machine.name}")

    def shift(self, now: float) -> str | None:
        """Let the next half of each rack's nodes work, when it is time; who works then."""
        if self._shift_seconds is not None and now < self._shift_seconds + SHIFT_SECONDS:
            return None
        self._shift_seconds = now
        self._turn += 1
        working: list[str] = []
        for machines in self._demo.racks().values():
            for place, machine in enumerate(machines):
                is_busy = (place - self._turn) % len(machines) < (len(machines) + 1) // 2
                _let_work(machine, is_busy=is_busy)
                working += [machine.name] if is_busy else []
        return f"work moves to {', '.join(working)}"

    def look(self) -> list[RackNow]:
        """Every rack now."""
        return [
            RackNow(
                rack=rack,
                budget_watts=self._budgets_watts[rack],
                document=next(filter(None, map(_power, machines)), None),
                verdict=self._witnesses[rack].look(_boottime_seconds()),
            )
            for rack, machines in self._demo.racks().items()
        ]

    def conclude(self) -> dict[str, Verdict]:
        """What every rack could draw at every instant, judged anew from the files alone."""
        return {rack: witness.conclude() for rack, witness in self._witnesses.items()}

    def allowed_watts(self, rack: str) -> float:
        """The budget of a rack, less its margin."""
        return self._witnesses[rack].allowed_watts


def _wish(
    rack: str, machines: list[Machine], range_watts: tuple[int, int], budget_watts: int | None
) -> "Wish":
    """All machines are alike, so one of them tells the floor of each."""
    from esnode.power_orders.genesis_file import MARGIN_PPM_DEFAULT, Wish, WishedSlot

    lowest, highest = range_watts
    if budget_watts is None:
        each = lowest + DYNAMIC_RATIO * (highest - lowest)
        margin = 1.0 - MARGIN_PPM_DEFAULT / 1_000_000
        budget_watts = round(len(machines) * each / margin / ROUND_WATTS) * ROUND_WATTS
    return Wish(
        currency=f"rack:{rack}",
        budget_watts=budget_watts,
        margin_ppm=MARGIN_PPM_DEFAULT,
        slots=tuple(
            WishedSlot(name=f"u{place:02}", node=machine.name, floor_watts=lowest)
            for place, machine in enumerate(machines, start=1)
        ),
    )


def _sign_genesis(speaks: Speaker, wish: "Wish") -> None:
    from esnode.power_orders.founding import plan_genesis

    try:
        look = look_around(speaks)
        sign(speaks, look, plan_genesis(wish, look.machines, look.charters).founded)
    except CannotOrder as refused:
        raise DemoFailed("; ".join(refused.lines)) from None


def _power(machine: Machine) -> dict[str, Any] | None:
    return machine.ask("/v1/power", SCHEMA) if machine.is_running else None


def _let_work(machine: Machine, *, is_busy: bool) -> None:
    """A machine whose agent was stopped in the middle of a change is busy: it works next time."""
    from esnode.drivers.simulated.store import StoreFailed

    try:
        play(machine.folder, FULL if is_busy else IDLE)
    except StoreFailed:
        return


def _boottime_seconds() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
