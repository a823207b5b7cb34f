"""What placement is told of this machine and its jobs, and what follows from its answer.

Pure. Its own file because it is the line between what the agent knows and what placement decides
by. Everything is derived anew from what is seen, each time: a reservation is what the journal says,
and never less than what the GPUs show. It must not know how a place is chosen.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from esnode.placing.decide import Placed, Preempt, decide
from esnode.placing.decide import Waiting as NoPlace
from esnode.placing.machine import GpuPlace, MachinePlace, PowerPlace, Running
from esnode.placing.need import Need
from esnode.placing.preempting import History, Policy, Preemption
from esnode.placing.queueing import effective_priority
from esnode.snapshot import GpuState, Snapshot
from esnode.workloads.adapters import Given
from esnode.workloads.book import HELD, Book, Job, Phase
from esnode.workloads.choosing import Chosen, Decided, Making
from esnode.workloads.ids import JobId
from esnode.workloads.records import Purpose

GPU_OLD_SECONDS = 15.0
"""A GPU that was not read for so long is given to nobody."""
PREEMPTIONS_KEPT = 200
STOPPING_LEVELS = ("L4", "L6")
"""Steps that this agent carries out; the milder ones are for the power of the rack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeName:
    """What this machine is called in its cluster."""

    id: str = ""
    name: str = ""
    rack: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerRoom:
    """What rack power says about new work, at the inlet."""

    cap_watts: int | None = None
    """What this node may draw; None where nothing bounds it."""
    lowest_watts: int = 0
    """What it draws at most with all devices at their lowest limits: work can always be held to
    that, so only what was promised beyond it counts as taken."""


@dataclass(slots=True, kw_only=True, eq=False)
class LocalPlacer:
    """The placer of one machine."""

    node: Callable[[], NodeName]
    power: Callable[[], PowerRoom]
    boot_id: Callable[[], str]
    refusals: Callable[[], Mapping[str, str]] = dict
    """GPUs that take no new work, with why."""
    policy: Policy = field(default_factory=Policy)
    why_no_preemption: Callable[[], str] = lambda: "control_preemption is off"
    """Why nobody is made to go; empty where somebody may be."""
    preemptions: deque[Preemption] = field(default_factory=lambda: deque(maxlen=PREEMPTIONS_KEPT))
    _freed: dict[str, float] = field(default_factory=dict)
    """When it was proved that a job has left a GPU."""
    _room_for: dict[JobId, str] = field(default_factory=dict)
    """On which node room is being made for a job."""

    def freed(self, gpus: Sequence[str], now_unix_seconds: float) -> None:
        """Nothing of a job is on these any more: proved, whatever an older reading shows."""
        self._freed |= dict.fromkeys(gpus, now_unix_seconds)

    def decide(self, book: Book, snapshot: Snapshot | None, now_unix_seconds: float) -> Decided:
        """One pass."""
        now = now_unix_seconds
        queued = book.held(Phase.QUEUED)
        if snapshot is None:
            return Decided(waits={job.id: ("the machine is not read yet",) for job in queued})
        waits: dict[JobId, tuple[str, ...]] = {}
        ready = []
        for job in queued:
            if job.not_before_unix_seconds > now:
                left = job.not_before_unix_seconds - now
                waits[job.id] = (f"is tried again in {left:.0f} s: {job.reason}",)
            else:
                ready.append(replace(need_of(job), room_node=self._room_for.get(job.id, "")))
        machine = self.machine(book, snapshot, now)
        history = History(preemptions=tuple(self.preemptions))
        why_not = self.why_no_preemption()
        may_ask = not why_not
        asked = machine if may_ask else _with_nobody_to_ask(machine)
        decisions = decide(ready, [asked], history, now, policy=self.policy)
        starts: list[Chosen] = []
        stops: list[Making] = []
        for decision in decisions:
            job_id = JobId(decision.job)
            match decision:
                case Placed():
                    self._room_for.pop(job_id, None)
                    starts.append(self._chosen(decision, machine, snapshot))
                case NoPlace():
                    waits[job_id] = decision.lines
                case Preempt():
                    waits[job_id], made = self._make_room(decision, book, now)
                    stops += made
        if not may_ask and not why_not.endswith("off"):
            for one in decide(ready, [machine], history, now, policy=self.policy):
                if isinstance(one, Preempt) and JobId(one.job) in waits:
                    waits[JobId(one.job)] += (self._would(one, book, why_not),)
        return Decided(starts=tuple(starts), stops=tuple(stops), waits=waits)

    def machine(self, book: Book, snapshot: Snapshot, now: float) -> MachinePlace:
        """The machine, by what is seen of it and what the journal has given away."""
        machine = machine_of(snapshot, book, self.power(), self.refusals(), self.node())
        ages = {gpu.uuid: gpu.age_seconds or 0.0 for gpu in snapshot.gpus}
        return replace(
            machine,
            gpus=tuple(
                _left(gpu) if now - ages[gpu.uuid] < self._freed.get(gpu.uuid, 0.0) else gpu
                for gpu in machine.gpus
            ),
        )

    def _would(self, preempt: Preempt, book: Book, why_not: str) -> str:
        victims = ", ".join(_shown(book, JobId(one.job)) for one in preempt.victims)
        return f"would have {victims} make room ({preempt.level}), but {why_not}"

    def _make_room(
        self, preempt: Preempt, book: Book, now: float
    ) -> tuple[tuple[str, ...], list[Making]]:
        """Who is asked to go; nobody where an operator has not allowed it."""
        victims = ", ".join(_shown(book, JobId(one.job)) for one in preempt.victims)
        if any(one.level not in STOPPING_LEVELS for one in preempt.victims):
            why_not = f"{preempt.level} is not carried out here"
            return (f"would have {victims} make room ({preempt.level}), but {why_not}",), []
        self._room_for[JobId(preempt.job)] = preempt.node
        for_job = _shown(book, JobId(preempt.job))
        made = []
        for one in preempt.victims:
            job = book.get(JobId(one.job))
            assert job is not None
            assert job.spec is not None
            self.preemptions.append(Preemption(job=one.job, node=preempt.node, at_seconds=now))
            made.append(
                Making(
                    job=job.id,
                    purpose=Purpose.REQUEUE if job.spec.may_run_again else Purpose.END,
                    reason=f"makes room for {for_job} ({one.level})",
                    promised_by_unix_seconds=one.promised_at_seconds or 0.0,
                )
            )
        return (f"{victims} makes room for it ({preempt.level})",), made

    def _chosen(self, placed: Placed, machine: MachinePlace, snapshot: Snapshot) -> Chosen:
        nodes = {
            gpu.numa_node
            for gpu in machine.gpus
            if gpu.uuid in placed.gpus and gpu.numa_node is not None
        }
        given = Given(gpus=placed.gpus, cpus=_cpus_of(nodes, snapshot), boot_id=self.boot_id())
        return Chosen(job=JobId(placed.job), given=given)


def need_of(job: Job) -> Need:
    """What a job needs."""
    spec = job.spec
    assert spec is not None
    return Need(
        job=job.id,
        name=spec.name,
        gpu_count=spec.gpu_count,
        gpu_memory_bytes=spec.gpu_memory_bytes,
        gpu_models=spec.gpu_models,
        cpu_count=spec.cpu_count,
        memory_bytes=spec.memory_bytes,
        minimum_watts=spec.minimum_watts,
        expected_watts=spec.expected_watts,
        load=spec.load,
        latency=spec.latency,
        nodes=spec.nodes,
        racks=spec.racks,
        priority=spec.priority,
        is_preemptible=spec.is_preemptible,
        waiting_since_seconds=job.requeued_unix_seconds or job.waits_since_unix_seconds,
        promised_at_seconds=job.promised_by_unix_seconds or None,
    )


def running_of(job: Job) -> Running:
    """A job that is on this machine, as whoever needs its place sees it."""
    spec = job.spec
    assert spec is not None
    return Running(
        job=job.id,
        gpus=job.gpus,
        cpu_count=spec.cpu_count,
        memory_bytes=spec.memory_bytes,
        priority=spec.priority,
        started_priority=effective_priority(need_of(job), job.started_unix_seconds or 0.0),
        is_preemptible=spec.is_preemptible,
        is_stopping=job.phase is Phase.STOPPING,
        has_checkpoint=spec.checkpoint == "app",
        is_idempotent=spec.is_idempotent,
        started_at_seconds=job.started_unix_seconds or 0.0,
        grace_seconds=spec.stop_grace_seconds,
    )


def machine_of(
    snapshot: Snapshot,
    book: Book,
    power: PowerRoom,
    refusals: Mapping[str, str],
    node: NodeName,
) -> MachinePlace:
    """The machine of a snapshot, with what its journal has given away."""
    live = book.held(Phase.RUNNING, Phase.STOPPING)
    holders = {uuid: job for job in live for uuid in job.gpus}
    gpus = tuple(
        _gpu_place(gpu, holders.get(gpu.uuid), refusals.get(gpu.uuid, ""), power)
        for gpu in snapshot.gpus
    )
    memory, cpu = snapshot.memory, snapshot.cpu
    specs = [job.spec for job in live if job.spec is not None]
    return MachinePlace(
        node=node.id or node.name or "this machine",
        name=node.name or "this machine",
        rack=node.rack,
        gpus=gpus,
        cpu_count=None if cpu is None else len(cpu.cpu_mode_seconds) or None,
        cpu_reserved_count=sum(spec.cpu_count for spec in specs),
        memory_total_bytes=None if memory is None else memory.total_bytes,
        memory_available_bytes=None if memory is None else memory.available_bytes,
        memory_reserved_bytes=sum(spec.memory_bytes for spec in specs),
        power=PowerPlace(
            cap_watts=power.cap_watts,
            obtainable_watts=power.cap_watts,
            draw_watts=power.lowest_watts,
        ),
        running=tuple(map(running_of, live)),
    )


def _with_nobody_to_ask(machine: MachinePlace) -> MachinePlace:
    """Nothing is set aside for who would need it."""
    running = tuple(replace(one, is_preemptible=False) for one in machine.running)
    return replace(machine, running=running)


def _left(gpu: GpuPlace) -> GpuPlace:
    """A GPU whose reading is older than the proof that its job has gone."""
    return replace(
        gpu, foreign="", memory_used_bytes=gpu.memory_baseline_bytes or 0, utilization_ratio=0.0
    )


def _gpu_place(gpu: GpuState, holder: Job | None, refusal: str, power: PowerRoom) -> GpuPlace:
    holders = () if holder is None else (holder.id,)
    reading = gpu.reading
    is_old = gpu.age_seconds is not None and gpu.age_seconds > GPU_OLD_SECONDS
    if reading is None or not gpu.is_up or is_old:
        return GpuPlace(uuid=gpu.uuid, index=gpu.index or 0, model="", is_up=False, holders=holders)
    lowest = reading.power_limit_min_watts
    promised = 0.0
    if holder is not None and holder.spec is not None:
        promised = max(lowest or 0.0, float(holder.spec.minimum_watts or 0))
    is_governed = power.cap_watts is not None
    return GpuPlace(
        uuid=gpu.uuid,
        index=gpu.index or 0,
        model=reading.identity.name,
        is_taking_work=not refusal,
        away_reason=refusal,
        numa_node=reading.identity.numa_node,
        memory_total_bytes=reading.memory_total_bytes,
        memory_used_bytes=reading.memory_used_bytes,
        memory_baseline_bytes=reading.memory_reserved_bytes,
        utilization_ratio=reading.utilization_ratio,
        holders=holders,
        foreign="" if holder is not None else _foreign(gpu),
        margin_celsius=reading.temperature_margin_celsius,
        draw_watts=lowest if is_governed else reading.power_watts,
        promised_watts=promised,
        lowest_watts=lowest,
        highest_watts=reading.power_limit_max_watts,
    )


def _foreign(gpu: GpuState) -> str:
    """Whose processes are on a GPU that nobody of ours has; empty where there are none."""
    reading = gpu.reading
    assert reading is not None
    processes = reading.processes or ()
    if processes:
        first = processes[0]
        more = f" and {len(processes) - 1} more" if len(processes) > 1 else ""
        return f"{first.name or 'a hidden process'} (pid {first.pid}){more}, which is no job"
    return "processes that cannot be seen here" if reading.process_count else ""


def _cpus_of(nodes: set[int], snapshot: Snapshot) -> tuple[int, ...]:
    """The processors of these NUMA nodes; none, which means all, where that is not known."""
    if snapshot.numa is None:
        return ()
    return tuple(cpu for one in snapshot.numa.nodes if one.node in nodes for cpu in one.cpus)


def extra_watts(book: Book, snapshot: Snapshot | None) -> int:
    """What jobs here must be able to draw beyond the lowest limits of the GPUs, at the inlet.

    Also for those that wait: a rack that is never asked never gives.
    """
    gpus = () if snapshot is None else snapshot.gpus
    limits = [gpu.reading.power_limit_min_watts for gpu in gpus if gpu.reading is not None]
    lowest = min((one for one in limits if one is not None), default=None)
    if lowest is None:
        return 0
    specs = [job.spec for job in book.held(*HELD) if job.spec is not None]
    at_boards = sum(
        max(0.0, spec.minimum_watts - lowest) * spec.gpu_count
        for spec in specs
        if spec.minimum_watts is not None
    )
    return round(at_boards / PowerPlace().supply_efficiency_ratio)


def _shown(book: Book, job_id: JobId) -> str:
    job = book.get(job_id)
    return job_id if job is None else f"{job.name} ({job_id[-8:]})"
