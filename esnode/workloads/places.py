"""Interim: first free GPUs."""

from collections.abc import Callable
from dataclasses import dataclass

from esnode.snapshot import Snapshot
from esnode.workloads.adapters import Given
from esnode.workloads.book import Book, Phase
from esnode.workloads.choosing import Chosen, Decided


@dataclass(slots=True, kw_only=True, eq=False)
class LocalPlacer:
    """The placer of one machine."""

    boot_id: Callable[[], str]

    def decide(self, book: Book, snapshot: Snapshot | None, now_unix_seconds: float) -> Decided:
        """One pass."""
        queued = sorted(book.held(Phase.QUEUED), key=lambda job: (-job.spec.priority, job.id))
        if snapshot is None:
            return Decided(waits={job.id: ("the machine is not read yet",) for job in queued})
        taken = {uuid for job in book.held(Phase.RUNNING, Phase.STOPPING) for uuid in job.gpus}
        free = [gpu.uuid for gpu in snapshot.gpus if gpu.is_up and gpu.uuid not in taken]
        starts, waits = [], {}
        for job in queued:
            if job.not_before_unix_seconds > now_unix_seconds or len(free) < job.spec.gpu_count:
                waits[job.id] = (f"{len(free)} GPUs are free",)
                continue
            given, free = free[: job.spec.gpu_count], free[job.spec.gpu_count :]
            starts.append(
                Chosen(job=job.id, given=Given(gpus=tuple(given), boot_id=self.boot_id()))
            )
        return Decided(starts=tuple(starts), waits=waits)
