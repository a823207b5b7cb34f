"""One machine as a place for work: its GPUs, what is reserved on them, and its watts.

Its own file because these are the nouns of the whole package. They are made anew from facts at
every pass: nothing is remembered here. None is unknown, and a rule that needs the value says so.
It must not know what any job wants.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPlace:
    """One whole GPU."""

    uuid: str
    index: int
    model: str
    """As the driver names it: ``NVIDIA H100 80GB HBM3``."""
    is_up: bool = True
    is_taking_work: bool = True
    """False while thermal care, or whoever looks after it, keeps work away from it."""
    away_reason: str = ""
    """Why, for people: ``cools down for 90 s more``."""
    numa_node: int | None = None
    island: int | None = None
    """Which NVLink clique; None for a GPU without NVLink, or where it is not known."""
    switch: int | None = None
    """Which PCIe switch."""
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    memory_baseline_bytes: int | None = None
    """What is in use while nobody has it: the driver's own."""
    memory_frozen_bytes: int = 0
    """What a frozen job keeps."""
    utilization_ratio: float | None = None
    holders: tuple[str, ...] = ()
    """Ids of the jobs that it is reserved for."""
    foreign: str = ""
    """Who else has it, as text: ``python3 (pid 812, alice)``."""
    margin_celsius: float | None = None
    """Up to where it would slow down."""
    draw_watts: float | None = None
    idle_watts: float | None = None
    promised_watts: float = 0.0
    """The least that its holder was promised; counted while it draws less."""
    lowest_watts: float | None = None
    """The lowest limit that it takes."""
    highest_watts: float | None = None
    expected_watts: float | None = None
    """What work like the job in question drew on it, unhindered."""

    @property
    def committed_watts(self) -> float:
        """What it holds of the machine's watts beyond what it draws now."""
        return max(0.0, self.promised_watts - (self.draw_watts or 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerPlace:
    """The watts of a machine, at its inlet."""

    cap_watts: float | None = None
    draw_watts: float | None = None
    obtainable_watts: float | None = None
    """The most that it can have soon: its own share, and what its rack could give it."""
    transferable_watts: float = 0.0
    """What of that its rack has yet to give: shared with the other machines of the rack."""
    spare_watts: float | None = None
    """What of it nobody uses now, where others would have to be pressed for the rest; None: all."""
    supply_efficiency_ratio: float = 0.9
    """Watts at the boards per watt at the inlet. The default is a cautious one: a watt promised
    to a GPU is then counted at the inlet as 1.11."""

    @property
    def bound_watts(self) -> float | None:
        """What it has to stay within; None where nothing is kept to."""
        return self.cap_watts if self.obtainable_watts is None else self.obtainable_watts


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A job that is on a machine now."""

    job: str
    gpus: tuple[str, ...] = ()
    """UUIDs."""
    cpu_count: int = 0
    memory_bytes: int = 0
    priority: int = 0
    started_priority: int = 0
    """Its effective one when it was started: by age it may have been higher."""
    is_preemptible: bool = False
    is_stopping: bool = False
    """It has been told to make room."""
    is_pressed: bool = False
    """It has been told to make do with its least power, whatever it still draws."""
    has_checkpoint: bool = False
    """It saves its state when asked, and goes on from there."""
    is_idempotent: bool = False
    """It may be run again from its beginning."""
    gang: str = ""
    """Which it is a rank of; a gang stops whole or not at all."""
    gang_count: int = 1
    """How many jobs that gang has, on all machines."""
    started_at_seconds: float = 0.0
    saved_at_seconds: float | None = None
    """Of its last checkpoint; None where there is none, or it is not known."""
    ends_at_seconds: float | None = None
    """When it is expected to end by itself."""
    grace_seconds: float = 30.0
    """How long it may take to stop."""

    def lost_gpu_seconds(self, now: float) -> float:
        """What stopping it throws away; a job without a GPU counts as one with one."""
        since = self.started_at_seconds if self.saved_at_seconds is None else self.saved_at_seconds
        return max(0.0, now - since) * max(1, len(self.gpus))


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePlace:
    """One machine."""

    node: str
    """The node's id as text."""
    name: str = ""
    rack: str = ""
    gpus: tuple[GpuPlace, ...] = ()
    cpu_count: int | None = None
    cpu_reserved_count: int = 0
    cpu_busy_count: float | None = None
    memory_total_bytes: int | None = None
    memory_reserved_bytes: int = 0
    memory_available_bytes: int | None = None
    """What the kernel says could be had now."""
    power: PowerPlace = PowerPlace()
    running: tuple[Running, ...] = ()
    is_draining: bool = False
    gate_reason: str = ""
    """Why nothing may be started on it; empty when it may."""
    is_paused: bool = False
    flap_score: float = 0.0
    labels: tuple[tuple[str, str], ...] = ()
    resident: Mapping[str, int] | None = None
    """Bytes that it has of each path; None where it is not known."""

    @property
    def shown(self) -> str:
        """What people call it."""
        return self.name or self.node

    @property
    def cpu_free_count(self) -> float | None:
        """What neither a reservation nor a running process takes."""
        if self.cpu_count is None:
            return None
        return max(0.0, self.cpu_count - max(self.cpu_reserved_count, self.cpu_busy_count or 0.0))

    @property
    def memory_free_bytes(self) -> int | None:
        """The same of its memory."""
        if self.memory_total_bytes is None:
            return self.memory_available_bytes
        unreserved = max(0, self.memory_total_bytes - self.memory_reserved_bytes)
        available = self.memory_available_bytes
        return unreserved if available is None else min(unreserved, available)

    @property
    def committed_watts(self) -> float | None:
        """What it draws at the inlet once every holder has what it was promised."""
        if self.power.draw_watts is None:
            return None
        gpus = sum(gpu.committed_watts for gpu in self.gpus)
        return self.power.draw_watts + gpus / self.power.supply_efficiency_ratio


def occupy(
    machine: MachinePlace,
    job: Running,
    minimum_watts: Mapping[str, float],
) -> MachinePlace:
    """The machine with one more job on it; `minimum_watts` by UUID is what each GPU is promised.

    What the kernel says to be available is lowered with it: the job has not allocated it yet.
    """
    gpus = tuple(
        replace(
            gpu,
            holders=(*gpu.holders, job.job),
            promised_watts=gpu.promised_watts + minimum_watts.get(gpu.uuid, 0.0),
        )
        if gpu.uuid in job.gpus
        else gpu
        for gpu in machine.gpus
    )
    available = machine.memory_available_bytes
    busy = machine.cpu_busy_count
    return replace(
        machine,
        gpus=gpus,
        cpu_reserved_count=machine.cpu_reserved_count + job.cpu_count,
        cpu_busy_count=None if busy is None else busy + job.cpu_count,
        memory_reserved_bytes=machine.memory_reserved_bytes + job.memory_bytes,
        memory_available_bytes=None if available is None else max(0, available - job.memory_bytes),
        running=(*machine.running, job),
    )


def release(machine: MachinePlace, jobs: Collection[str]) -> MachinePlace:
    """The machine as it is once these jobs have stopped and nothing of theirs is left.

    Watts that a GPU draws are given back only where its idle draw is known.
    """
    gone = [one for one in machine.running if one.job in jobs]
    freed_watts = 0.0
    gpus = []
    for gpu in machine.gpus:
        left = tuple(holder for holder in gpu.holders if holder not in jobs)
        if gpu.holders and not left:
            emptied = _emptied(gpu)
            freed_watts += (gpu.draw_watts or 0.0) - (emptied.draw_watts or 0.0)
            gpus.append(emptied)
        else:
            gpus.append(replace(gpu, holders=left))
    freed_bytes = sum(one.memory_bytes for one in gone)
    return replace(
        _without_cpus(machine, gone),
        gpus=tuple(gpus),
        memory_reserved_bytes=max(0, machine.memory_reserved_bytes - freed_bytes),
        memory_available_bytes=_available_with(machine, freed_bytes),
        power=_lowered(machine.power, freed_watts),
    )


def freeze(machine: MachinePlace, jobs: Collection[str]) -> MachinePlace:
    """The machine while these jobs are stopped by SIGSTOP: their memory, of both kinds, stays."""
    gone = [one for one in machine.running if one.job in jobs]
    gpus = []
    for gpu in machine.gpus:
        left = tuple(holder for holder in gpu.holders if holder not in jobs)
        if gpu.holders and not left:
            used = max(0, (gpu.memory_used_bytes or 0) - (gpu.memory_baseline_bytes or 0))
            frozen = replace(_emptied(gpu), memory_used_bytes=gpu.memory_used_bytes)
            gpus.append(replace(frozen, memory_frozen_bytes=gpu.memory_frozen_bytes + used))
        else:
            gpus.append(replace(gpu, holders=left))
    return replace(_without_cpus(machine, gone), gpus=tuple(gpus))


def squeeze(machine: MachinePlace, jobs: Collection[str]) -> MachinePlace:
    """The machine with the GPUs of these jobs at their lowest limits."""
    freed_watts = 0.0
    gpus = []
    for gpu in machine.gpus:
        lowest, draw = gpu.lowest_watts, gpu.draw_watts
        if lowest is not None and draw is not None and draw > lowest and _is_only(gpu, jobs):
            freed_watts += draw - lowest
            gpus.append(replace(gpu, draw_watts=lowest, promised_watts=lowest))
        else:
            gpus.append(gpu)
    return replace(machine, gpus=tuple(gpus), power=_lowered(machine.power, freed_watts))


def _is_only(gpu: GpuPlace, jobs: Collection[str]) -> bool:
    return bool(gpu.holders) and all(holder in jobs for holder in gpu.holders)


def _emptied(gpu: GpuPlace) -> GpuPlace:
    known = gpu.draw_watts is not None and gpu.idle_watts is not None
    return replace(
        gpu,
        holders=(),
        promised_watts=0.0,
        memory_used_bytes=_empty_bytes(gpu),
        utilization_ratio=None if gpu.utilization_ratio is None else 0.0,
        draw_watts=min(gpu.draw_watts or 0.0, gpu.idle_watts or 0.0) if known else gpu.draw_watts,
    )


def _empty_bytes(gpu: GpuPlace) -> int | None:
    if gpu.memory_used_bytes is None:
        return None
    return min(gpu.memory_used_bytes, (gpu.memory_baseline_bytes or 0) + gpu.memory_frozen_bytes)


def _without_cpus(machine: MachinePlace, gone: Collection[Running]) -> MachinePlace:
    cpus = sum(one.cpu_count for one in gone)
    busy = machine.cpu_busy_count
    names = [one.job for one in gone]
    return replace(
        machine,
        cpu_reserved_count=max(0, machine.cpu_reserved_count - cpus),
        cpu_busy_count=None if busy is None else max(0.0, busy - cpus),
        running=tuple(one for one in machine.running if one.job not in names),
    )


def _available_with(machine: MachinePlace, freed_bytes: int) -> int | None:
    if machine.memory_available_bytes is None:
        return None
    more = machine.memory_available_bytes + freed_bytes
    total = machine.memory_total_bytes
    return more if total is None else min(more, total)


def _lowered(power: PowerPlace, freed_watts: float) -> PowerPlace:
    if power.draw_watts is None:
        return power
    freed = freed_watts / power.supply_efficiency_ratio
    return replace(power, draw_watts=max(0.0, power.draw_watts - freed))
