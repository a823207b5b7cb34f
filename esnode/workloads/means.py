"""What work has at hand on this machine, and how an order about it is refused.

Its own file so that whoever builds it and whoever uses it need not know each other.
"""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from esnode.gate import WorkloadGate
from esnode.workloads.adapters import Adapter
from esnode.workloads.book import Job
from esnode.workloads.choosing import Placer
from esnode.workloads.journal import JobJournal
from esnode.workloads.metering import JobMeter


class JobRefused(Exception):
    """An order about a job is not done; one line."""

    def __init__(self, line: str, *, is_unknown: bool = False) -> None:
        super().__init__(line)
        self.is_unknown = is_unknown


@dataclass(slots=True, kw_only=True, eq=False)
class WorkMeans:
    """What work has at hand on this machine."""

    journal: JobJournal
    adapter: Adapter
    placer: Placer
    gate: WorkloadGate
    meter: JobMeter
    drain: Callable[[Job], Awaitable[None]]
    unix_clock: Callable[[], float]
    rng: random.Random
    read_boot_id: Callable[[], str]
    tell: Callable[[str, Job, str], None] = lambda kind, job, line: None
    """Told of every turn of a job: a word, the job, a line."""
