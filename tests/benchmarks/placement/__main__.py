"""`python -m tests.benchmarks.placement [--seeds 1,2,3] [--hours H] [--jobs N] [--nodes N]`.

The same jobs, machines, hard rules, queue and choice of GPUs within a machine for all four; only
the choice among the machines that have a place differs.

- **ours**: `esnode.placing.scoring.best`.
- **best-fit**: the machine on which the fewest GPUs are left free.
- **first-fit**: the machine of lowest name.
- **random**: any.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from esnode.placing.decide import Choice, Placed, decide
from esnode.placing.need import Need
from esnode.placing.preempting import History
from esnode.placing.scoring import Candidate, best
from tests.benchmarks.measuring import machine_line
from tests.benchmarks.placement.trace import (
    ARRIVAL_HOURS,
    JOB_COUNT,
    NODE_COUNT,
    arrivals,
    budgets,
    nodes,
)
from tests.benchmarks.placement.world import World

MEGAWATT_HOUR = 3.6e9


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One trace under one rule."""

    makespan_seconds: float
    energy_joules: float
    """Everything, until the last job has ended."""
    busy_joules: float
    """Only what GPUs at work drew above their idle draw."""
    idle_watts: float
    waited_seconds: float
    turnaround_seconds: float
    """Mean, from arrival to end."""
    decisions_count: int
    deciding_seconds: float


def best_fit(need: Need, candidates: Sequence[Candidate]) -> int:
    def left(place: int) -> tuple[int, str]:
        machine = candidates[place].machine
        free = sum(1 for gpu in machine.gpus if not gpu.holders)
        return free - need.gpu_count, machine.node

    return min(range(len(candidates)), key=left)


def first_fit(need: Need, candidates: Sequence[Candidate]) -> int:
    return min(range(len(candidates)), key=lambda place: candidates[place].machine.node)


def any_fit(seed: int) -> Choice:
    rng = random.Random(seed)
    return lambda need, candidates: rng.randrange(len(candidates))


RULES: dict[str, Callable[[int], Choice]] = {
    "ours": lambda seed: best,
    "best-fit": lambda seed: best_fit,
    "first-fit": lambda seed: first_fit,
    "random": any_fit,
}


def simulate(
    choose: Choice,
    seed: int,
    *,
    job_count: int,
    node_count: int,
    hours: float = ARRIVAL_HOURS,
) -> Outcome:
    """The whole trace."""
    rng = random.Random(seed)
    jobs = arrivals(rng, job_count, hours)
    machines = nodes(rng, node_count)
    world = World(machines, budgets(machines), seed)
    coming = {one.need.job: one for one in jobs}
    queue: dict[str, Need] = {}
    waiting = sorted(jobs, key=lambda one: one.need.waiting_since_seconds, reverse=True)
    now = waited = turnaround = deciding = 0.0
    decided = ended = 0
    while ended < len(jobs):
        next_end = world.next_end()
        next_come = waiting[-1].need.waiting_since_seconds if waiting else None
        now = min(at for at in (next_end, next_come) if at is not None)
        count = world.end_until(now)
        ended += count
        turnaround += count * now
        while waiting and waiting[-1].need.waiting_since_seconds <= now:
            need = waiting.pop().need
            queue[need.job] = need
            turnaround -= need.waiting_since_seconds
        if not queue:
            continue
        known = world.machines()
        started = time.perf_counter()
        decisions = decide(queue.values(), known, History(), now, choose=choose)
        deciding += time.perf_counter() - started
        decided += len(decisions)
        for one in decisions:
            if isinstance(one, Placed):
                waited += now - queue.pop(one.job).waiting_since_seconds
                world.start(coming[one.job], one.node, one.gpus, now)
    world.close(now)
    return Outcome(
        makespan_seconds=now,
        energy_joules=sum(rack.energy_joules for rack in world.racks.values()),
        busy_joules=sum(rack.busy_joules for rack in world.racks.values()),
        idle_watts=world.idle_watts,
        waited_seconds=waited / len(jobs),
        turnaround_seconds=turnaround / len(jobs),
        decisions_count=decided,
        deciding_seconds=deciding,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.placement")
    parser.add_argument("--seeds", default="1,2,3,4,5")
    parser.add_argument("--hours", type=float, default=ARRIVAL_HOURS, help="in which jobs come")
    parser.add_argument("--jobs", type=int, default=JOB_COUNT)
    parser.add_argument("--nodes", type=int, default=NODE_COUNT)
    parser.add_argument("--rules", default=",".join(RULES))
    options = parser.parse_args()
    seeds = [int(one) for one in options.seeds.split(",")]
    found: dict[str, list[Outcome]] = {}
    for seed in seeds:
        for name in options.rules.split(","):
            outcome = simulate(
                RULES[name](seed),
                seed,
                job_count=options.jobs,
                node_count=options.nodes,
                hours=options.hours,
            )
            found.setdefault(name, []).append(outcome)
    print(machine_line())
    print(f"{options.jobs} jobs, {options.nodes} machines, medians over seeds {options.seeds}")
    print(f"jobs come within {options.hours:g} h")
    print_table(found)


def print_table(found: dict[str, list[Outcome]]) -> None:
    """Medians over the seeds."""
    horizons = [
        max(outcome.makespan_seconds for outcome in outcomes)
        for outcomes in zip(*found.values(), strict=True)
    ]
    print(
        f"{'rule':10} {'makespan':>9} {'turnaround':>11} {'waited':>8} {'energy':>9} "
        f"{'same end':>9} {'work only':>10} {'decisions':>12}"
    )
    for name, outcomes in found.items():
        same = [
            one.busy_joules + one.idle_watts * horizon
            for one, horizon in zip(outcomes, horizons, strict=True)
        ]
        middle = statistics.median
        rate = middle(one.decisions_count / one.deciding_seconds for one in outcomes)
        print(
            f"{name:10} {middle(one.makespan_seconds for one in outcomes) / 3600:7.2f} h "
            f"{middle(one.turnaround_seconds for one in outcomes) / 60:7.1f} min "
            f"{middle(one.waited_seconds for one in outcomes):6.1f} s "
            f"{middle(one.energy_joules for one in outcomes) / MEGAWATT_HOUR:5.2f} MWh "
            f"{middle(same) / MEGAWATT_HOUR:5.2f} MWh "
            f"{middle(one.busy_joules for one in outcomes) / MEGAWATT_HOUR:6.2f} MWh "
            f"{rate:10.0f}/s"
        )
    print("energy: everything until the last job's end; same end: everything until the end of the")
    print("slowest rule; work only: what busy GPUs draw above their idle draw")


if __name__ == "__main__":
    main()
