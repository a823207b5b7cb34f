"""The edge that asks every source in its own time and keeps the latest of each.

Each collector, and each target of a fan-out collector, has its own loop and its own worker, so a
source that hangs delays nobody. Reads are spread over the first part of the interval: worker
threads are used again instead of one being made for each source.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import trio

from esnode.collectors.base import Collector, Discovery, FanOutCollector
from esnode.readings.sample import Reading, Sample
from esnode.worker import Runner, Worker, every, run_in_thread

STALE_INTERVALS = 3
"""A value is shown until it is this many intervals old (two missed reads)."""

PHASE_STEP_SECONDS = 0.004
"""Time between the starts of two sources: most reads take less than a millisecond."""

_TARGET_FIELDS = {"filesystem": "filesystems", "gpu": "gpus", "app": "apps"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One collector and how it is to be asked."""

    collector: Collector[object] | FanOutCollector[object, Any]
    interval_seconds: float
    deadline_seconds: float

    @property
    def stale_after_seconds(self) -> float:
        """Age from which a value is not shown."""
        return STALE_INTERVALS * self.interval_seconds + self.deadline_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one configuration wants collected."""

    collectors: tuple[Planned, ...] = ()
    disabled: tuple[str, ...] = ()


class Collection:
    """All workers. They outlive a change of plan, so that a hung call is never started twice."""

    def __init__(self, *, runner: Runner = run_in_thread) -> None:
        self._runner = runner
        self._workers: dict[tuple[str, str], Worker] = {}
        self._active: dict[tuple[str, str], None] = {}
        self._plan = Plan()

    async def run(self, plan: Plan) -> None:
        """Ask every source of the plan until cancelled."""
        self._plan = plan
        self._active = {}
        try:
            async with trio.open_nursery() as nursery:
                for position, planned in enumerate(plan.collectors):
                    phase_seconds = position * PHASE_STEP_SECONDS
                    if hasattr(planned.collector, "discover"):
                        nursery.start_soon(self._run_fan_out, planned, phase_seconds)
                    else:
                        nursery.start_soon(self._run_single, planned, phase_seconds)
        finally:
            for planned in plan.collectors:
                close = getattr(planned.collector, "close", None)
                if close is not None:
                    close()

    def reading(self) -> Reading:
        """The latest of everything that the present plan asks."""
        parts: dict[str, Any] = {}
        targets: dict[str, dict[str, Sample[Any]]] = {f: {} for f in _TARGET_FIELDS.values()}
        statuses = []
        for key in self._active:
            worker = self._workers[key]
            statuses.append(worker.status)
            collector, target = key
            if worker.sample is None:
                continue
            if target:
                targets[_TARGET_FIELDS[collector]][target] = worker.sample
            elif collector in _PART_FIELDS:
                parts[collector] = worker.sample
        return Reading(sources=tuple(statuses), disabled=self._plan.disabled, **parts | targets)

    def _worker(self, collector: str, target: str = "") -> Worker:
        key = (collector, target)
        self._active[key] = None
        worker = self._workers.get(key)
        if worker is None:
            worker = self._workers[key] = Worker(collector, target, runner=self._runner)
        return worker

    async def _ask(self, worker: Worker, planned: Planned, read: Callable[[], object]) -> None:
        await worker.ask(
            read,
            interval_seconds=planned.interval_seconds,
            deadline_seconds=planned.deadline_seconds,
            stale_after_seconds=planned.stale_after_seconds,
        )

    async def _run_single(self, planned: Planned, phase_seconds: float) -> None:
        collector = planned.collector
        assert not isinstance(collector, type)
        worker = self._worker(collector.name)
        read: Callable[[], object] = collector.read  # type: ignore[assignment]  # a single one

        async def ask() -> None:
            await self._ask(worker, planned, read)

        await every(planned.interval_seconds, ask, phase_seconds=phase_seconds)

    async def _run_fan_out(self, planned: Planned, phase_seconds: float) -> None:
        collector: FanOutCollector[object, Any] = planned.collector  # type: ignore[assignment]
        worker = self._worker(collector.name)
        running: dict[str, trio.CancelScope] = {}
        latest: dict[str, Any] = {}

        async def ask() -> None:
            found: Discovery[object, Any] | None = None

            def discover() -> object:
                nonlocal found
                found = collector.discover()
                return found.part

            await self._ask(worker, planned, discover)
            if found is not None:
                self._follow(found.targets, running, latest, planned, nursery)

        async with trio.open_nursery() as nursery:
            await every(planned.interval_seconds, ask, phase_seconds=phase_seconds)

    def _follow(
        self,
        targets: Mapping[str, Any],
        running: dict[str, trio.CancelScope],
        latest: dict[str, Any],
        planned: Planned,
        nursery: trio.Nursery,
    ) -> None:
        """Start a loop for each new target, and end those of targets that are gone."""
        collector: FanOutCollector[object, Any] = planned.collector  # type: ignore[assignment]
        latest.clear()
        latest.update(targets)
        for gone in [target for target in running if target not in targets]:
            running.pop(gone).cancel()
            self._active.pop((collector.name, gone), None)
            worker = self._workers[collector.name, gone]
            if worker.status.stalled_since_seconds is None:
                del self._workers[collector.name, gone]
        fresh = [target for target in targets if target not in running]
        for position, target in enumerate(fresh):
            scope = running[target] = trio.CancelScope()
            worker = self._worker(collector.name, target)
            phase_seconds = position * PHASE_STEP_SECONDS
            nursery.start_soon(
                self._run_target, collector, planned, worker, target, latest, scope, phase_seconds
            )

    async def _run_target(
        self,
        collector: FanOutCollector[object, Any],
        planned: Planned,
        worker: Worker,
        target: str,
        latest: Mapping[str, Any],
        scope: trio.CancelScope,
        phase_seconds: float,
    ) -> None:
        async def ask() -> None:
            wanted = latest[target]
            await self._ask(worker, planned, lambda: collector.read(wanted))

        with scope:
            await every(planned.interval_seconds, ask, phase_seconds=phase_seconds)


_PART_FIELDS = frozenset(
    {"cpu", "memory", "disk", "network", "numa", "power", "ipmi", "chassis", "gpu"}
)
