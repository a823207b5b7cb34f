"""What a pass over the queue comes to, and who makes it.

Its own file because the driver acts on a decision, and the rules behind it (`esnode.placing`) are
another matter: neither knows the other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from esnode.snapshot import Snapshot
from esnode.workloads.adapters import Given
from esnode.workloads.book import Book
from esnode.workloads.ids import JobId
from esnode.workloads.records import Purpose


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A job that is to be started now."""

    job: JobId
    given: Given


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """A run that is to make room."""

    job: JobId
    purpose: Purpose
    reason: str
    promised_by_unix_seconds: float = 0.0
    """When it is to be on again; 0: no promise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """One pass over the queue."""

    starts: tuple[Chosen, ...] = ()
    stops: tuple[Making, ...] = ()
    waits: Mapping[JobId, tuple[str, ...]] = field(default_factory=dict)
    """Why each of the others waits."""


class Placer(Protocol):
    """Chooses: pure, asked once a second."""

    def freed(self, gpus: Sequence[str], now_unix_seconds: float) -> None:
        """Nothing of a job is on these any more: proved, whatever an older reading shows."""
        ...

    def decide(self, book: Book, snapshot: Snapshot | None, now_unix_seconds: float) -> Decided:
        """What to start, what has to make room, and why the rest waits."""
        ...
