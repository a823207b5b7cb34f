"""The jobs of this node in figures, for `/metrics`: read when somebody scrapes."""

from collections import Counter

from esnode.metrics.model import JobStats
from esnode.workloads.book import Phase
from esnode.workloads.driver import Workloads

STATES = (Phase.QUEUED, Phase.RUNNING, Phase.STOPPING, Phase.HANDED)


def count_jobs(workloads: Workloads) -> JobStats:
    """How many there are, and what became of them."""
    counts = Counter(job.phase for job in workloads.book)
    is_known = not workloads.trouble
    return JobStats(
        states=tuple(((str(one),), counts[one] if is_known else None) for one in STATES),
        turns_total=tuple(((turn,), count) for turn, count in sorted(workloads.turns.items())),
        energy_joules_total=workloads.means.meter.joules_total,
        has_trouble=bool(workloads.trouble),
    )
