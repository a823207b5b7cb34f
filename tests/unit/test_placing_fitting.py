"""The hard rules: who may be started where, and what is said to who may not."""

from dataclasses import replace
from typing import Any

import pytest

from esnode.placing.fitting import fit, settle
from esnode.placing.machine import PowerPlace
from tests.placing_places import GIB, gpu, gpus, machine, need, running, with_jobs


def test_a_job_that_fits_is_told_its_gpus_and_what_they_are_promised() -> None:
    fitted = fit(need(gpu_count=2), machine())

    assert fitted.packing is not None
    assert [one.uuid for one in fitted.packing.gpus] == ["g0", "g1"]
    assert fitted.minimum_watts == {"g0": 200.0, "g1": 200.0}
    assert fitted.added_watts == 2 * (200.0 - 70.0)


@pytest.mark.parametrize(
    ("wanted", "place", "what", "line"),
    [
        pytest.param(
            {"nodes": ("n2",)}, {}, "node", "n1 is not one of the nodes wanted: n2", id="node"
        ),
        pytest.param(
            {"racks": ("r2",)}, {}, "rack", "n1 is not in one of the racks wanted: r2", id="rack"
        ),
        pytest.param({}, {"is_draining": True}, "gate", "n1 is draining", id="draining"),
        pytest.param(
            {},
            {"gate_reason": "clock stepped"},
            "gate",
            "n1 starts nothing: clock stepped",
            id="gate",
        ),
        pytest.param({}, {"is_paused": True}, "gate", "n1 is paused by its operator", id="paused"),
        pytest.param(
            {"cpu_count": 65}, {}, "cpu", "needs 65 CPUs; n1 has 64 free", id="too few cpus"
        ),
        pytest.param(
            {"cpu_count": 8},
            {"cpu_busy_count": 60.0},
            "cpu",
            "needs 8 CPUs; n1 has 4 free",
            id="cpus that nobody reserved are busy",
        ),
        pytest.param(
            {"cpu_count": 1},
            {"cpu_count": None},
            "cpu",
            "needs 1 CPUs; what n1 has is not known",
            id="unknown cpus",
        ),
        pytest.param(
            {"memory_bytes": 2 * GIB},
            {"memory_available_bytes": GIB},
            "memory",
            "needs 2 GiB of memory; n1 has 1 free",
            id="memory in use by others",
        ),
        pytest.param(
            {"memory_bytes": 25 * GIB},
            {"memory_reserved_bytes": 1000 * GIB},
            "memory",
            "needs 25 GiB of memory; n1 has 24 free",
            id="memory reserved but not yet in use",
        ),
    ],
)
def test_a_machine_that_may_not_take_it_says_why(
    wanted: dict[str, Any], place: dict[str, Any], what: str, line: str
) -> None:
    fitted = fit(need(**wanted), machine(**place))

    assert fitted.packing is None
    assert [(one.what, one.line) for one in fitted.refusals] == [(what, line)]


@pytest.mark.parametrize(
    ("wanted", "place", "reason"),
    [
        pytest.param({}, {"holders": ("job1",)}, "is held by job1", id="reserved"),
        pytest.param({}, {"foreign": "pid 7 (alice)"}, "is used by pid 7 (alice)", id="foreign"),
        pytest.param(
            {}, {"memory_used_bytes": 5 * GIB}, "has 5 GiB in use by nobody", id="memory in use"
        ),
        pytest.param({}, {"utilization_ratio": 0.5}, "is 50% busy for nobody", id="ghost"),
        pytest.param(
            {},
            {"memory_used_bytes": None, "utilization_ratio": None},
            "does not tell whether it is free",
            id="nothing is known",
        ),
        pytest.param({}, {"is_up": False}, "does not answer", id="down"),
        pytest.param(
            {},
            {"is_taking_work": False, "away_reason": "cools down"},
            "takes no work: cools down",
            id="thermal care",
        ),
        pytest.param({}, {"margin_celsius": 7.0}, "is 7 C below its slowdown", id="hot"),
        pytest.param(
            {"gpu_models": ("b200",)}, {}, "is a NVIDIA H100 80GB HBM3", id="another model"
        ),
        pytest.param({"gpu_memory_bytes": 81 * GIB}, {}, "has 80 GiB", id="memory too small"),
        pytest.param(
            {"gpu_memory_bytes": 1},
            {"memory_total_bytes": None},
            "does not tell how much memory it has",
            id="memory unknown",
        ),
        pytest.param({"minimum_watts": 701.0}, {}, "takes 700 W at most", id="too weak"),
    ],
)
def test_a_gpu_that_it_cannot_have_says_why(
    wanted: dict[str, Any], place: dict[str, Any], reason: str
) -> None:
    fitted = fit(need(**wanted), machine(places=[gpu(**place)]))

    assert [one.what for one in fitted.refusals] == ["gpu"]
    line = fitted.refusals[0].line
    assert line.startswith(f"needs 1 GPUs; 0 of 1 are free; of the others: {reason}")


@pytest.mark.parametrize(
    "place",
    [
        pytest.param({"memory_used_bytes": None}, id="used memory, where utilisation is known"),
        pytest.param({"utilization_ratio": None}, id="utilisation, where used memory is known"),
        pytest.param({"memory_total_bytes": None}, id="memory, where no least is asked for"),
        pytest.param({"margin_celsius": None}, id="thermal margin"),
        pytest.param({"numa_node": None, "island": None, "switch": None}, id="topology"),
    ],
)
def test_what_is_not_known_refuses_nobody_who_does_not_depend_on_it(place: dict[str, Any]) -> None:
    assert fit(need(), machine(places=[gpu(**place)])).refusals == ()


def test_a_job_without_gpus_does_not_mind_their_state() -> None:
    place = machine(places=gpus(2, is_up=False), cpu_count=4)

    assert fit(need(gpu_count=0, cpu_count=4), place).refusals == ()


def test_reasons_of_gpus_are_counted_together() -> None:
    place = with_jobs(machine(places=[*gpus(3), gpu(3, is_up=False)]), running("a", 0, 1))

    line = fit(need(gpu_count=4), place).refusals[0].line

    others = "is held by a (2), does not answer (1)"
    assert line == f"needs 4 GPUs; 1 of 4 are free; of the others: {others}"


@pytest.mark.parametrize(
    ("obtainable", "is_admitted"),
    [pytest.param(2130.0, True, id="just enough"), pytest.param(2129.0, False, id="a watt short")],
)
def test_a_job_starts_only_if_its_least_power_can_be_had(
    obtainable: float, is_admitted: bool
) -> None:
    power = PowerPlace(draw_watts=2000.0, obtainable_watts=obtainable, supply_efficiency_ratio=1.0)

    fitted = fit(need(), machine(power=power))

    assert (fitted.packing is not None) is is_admitted
    if not is_admitted:
        line = "needs 130 W more; n1 holds 2000 W and can have 2129 W"
        assert [one.line for one in fitted.refusals] == [line]


def test_what_was_promised_and_is_not_drawn_yet_counts() -> None:
    power = PowerPlace(draw_watts=2000.0, obtainable_watts=2200.0, supply_efficiency_ratio=1.0)
    first = need("first")
    before = machine(power=power)

    after = settle(first, before, fit(first, before), now=0.0)

    assert after.committed_watts == 2130.0
    assert [one.what for one in fit(need("second"), after).refusals] == ["watts"]


def test_what_it_loses_in_the_supply_counts() -> None:
    power = PowerPlace(draw_watts=0.0, obtainable_watts=1000.0, supply_efficiency_ratio=0.5)

    assert fit(need(gpu_count=2), machine(power=power)).added_watts == 520.0


@pytest.mark.parametrize(
    ("power", "place", "line"),
    [
        pytest.param(
            {"draw_watts": None}, {}, "the draw of n1 is not known", id="the machine's draw"
        ),
        pytest.param({}, {"lowest_watts": None}, "the lowest limit of GPU 0 of n1", id="the limit"),
    ],
)
def test_unknown_watts_refuse_where_a_cap_has_to_be_kept(
    power: dict[str, Any], place: dict[str, Any], line: str
) -> None:
    capped = replace(PowerPlace(cap_watts=5000.0, draw_watts=100.0), **power)

    fitted = fit(need(), machine(places=[gpu(**place)], power=capped))

    assert [one.what for one in fitted.refusals] == ["watts"]
    assert fitted.refusals[0].line.startswith(line)


def test_unknown_watts_refuse_nobody_where_nothing_is_capped() -> None:
    place = machine(places=[gpu(lowest_watts=None, draw_watts=None)], power=PowerPlace())

    assert fit(need(), place).refusals == ()


def test_gpus_that_can_be_admitted_are_found_behind_those_that_cannot() -> None:
    power = PowerPlace(draw_watts=500.0, obtainable_watts=600.0, supply_efficiency_ratio=1.0)
    small = gpu(1, model="NVIDIA L40S", lowest_watts=100.0, island=None)

    fitted = fit(need(), machine(places=[gpu(0), small], power=power))

    assert fitted.packing is not None
    assert [one.uuid for one in fitted.packing.gpus] == ["g1"]


def test_a_job_without_gpus_does_not_depend_on_watts() -> None:
    power = PowerPlace(cap_watts=100.0, draw_watts=None)

    assert fit(need(gpu_count=0, cpu_count=1), machine(power=power)).refusals == ()
