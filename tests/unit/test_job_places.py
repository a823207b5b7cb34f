"""What placement is told of a machine and its jobs, and what is done with its answer."""

from dataclasses import replace

from esnode.placing.preempting import Policy
from esnode.readings.gpu import GpuIdentity, GpuProcess, GpuReading
from esnode.snapshot import GpuState, Snapshot
from esnode.workloads.book import Book
from esnode.workloads.places import LocalPlacer, NodeName, PowerRoom, extra_watts
from esnode.workloads.records import Purpose
from tests.job_records import JOB, NOW, OTHER, SPEC, ended, starting, stopped, submitted

WAITER = replace(SPEC, name="waiter", priority=8)
VICTIM = replace(SPEC, name="victim", priority=2, is_preemptible=True, is_idempotent=True)


def gpu(number: int, **more) -> GpuState:
    identity = GpuIdentity(
        uuid=f"GPU-{number}", index=number, name="NVIDIA H100 80GB HBM3", vendor="nvidia"
    )
    given = {
        "memory_total_bytes": 80 << 30,
        "memory_used_bytes": 0,
        "utilization_ratio": 0.0,
        "power_limit_min_watts": 200.0,
        "power_limit_max_watts": 700.0,
        "processes": (),
        **more,
    }
    return GpuState(
        uuid=identity.uuid,
        index=number,
        is_up=True,
        age_seconds=1.0,
        reading=GpuReading(identity=identity, **given),
    )


def machine(*gpus: GpuState) -> Snapshot:
    return Snapshot(taken_at_seconds=0.0, sequence=1, gpus=gpus)


def placer(*, power: PowerRoom | None = None, **more) -> LocalPlacer:
    return LocalPlacer(
        node=lambda: NodeName(id="ab", name="n1", rack="r01"),
        power=lambda: power or PowerRoom(),
        boot_id=lambda: "b1",
        **more,
    )


def book(*records) -> Book:
    return Book(records)


def waits_of(decided, job=JOB) -> str:
    return "; ".join(decided.waits[job])


def test_a_free_gpu_is_given_to_one_of_two_that_want_it():
    decided = placer().decide(book(submitted(), submitted(OTHER)), machine(gpu(0)), NOW)

    assert [(one.job, one.given.gpus) for one in decided.starts] == [(JOB, ("GPU-0",))]
    assert "GPU" in waits_of(decided, OTHER)


def test_a_gpu_that_somebody_else_uses_is_not_free_whatever_the_journal_says():
    process = GpuProcess(pid=812, kind="compute", name="python3", memory_used_bytes=1)
    decided = placer().decide(book(submitted()), machine(gpu(0, processes=(process,))), NOW)

    assert "python3 (pid 812)" in waits_of(decided)


def test_a_gpu_that_the_journal_gave_away_is_not_free_whatever_is_seen():
    decided = placer().decide(
        book(submitted(), starting(gpus=("GPU-0",)), submitted(OTHER)), machine(gpu(0)), NOW
    )

    assert decided.starts == ()
    assert JOB in waits_of(decided, OTHER)


def test_a_gpu_that_does_not_answer_is_given_to_nobody():
    silent = GpuState(uuid="GPU-0", index=0, is_up=False, reason="lost")

    assert "not answer" in waits_of(placer().decide(book(submitted()), machine(silent), NOW))


def test_a_job_whose_minimum_cannot_be_had_waits_for_watts_and_one_that_needs_less_starts():
    room = PowerRoom(cap_watts=1000, lowest_watts=900)
    hungry = submitted(spec=replace(SPEC, minimum_watts=600))
    modest = submitted(OTHER, spec=replace(SPEC, minimum_watts=250))

    decided = placer(power=room).decide(book(hungry, modest), machine(gpu(0), gpu(1)), NOW)

    assert "W" in waits_of(decided)
    assert [one.job for one in decided.starts] == [OTHER]


def test_what_a_running_job_was_promised_is_not_promised_again():
    room = PowerRoom(cap_watts=1200, lowest_watts=900)
    spec = replace(SPEC, minimum_watts=400)
    records = (submitted(spec=spec), starting(gpus=("GPU-0",)), submitted(OTHER, spec=spec))

    decided = placer(power=room).decide(book(*records), machine(gpu(0), gpu(1)), NOW)

    assert decided.starts == ()
    assert "W" in waits_of(decided, OTHER)


def preempting(why_not: str):
    records = (
        submitted(spec=VICTIM, at=NOW - 5000),
        starting(gpus=("GPU-0",), at=NOW - 4000),
        submitted(OTHER, spec=WAITER),
    )
    made = placer(why_no_preemption=lambda: why_not, policy=Policy())
    return made.decide(book(*records), machine(gpu(0)), NOW)


def test_a_job_that_may_run_again_makes_room_and_is_promised_to_be_on_again():
    decided = preempting("")

    (making,) = decided.stops
    assert (making.job, making.purpose) == (JOB, Purpose.REQUEUE)
    assert "waiter" in making.reason
    assert making.promised_by_unix_seconds > NOW
    assert "makes room" in waits_of(decided, OTHER)


def test_nobody_makes_room_unless_it_is_allowed_and_what_would_be_done_is_said():
    decided = preempting("control_preemption is observe")

    assert decided.stops == ()
    assert "would have victim" in waits_of(decided, OTHER)
    assert "control_preemption is observe" in waits_of(decided, OTHER)


def test_a_gpu_is_free_once_its_job_is_proved_gone_whatever_an_older_reading_shows():
    process = GpuProcess(pid=812, kind="compute", name="python3", memory_used_bytes=1 << 30)
    busy = gpu(0, processes=(process,), memory_used_bytes=60 << 30, utilization_ratio=1.0)
    made = placer()
    before = made.decide(book(submitted()), machine(busy), NOW)

    made.freed(("GPU-0",), NOW - 0.5)
    freed = made.decide(book(submitted()), machine(busy), NOW)
    later = made.decide(book(submitted()), machine(busy), NOW + 10)

    assert [one.starts == () for one in (before, freed, later)] == [True, False, True]


def test_a_job_that_was_queued_again_a_moment_ago_is_not_tried_at_once():
    records = (submitted(), starting(), stopped(not_before_unix_seconds=NOW + 10))

    decided = placer().decide(book(*records), machine(gpu(0)), NOW)

    assert decided.starts == ()
    assert "tried again in 10 s" in waits_of(decided)


def test_the_rack_is_asked_for_what_jobs_need_beyond_the_lowest_limits_also_for_those_that_wait():
    hungry = replace(SPEC, minimum_watts=380, gpu_count=2)
    records = (submitted(spec=hungry), submitted(OTHER, spec=replace(SPEC, minimum_watts=150)))

    asked = extra_watts(book(*records), machine(gpu(0), gpu(1)))
    after = extra_watts(book(submitted(spec=hungry), starting(), ended()), machine(gpu(0)))

    assert asked == round(2 * 180 / 0.9)
    assert after == 0
    assert extra_watts(book(*records), None) == 0
