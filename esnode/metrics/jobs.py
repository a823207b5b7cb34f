"""Families about the jobs of this node.

None of them is labelled with a job: ever new ids would be ever new series. `/v1/jobs` tells of each.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from esnode.metrics.model import JobStats, Sample, Value, View, families


def _one(get: Callable[[JobStats], Value]) -> Callable[[View], Iterable[Sample]]:
    def read(view: View) -> Iterator[Sample]:
        if view.jobs is not None:
            yield (), get(view.jobs)

    return read


def _each(expand: Callable[[JobStats], Iterable[Sample]]) -> Callable[[View], Iterable[Sample]]:
    def read(view: View) -> Iterator[Sample]:
        if view.jobs is not None:
            yield from expand(view.jobs)

    return read


_family = partial(families, "jobs", basic=frozenset({"jobs"}))

JOBS = (
    *_family(
        ("state",),
        (
            "jobs",
            "gauge",
            "Jobs of this node that wait, run, or were handed on, by state.",
            _each(lambda j: j.states),
        ),
    ),
    *_family(
        ("turn",),
        (
            "job_turns_total",
            "counter",
            "What happened to jobs since the agent started: submitted, started, queued again, or how they ended.",
            _each(lambda j: j.turns_total),
        ),
    ),
    *_family(
        (),
        (
            "job_energy_joules_total",
            "counter",
            "Energy of the GPUs of jobs since the agent started.",
            _one(lambda j: j.energy_joules_total),
        ),
        (
            "jobs_trouble",
            "gauge",
            "1 while no job can be taken in or started, because its journal cannot be used.",
            _one(lambda j: j.has_trouble),
        ),
    ),
)
