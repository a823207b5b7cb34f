"""Over days of virtual time: nobody starves, and nobody is driven out again and again."""

import pytest

from esnode.placing.need import Need
from esnode.placing.preempting import Policy
from esnode.placing.queueing import AGED_PRIORITY_MAX, AGEING_SECONDS
from tests.placing_shifts import STEP_SECONDS, Shift, busy_shift

SEEDS = range(4)
RUN_SECONDS = 1800.0
STRICT = Policy(preemptions_per_hour=2)
PREEMPTED_MAX = 2
"""Of one job of these traces: a second time is an hour after its next start, a third two more."""


@pytest.mark.parametrize("seed", SEEDS)
def test_every_job_ends_and_preemptions_are_bounded(seed: int) -> None:
    shift = busy_shift(seed, STRICT, hours=6, job_count=60)

    assert all(life.ended_at_seconds is not None for life in shift.jobs.values())
    assert shift.preemptions, "nothing was tried"
    assert shift.most_in_an_hour() <= STRICT.preemptions_per_hour
    assert max(life.preempted_count for life in shift.jobs.values()) <= PREEMPTED_MAX


def test_without_budget_and_immunity_the_bounds_are_seen_to_break() -> None:
    lax = Policy(preemptions_per_hour=1000, immunity_seconds=0.0)

    shift = busy_shift(2, lax, hours=6, job_count=60)

    assert shift.most_in_an_hour() > STRICT.preemptions_per_hour
    assert max(life.preempted_count for life in shift.jobs.values()) > PREEMPTED_MAX


@pytest.mark.parametrize("seed", SEEDS)
def test_a_large_job_starts_although_small_ones_keep_coming(seed: int) -> None:
    shift = Shift(node_count=2, gpu_count=4)
    number = 0
    while shift.now < 6 * 3600:
        if number % 2 == seed % 2 and len(shift.queue) < 10:
            shift.submit(Need(job=f"small{number}", gpu_count=1, priority=5), RUN_SECONDS)
        if shift.now == 3600.0:
            shift.submit(Need(job="large", gpu_count=4, priority=3), RUN_SECONDS)
        number += 1
        shift.step()
        if shift.jobs.get("large") and "large" not in shift.queue:
            break

    waited = shift.jobs["large"].waited_seconds_max
    levels = AGED_PRIORITY_MAX - 3
    assert 0 < waited <= levels * AGEING_SECONDS + RUN_SECONDS + 2 * STEP_SECONDS


def test_two_jobs_do_not_drive_each_other_out() -> None:
    shift = Shift(node_count=1, gpu_count=4)
    shift.submit(Need(job="low", gpu_count=4, priority=3, is_preemptible=True), 4 * 3600.0)
    for _ in range(20):
        shift.step()
    shift.submit(Need(job="high", gpu_count=4, priority=4, is_preemptible=True), 4 * 3600.0)

    while shift.queue or shift.running:
        shift.step()

    assert [one.job for one in shift.preemptions] == ["low"]
    assert shift.jobs["low"].ended_at_seconds is not None
