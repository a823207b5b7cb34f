"""A small cluster that runs on virtual time: jobs come, are placed, driven out, and end.

The rules under test decide; this only carries out. What it checks at every step trusts none of
them: no GPU has two jobs, and no job that is no more important drives another out.
"""

import random
from dataclasses import dataclass, field, replace

from esnode.placing.decide import Placed, Preempt, decide
from esnode.placing.machine import MachinePlace, Running
from esnode.placing.need import Need
from esnode.placing.preempting import History, Policy, Preemption, Victim
from esnode.placing.queueing import effective_priority
from tests.placing_places import gpus, machine, with_jobs

STEP_SECONDS = 60.0
SAVE_SECONDS = 600.0


@dataclass(slots=True, kw_only=True)
class ShiftJob:
    """One job through its life."""

    need: Need
    seconds: float
    """Of work in all."""
    done_seconds: float = 0.0
    saved_seconds: float = 0.0
    preempted_count: int = 0
    ended_at_seconds: float | None = None
    waited_seconds_max: float = 0.0


@dataclass(slots=True, kw_only=True)
class Shift:
    """The cluster."""

    node_count: int
    gpu_count: int
    policy: Policy = field(default_factory=Policy)
    now: float = 0.0
    jobs: dict[str, ShiftJob] = field(default_factory=dict)
    queue: dict[str, Need] = field(default_factory=dict)
    queued_at: dict[str, float] = field(default_factory=dict)
    running: dict[str, tuple[str, Running]] = field(default_factory=dict)
    preemptions: list[Preemption] = field(default_factory=list)

    def submit(self, need: Need, seconds: float) -> None:
        came = replace(need, waiting_since_seconds=self.now)
        self.jobs[need.job] = ShiftJob(need=came, seconds=seconds)
        self.queue[need.job] = came
        self.queued_at[need.job] = self.now

    def step(self) -> None:
        """One minute."""
        self.now += STEP_SECONDS
        for job, (_, held) in list(self.running.items()):
            life = self.jobs[job]
            life.done_seconds += STEP_SECONDS
            if life.done_seconds - life.saved_seconds >= SAVE_SECONDS:
                life.saved_seconds = life.done_seconds
            if held.is_stopping:
                del self.running[job]
                life.done_seconds = life.saved_seconds
                self.queue[job] = replace(life.need, waiting_since_seconds=self.now)
                self.queued_at[job] = self.now
            elif life.done_seconds >= life.seconds:
                del self.running[job]
                life.ended_at_seconds = self.now
        recent = tuple(one for one in self.preemptions if self.now - one.at_seconds < 86_400)
        made = decide(
            self.queue.values(),
            self.machines(),
            History(preemptions=recent),
            self.now,
            policy=self.policy,
        )
        for one in made:
            if isinstance(one, Placed):
                self._start(one)
            elif isinstance(one, Preempt):
                for victim in one.victims:
                    self._drive_out(victim, one)

    def machines(self) -> list[MachinePlace]:
        return [
            with_jobs(
                machine(f"n{number}", gpus(self.gpu_count)),
                *(held for node, held in self.running.values() if node == f"n{number}"),
            )
            for number in range(self.node_count)
        ]

    def _start(self, placed: Placed) -> None:
        there = [held for node, held in self.running.values() if node == placed.node]
        taken = [uuid for held in there for uuid in held.gpus]
        assert not [uuid for uuid in placed.gpus if uuid in taken], "a GPU has two jobs"
        need = self.queue.pop(placed.job)
        life = self.jobs[placed.job]
        waited = self.now - self.queued_at.pop(placed.job)
        life.waited_seconds_max = max(life.waited_seconds_max, waited)
        started = Running(
            job=need.job,
            gpus=placed.gpus,
            priority=need.priority,
            started_priority=effective_priority(need, self.now),
            is_preemptible=need.is_preemptible,
            has_checkpoint=True,
            started_at_seconds=self.now,
        )
        self.running[need.job] = (placed.node, started)

    def _drive_out(self, victim: Victim, made: Preempt) -> None:
        node, held = self.running[victim.job]
        assert held.priority < self.queue[made.job].priority, "a job of no less importance"
        self.queue[made.job] = replace(self.queue[made.job], room_node=made.node)
        life = self.jobs[victim.job]
        life.need = replace(life.need, promised_at_seconds=victim.promised_at_seconds)
        life.preempted_count += 1
        self.running[victim.job] = (node, replace(held, is_stopping=True))
        self.preemptions.append(Preemption(job=victim.job, node=node, at_seconds=self.now))

    def most_in_an_hour(self) -> int:
        """The most preemptions of one node within any hour."""
        return max(
            (
                sum(
                    1
                    for other in self.preemptions
                    if other.node == one.node and 0 <= other.at_seconds - one.at_seconds < 3600
                )
                for one in self.preemptions
            ),
            default=0,
        )


def busy_shift(seed: int, policy: Policy, *, hours: float, job_count: int) -> Shift:
    """Jobs of all priorities come faster than they can be served, then all run to the end."""
    rng = random.Random(seed)
    shift = Shift(node_count=2, gpu_count=4, policy=policy)
    comes = sorted(rng.uniform(0, hours * 3600) for _ in range(job_count))
    number = 0
    while number < job_count or shift.queue or shift.running:
        while number < job_count and comes[number] <= shift.now:
            need = Need(
                job=f"j{number:03}",
                gpu_count=rng.choice((1, 1, 2, 4)),
                priority=rng.randint(0, 9),
                is_preemptible=rng.random() < 0.8,
            )
            shift.submit(need, rng.lognormvariate(0, 1.0) * 1500)
            number += 1
        shift.step()
        assert shift.now < 30 * 86_400, f"never done, seed {seed}"
    return shift
