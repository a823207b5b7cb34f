"""What a waiting job asks of a machine, and of the queue.

Its own file because every rule reads it and none of them owns it. It must not know how a job's
specification is written, nor what became of the job.
"""

from dataclasses import dataclass, replace

PRIORITY_MAX = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One waiting job."""

    job: str
    name: str = ""
    gpu_count: int = 0
    """Whole GPUs of one machine."""
    gpu_memory_bytes: int = 0
    """What each of them must have; 0: whatever it has."""
    gpu_models: tuple[str, ...] = ()
    """Parts of names, any of which will do; none: any GPU."""
    cpu_count: int = 0
    memory_bytes: int = 0
    minimum_watts: float | None = None
    """Of each GPU; None: the lowest limit of the GPU."""
    expected_watts: float | None = None
    """Of each GPU, unhindered; None: as others have drawn."""
    load: str = "mixed"
    """``compute``, ``mixed`` or ``decode``: what more watts bring it."""
    latency: str = "medium"
    """``low``, ``medium`` or ``high``: how much it matters that it ends soon; high is most."""
    nodes: tuple[str, ...] = ()
    """Names or ids; none: any."""
    racks: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    """Paths that it will read."""
    state_bytes: int = 0
    """What has to be brought to a machine other than `state_node` before it can go on."""
    state_node: str = ""
    priority: int = 4
    """0 to 9; 9 goes first."""
    is_preemptible: bool = False
    waiting_since_seconds: float = 0.0
    """On the same clock as `now`, without a break: of a victim, since it was put back. Were it the
    time at which it first came, it would take its place back from the job that it made room for."""
    room_node: str = ""
    """Where room has been made for it, by id, until it is started: it goes before all others, who
    would otherwise take what was freed for it, so that others are driven out in vain."""
    promised_at_seconds: float | None = None
    """Of a job that has made room for another: when it was promised to be on again."""
    runs_for_seconds: float | None = None
    """How long it is expected to run; None where nobody knows."""

    @property
    def shown(self) -> str:
        """What people call it."""
        return self.name or self.job

    @property
    def shape(self) -> "Need":
        """All that a machine cares about: two jobs of one shape fit the same places."""
        return replace(
            self,
            job="",
            name="",
            priority=0,
            is_preemptible=False,
            waiting_since_seconds=0.0,
            room_node="",
            promised_at_seconds=None,
            runs_for_seconds=None,
        )
