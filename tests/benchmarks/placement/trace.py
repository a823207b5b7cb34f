"""The jobs and the machines: made from a seed, the same for every rule of placement.

**Jobs.** 1000 jobs arrive as a Poisson process over `ARRIVAL_HOURS`. Each asks for 0, 1, 2, 4
or 8 GPUs (`GPU_COUNTS`: small ones are most, as in published traces of GPU clusters), is of one of
three loads, and has so much work that on unhindered H100s it takes a time from a log-normal
distribution (median 25 minutes, a tenth of them longer than 2.5 hours, cut at 8 hours): heavy
tails, as in those traces. Priorities are 2 to 7. One in five names a least memory of each GPU,
which rules out some models. Nobody knows how long a job will run.

Source: the shape, not the figures, follows M. Jeon et al., Analysis of Large-Scale Multi-Tenant GPU
Clusters (USENIX ATC 2019): most jobs are small, run times span four orders of magnitude.

**Machines.** 200 of eight GPUs, 40 of each simulated part, shuffled into racks of ten, so that most
racks are mixed. A rack's budget is `BUDGET_RATIO` of what its machines draw at their maximum.
"""

import random
from dataclasses import dataclass
from typing import TypeVar

from esnode.drivers.simulated.parts import PARTS, SUPPLY_EFFICIENCY_RATIO, Part
from esnode.placing.need import Need

JOB_COUNT = 1000
NODE_COUNT = 200
RACK_SIZE = 10
GPUS = 8
ARRIVAL_HOURS = 1.0
MEDIAN_SECONDS = 1500.0
SIGMA = 1.4
SECONDS_MIN, SECONDS_MAX = 60.0, 8 * 3600.0
BUDGET_RATIO = 0.7
GPU_COUNTS = {0: 0.05, 1: 0.4, 2: 0.15, 4: 0.15, 8: 0.25}
LOADS = {"compute": 0.35, "mixed": 0.35, "decode": 0.3}
LATENCIES = {"low": 0.3, "medium": 0.5, "high": 0.2}
GIB = 1024**3
Choice = TypeVar("Choice", int, str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A job as the trace has it."""

    need: Need
    work: float
    """In seconds of all its GPUs, if they were unhindered H100s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine as the trace has it."""

    name: str
    rack: str
    part: Part

    @property
    def maximum_watts(self) -> float:
        """At the inlet, all GPUs at their highest limit."""
        each = self.part.limit_max_watts + self.part.chassis_share_watts
        return GPUS * each / SUPPLY_EFFICIENCY_RATIO


def arrivals(
    rng: random.Random, count: int = JOB_COUNT, hours: float = ARRIVAL_HOURS
) -> list[Arrival]:
    """Jobs in the order in which they come."""
    at = 0.0
    made = []
    for number in range(count):
        at += rng.expovariate(count / (hours * 3600.0))
        gpus = _drawn(rng, GPU_COUNTS)
        seconds = rng.lognormvariate(0.0, SIGMA) * MEDIAN_SECONDS
        need = Need(
            job=f"job{number:04}",
            gpu_count=gpus,
            gpu_memory_bytes=rng.choice((40, 70, 120)) * GIB if rng.random() < 0.2 else 0,
            cpu_count=max(1, 4 * gpus),
            memory_bytes=max(1, gpus) * 16 * GIB,
            load=_drawn(rng, LOADS),
            latency=_drawn(rng, LATENCIES),
            priority=rng.randint(2, 7),
            waiting_since_seconds=at,
        )
        made.append(Arrival(need=need, work=min(SECONDS_MAX, max(SECONDS_MIN, seconds))))
    return made


def nodes(rng: random.Random, count: int = NODE_COUNT) -> list[Node]:
    """Machines by name."""
    parts = [part for part in PARTS.values() for _ in range(count // len(PARTS))]
    rng.shuffle(parts)
    return [
        Node(name=f"n{number:03}", rack=f"r{number // RACK_SIZE:02}", part=part)
        for number, part in enumerate(parts)
    ]


def budgets(machines: list[Node]) -> dict[str, float]:
    """Watts of each rack."""
    sums: dict[str, float] = {}
    for one in machines:
        sums[one.rack] = sums.get(one.rack, 0.0) + one.maximum_watts
    return {rack: BUDGET_RATIO * watts for rack, watts in sums.items()}


def _drawn(rng: random.Random, weights: dict[Choice, float]) -> Choice:
    return rng.choices(list(weights), list(weights.values()))[0]
