"""A machine in a hall: simulated GPUs, thermal care over them, and what a seed does to both.

The physics are the simulated machine's own. What is measured is what a person at the rack would
see: how long a GPU was held back by its own protection, how often its limit was changed and turned
around, and what was left of it afterwards.
"""

import itertools
import random
from dataclasses import dataclass, field

from esnode.control.heat import Look, look_of
from esnode.control.thermal import Care, Settings, ThermalCare
from esnode.drivers.simulated.changes import create, follow
from esnode.drivers.simulated.machine import (
    CoolingSet,
    Created,
    Event,
    Gpu,
    InletSet,
    LimitSet,
    Load,
    LoadSet,
    Machine,
)
from esnode.drivers.simulated.parts import PARTS
from esnode.drivers.simulated.physics import advance, operate
from esnode.drivers.simulated.readout import identify, read_out

AISLE_BELOW_HEAT_SINKS_CELSIUS = 5.0
"""The inlet sensor is in the aisle's air; the simulated inlet is the air at the heat sinks."""


@dataclass
class Seen:
    """What one GPU went through."""

    held_seconds_max: float = 0.0
    held_seconds_total: float = 0.0
    changes: list[tuple[float, int]] = field(default_factory=list)
    """(when, the limit set)."""
    words: list[tuple[float, str]] = field(default_factory=list)
    drained: bool = False
    stopped: bool = False
    hottest_celsius: float = 0.0
    _held_seconds: float = 0.0

    def turns(self, since_seconds: float = 0.0, until_seconds: float = float("inf")) -> int:
        """How often the limit stopped going one way and went the other."""
        inside = [watts for at, watts in self.changes if since_seconds <= at < until_seconds]
        signs = [b > a for a, b in itertools.pairwise(inside)]
        return sum(a != b for a, b in itertools.pairwise(signs))

    def most_changes_in_an_hour(self) -> int:
        times = [at for at, _ in self.changes]
        return max((sum(at <= t < at + 3600.0 for t in times) for at in times), default=0)

    def see(self, gpu: Gpu, machine: Machine, step_seconds: float) -> None:
        self.hottest_celsius = max(self.hottest_celsius, gpu.temperature_celsius)
        is_held = operate(gpu, machine.inlet_celsius).is_thermally_held
        self._held_seconds = self._held_seconds + step_seconds if is_held else 0.0
        self.held_seconds_total += step_seconds if is_held else 0.0
        self.held_seconds_max = max(self.held_seconds_max, self._held_seconds)

    def word(self, now: float, word: str) -> None:
        if not self.words or self.words[-1][1] != word:
            self.words.append((now, word))


class Hall:
    """The machine, its care, and the arbiter reduced to thermal care's own claim."""

    def __init__(
        self,
        spec: str = "h100x2",
        *,
        settings: Settings | None = None,
        seed: str = "seed",
        look_seconds: float = 1.0,
        is_enforcing: bool = True,
    ) -> None:
        self.machine = create(
            Created(spec=spec, seed=seed, host_boot_id="boot", inlet_celsius=30.0), 0.0
        )
        self.care = ThermalCare(settings)
        self.seen = {gpu.uuid: Seen() for gpu in self.machine.gpus}
        self.blind: set[str] = set()
        """GPUs whose temperature cannot be read."""
        self.silent: set[str] = set()
        """GPUs that are not read at all."""
        self.latest: dict[str, Care] = {}
        self._look_seconds = look_seconds
        self._is_enforcing = is_enforcing

    @property
    def now(self) -> float:
        return self.machine.at_seconds

    def happen(self, event: Event) -> None:
        self.machine = follow(self.machine, event, self.now)

    def load(self, ratio: float, kind: str = "compute") -> None:
        for gpu in self.machine.gpus:
            self.happen(LoadSet(gpu=gpu.uuid, load=Load(ratio=ratio, kind=kind)))

    def heat(self, inlet_celsius: float) -> None:
        self.happen(InletSet(inlet_celsius=inlet_celsius))

    def cool(self, index: int, ratio: float) -> None:
        self.happen(CoolingSet(gpu=self.machine.gpus[index].uuid, cooling_ratio=ratio))

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            self.machine = advance(self.machine, self.now + self._look_seconds)
            for gpu in self.machine.gpus:
                self.seen[gpu.uuid].see(gpu, self.machine, self._look_seconds)
            for care in self.care.take(self._looks(), self.now):
                self.latest[care.gpu] = care
                self._obey(care)

    def _looks(self) -> list[Look]:
        looks = []
        for gpu in self.machine.gpus:
            if gpu.uuid in self.silent:
                continue
            reading = read_out(
                gpu,
                identify(self.machine, gpu),
                inlet_celsius=self.machine.inlet_celsius,
                read_process_name=lambda pid: None,
            )
            look = look_of(reading, at_seconds=self.now)
            if gpu.uuid in self.blind:
                look = Look(
                    gpu=look.gpu,
                    at_seconds=look.at_seconds,
                    minimum_watts=look.minimum_watts,
                    maximum_watts=look.maximum_watts,
                    draw_watts=look.draw_watts,
                    is_slowed_by_heat=look.is_slowed_by_heat,
                )
            looks.append(look)
        return looks

    def _obey(self, care: Care) -> None:
        seen = self.seen[care.gpu]
        seen.word(self.now, care.word)
        seen.drained |= care.must_drain
        seen.stopped |= care.must_stop
        if not self._is_enforcing:
            return
        gpu = next(gpu for gpu in self.machine.gpus if gpu.uuid == care.gpu)
        if care.must_stop and gpu.load.ratio:
            self.happen(LoadSet(gpu=gpu.uuid, load=Load()))
        most = PARTS[gpu.part].limit_max_watts
        watts = most if care.ceiling_watts is None else care.ceiling_watts
        if watts != gpu.limit_requested_watts:
            if not seen.changes:
                seen.changes.append((self.now, gpu.limit_requested_watts))
            self.happen(LimitSet(gpu=gpu.uuid, watts=watts))
            seen.changes.append((self.now, watts))


def weather(hall: Hall, rng: random.Random, *, hours: float) -> None:
    """Hours of heat waves, dying fans and load steps, as the seed will have them; then calm."""
    until = hall.now + hours * 3600.0
    hall.load(1.0)
    hall.heat(rng.uniform(46.0, 52.0))
    hall.run(rng.uniform(300.0, 900.0))
    while hall.now < until:
        match rng.choice(("wave", "fan", "load", "load", "calm")):
            case "wave":
                hall.heat(rng.uniform(38.0, 52.0))
            case "fan":
                hall.cool(rng.randrange(len(hall.machine.gpus)), rng.uniform(0.45, 1.0))
            case "load":
                hall.load(rng.choice((0.2, 0.6, 1.0)), rng.choice(("compute", "mixed", "decode")))
            case _:
                hall.heat(30.0)
        hall.run(rng.uniform(60.0, 900.0))
    hall.heat(30.0)
    for index in range(len(hall.machine.gpus)):
        hall.cool(index, 1.0)
    hall.load(1.0)
