"""Who makes room on one machine for a job that finds no place, and how.

Its own file because nothing else here takes anything from anybody. A plan is a proposal: whoever
carries it out writes it down first. It must not know other machines, nor how a job is stopped.

The mildest step that is enough is taken: L1 where only watts are short; L2 for jobs without a GPU,
or where the memory of both fits and the newcomer stays for `FREEZE_SECONDS_MAX` at most; then a
stop, of each victim by the milder of L4 and L6 that it allows.

Victims are preemptible, of lower priority than the newcomer both by their own and as they were
started (age alone never takes a running job's place), and a gang goes whole or not at all. Lowest
priority first, then least lost work, then fewest GPUs; who turns out not to be needed stays.

Nobody is driven out again and again: a job that has made room before is immune for a time after its
next start, twice as long each time, and a node makes room a bounded number of times in an hour.
Source: the specification of local control, sections 3.1 (GL-5) to 3.3.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from esnode.placing.fitting import fit
from esnode.placing.ladder import STEP_OF
from esnode.placing.machine import MachinePlace, Running, freeze, release, squeeze
from esnode.placing.need import Need
from esnode.placing.queueing import effective_priority

FREEZE_SECONDS_MAX = 300.0
"""Half of torch's default timeout of collectives. Source: local control, section 3.3."""
HOUR_SECONDS = 3600.0
HOPELESS = ("node", "rack", "gate")
"""Refusals that no victim changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What an operator allows."""

    preemptions_per_hour: int = 6
    """On one node. Source: ours, one in ten minutes as section 3.1 has it for owners of GPUs."""
    immunity_seconds: float = 3600.0
    """After the start that follows a job's first preemption."""
    immunity_doublings_max: int = 3
    promise_seconds: float = 7200.0
    """By then a victim is to be on again: from then on it counts as aged to the full."""
    is_stopping_allowed: bool = False
    """Whether preemptible jobs that may not run again may be stopped nevertheless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemption:
    """That a job once made room."""

    job: str
    node: str
    at_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What was done before, as its keeper hands it in: of the last day at least."""

    preemptions: tuple[Preemption, ...] = ()

    def remaining_count(self, node: str, policy: Policy, now: float) -> int:
        """How many more jobs of a node may make room now."""
        recent = sum(
            1
            for one in self.preemptions
            if one.node == node and now - one.at_seconds < HOUR_SECONDS
        )
        return max(0, policy.preemptions_per_hour - recent)

    def is_immune(self, job: Running, policy: Policy, now: float) -> bool:
        """Whether it made room lately and has not had its time since."""
        times = [one.at_seconds for one in self.preemptions if one.job == job.job]
        if not times:
            return False
        doublings = min(len(times) - 1, policy.immunity_doublings_max)
        since = max(job.started_at_seconds, *times)
        return now < since + policy.immunity_seconds * float(1 << doublings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """One job that makes room."""

    job: str
    level: str
    """Of `ladder.STEPS`."""
    gpus: tuple[str, ...]
    lost_gpu_seconds: float
    grace_seconds: float
    """How long it has to end by itself."""
    promised_at_seconds: float | None
    """When it is to be on again; None where it stays on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How room is made on one machine."""

    job: str
    """For whom."""
    node: str
    victims: tuple[Victim, ...]
    level: str
    """The harshest of its steps."""
    priority_max: int
    """Of the victims."""
    after: MachinePlace
    """The machine as it then is."""

    @property
    def lost_gpu_seconds(self) -> float:
        """What all of it throws away."""
        return sum(one.lost_gpu_seconds for one in self.victims)

    @property
    def cost(self) -> tuple[object, ...]:
        """The order among machines; the least is the best."""
        gpus = sum(len(one.gpus) for one in self.victims)
        return (self.level, self.priority_max, self.lost_gpu_seconds, gpus, self.node)

    def lines(self) -> tuple[str, ...]:
        """For the audit: what is done to whom, for whom, and what it frees."""
        return tuple(
            f"{one.job} makes room for {self.job} on {self.node}: {STEP_OF[one.level].line}"
            f" ({one.lost_gpu_seconds:.0f} GPU seconds), grace {one.grace_seconds:g} s"
            for one in self.victims
        )


@dataclass(frozen=True, slots=True)
class _Unit:
    """What goes together: one job, or a whole gang."""

    jobs: tuple[Running, ...]

    @property
    def priority(self) -> int:
        return max(job.priority for job in self.jobs)

    @property
    def gpu_count(self) -> int:
        return sum(len(job.gpus) for job in self.jobs)


Change = Callable[[MachinePlace, Collection[str]], MachinePlace]


def plan(
    need: Need, machine: MachinePlace, history: History, policy: Policy, now: float
) -> Plan | None:
    """The mildest way to give this job a place here; None where there is none, or it has one."""
    refusals = fit(need, machine).refusals
    if not refusals or any(refusal.what in HOPELESS for refusal in refusals):
        return None
    units = _units(need, machine, history, policy, now)
    if not units:
        return None
    budget = history.remaining_count(machine.node, policy, now)
    short = {refusal.what: None for refusal in refusals}
    rungs: list[tuple[str, list[_Unit], Change, int]] = []
    if list(short) == ["watts"]:
        rungs.append(("L1", units, squeeze, sum(len(unit.jobs) for unit in units)))
    frozen = [unit for unit in units if _may_freeze(need, unit, machine)]
    rungs.append(("L2", frozen, freeze, budget))
    stopped = [unit for unit in units if _may_stop(unit, policy)]
    rungs.append(("L6", stopped, release, budget))
    for level, chosen_from, change, most in rungs:
        chosen = _fewest(need, machine, chosen_from, change)
        if chosen is not None and sum(len(unit.jobs) for unit in chosen) <= most:
            return _planned(need, machine, chosen, level, change, policy, now)
    return None


def _units(
    need: Need, machine: MachinePlace, history: History, policy: Policy, now: float
) -> list[_Unit]:
    """Who may be asked, in the order in which they are."""
    counted = effective_priority(need, now)
    groups: dict[tuple[str, str], list[Running]] = {}
    for job in machine.running:
        groups.setdefault(("gang", job.gang) if job.gang else ("job", job.job), []).append(job)
    units = [
        _Unit(tuple(jobs))
        for jobs in groups.values()
        if len(jobs) >= jobs[0].gang_count
        and all(
            job.is_preemptible
            and not job.is_stopping
            and job.priority < need.priority
            and job.started_priority < counted
            and not history.is_immune(job, policy, now)
            for job in jobs
        )
    ]
    return sorted(
        units,
        key=lambda unit: (
            unit.priority,
            sum(job.lost_gpu_seconds(now) for job in unit.jobs),
            unit.gpu_count,
            unit.jobs[0].job,
        ),
    )


def _may_freeze(need: Need, unit: _Unit, machine: MachinePlace) -> bool:
    if not unit.gpu_count:
        return True
    if not need.gpu_memory_bytes or need.runs_for_seconds is None:
        return False
    held = [gpu for gpu in machine.gpus if any(gpu.uuid in job.gpus for job in unit.jobs)]
    known = all(gpu.memory_used_bytes is not None for gpu in held)
    return known and need.runs_for_seconds <= FREEZE_SECONDS_MAX


def _may_stop(unit: _Unit, policy: Policy) -> bool:
    return policy.is_stopping_allowed or all(
        job.has_checkpoint or job.is_idempotent for job in unit.jobs
    )


def _fewest(
    need: Need, machine: MachinePlace, units: Sequence[_Unit], change: Change
) -> list[_Unit] | None:
    """Units in their order until the job fits, less those that turn out not to be needed."""
    chosen: list[_Unit] = []
    for unit in units:
        chosen.append(unit)
        if _fits(need, machine, chosen, change):
            break
    else:
        return None
    for unit in reversed(chosen[:-1]):
        fewer = [one for one in chosen if one is not unit]
        if _fits(need, machine, fewer, change):
            chosen = fewer
    return chosen


def _fits(need: Need, machine: MachinePlace, units: Sequence[_Unit], change: Change) -> bool:
    return fit(need, change(machine, _names(units))).packing is not None


def _names(units: Sequence[_Unit]) -> list[str]:
    return [job.job for unit in units for job in unit.jobs]


def _planned(
    need: Need,
    machine: MachinePlace,
    chosen: Sequence[_Unit],
    level: str,
    change: Change,
    policy: Policy,
    now: float,
) -> Plan:
    victims = tuple(
        _victim(job, level, policy, now)
        for job in sorted((job for unit in chosen for job in unit.jobs), key=lambda job: job.job)
    )
    return Plan(
        job=need.job,
        node=machine.node,
        victims=victims,
        level=max(victim.level for victim in victims),
        priority_max=max(unit.priority for unit in chosen),
        after=change(machine, _names(chosen)),
    )


def _victim(job: Running, level: str, policy: Policy, now: float) -> Victim:
    if level == "L6":
        level = "L4" if job.has_checkpoint else "L6"
    loses = {"L4": job.lost_gpu_seconds(now), "L6": _all_work(job, now)}
    return Victim(
        job=job.job,
        level=level,
        gpus=job.gpus,
        lost_gpu_seconds=loses.get(level, 0.0),
        grace_seconds=job.grace_seconds,
        promised_at_seconds=now + policy.promise_seconds if level in loses else None,
    )


def _all_work(job: Running, now: float) -> float:
    return max(0.0, now - job.started_at_seconds) * max(1, len(job.gpus))
