"""One pass: who starts where, who waits and why, and who makes room."""

from dataclasses import replace
from typing import Any

import pytest

from esnode.placing.decide import Decision, Placed, Preempt, Waiting, decide, explain_places
from esnode.placing.machine import MachinePlace, PowerPlace, release
from esnode.placing.need import Need
from esnode.placing.preempting import History, Policy, Preemption
from tests.placing_places import gpus, machine, need, running, with_jobs

NOW = 50_000.0


def passed(
    needs: list[Need], *machines: MachinePlace, history: History | None = None, **options: Any
) -> dict[str, Decision]:
    made = decide(needs, machines, history or History(), NOW, **options)
    assert [one.job for one in made] == list(dict.fromkeys(one.job for one in made))
    return {one.job: one for one in made}


def come(job: str, gpu_count: int = 1, *, waited: float = 0.0, **values: Any) -> Need:
    return need(job, gpu_count, waiting_since_seconds=NOW - waited, **values)


def test_nothing_is_given_twice_within_a_pass() -> None:
    needs = [come(f"j{number}", 3) for number in range(4)]

    made = passed(needs, machine("n1"), machine("n2"))

    placed = [one for one in made.values() if isinstance(one, Placed)]
    taken = [(one.node, uuid) for one in placed for uuid in one.gpus]
    assert len(placed) == 4
    assert len(taken) == len(dict.fromkeys(taken)) == 12


def test_the_queue_is_gone_through_in_its_order() -> None:
    needs = [come("low", 8, priority=3), come("high", 8, priority=6)]

    made = passed(needs, machine())

    assert isinstance(made["high"], Placed)
    assert made["low"] == Waiting(
        job="low",
        priority=3,
        lines=("needs 8 GPUs; 0 of 8 are free; of the others: is held by high (8)",),
        kept_on="n1",
    )


def test_the_watts_of_a_rack_are_given_once() -> None:
    power = PowerPlace(
        draw_watts=2000.0,
        obtainable_watts=2200.0,
        transferable_watts=200.0,
        supply_efficiency_ratio=1.0,
    )
    machines = [machine("n1", power=power), machine("n2", power=power)]
    elsewhere = machine("n3", rack="r2", power=power)

    made = passed([come("a"), come("b"), come("c")], *machines, elsewhere)

    kinds = [type(made[job]).__name__ for job in ("a", "b", "c")]
    assert sorted(kinds) == ["Placed", "Placed", "Waiting"]
    nodes = [one.node for one in made.values() if isinstance(one, Placed)]
    assert "n3" in nodes


def test_why_a_job_waits_is_counted_over_the_machines() -> None:
    machines = [
        machine("n1", is_draining=True),
        with_jobs(machine("n2"), *(running(f"a{index}", index) for index in range(8))),
        machine("n3", gpus(2)),
    ]

    made = passed([come("new", 4, priority=1)], *machines)

    waiting = made["new"]
    assert isinstance(waiting, Waiting)
    assert waiting.lines[0].startswith("2 of 3 machines: needs 4 GPUs; 0 of 8 are free")
    assert waiting.lines[1] == "1 of 3 machines: n1 is draining"


def test_without_machines_a_job_is_told_so() -> None:
    assert passed([come("new")]) == {
        "new": Waiting(job="new", priority=4, lines=("no machine is known",))
    }


def half_full(**values: Any) -> MachinePlace:
    """Four of eight GPUs are held, by one job that is expected to end in 1000 s."""
    job = running("long", 0, 1, 2, 3, is_preemptible=False, **values)
    return with_jobs(machine(), job)


def test_a_smaller_job_does_not_pass_a_blocked_one_where_its_place_is_kept() -> None:
    made = passed([come("large", 8, waited=10.0), come("small", 1)], half_full())

    assert isinstance(made["large"], Waiting)
    assert made["large"].kept_on == "n1"
    small = made["small"]
    assert isinstance(small, Waiting)
    assert small.lines[-1] == "a place is kept for large, which came before"


def test_a_smaller_job_passes_on_another_machine() -> None:
    other = machine("n2", gpus(2))

    made = passed([come("large", 8, waited=10.0), come("small", 1)], half_full(), other)

    small = made["small"]
    assert isinstance(small, Placed)
    assert (small.node, small.has_passed) == ("n2", False)


def test_a_smaller_job_passes_with_what_the_blocked_one_cannot_use() -> None:
    mixed = machine(places=[*gpus(4), *(replace(one, model="L40S") for one in gpus(8)[4:])])
    place = with_jobs(mixed, running("long", 0, is_preemptible=False))
    large = come("large", 4, waited=10.0, gpu_models=("h100",))

    made = passed([large, come("small", 1)], place)

    assert isinstance(made["large"], Waiting)
    small = made["small"]
    assert isinstance(small, Placed)
    assert small.gpus[0] in ("g4", "g5", "g6", "g7")


@pytest.mark.parametrize(
    ("runs_for", "kind"),
    [
        pytest.param(1000.0, Placed, id="over in time"),
        pytest.param(1001.0, Waiting, id="too long"),
        pytest.param(None, Waiting, id="nobody knows"),
    ],
)
def test_a_short_job_passes_if_it_is_over_before_its_place_is_needed(
    runs_for: float | None, kind: type[Decision]
) -> None:
    place = half_full(ends_at_seconds=NOW + 1000.0)
    small = come("small", 1, runs_for_seconds=runs_for)

    made = passed([come("large", 8, waited=10.0), small], place)

    assert isinstance(made["small"], kind)
    if isinstance(made["small"], Placed):
        assert made["small"].has_passed


def test_short_jobs_that_pass_do_not_take_the_same_gpu() -> None:
    place = half_full(ends_at_seconds=NOW + 1000.0)
    small = [come(f"small{number}", 1, runs_for_seconds=60.0) for number in range(6)]

    made = passed([come("large", 8, waited=10.0), *small], place)

    gpus_taken = [uuid for one in made.values() if isinstance(one, Placed) for uuid in one.gpus]
    assert sorted(gpus_taken) == ["g4", "g5", "g6", "g7"]


def test_only_the_head_keeps_a_place_until_others_have_waited_long() -> None:
    places = [half_full(), replace(half_full(), node="n2", name="n2")]

    def kept(waited: float) -> list[str]:
        needs = [come("first", 8, waited=waited + 10), come("second", 8, waited=waited)]
        made = passed(needs, *places)
        return [one.kept_on for one in made.values() if isinstance(one, Waiting)]

    assert kept(60.0) == ["n1", ""]
    assert kept(1000.0) == ["n1", "n2"]


def test_a_more_important_job_has_room_made_for_it_once() -> None:
    place = with_jobs(machine(places=gpus(2)), running("a", 0), running("b", 1))
    needs = [come("first", priority=8), come("second", priority=8), come("third", priority=8)]

    made = passed(needs, place)

    preempts = [one for one in made.values() if isinstance(one, Preempt)]
    assert [(one.job, one.victims[0].job) for one in preempts] == [("first", "a"), ("second", "b")]
    assert isinstance(made["third"], Waiting)
    assert preempts[0].lines[0].startswith("a makes room for first on n1: L4")


def test_what_is_freed_for_one_is_not_given_to_a_later_one() -> None:
    place = with_jobs(machine(places=gpus(4)), running("a", 0, 1))
    needs = [come("large", 4, priority=8), come("small", 1, priority=1)]

    made = passed(needs, place)

    assert isinstance(made["large"], Preempt)
    assert isinstance(made["small"], Waiting)


def test_while_room_is_being_made_nobody_else_is_driven_out() -> None:
    place = with_jobs(machine(places=gpus(2)), running("a", 0, is_stopping=True), running("b", 1))

    made = passed([come("first", priority=8)], place)

    assert made["first"] == Waiting(
        job="first",
        priority=8,
        lines=("room is being made on n1: a must go first",),
        kept_on="n1",
    )


def test_while_a_share_of_power_is_being_lowered_nobody_else_is_asked() -> None:
    power = PowerPlace(draw_watts=2000.0, obtainable_watts=2050.0, supply_efficiency_ratio=1.0)
    jobs = (running("a", 0), running("b", 1))
    before = with_jobs(machine(power=power), *jobs)
    after = replace(before, running=(replace(jobs[0], is_pressed=True), jobs[1]))

    first = passed([come("new", priority=8)], before)["new"]
    second = passed([come("new", priority=8)], after)["new"]

    assert isinstance(first, Preempt)
    assert [(one.job, one.level) for one in first.victims] == [("a", "L1")]
    assert isinstance(second, Waiting)
    assert second.lines == ("room is being made on n1: a must go first",)


def test_the_budget_of_a_node_holds_within_a_pass() -> None:
    place = with_jobs(machine(places=gpus(2)), running("a", 0), running("b", 1))
    policy = Policy(preemptions_per_hour=1)

    made = passed([come("first", priority=8), come("second", priority=8)], place, policy=policy)

    assert isinstance(made["first"], Preempt)
    assert isinstance(made["second"], Waiting)


def test_room_is_made_where_the_least_is_lost() -> None:
    costly = with_jobs(machine("n1", gpus(1)), running("a", 0, started_at_seconds=NOW - 500))
    cheap = with_jobs(machine("n2", gpus(1)), running("b", 0, started_at_seconds=NOW - 5))

    made = passed([come("new", priority=8)], costly, cheap)

    new = made["new"]
    assert isinstance(new, Preempt)
    assert new.node == "n2"


def test_once_the_victim_is_gone_the_job_is_placed_and_the_victim_waits() -> None:
    before = with_jobs(machine(places=gpus(1)), running("a", 0))
    history = History(preemptions=(Preemption(job="a", node="n1", at_seconds=NOW),))
    needs = [come("new", priority=8), come("a", priority=2)]

    made = passed(needs, release(before, ["a"]), history=history)

    assert isinstance(made["new"], Placed)
    assert isinstance(made["a"], Waiting)


def test_the_same_is_decided_in_whatever_order_it_is_told() -> None:
    needs = [come(f"j{number}", 1 + number % 4, priority=number % 5) for number in range(20)]
    machines = [machine(f"n{number}", gpus(4)) for number in range(5)]

    one = decide(needs, machines, History(), NOW)
    other = decide(needs[::-1], machines[::-1], History(), NOW)

    assert one == other


def test_the_terms_of_every_place_can_be_asked_for() -> None:
    rows = explain_places(come("new"), [machine("n1"), machine("n2", is_paused=True)], NOW)

    assert {row.node for row in rows} == {"n1"}
