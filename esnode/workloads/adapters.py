"""What runs a job, seen from the agent: start, look, ask to end, end, prove.

Its own file because the agent's side is the same for every kind of job; processes are the first
kind, units and schedulers have the same verbs. Each verb may block; none is called twice at once
for one job. It must not know why a job is started or ended.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from esnode.workloads.book import Job
from esnode.workloads.ids import JobId


class StartRefused(Exception):
    """It cannot be started as it is: the job's own fault; one line."""


class AdapterFailed(Exception):
    """The machine refuses (a full disk, no permission); one line. It may go later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a job gets of the machine."""

    gpus: tuple[str, ...] = ()
    """UUIDs."""
    cpus: tuple[int, ...] = ()
    """Near its GPUs; empty: all."""
    environment: tuple[tuple[str, str], ...] = ()
    boot_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One look at a job."""

    is_supervised: bool
    """Somebody is there who will keep its end."""
    is_running: bool
    """Its own processes run now; not while it waits for a restart."""
    is_ended: bool
    """Its end is kept, and nothing of it is left."""
    main_pid: int | None = None
    pids: tuple[int, ...] = ()
    restarts: int = 0
    exit_code: int | None = None
    exit_signal: int | None = None
    end: str = ""
    """``exited``, ``stopped``, ``killed``, ``fenced`` or ``cannot start: ...``."""
    cpu_seconds: float | None = None
    memory_bytes: int | None = None
    output_bytes: int | None = None
    output_lost_bytes: int | None = None
    trouble: str = ""


class Adapter(Protocol):
    """One kind of job."""

    def prepare(self) -> None:
        """Get ready, once, before anything else is asked."""
        ...

    def start(self, job: Job, given: Given) -> Seen:
        """Start it; nothing of it may run yet.

        Raises:
            StartRefused: it can never be started like this.
            AdapterFailed: not now; nothing runs.
        """
        ...

    def look(self, job: Job) -> Seen:
        """How it is now."""
        ...

    def checkpoint(self, job: Job) -> None:
        """Ask it to save its state."""
        ...

    def is_saved(self, job: Job) -> bool:
        """Whether it has saved its state since it was asked."""
        ...

    def stop(self, job: Job) -> None:
        """Ask it to end, with its own grace; at once is `kill`."""
        ...

    def kill(self, job: Job) -> None:
        """End all of it now."""
        ...

    def why_not_dead(self, job: Job) -> str:
        """Empty once it is proved that nothing of it runs; else what is left, in one line."""
        ...

    def sweep(self, owned: Mapping[JobId, int]) -> tuple[str, ...]:
        """End whatever runs without a right of this node; a line for each."""
        ...

    def clean(self, job: Job) -> None:
        """Take away what an ended run left, except its output."""
        ...
