"""What holds for every placement, whatever the machines, the jobs and their order."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from esnode.placing.decide import Placed, Preempt, Waiting, decide
from esnode.placing.fitting import fit
from esnode.placing.machine import GpuPlace, MachinePlace, PowerPlace, Running, release
from esnode.placing.need import Need
from esnode.placing.packing import packings, stranded_count
from esnode.placing.preempting import History, Policy, plan
from esnode.placing.queueing import AGED_PRIORITY_MAX, AGEING_SECONDS, effective_priority, order
from esnode.placing.scoring import candidate, explain
from tests.placing_places import GIB, gpu, machine

NOW = 100_000.0
small = st.none() | st.integers(0, 2)


@st.composite
def gpu_places(draw: st.DrawFn, *, is_linked: bool = False) -> tuple[GpuPlace, ...]:
    """GPUs of some topology; linked ones differ in nothing else."""
    count = draw(st.integers(0, 8))
    if is_linked:
        return tuple(gpu(index) for index in range(count))
    return tuple(
        gpu(
            index,
            model=draw(st.sampled_from(("NVIDIA H100", "NVIDIA L40S", "other"))),
            island=draw(small),
            switch=draw(small),
            numa_node=draw(small),
            margin_celsius=draw(st.none() | st.floats(0.0, 60.0)),
            draw_watts=draw(st.none() | st.floats(0.0, 700.0)),
            idle_watts=draw(st.none() | st.floats(0.0, 100.0)),
            lowest_watts=draw(st.none() | st.floats(0.0, 300.0)),
            memory_used_bytes=draw(st.none() | st.sampled_from((0, GIB // 2, 20 * GIB))),
            foreign=draw(st.sampled_from(("", "", "", "pid 5"))),
        )
        for index in range(count)
    )


@st.composite
def machines(draw: st.DrawFn, number: int = 0) -> MachinePlace:
    """A machine with some jobs on it, of which each has its GPUs for itself."""
    places = list(draw(gpu_places()))
    jobs: list[Running] = []
    free = [one.uuid for one in places]
    for which in range(draw(st.integers(0, 4))):
        taken = free[: draw(st.integers(0, 3))]
        free = free[len(taken) :]
        gang = draw(st.sampled_from(("", "", "g")))
        jobs.append(
            Running(
                job=f"m{number}-{which}",
                gpus=tuple(taken),
                cpu_count=draw(st.integers(0, 8)),
                memory_bytes=draw(st.integers(0, 8)) * GIB,
                priority=draw(st.integers(0, 9)),
                started_priority=draw(st.integers(0, 9)),
                is_preemptible=draw(st.booleans()),
                is_stopping=draw(st.sampled_from((False, False, True))),
                has_checkpoint=draw(st.booleans()),
                is_idempotent=draw(st.booleans()),
                gang=gang,
                gang_count=draw(st.integers(1, 3)) if gang else 1,
                started_at_seconds=NOW - draw(st.integers(0, 9999)),
                ends_at_seconds=draw(st.none() | st.floats(NOW, NOW + 5000)),
            )
        )
    holders = {uuid: job.job for job in jobs for uuid in job.gpus}
    transferable = draw(st.floats(0.0, 2000.0))
    return machine(
        f"n{number}",
        [
            replace(one, holders=(holders[one.uuid],)) if one.uuid in holders else one
            for one in places
        ],
        rack=draw(st.sampled_from(("r1", "r2"))),
        cpu_count=draw(st.none() | st.integers(0, 64)),
        cpu_reserved_count=sum(job.cpu_count for job in jobs),
        cpu_busy_count=draw(st.none() | st.floats(0.0, 64.0)),
        memory_reserved_bytes=sum(job.memory_bytes for job in jobs),
        memory_available_bytes=draw(st.none() | st.integers(0, 1024 * GIB)),
        power=PowerPlace(
            draw_watts=draw(st.none() | st.floats(0.0, 3000.0)),
            obtainable_watts=draw(st.none() | st.floats(transferable, 6000.0)),
            transferable_watts=transferable,
            supply_efficiency_ratio=draw(st.floats(0.5, 1.0)),
        ),
        running=tuple(jobs),
        is_draining=draw(st.sampled_from((False, False, False, True))),
    )


@st.composite
def needs(draw: st.DrawFn, number: int = 0) -> Need:
    return Need(
        job=f"j{number}",
        gpu_count=draw(st.integers(0, 8)),
        gpu_memory_bytes=draw(st.sampled_from((0, 0, 40 * GIB))),
        gpu_models=draw(st.sampled_from(((), (), ("h100",)))),
        cpu_count=draw(st.integers(0, 16)),
        memory_bytes=draw(st.integers(0, 64)) * GIB,
        minimum_watts=draw(st.none() | st.floats(0.0, 600.0)),
        load=draw(st.sampled_from(("compute", "mixed", "decode"))),
        priority=draw(st.integers(0, 9)),
        waiting_since_seconds=NOW - draw(st.integers(0, 9999)),
        runs_for_seconds=draw(st.none() | st.floats(1.0, 5000.0)),
    )


fleets = st.integers(1, 4).flatmap(
    lambda count: st.tuples(*(machines(number) for number in range(count)))
)
queues = st.integers(0, 8).flatmap(
    lambda count: st.tuples(*(needs(number) for number in range(count)))
)


@settings(max_examples=80, deadline=None)
@given(gpu_places(), st.integers(0, 8), st.data())
def test_a_packing_has_as_many_free_gpus_as_asked_for(places, count, data) -> None:
    free = [one for one in places if data.draw(st.booleans())]

    for packing in packings(count, free, places):
        names = [one.uuid for one in packing.gpus]
        assert len(names) == len(dict.fromkeys(names)) == count
        assert all(one in free for one in packing.gpus)
        left = [one for one in free if one.uuid not in names]
        grown = stranded_count(left, places) - stranded_count(free, places)
        assert packing.stranded_change_count == grown


@settings(max_examples=80, deadline=None)
@given(gpu_places(is_linked=True), st.integers(1, 8), st.data())
def test_no_islands_are_mixed_where_one_is_enough(places, count, data) -> None:
    free = [one for one in places if data.draw(st.booleans())]
    sizes: dict[int | None, int] = {}
    for one in free:
        sizes[one.island] = sizes.get(one.island, 0) + 1

    best = next(packings(count, free, places), None)

    assert (best is not None) is (count <= len(free))
    if best is not None and max(sizes.values()) >= count:
        assert len(dict.fromkeys(one.island for one in best.gpus)) == 1


@settings(max_examples=60, deadline=None)
@given(queues, fleets)
def test_nothing_is_given_twice_or_beyond_what_there_is(queue, fleet) -> None:
    made = decide(queue, fleet, History(), NOW)

    wanted = {need.job: need for need in queue}
    for place in fleet:
        placed = [one for one in made if isinstance(one, Placed) and one.node == place.node]
        given_ = [uuid for one in placed for uuid in one.gpus]
        free = {one.uuid: one for one in place.gpus if not one.holders and not one.foreign}
        assert len(given_) == len(dict.fromkeys(given_))
        assert all(uuid in free for uuid in given_)
        assert not (placed and place.is_draining)
        cpus = sum(wanted[one.job].cpu_count for one in placed)
        assert cpus == 0 or cpus <= (place.cpu_free_count or 0)
        memory = sum(wanted[one.job].memory_bytes for one in placed)
        assert memory == 0 or memory <= (place.memory_free_bytes or 0)
        for one in placed:
            assert len(one.gpus) == wanted[one.job].gpu_count


@settings(max_examples=60, deadline=None)
@given(queues, fleets)
def test_no_machine_and_no_rack_gives_watts_that_it_has_not(queue, fleet) -> None:
    made = decide(queue, fleet, History(), NOW)

    beyond: dict[str, float] = {}
    for place in fleet:
        here = [one for one in made if isinstance(one, Placed) and one.node == place.node]
        placed = [one for one in here if one.gpus]
        promised = {uuid: watts for one in placed for uuid, watts in one.minimum_watts}
        draws = {one.uuid: one.draw_watts or 0.0 for one in place.gpus}
        added = sum(max(0.0, watts - draws[uuid]) for uuid, watts in promised.items())
        added /= place.power.supply_efficiency_ratio
        bound, committed = place.power.bound_watts, place.committed_watts
        if bound is None or not placed:
            continue
        assert committed is not None
        assert committed + added <= bound + 1e-6
        own = max(0.0, bound - place.power.transferable_watts - committed)
        beyond[place.rack] = beyond.get(place.rack, 0.0) + max(0.0, added - own)
    for rack, watts in beyond.items():
        pool = max(one.power.transferable_watts for one in fleet if one.rack == rack)
        assert watts <= pool + 1e-6


@settings(max_examples=60, deadline=None)
@given(queues, fleets, st.randoms(use_true_random=False))
def test_the_order_in_which_things_are_told_does_not_matter(queue, fleet, rng) -> None:
    mixed_queue, mixed_fleet = list(queue), list(fleet)
    rng.shuffle(mixed_queue)
    rng.shuffle(mixed_fleet)

    made = decide(queue, fleet, History(), NOW)

    assert made == decide(mixed_queue, mixed_fleet, History(), NOW)
    assert [one.job for one in made] == [need.job for need in order(queue, NOW)]
    assert all(one.lines for one in made if isinstance(one, Waiting))


@settings(max_examples=120, deadline=None)
@given(needs(), machines())
def test_a_plan_takes_no_more_than_is_needed_and_only_from_who_may_be_asked(wanted, place) -> None:
    made = plan(wanted, place, History(), Policy(), NOW)

    if made is None:
        return
    jobs = {one.job: one for one in place.running}
    gone = [one.job for one in made.victims]
    assert fit(wanted, place).packing is None
    assert fit(wanted, made.after).packing is not None
    for name in gone:
        job = jobs[name]
        assert job.is_preemptible
        assert not job.is_stopping
        assert job.priority < wanted.priority
        assert job.started_priority < effective_priority(wanted, NOW)
        if job.gang:
            assert all(one.job in gone for one in place.running if one.gang == job.gang)
    if made.level in ("L4", "L6"):
        for name in gone:
            kept = [one for one in gone if one != name and jobs[one].gang != jobs[name].gang]
            alone = [one for one in gone if one != name] if not jobs[name].gang else kept
            assert fit(wanted, release(place, alone)).packing is None


@settings(max_examples=60, deadline=None)
@given(needs(), fleets)
def test_no_victim_of_a_pass_is_asked_twice(wanted, fleet) -> None:
    others = [replace(wanted, job=f"k{number}", priority=9) for number in range(4)]

    made = decide(others, fleet, History(), NOW)

    victims = [one.job for plan_ in made if isinstance(plan_, Preempt) for one in plan_.victims]
    assert len(victims) == len(dict.fromkeys(victims))


@settings(max_examples=60, deadline=None)
@given(needs(), fleets)
def test_terms_lie_between_nothing_and_one(wanted, fleet) -> None:
    said = [(one, fit(wanted, one)) for one in fleet]
    found = [candidate(wanted, one, fitted) for one, fitted in said if fitted.packing is not None]

    for row in explain(wanted, found):
        assert 0.0 <= row.normalised_ratio <= 1.0
        assert row.raw is not None or row.normalised_ratio == 0.0


@settings(max_examples=80, deadline=None)
@given(queues, st.integers(0, 50_000))
def test_who_has_waited_long_comes_before_all_who_came_later(queue, later) -> None:
    at = NOW + later
    long = AGED_PRIORITY_MAX * AGEING_SECONDS

    ordered = order(queue, at)

    for place, need in enumerate(ordered):
        if at - need.waiting_since_seconds >= long and need.priority <= AGED_PRIORITY_MAX:
            for before in ordered[:place]:
                came_before = before.waiting_since_seconds <= need.waiting_since_seconds
                assert came_before or before.priority > AGED_PRIORITY_MAX
