"""Other rules on the same trace of demand: how fast watts follow, and what it costs.

Its own file because these are contrasts and no part of the product. All drive the same machines
with the same delays and failures of calls, and the network between is never worse than for ours.
Small versions of what the papers describe, with one priority class and not tuned; parameters that a
paper does not give here are ours. None of them holds a bound at every instant by itself, and
crashes, which they could not bear, are left out.

* central: a controller that knows every demand at once. It lowers, waits for the settle time, and
  raises; nobody who keeps the bound can be faster.
* dynamo: Q. Wu et al., Dynamo, ISCA 2016. A leaf controller reads all draws each 3 s; above 99 % of
  the limit it takes the excess over 95 % from the largest draws, below 90 % it lets all caps go.
* penelope: T. Srivastava et al., Penelope, ICPP 2022. Each second a node that draws less than its
  cap puts the rest into its own pool, and one at its cap takes from its own pool or asks the pool
  of one random node; a part of a pool goes at a time, and more to a node below its first cap.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cluster.ids import NodeId
from cluster.rack.rows import Wants
from cluster.rack.share import target
from cluster.rack.units import SHARES_TOTAL, watts_of
from simulations.power.machine import MAXIMUM_WATTS, Machine
from simulations.power.node import SETTLE_SECONDS
from simulations.power.site import BUDGET_RATIO
from simulations.world import World

WARM_SECONDS = 20.0
TRACE_SECONDS = 140.0
SHIFT_SECONDS = 15.0
"""From one shift of half the rack to the next; between them single nodes change."""
CHANGE_SECONDS = 3.0
STEP_SECONDS = 0.05
HOP_SECONDS = (0.0005, 0.005)

POLL_SECONDS = 3.0
CAP_ABOVE, CAP_TO, UNCAP_BELOW = 0.99, 0.95, 0.90

EXCHANGE_SECONDS = 1.0
AT_CAP_RATIO = 0.95
POOL_PART_RATIO = 0.1
PIECE_WATTS_MIN = 40
"""At our scale: what is not worth less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What the work of each machine would draw, over time."""

    count: int
    """How many machines; all of one priority, since not every rule knows of any other."""
    steps: tuple[tuple[float, tuple[int, ...]], ...]
    """From when on, and how much for each machine."""
    shifts: tuple[float, ...]

    @property
    def budget_watts(self) -> int:
        """What can be shared out."""
        return int(BUDGET_RATIO * MAXIMUM_WATTS * self.count)

    def ideal(self, demands: Sequence[int]) -> list[int]:
        """What each machine should have of the whole budget."""
        ids = [NodeId(place.to_bytes(16)) for place in range(self.count)]
        wants = {
            node_id: Wants(demand_watts=demand, maximum_watts=MAXIMUM_WATTS)
            for node_id, demand in zip(ids, demands, strict=True)
        }
        aims = target(SHARES_TOTAL, wants, self.budget_watts)
        return [min(MAXIMUM_WATTS, watts_of(aims[one], self.budget_watts)) for one in ids]


def draw_trace(count: int, seed: int) -> Trace:
    """Half the rack swaps with the other half every 15 s, and single jobs come and go."""
    chance = random.Random(f"trace {count} {seed}")
    demands = [int(chance.uniform(0.1, 1.0) * MAXIMUM_WATTS) for _ in range(count)]
    steps = [(0.0, tuple(demands))]
    shifts = []
    at, next_shift = WARM_SECONDS / 2, WARM_SECONDS
    while at < TRACE_SECONDS:
        if at >= next_shift:
            order = chance.sample(range(count), count)
            for rank, place in enumerate(order):
                low, high = (0.0, 0.15) if rank < count // 2 else (0.9, 1.0)
                demands[place] = int(chance.uniform(low, high) * MAXIMUM_WATTS)
            steps.append((next_shift, tuple(demands)))
            shifts.append(next_shift)
            next_shift += SHIFT_SECONDS
        else:
            demands[chance.randrange(count)] = int(chance.uniform(0.0, 1.0) * MAXIMUM_WATTS)
            steps.append((at, tuple(demands)))
        at = min(at + chance.expovariate(1 / CHANGE_SECONDS), max(next_shift, at))
    return Trace(count=count, steps=tuple(steps), shifts=tuple(shifts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """How a rule did on a trace."""

    goodput_ratio: float
    """Of what a controller without any delay would have let the work draw; more than the budget
    does not count."""
    to_90_percent_seconds: tuple[float | None, ...]
    """After each shift, to 90 % of what was missing."""
    over_seconds: float
    """How long the hardware could have drawn more than the budget."""
    drew_over_seconds: float
    """How long it did."""
    worst_over_watts: int
    """Drawn at most, above the budget."""


class Meter:
    """Looks at the machines of one rack every 50 ms and compares with the ideal."""

    def __init__(self, trace: Trace, world: World, machines: Sequence[Machine]) -> None:
        self._trace, self._world, self._machines = trace, world, machines
        self._ideal = trace.ideal(trace.steps[0][1])
        self._served = self._possible = 0.0
        self._over_seconds = self._drew_over_seconds = 0.0
        self._worst = 0
        self._open: tuple[float, int] | None = None
        """Since when, and how much was missing at first."""
        self._to_90: list[float | None] = []
        world.after(STEP_SECONDS, self._look)

    def demands_changed(self, demands: Sequence[int], *, is_shift: bool) -> None:
        """The work wants something else from now on."""
        self._ideal = self._trace.ideal(demands)
        if is_shift:
            if self._open is not None:
                self._to_90.append(None)
            self._open = self._world.now, self._missing()

    def _missing(self) -> int:
        return sum(
            max(0, min(machine.demand_watts, ideal) - machine.limit_watts)
            for machine, ideal in zip(self._machines, self._ideal, strict=True)
        )

    def _look(self) -> None:
        self._world.after(STEP_SECONDS, self._look)
        if self._open is not None and self._missing() <= 0.1 * self._open[1]:
            self._to_90.append(round(self._world.now - self._open[0], 3))
            self._open = None
        if self._world.now < WARM_SECONDS:
            return
        budget = self._trace.budget_watts
        served = sum(min(machine.demand_watts, machine.limit_watts) for machine in self._machines)
        self._served += min(served, budget) * STEP_SECONDS
        for machine, ideal in zip(self._machines, self._ideal, strict=True):
            self._possible += min(machine.demand_watts, ideal) * STEP_SECONDS
        over = sum(machine.draw_watts for machine in self._machines) - budget
        self._worst = max(self._worst, over)
        self._drew_over_seconds += STEP_SECONDS if over > 0 else 0.0
        if sum(machine.bound_watts for machine in self._machines) > budget:
            self._over_seconds += STEP_SECONDS

    def result(self) -> Served:
        """All that was seen."""
        return Served(
            goodput_ratio=round(self._served / max(1.0, self._possible), 4),
            to_90_percent_seconds=tuple(self._to_90),
            over_seconds=round(self._over_seconds, 2),
            drew_over_seconds=round(self._drew_over_seconds, 2),
            worst_over_watts=self._worst,
        )


class Rack:
    """Machines on a trace, and a rule that sets their limits."""

    def __init__(self, trace: Trace, seed: int, rule: "type[Rule]") -> None:
        self.trace = trace
        self.world = World(seed)
        self.chance = self.world.chance("contrast")
        self.machines = [
            Machine(self.world, self.world.chance(f"machine {place}"), on_change=lambda _: None)
            for place in range(trace.count)
        ]
        first = trace.budget_watts // trace.count
        for machine, demand in zip(self.machines, trace.steps[0][1], strict=True):
            machine.limit_watts, machine.demand_watts = first, demand
            machine.is_gate_open = True
            machine.refresh()
        self.meter = Meter(trace, self.world, self.machines)
        self._wanted: dict[int, int] = {}
        self._rule = rule(self)
        for at, demands in trace.steps[1:]:
            self.world.at(at, self._change, demands, at in trace.shifts)

    def _change(self, demands: Sequence[int], is_shift: bool) -> None:
        for machine, demand in zip(self.machines, demands, strict=True):
            machine.demand_watts = demand
        self.meter.demands_changed(demands, is_shift=is_shift)
        self._rule.demands_changed()

    def set_limit(self, place: int, watts: int) -> None:
        """Send a limit to a machine; a call that fails is made again."""

        def done(limit_watts: int) -> None:
            if limit_watts != watts and self._wanted[place] == watts:
                self.machines[place].set_limit(watts, done)

        self._wanted[place] = watts
        hop = self.chance.uniform(*HOP_SECONDS)
        self.world.after(hop, lambda: self.machines[place].set_limit(watts, done))

    def play(self) -> Served:
        """The whole trace."""
        self.world.run_until(TRACE_SECONDS)
        return self.meter.result()


class Rule:
    """How limits follow; this one leaves them as they are."""

    def __init__(self, rack: Rack) -> None:
        self.rack = rack

    def demands_changed(self) -> None:
        """A rule that is told of demand hears of it here; the others see draws."""


class Central(Rule):
    """Knows everything, and still has to lower before it raises."""

    def __init__(self, rack: Rack) -> None:
        super().__init__(rack)
        self._round = 0

    def demands_changed(self) -> None:
        """Begin a round; the one before is given up."""
        self._round += 1
        aims = self.rack.trace.ideal([machine.demand_watts for machine in self.rack.machines])
        for place, (machine, aim) in enumerate(zip(self.rack.machines, aims, strict=True)):
            if aim < machine.limit_watts:
                self.rack.set_limit(place, aim)
        self.rack.world.after(SETTLE_SECONDS + 0.04, self._raise, self._round, aims)

    def _raise(self, number: int, aims: Sequence[int]) -> None:
        if number != self._round:
            return
        if any(one.limit_watts > aim for one, aim in zip(self.rack.machines, aims, strict=True)):
            self.rack.world.after(0.03, self._raise, number, aims)  # a call has failed
            return
        for place, (machine, aim) in enumerate(zip(self.rack.machines, aims, strict=True)):
            if aim > machine.limit_watts:
                self.rack.set_limit(place, aim)


class Dynamo(Rule):
    """Reads draws each 3 s and acts in three bands."""

    def __init__(self, rack: Rack) -> None:
        super().__init__(rack)
        rack.world.after(rack.chance.uniform(0, POLL_SECONDS), self._poll)
        for place in range(len(rack.machines)):
            rack.set_limit(place, MAXIMUM_WATTS)

    def _poll(self) -> None:
        rack, limit = self.rack, self.rack.trace.budget_watts
        rack.world.after(POLL_SECONDS, self._poll)
        draws = [machine.draw_watts for machine in rack.machines]
        total = sum(draws)
        if total > CAP_ABOVE * limit:
            for place, cap in enumerate(_cut_from_largest(draws, int(total - CAP_TO * limit))):
                if cap < draws[place]:
                    rack.set_limit(place, cap)
        elif total < UNCAP_BELOW * limit:
            for place, machine in enumerate(rack.machines):
                if machine.limit_watts < MAXIMUM_WATTS:
                    rack.set_limit(place, MAXIMUM_WATTS)


def _cut_from_largest(draws: Sequence[int], cut: int) -> list[int]:
    """Lower the largest draws to one common level, until so much is cut."""
    low, high = 0, max(draws, default=0)
    while low < high:
        level = (low + high + 1) // 2
        if sum(max(0, draw - level) for draw in draws) >= cut:
            low = level
        else:
            high = level - 1
    return [min(draw, low) for draw in draws]


class Penelope(Rule):
    """Each node has a pool; whoever is at its cap asks one random pool each second."""

    def __init__(self, rack: Rack) -> None:
        super().__init__(rack)
        self._first = rack.trace.budget_watts // rack.trace.count
        self._caps = [self._first for _ in rack.machines]
        self._pools = [0 for _ in rack.machines]
        for place in range(len(rack.machines)):
            rack.world.after(rack.chance.uniform(0, EXCHANGE_SECONDS), self._decide, place)

    def _decide(self, place: int) -> None:
        rack = self.rack
        rack.world.after(EXCHANGE_SECONDS, self._decide, place)
        draw, cap = rack.machines[place].draw_watts, self._caps[place]
        if draw < AT_CAP_RATIO * cap:
            spare = int(cap - draw / AT_CAP_RATIO)
            if spare >= PIECE_WATTS_MIN:
                self._set(place, cap - spare)
                rack.world.after(SETTLE_SECONDS, self._pool, place, spare)
        elif cap < MAXIMUM_WATTS:
            if self._pools[place]:
                self._take(place, place)
            else:
                asked = rack.chance.choice([at for at in range(len(self._caps)) if at != place])
                there_and_back = 2 * rack.chance.uniform(*HOP_SECONDS)
                rack.world.after(there_and_back, self._take, asked, place)

    def _pool(self, place: int, watts: int) -> None:
        self._pools[place] += watts

    def _take(self, pool: int, place: int) -> None:
        there = self._pools[pool]
        piece = max(PIECE_WATTS_MIN, int(there * POOL_PART_RATIO))
        if pool == place:
            piece = there
        elif self._caps[place] < self._first:
            piece = max(piece, self._first - self._caps[place])
        piece = min(piece, there, MAXIMUM_WATTS - self._caps[place])
        if piece > 0:
            self._pools[pool] -= piece
            self._set(place, self._caps[place] + piece)

    def _set(self, place: int, watts: int) -> None:
        self._caps[place] = watts
        self.rack.set_limit(place, watts)


CONTRASTS: dict[str, Callable[[Trace, int], Served]] = {
    "central": lambda trace, seed: Rack(trace, seed, Central).play(),
    "dynamo": lambda trace, seed: Rack(trace, seed, Dynamo).play(),
    "penelope": lambda trace, seed: Rack(trace, seed, Penelope).play(),
}
