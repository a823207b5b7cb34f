"""The edge that asks every source in its own time and keeps the latest of each.

One task knows when each collector, and each target of a fan-out collector, is next to be asked. At
that time it hands what is due to the crew. A source that hangs delays nobody: its worker has a call
out and is passed over.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import trio

from esnode.collectors.base import Collector, Discovery, FanOutCollector
from esnode.readings.sample import Reading, Sample
from esnode.worker import Call, Clock, Crew, Terms, Worker

STALE_INTERVALS = 3
"""A value is shown until it is this many intervals old (two missed reads)."""

TOGETHER_SECONDS = 0.005
"""Sources that are due within this time are asked in one round."""

LOOK_AGAIN_SECONDS = 0.25
"""While a list of targets is slow to come: opening a driver may take seconds, and its devices need
not wait for the next interval."""

_PART_FIELDS = frozenset(
    {"cpu", "memory", "disk", "network", "numa", "power", "ipmi", "chassis", "gpu"}
)
_TARGET_FIELDS = {"filesystem": "filesystems", "gpu": "gpus", "app": "apps"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One collector and how it is to be asked."""

    collector: Collector[object] | FanOutCollector[object, Any]
    interval_seconds: float
    deadline_seconds: float
    is_slow: bool = False
    """It runs a program or asks over a network: its calls get threads of their own at once."""

    @property
    def terms(self) -> Terms:
        """The same, as its workers want it."""
        return Terms(
            interval_seconds=self.interval_seconds,
            deadline_seconds=self.deadline_seconds,
            stale_after_seconds=STALE_INTERVALS * self.interval_seconds + self.deadline_seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one configuration wants collected."""

    collectors: tuple[Planned, ...] = ()
    disabled: tuple[str, ...] = ()


class _Source:
    """One worker's place in the schedule."""

    def __init__(
        self,
        worker: Worker,
        planned: Planned,
        read: Callable[[], object],
        due_at_seconds: float,
    ) -> None:
        self.worker = worker
        self.planned = planned
        self.read = read
        self.due_at_seconds = due_at_seconds
        self.is_carried_over = False
        """A target of the plan before, read as that plan read it until it is listed anew."""

    def begin(self, now: float) -> Call | None:
        """The call that is due, and its next time: fixed steps, missed ones left out."""
        interval_seconds = self.planned.interval_seconds
        missed = int((now - self.due_at_seconds) / interval_seconds)
        self.due_at_seconds += (max(missed, 0) + 1) * interval_seconds
        return self.worker.begin(self.read, self.planned.terms)


class _Finder:
    """The discovery of one fan-out collector; keeps what it found until it has been followed."""

    def __init__(self, collector: FanOutCollector[object, Any]) -> None:
        self.collector = collector
        self.found: Discovery[object, Any] | None = None

    def discover(self) -> object:
        """List the targets. Runs in a thread; a list that comes late is followed late."""
        discovery = self.collector.discover()
        self.found = discovery
        return discovery.part


class Collection:
    """All workers. They outlive a change of plan, so that a hung call is never started twice."""

    def __init__(self, *, clock: Clock, crew: Crew | None = None) -> None:
        self._clock = clock
        self._crew = crew or Crew()
        self._workers: dict[tuple[str, str], Worker] = {}
        self._sources: dict[tuple[str, str], _Source] = {}
        self._finders: dict[str, _Finder] = {}
        self._plan = Plan()

    async def run(self, plan: Plan) -> None:
        """Ask every source of the plan until cancelled."""
        self._take_up(plan)
        try:
            while True:
                await self._sleep_until_due()
                await self._ask_what_is_due()
        finally:
            for planned in plan.collectors:
                close = getattr(planned.collector, "close", None)
                if close is not None:
                    close()

    def reading(self) -> Reading:
        """The latest of everything that the present plan asks."""
        now = self._clock()
        parts: dict[str, Any] = {}
        targets: dict[str, dict[str, Sample[Any]]] = {f: {} for f in _TARGET_FIELDS.values()}
        statuses = []
        for (collector, target), source in self._sources.items():
            worker = source.worker
            worker.harvest(now)
            statuses.append(worker.status)
            if worker.sample is None:
                continue
            if target:
                targets[_TARGET_FIELDS[collector]][target] = worker.sample
            elif collector in _PART_FIELDS:
                parts[collector] = worker.sample
        return Reading(sources=tuple(statuses), disabled=self._plan.disabled, **parts | targets)

    # -- the schedule -----------------------------------------------------------------------------

    def _take_up(self, plan: Plan) -> None:
        """Make the schedule anew. Targets are kept until their collector has looked again."""
        self._plan = plan
        now = self._clock()
        before, self._sources = self._sources, {}
        self._finders = {}
        for planned in plan.collectors:
            collector: Any = planned.collector
            if hasattr(collector, "discover"):
                finder = self._finders[collector.name] = _Finder(collector)
                self._add(planned, "", finder.discover, now)
                for (name, target), source in before.items():
                    if name == collector.name and target:
                        later = now + planned.interval_seconds
                        kept = _Source(source.worker, planned, source.read, later)
                        kept.is_carried_over = True
                        self._sources[name, target] = kept
            else:
                self._add(planned, "", collector.read, now)

    def _add(
        self, planned: Planned, target: str, read: Callable[[], object], due_at_seconds: float
    ) -> None:
        key = (planned.collector.name, target)
        worker = self._workers.get(key)
        if worker is None:
            worker = self._workers[key] = Worker(*key, clock=self._clock)
        self._sources[key] = _Source(worker, planned, read, due_at_seconds)

    async def _sleep_until_due(self) -> None:
        now = self._clock()
        due = min((source.due_at_seconds for source in self._sources.values()), default=None)
        if any(
            finder.found is not None or self._sources[name, ""].worker.is_waiting
            for name, finder in self._finders.items()
        ):
            due = min(due or now, now + LOOK_AGAIN_SECONDS)
        if due is None:
            await trio.sleep_forever()
        else:
            await trio.sleep(max(0.0, due - now))

    async def _ask_what_is_due(self) -> None:
        calls: list[Call] = []
        now = self._clock()
        for source in self._sources.values():
            if source.due_at_seconds <= now + TOGETHER_SECONDS:
                call = source.begin(now)
                if call is None:
                    continue
                if source.planned.is_slow:
                    self._crew.start(call)
                else:
                    calls.append(call)
        await self._crew.run(calls)
        for planned in self._plan.collectors:
            self._follow(planned)

    def _follow(self, planned: Planned) -> None:
        """Take up the targets that a collector has found, and forget those that are gone."""
        name = planned.collector.name
        finder = self._finders.get(name)
        if finder is None or finder.found is None:
            return
        found, finder.found = finder.found, None
        for key in [key for key in self._sources if key[0] == name and key[1]]:
            if key[1] not in found.targets:
                del self._sources[key]
                if not self._workers[key].is_waiting:
                    del self._workers[key]
        now = self._clock()
        collector = finder.collector
        for target, wanted in found.targets.items():

            def read(wanted: Any = wanted) -> object:
                return collector.read(wanted)

            source = self._sources.get((name, target))
            if source is None or source.is_carried_over:
                self._add(planned, target, read, now)
            else:
                source.read = read
