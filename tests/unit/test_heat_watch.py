"""What the agent does about hot GPUs: nothing where it may not, no new work where it may."""

from esnode.heat_watch import HeatWatch
from tests.unit.test_job_places import gpu, machine


def watched(rules: str, *, margin: float) -> tuple[HeatWatch, list[str]]:
    told: list[str] = []
    watch = HeatWatch(lambda feature: rules, told.append)
    for second in range(12):
        hot = machine(
            gpu(0, temperature_margin_celsius=margin), gpu(1, temperature_margin_celsius=40.0)
        )
        watch.tick(hot, 100.0 + second)
    return watch, told


def test_a_hot_gpu_gets_no_new_work_and_the_others_do():
    watch, told = watched("", margin=3.0)

    refusals = watch.refusals()

    assert list(refusals) == ["GPU-0"]
    assert "hot" in refusals["GPU-0"]
    assert any("GPU-0 is hot" in line for line in told)


def test_while_it_is_only_observed_it_is_told_and_nothing_is_done():
    watch, told = watched("control_thermal is observe", margin=3.0)

    assert watch.refusals() == {}
    assert any("nothing is done: control_thermal is observe" in line for line in told)


def test_cool_gpus_are_not_talked_about():
    watch, told = watched("", margin=40.0)

    assert (watch.refusals(), told) == ({}, [])
