"""Every scenario, short; with --slow many seeds and larger fleets."""

import pytest

from esnode.clock import monotonic_seconds
from simulations.report import Report
from simulations.runner import play
from simulations.scenarios import SCENARIOS

FEW = 10
MANY = 50


def run(name: str, count: int, seed: int) -> Report:
    return play(SCENARIOS[name], count=count, seed=seed, wall_seconds=monotonic_seconds)


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_goes_wrong_in_a_small_fleet(name: str) -> None:
    report = run(name, FEW, seed=1)

    assert report.violations == (), report.table()
    assert report.figures


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_goes_wrong_in_a_larger_one_whatever_the_seed(name: str, seed: int) -> None:
    report = run(name, MANY, seed)

    assert report.violations == (), report.table()


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_smallest_fleet_that_a_scenario_allows_is_enough_for_it(name: str) -> None:
    report = run(name, SCENARIOS[name].nodes_min, seed=1)

    assert report.violations == (), report.table()


def test_a_hundred_that_have_long_known_each_other_notice_one_that_dies() -> None:
    report = run("crash", 100, seed=1)

    assert report.violations == (), report.table()
    first = report.figures["silent_first_failed_seconds"]
    last = report.figures["silent_all_failed_seconds"]
    assert first is not None
    assert last is not None
    assert 5.5 <= first <= last <= first + 0.5
