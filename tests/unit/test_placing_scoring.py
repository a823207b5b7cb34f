"""Which machine a job goes to, and how that is explained."""

from dataclasses import replace
from typing import Any

import pytest

from esnode.placing.fitting import fit
from esnode.placing.machine import MachinePlace, PowerPlace
from esnode.placing.need import Need
from esnode.placing.scoring import TERMS, best, candidate, explain
from tests.placing_places import GIB, gpus, machine, need, running, with_jobs


def chosen(wanted: Need, *machines: MachinePlace) -> str:
    candidates = [candidate(wanted, one, fit(wanted, one)) for one in machines]
    return candidates[best(wanted, candidates)].machine.node


def power(obtainable: float) -> PowerPlace:
    return PowerPlace(draw_watts=2000.0, obtainable_watts=obtainable, supply_efficiency_ratio=1.0)


@pytest.mark.parametrize(
    ("wanted", "better", "worse"),
    [
        pytest.param(
            {"load": "decode"},
            {"places": gpus(model="NVIDIA H200")},
            {},
            id="decode: more memory bandwidth for the same watts",
        ),
        pytest.param(
            {"load": "compute"},
            {"places": gpus(model="NVIDIA B200", highest_watts=1000.0)},
            {"places": gpus(model="NVIDIA A100-SXM4-80GB", highest_watts=400.0)},
            id="compute: more work for each watt, although it draws more",
        ),
        pytest.param({}, {"power": power(9000.0)}, {"power": power(3000.0)}, id="free watts"),
        pytest.param(
            {},
            {"places": gpus(margin_celsius=40.0)},
            {"places": gpus(margin_celsius=10.0)},
            id="cooler",
        ),
        pytest.param({}, {}, {"places": gpus(margin_celsius=None)}, id="a margin that is known"),
        pytest.param(
            {"data": ("/data/a",)},
            {"resident": {"/data/a": 50 * GIB}},
            {"resident": {"/data/b": 90 * GIB}},
            id="its data are there",
        ),
        pytest.param({}, {"flap_score": 0.0}, {"flap_score": 3.0}, id="does not flap"),
        pytest.param(
            {"state_bytes": 100 * GIB, "state_node": "n2"}, {}, {}, id="its state is there"
        ),
    ],
)
def test_what_speaks_for_a_machine(
    wanted: dict[str, Any], better: dict[str, Any], worse: dict[str, Any]
) -> None:
    assert chosen(need(**wanted), machine("n1", **worse), machine("n2", **better)) == "n2"


def test_a_machine_whose_broken_island_is_filled_goes_before_an_empty_one() -> None:
    part_used = with_jobs(machine("n2"), running("a", 0, 1, 2))

    assert chosen(need(), machine("n1"), part_used) == "n2"


def test_equal_machines_go_by_the_lowest_id_in_whatever_order_they_are_told() -> None:
    machines = [machine(name) for name in ("n3", "n1", "n2")]

    assert chosen(need(), *machines) == "n1"
    assert chosen(need(), *reversed(machines)) == "n1"


def test_an_urgent_job_takes_the_faster_machine_and_a_patient_one_the_thriftier() -> None:
    fast = machine("n1", gpus(model="NVIDIA B200", highest_watts=1400.0))
    thrifty = machine("n2", gpus(model="NVIDIA H100", highest_watts=500.0))

    assert chosen(need(load="compute", latency="high"), fast, thrifty) == "n1"
    assert chosen(need(load="compute", latency="low"), fast, thrifty) == "n2"


def test_small_differences_are_not_blown_up() -> None:
    warm, cool = machine("n1", gpus(margin_celsius=30.0)), machine("n2", gpus(margin_celsius=30.5))
    wanted = need()

    rows = explain(wanted, [candidate(wanted, one, fit(wanted, one)) for one in (warm, cool)])

    margins = {one.node: one.normalised_ratio for one in rows if one.term == "thermal margin"}
    assert margins["n2"] == 1.0
    assert margins["n1"] == pytest.approx(1.0 - 0.5 / 20.0)


def test_every_term_of_every_candidate_can_be_printed() -> None:
    wanted = need(data=("/data/a",))
    places = [
        machine("n1", resident={"/data/a": 3 * GIB}),
        machine("n2", gpus(margin_celsius=None), power=PowerPlace()),
    ]

    rows = explain(wanted, [candidate(wanted, one, fit(wanted, one)) for one in places])

    assert [(one.node, one.term) for one in rows] == [
        (node, term) for node in ("n1", "n2") for term in TERMS
    ]
    cells = {(one.node, one.term): one.cells()[2:] for one in rows}
    assert cells["n1", "data here"] == ("3 GiB", "1.00", "0.40", "0.40")
    assert cells["n2", "data here"] == ("-", "0.00", "0.40", "0.00")
    assert cells["n2", "thermal margin"] == ("-", "0.00", "0.20", "0.00")
    assert all(0.0 <= one.normalised_ratio <= 1.0 for one in rows)


def test_watts_on_offer_count_and_not_only_those_that_it_would_draw() -> None:
    wanted = need(load="compute")
    plenty, short = machine("n1"), machine("n2", power=power(2230.0))

    rows = explain(wanted, [candidate(wanted, one, fit(wanted, one)) for one in (plenty, short)])

    speeds = {one.node: one.raw for one in rows if one.term == "speed"}
    assert speeds["n1"] == 1.0
    assert (speeds["n2"] or 0.0) < 0.45


def test_a_model_of_which_nothing_is_known_is_shown_so() -> None:
    wanted = need()
    place = machine("n1", [replace(one, model="a card of tomorrow") for one in gpus()])

    raw = dict(zip(TERMS, candidate(wanted, place, fit(wanted, place)).raw, strict=True))

    assert raw["work per watt"] is None
    assert raw["speed"] is None
