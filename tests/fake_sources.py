"""Collectors that answer, fail, hang and come back when a test says so."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import trio

from esnode.collect import Plan, Planned
from esnode.collectors.base import Discovery


@dataclass
class Single:
    """One read, whose outcome is the next of `answers` (the last one for ever)."""

    name: str
    answer: Callable[[], object] = lambda: "value"
    reads: list[float] = field(default_factory=list)
    """Times of the reads, where a clock is running."""

    def read(self) -> object:
        self.reads.append(now())
        return self.answer()


@dataclass
class Fan:
    """A collector whose targets a test adds and takes away."""

    name: str
    targets: dict[str, Callable[[], object]]
    reads: list[str] = field(default_factory=list)
    look: Callable[[], None] = lambda: None
    """Called at each discovery: may raise or hang."""

    def discover(self) -> Discovery[object, str]:
        self.look()
        return Discovery(part="inventory", targets={name: name for name in self.targets})

    def read(self, target: str) -> object:
        self.reads.append(target)
        return self.targets[target]()


class Hang:
    """A call that does not come back until it is let go. Use as a context, so that threads end."""

    def __init__(self, value: object = "late") -> None:
        self._value = value
        self._gate = threading.Event()
        self.calls = 0
        self.running = 0

    def __call__(self) -> object:
        self.calls += 1
        self.running += 1
        try:
            assert self._gate.wait(20), "the test never let this call go"
        finally:
            self.running -= 1
        return self._value

    def release(self) -> None:
        self._gate.set()

    def __enter__(self) -> "Hang":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def now() -> float:
    """The clock of the event loop; 0 in a worker thread."""
    try:
        return trio.current_time()
    except RuntimeError:
        return 0.0


def plan_of(
    *collectors: object,
    interval: float = 5.0,
    deadline: float = 2.0,
    intervals: Mapping[str, float] | None = None,
) -> Plan:
    return Plan(
        collectors=tuple(
            Planned(
                collector=one,  # type: ignore[arg-type]
                interval_seconds=(intervals or {}).get(one.name, interval),  # type: ignore[attr-defined]
                deadline_seconds=deadline,
            )
            for one in collectors
        ),
        disabled=("app",),
    )
