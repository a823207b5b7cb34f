"""Jobs on a machine whose GPUs are a file: their work is put on the GPUs, as kernels would be.

Its own file because it is the fake at the lowest door: the job's processes, their supervisor and
all decisions about them are the real ones. It must not know why a job is started or ended.
"""

from collections.abc import Mapping
from typing import Protocol

from esnode.drivers.base import DriverUnavailable
from esnode.workloads.adapters import Adapter, Given, Seen
from esnode.workloads.book import Job
from esnode.workloads.ids import JobId


class LoadDoor(Protocol):
    """The door of a simulated machine through which work comes."""

    def set_load(
        self,
        gpu_uuid: str,
        ratio: float,
        kind: str = "compute",
        *,
        owner_pid: int | None = None,
        memory_bytes: int | None = None,
    ) -> None:
        """Put work on a GPU, in place of what it did."""
        ...


class OnSimulatedGpus:
    """An adapter whose jobs work on simulated GPUs."""

    def __init__(self, adapter: Adapter, door: LoadDoor) -> None:
        self._adapter = adapter
        self._door = door
        self._put: dict[str, int | None] = {}
        """The process whose work is on each GPU."""

    def prepare(self) -> None:
        """As the adapter."""
        self._adapter.prepare()

    def start(self, job: Job, given: Given) -> Seen:
        """As the adapter; then its GPUs work."""
        seen = self._adapter.start(job, given)
        self._work(job, seen)
        return seen

    def look(self, job: Job) -> Seen:
        """As the adapter; its GPUs work while it runs, and for nobody when it does not."""
        seen = self._adapter.look(job)
        self._work(job, seen)
        return seen

    def checkpoint(self, job: Job) -> None:
        """As the adapter."""
        self._adapter.checkpoint(job)

    def is_saved(self, job: Job) -> bool:
        """As the adapter."""
        return self._adapter.is_saved(job)

    def stop(self, job: Job) -> None:
        """As the adapter."""
        self._adapter.stop(job)

    def kill(self, job: Job) -> None:
        """As the adapter."""
        self._adapter.kill(job)

    def why_not_dead(self, job: Job) -> str:
        """As the adapter; nothing of it is on its GPUs then."""
        left = self._adapter.why_not_dead(job)
        if not left:
            self._take_away(job)
        return left

    def sweep(self, owned: Mapping[JobId, int]) -> tuple[str, ...]:
        """As the adapter."""
        return self._adapter.sweep(owned)

    def clean(self, job: Job) -> None:
        """As the adapter."""
        self._take_away(job)
        self._adapter.clean(job)

    def _work(self, job: Job, seen: Seen) -> None:
        if not seen.is_running or seen.main_pid is None:
            self._take_away(job)
            return
        assert job.spec is not None
        memory = job.spec.gpu_memory_bytes or None
        for uuid in job.gpus:
            if self._put.get(uuid) != seen.main_pid and self._set(
                uuid, 1.0, job.spec.load, owner_pid=seen.main_pid, memory_bytes=memory
            ):
                self._put[uuid] = seen.main_pid

    def _take_away(self, job: Job) -> None:
        for uuid in job.gpus:
            is_away = self._put.get(uuid, 0) is None
            if not is_away and self._set(uuid, 0.0, "compute"):
                self._put[uuid] = None

    def _set(
        self,
        uuid: str,
        ratio: float,
        kind: str,
        *,
        owner_pid: int | None = None,
        memory_bytes: int | None = None,
    ) -> bool:
        try:
            self._door.set_load(uuid, ratio, kind, owner_pid=owner_pid, memory_bytes=memory_bytes)
        except (DriverUnavailable, ValueError):
            return False  # the next look tries again
        return True
