"""What jobs use: the energy of their GPUs, and the tokens that they count themselves.

Pure. Its own file because use is folded over time, beside jobs and apart from them. A device's own
counter goes on while the agent is down; what nobody counted is missing, and never estimated. It
must not know how use is kept.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from esnode.snapshot import GpuState, Snapshot
from esnode.workloads.book import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What a run has used."""

    energy_joules: float | None = None
    tokens: float | None = None


@dataclass(slots=True, kw_only=True)
class _Run:
    """The use of one run so far."""

    gpu_joules: dict[str, float] = field(default_factory=dict)
    """Last counter of each GPU."""
    joules: float | None = None
    token_counts: dict[str, float] = field(default_factory=dict)
    tokens: float | None = None
    power_watts: float | None = None


class JobMeter:
    """The use of all runs of one node."""

    def __init__(self) -> None:
        """Begin; runs are told by the ids of their jobs."""
        self.joules_total = 0.0
        """Of all runs, since the agent started."""
        self._runs: dict[str, _Run] = {}

    def begin(self, job: Job, kept: Mapping[str, Any] | None = None) -> None:
        """A run begins, or was found running, with what was kept of its use."""
        self._runs[job.id] = _run_of(job, kept or {})

    def kept(self, job: Job) -> dict[str, Any] | None:
        """What to keep of a run's use, so that an agent that starts anew goes on from there."""
        run = self._runs.get(job.id)
        if run is None:
            return None
        return {
            "epoch": job.epoch,
            "attempt": job.attempt,
            "gpu_joules": run.gpu_joules,
            "joules": run.joules,
            "token_counts": run.token_counts,
            "tokens": run.tokens,
        }

    def end(self, job: Job) -> None:
        """It is over, and its use is kept."""
        self._runs.pop(job.id, None)

    def take(self, snapshot: Snapshot, jobs: Iterable[Job]) -> None:
        """What the machine says now."""
        gpus = {gpu.uuid: gpu for gpu in snapshot.gpus}
        for job in jobs:
            run = self._runs.get(job.id)
            if run is None:
                continue
            own = [gpus[uuid] for uuid in job.gpus if uuid in gpus]
            before = run.joules or 0.0
            for gpu in own:
                _take_energy(run, gpu)
            self.joules_total += (run.joules or 0.0) - before
            draws = [
                gpu.reading.power_average_watts
                for gpu in own
                if gpu.reading is not None and gpu.reading.power_average_watts is not None
            ]
            run.power_watts = sum(draws) if own and len(draws) == len(job.gpus) else None
            _take_tokens(run, snapshot, job)

    def use_of(self, job: Job) -> Use:
        """What a run has used so far."""
        run = self._runs.get(job.id, _Run())
        return Use(energy_joules=run.joules, tokens=run.tokens)

    def power_watts_of(self, job: Job) -> float | None:
        """What its GPUs draw now."""
        run = self._runs.get(job.id)
        return None if run is None else run.power_watts


def _run_of(job: Job, kept: Mapping[str, Any]) -> _Run:
    """What was kept of another run, or by another version, is none of this one."""
    try:
        if (kept["epoch"], kept["attempt"]) != (job.epoch, job.attempt):
            return _Run()
        return _Run(
            gpu_joules={str(uuid): float(one) for uuid, one in kept["gpu_joules"].items()},
            joules=None if kept["joules"] is None else float(kept["joules"]),
            token_counts={str(key): float(one) for key, one in kept["token_counts"].items()},
            tokens=None if kept["tokens"] is None else float(kept["tokens"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return _Run()


def _take_energy(run: _Run, gpu: GpuState) -> None:
    joules = gpu.energy_joules_total
    if joules is None:
        return
    before = run.gpu_joules.get(gpu.uuid)
    run.gpu_joules[gpu.uuid] = joules
    if before is not None and joules >= before:
        run.joules = (run.joules or 0.0) + joules - before


def _take_tokens(run: _Run, snapshot: Snapshot, job: Job) -> None:
    assert job.spec is not None
    if job.spec.metrics_url is None:
        return
    for endpoint in snapshot.app.endpoints:
        if endpoint.endpoint != job.spec.metrics_url:
            continue
        for count in endpoint.tokens:
            key = f"{count.model}/{count.kind}"
            before = run.token_counts.get(key)
            run.token_counts[key] = count.tokens_total
            if before is not None and count.tokens_total >= before:
                run.tokens = (run.tokens or 0.0) + count.tokens_total - before
