"""What becomes of the jobs: power is shared in each rack, work is done, energy is counted.

Between two events (a job comes, a job ends) everything is constant. In a rack every busy GPU gets
what its load would draw, or, where the budget is less, the same part of the way from its lowest
limit to that. A job goes at the pace of its curve at those watts, times its model's speed, times an
error of the data sheet (`SPEED_SIGMA`) that no rule of placement knows.

Counted at the inlet: GPUs at work, GPUs without work at their idle draw, and a fixed share for the
rest of each machine. A machine without work is credited nothing: none is ever switched off.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from esnode.drivers.simulated.parts import SUPPLY_EFFICIENCY_RATIO
from esnode.placing.curves import CURVES, peak_work
from esnode.placing.machine import GpuPlace, MachinePlace, PowerPlace, Running
from esnode.placing.need import Need
from tests.benchmarks.placement.trace import GPUS, Arrival, Node

SPEED_SIGMA = 0.2
CPU_COUNT = 192
MEMORY_BYTES = 2 * 1024**4


@dataclass(slots=True, kw_only=True)
class Work:
    """A job that runs."""

    need: Need
    node: str
    gpus: tuple[int, ...]
    speed: float
    """Against unhindered H100s, if nothing hinders it here."""
    left: float
    lowest_watts: float
    wanted_watts: float
    knee_ratio: float
    highest_watts: float
    watts: float = 0.0
    rate: float = 0.0

    def power(self, part: float) -> None:
        self.watts = self.lowest_watts + part * (self.wanted_watts - self.lowest_watts)
        if self.gpus:
            curve = CURVES[self.need.load]
            self.rate = self.speed * curve.work_ratio(self.watts / self.highest_watts)


@dataclass(slots=True, kw_only=True)
class Rack:
    """One budget and what draws on it."""

    budget_watts: float
    nodes: list[Node]
    running: dict[str, Work] = field(default_factory=dict)
    draw_watts: float = 0.0
    """At the inlet, with all that is fixed."""
    floor_watts: float = 0.0
    busy_watts: float = 0.0
    """At the inlet, what the jobs' GPUs draw above their idle draw."""
    updated: float = 0.0
    energy_joules: float = 0.0
    busy_joules: float = 0.0

    def advance(self, now: float) -> None:
        seconds = now - self.updated
        for work in self.running.values():
            work.left -= work.rate * seconds
        self.energy_joules += self.draw_watts * seconds
        self.busy_joules += self.busy_watts * seconds
        self.updated = now

    def share(self) -> None:
        """Give out the budget anew."""
        parts = {node.name: node.part for node in self.nodes}
        busy = [work for work in self.running.values() if work.gpus]
        fixed = sum(GPUS * (part.idle_watts + part.chassis_share_watts) for part in parts.values())
        idle = sum(parts[work.node].idle_watts * len(work.gpus) for work in busy)
        lowest = sum(work.lowest_watts * len(work.gpus) for work in busy)
        wanted = sum(work.wanted_watts * len(work.gpus) for work in busy)
        room = self.budget_watts * SUPPLY_EFFICIENCY_RATIO - fixed + idle
        part = 1.0 if wanted <= room else max(0.0, (room - lowest) / max(1e-9, wanted - lowest))
        for work in busy:
            work.power(part)
        drawn = sum(work.watts * len(work.gpus) for work in busy)
        self.draw_watts = (fixed - idle + drawn) / SUPPLY_EFFICIENCY_RATIO
        self.floor_watts = (fixed - idle + lowest) / SUPPLY_EFFICIENCY_RATIO
        self.busy_watts = (drawn - idle) / SUPPLY_EFFICIENCY_RATIO

    def places(self) -> list[MachinePlace]:
        """The machines as placement is told of them."""
        spare = self.budget_watts - self.draw_watts
        pressed = self.budget_watts - self.floor_watts
        return [self._place(node, max(0.0, spare), max(0.0, pressed)) for node in self.nodes]

    def _place(self, node: Node, spare: float, pressed: float) -> MachinePlace:
        part = node.part
        works = [work for work in self.running.values() if work.node == node.name]
        held = {index: work for work in works for index in work.gpus}
        gpus = tuple(_gpu(node, index, held.get(index)) for index in range(GPUS))
        load = sum(gpu.draw_watts or 0.0 for gpu in gpus) + GPUS * part.chassis_share_watts
        draw = load / SUPPLY_EFFICIENCY_RATIO
        return MachinePlace(
            node=node.name,
            rack=node.rack,
            gpus=gpus,
            cpu_count=CPU_COUNT,
            cpu_reserved_count=sum(work.need.cpu_count for work in works),
            memory_total_bytes=MEMORY_BYTES,
            memory_reserved_bytes=sum(work.need.memory_bytes for work in works),
            power=PowerPlace(
                draw_watts=draw,
                obtainable_watts=draw + pressed,
                transferable_watts=pressed,
                spare_watts=spare,
                supply_efficiency_ratio=SUPPLY_EFFICIENCY_RATIO,
            ),
            running=tuple(
                Running(
                    job=work.need.job,
                    gpus=tuple(_uuid(node, index) for index in work.gpus),
                    cpu_count=work.need.cpu_count,
                    memory_bytes=work.need.memory_bytes,
                    priority=work.need.priority,
                )
                for work in works
            ),
        )


class World:
    """All racks."""

    def __init__(self, machines: Sequence[Node], budgets: dict[str, float], seed: int) -> None:
        self._seed = seed
        self.nodes = {node.name: node for node in machines}
        self.racks = {
            name: Rack(budget_watts=watts, nodes=[node for node in machines if node.rack == name])
            for name, watts in budgets.items()
        }
        self.places: dict[str, list[MachinePlace]] = {}
        for name in self.racks:
            self._changed(name, 0.0)

    def machines(self) -> list[MachinePlace]:
        return [place for places in self.places.values() for place in places]

    def start(self, arrival: Arrival, node: str, gpus: Sequence[str], now: float) -> None:
        """A job begins."""
        need, part = arrival.need, self.nodes[node].part
        error = random.Random(f"{self._seed} {need.job} {part.key}").lognormvariate(0, SPEED_SIGMA)
        peak = peak_work(part.name, need.load) if gpus else 1.0
        assert peak is not None
        knee = CURVES[need.load].knee_ratio
        wanted = knee * part.limit_max_watts
        rack = self.racks[self.nodes[node].rack]
        rack.advance(now)
        rack.running[need.job] = Work(
            need=need,
            node=node,
            gpus=tuple(int(uuid.rpartition("-")[2]) for uuid in gpus),
            speed=peak * error if gpus else 1.0,
            left=arrival.work,
            lowest_watts=min(part.limit_min_watts, wanted),
            wanted_watts=wanted,
            knee_ratio=knee,
            highest_watts=part.limit_max_watts,
            rate=0.0 if gpus else 1.0,
        )
        self._changed(self.nodes[node].rack, now)

    def next_end(self) -> float | None:
        """When the next job ends, if nothing changes before."""
        ends = [
            rack.updated + max(0.0, work.left) / work.rate
            for rack in self.racks.values()
            for work in rack.running.values()
        ]
        return min(ends, default=None)

    def end_until(self, now: float) -> int:
        """All jobs that are done by now have ended; how many."""
        count = 0
        for name, rack in self.racks.items():
            done = [
                job
                for job, work in rack.running.items()
                if rack.updated + work.left / work.rate <= now + 1e-6
            ]
            if done:
                rack.advance(now)
                for job in done:
                    del rack.running[job]
                self._changed(name, now)
                count += len(done)
        return count

    def close(self, now: float) -> None:
        for rack in self.racks.values():
            rack.advance(now)

    @property
    def idle_watts(self) -> float:
        """What everything draws while nothing is at work, at the inlet."""
        each = (
            node.part.idle_watts + node.part.chassis_share_watts for node in self.nodes.values()
        )
        return GPUS * sum(each) / SUPPLY_EFFICIENCY_RATIO

    def _changed(self, name: str, now: float) -> None:
        rack = self.racks[name]
        rack.advance(now)
        rack.share()
        self.places[name] = rack.places()


def _uuid(node: Node, index: int) -> str:
    return f"{node.name}-{index}"


def _gpu(node: Node, index: int, work: Work | None) -> GpuPlace:
    part = node.part
    is_linked = part.key != "l40s"
    free = GpuPlace(
        uuid=_uuid(node, index),
        index=index,
        model=part.name,
        numa_node=index // 4,
        island=0 if is_linked else None,
        memory_total_bytes=part.memory_total_bytes,
        memory_used_bytes=part.memory_reserved_bytes,
        memory_baseline_bytes=part.memory_reserved_bytes,
        utilization_ratio=0.0,
        margin_celsius=30.0,
        draw_watts=part.idle_watts,
        idle_watts=part.idle_watts,
        lowest_watts=float(part.limit_min_watts),
        highest_watts=float(part.limit_max_watts),
    )
    if work is None:
        return free
    return replace(free, holders=(work.need.job,), draw_watts=work.watts, utilization_ratio=1.0)
