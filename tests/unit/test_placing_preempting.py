"""Who makes room, how, and for whom nobody does."""

from dataclasses import replace
from typing import Any

import pytest

from esnode.placing.ladder import STEP_OF, STEPS
from esnode.placing.machine import MachinePlace, PowerPlace, Running
from esnode.placing.preempting import History, Plan, Policy, Preemption, plan
from tests.placing_places import GIB, gpus, machine, need, running, with_jobs

NOW = 100_000.0
POLICY = Policy()


def full(*jobs: Running, **values: Any) -> MachinePlace:
    """Four GPUs, all of which these jobs and others have that nobody may drive out."""
    taken = [uuid for job in jobs for uuid in job.gpus]
    rest = [index for index in range(4) if f"g{index}" not in taken]
    others = [running(f"other{index}", index, is_preemptible=False) for index in rest]
    return with_jobs(machine(places=gpus(4), **values), *jobs, *others)


def victims(made: Plan | None) -> list[tuple[str, str]]:
    return [] if made is None else [(one.job, one.level) for one in made.victims]


def started(job: str, *indexes: int, ago: float = 100.0, **values: Any) -> Running:
    return running(job, *indexes, started_at_seconds=NOW - ago, **values)


def test_a_job_that_fits_drives_nobody_out() -> None:
    place = with_jobs(machine(), running("a", 0))

    assert plan(need(priority=9), place, History(), POLICY, NOW) is None


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"is_preemptible": False}, id="not preemptible"),
        pytest.param({"priority": 5}, id="of the same priority"),
        pytest.param({"started_priority": 5}, id="as important when it was started"),
        pytest.param({"is_stopping": True}, id="already on its way"),
        pytest.param({"gang": "g", "gang_count": 2}, id="its gang is elsewhere too"),
        pytest.param({"has_checkpoint": False}, id="it would be lost for good"),
    ],
)
def test_who_is_never_a_victim(values: dict[str, Any]) -> None:
    place = full(started("a", 0, **values))
    fresh = need(priority=5, waiting_since_seconds=NOW)

    assert plan(fresh, place, History(), POLICY, NOW) is None


def test_age_alone_drives_nobody_out() -> None:
    aged = need(priority=2, waiting_since_seconds=0.0)

    assert plan(aged, full(started("a", 0)), History(), POLICY, NOW) is None


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param({"nodes": ("n2",)}, id="another machine is wanted"),
        pytest.param({"gpu_models": ("b200",)}, id="another model is wanted"),
        pytest.param({"gpu_count": 5}, id="more GPUs than there are"),
    ],
)
def test_nobody_makes_room_that_would_be_of_no_use(wanted: dict[str, Any]) -> None:
    place = full(started("a", 0), started("b", 1))

    assert plan(need(priority=5, **wanted), place, History(), POLICY, NOW) is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"priority": 1}, {"priority": 2, "ago": 1.0}, id="lower priority"),
        pytest.param({"ago": 50.0}, {"ago": 60.0}, id="less lost work"),
        pytest.param(
            {"ago": 500.0, "saved_at_seconds": NOW - 10}, {"ago": 60.0}, id="a recent checkpoint"
        ),
        pytest.param({"ago": 0.0}, {"ago": 0.0}, id="id"),
    ],
)
def test_the_order_of_victims(first: dict[str, Any], second: dict[str, Any]) -> None:
    place = full(started("b", 1, **second), started("a", 0, **first))

    assert victims(plan(need(priority=5), place, History(), POLICY, NOW)) == [("a", "L4")]


def test_of_equal_losses_the_one_with_fewer_gpus_goes() -> None:
    place = full(started("a", 0, 1, ago=0.0), started("b", 2, ago=0.0))

    assert victims(plan(need(priority=5), place, History(), POLICY, NOW)) == [("b", "L4")]


def test_a_victim_that_turns_out_not_to_be_needed_stays() -> None:
    place = full(started("small", 0, ago=10.0), started("large", 1, 2, ago=20.0))

    made = plan(need(gpu_count=2, priority=5), place, History(), POLICY, NOW)

    assert victims(made) == [("large", "L4")]


def test_a_gang_goes_whole() -> None:
    place = full(
        started("rank0", 0, gang="g", gang_count=2, ago=1.0),
        started("rank1", 1, gang="g", gang_count=2, ago=1.0),
        started("alone", 2, ago=500.0),
    )

    made = plan(need(priority=5), place, History(), POLICY, NOW)

    assert victims(made) == [("rank0", "L4"), ("rank1", "L4")]


def test_a_victim_is_stopped_by_the_mildest_step_that_it_allows() -> None:
    place = full(
        started("saves", 0),
        started("repeats", 1, has_checkpoint=False, is_idempotent=True),
        started("neither", 2, has_checkpoint=False),
    )

    made = plan(need(gpu_count=2, priority=5), place, History(), POLICY, NOW)
    allowed = plan(
        need(gpu_count=3, priority=5), place, History(), Policy(is_stopping_allowed=True), NOW
    )

    assert victims(made) == [("repeats", "L6"), ("saves", "L4")]
    assert made is not None
    assert made.level == "L6"
    assert ("neither", "L6") in victims(allowed)


def test_a_plan_tells_what_is_lost_the_grace_and_the_promise() -> None:
    place = full(started("a", 0, 1, ago=300.0, saved_at_seconds=NOW - 60, grace_seconds=45.0))

    made = plan(need(priority=5), place, History(), POLICY, NOW)

    assert made is not None
    (victim,) = made.victims
    assert victim.lost_gpu_seconds == 120.0
    assert victim.grace_seconds == 45.0
    assert victim.promised_at_seconds == NOW + POLICY.promise_seconds
    assert made.lines() == (
        "a makes room for new on n1: L4 (let it save, stop it, and put it back into the queue)"
        " frees CPU: yes, GPU: yes, GPU memory: yes, memory: yes; lost work: since the save"
        " (120 GPU seconds), grace 45 s",
    )


def watts_short(*jobs: Running) -> MachinePlace:
    power = PowerPlace(draw_watts=2000.0, obtainable_watts=2050.0, supply_efficiency_ratio=1.0)
    return with_jobs(machine(power=power), *jobs)


def test_where_only_watts_are_short_a_lower_share_of_power_is_enough() -> None:
    place = watts_short(started("a", 0), started("b", 1, ago=10.0))

    made = plan(need(priority=5), place, History(), POLICY, NOW)

    assert victims(made) == [("b", "L1")]
    assert made is not None
    assert made.lost_gpu_seconds == 0.0
    assert made.victims[0].promised_at_seconds is None


def test_a_lower_share_of_power_needs_no_budget() -> None:
    none = Policy(preemptions_per_hour=0)

    made = plan(need(priority=5), watts_short(started("a", 0)), History(), none, NOW)

    assert victims(made) == [("a", "L1")]


def test_a_job_without_gpus_is_stopped_for_a_while_where_only_cpus_are_short() -> None:
    batch = started("batch", cpu_count=60, memory_bytes=GIB)
    place = full(batch)

    made = plan(need(gpu_count=0, cpu_count=32, priority=5), place, History(), POLICY, NOW)

    assert victims(made) == [("batch", "L2")]


def test_a_stop_for_a_while_is_not_taken_where_memory_is_short_too() -> None:
    batch = started("batch", cpu_count=60, memory_bytes=900 * GIB)
    place = full(batch)
    wanted = need(gpu_count=0, cpu_count=32, memory_bytes=200 * GIB, priority=5)

    assert victims(plan(wanted, place, History(), POLICY, NOW)) == [("batch", "L4")]


@pytest.mark.parametrize(
    ("memory", "runs_for", "level"),
    [
        pytest.param(8 * GIB, 300.0, "L2", id="both memories fit, for five minutes"),
        pytest.param(8 * GIB, 301.0, "L4", id="too long"),
        pytest.param(8 * GIB, None, "L4", id="nobody knows how long"),
        pytest.param(0, 60.0, "L4", id="nobody knows how much memory"),
        pytest.param(11 * GIB, 60.0, "L4", id="the memories do not both fit"),
    ],
)
def test_a_gpu_job_is_frozen_only_where_both_memories_fit_and_not_for_long(
    memory: int, runs_for: float | None, level: str
) -> None:
    wanted = need(priority=5, gpu_memory_bytes=memory, runs_for_seconds=runs_for)

    made = plan(wanted, full(started("a", 0)), History(), POLICY, NOW)

    assert victims(made) == [("a", level)]


def test_a_node_makes_room_a_bounded_number_of_times_in_an_hour() -> None:
    place = full(started("a", 0))
    recent = tuple(
        Preemption(job=f"x{number}", node="n1", at_seconds=NOW - 10 * number)
        for number in range(POLICY.preemptions_per_hour)
    )
    older = (replace(recent[0], at_seconds=NOW - 3600.0), *recent[1:])
    elsewhere = (replace(recent[0], node="n2"), *recent[1:])

    def made(history: tuple[Preemption, ...]) -> list[tuple[str, str]]:
        return victims(plan(need(priority=5), place, History(preemptions=history), POLICY, NOW))

    assert made(recent) == []
    assert made(older) == [("a", "L4")]
    assert made(elsewhere) == [("a", "L4")]


@pytest.mark.parametrize(
    ("times", "since_start", "is_victim"),
    [
        pytest.param(0, 1.0, True, id="never before"),
        pytest.param(1, 3599.0, False, id="once, and not yet its hour since"),
        pytest.param(1, 3600.0, True, id="once, and an hour since"),
        pytest.param(2, 7199.0, False, id="twice, and not yet two hours"),
        pytest.param(2, 7200.0, True, id="twice, and two hours"),
        pytest.param(9, 8 * 3600.0, True, id="eight hours at most"),
    ],
)
def test_who_has_made_room_is_immune_for_a_time(
    times: int, since_start: float, is_victim: bool
) -> None:
    place = full(started("a", 0, ago=since_start))
    history = History(
        preemptions=tuple(
            Preemption(job="a", node="n2", at_seconds=NOW - 40_000.0 - number)
            for number in range(times)
        )
    )

    assert bool(victims(plan(need(priority=5), place, history, POLICY, NOW))) is is_victim


def test_the_ladder_says_that_stopped_processes_keep_their_memory() -> None:
    assert [step.level for step in STEPS] == ["L1", "L2", "L3", "L4", "L5", "L6"]
    assert STEP_OF["L2"].frees_gpu_memory == "no"
    assert STEP_OF["L2"].frees_memory == "no"
    assert [step.level for step in STEPS if step.is_taken_here] == ["L1", "L2", "L4", "L6"]
