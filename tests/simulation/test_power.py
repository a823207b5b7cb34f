"""Racks under power faults: the bound holds in every storm, and every mistake breaks it.

More seeds: `python -m simulations.power chaos --seeds 2000 --jobs 2`.
"""

import pytest

from simulations.power.mistakes import MISTAKES
from simulations.power.runner import Ticket, play

NODES = 16
LOSS_RATIO = 0.2
SEEDS_TO_CATCH = 6
"""In which each mistake has to show at least once; most do in the first."""


def _ticket(scenario: str, seed: int, mistake: str = "", loss_ratio: float = LOSS_RATIO) -> Ticket:
    return Ticket(scenario=scenario, nodes=NODES, seed=seed, loss_ratio=loss_ratio, mistake=mistake)


@pytest.mark.parametrize("seed", [*range(1, 9), 32])
def test_no_storm_breaks_the_bound(seed: int) -> None:
    outcome = play(_ticket("chaos", seed))

    assert outcome.violations == ()


@pytest.mark.parametrize("seed", range(1, 4))
def test_retirements_that_overlap_end_in_one_epoch(seed: int) -> None:
    outcome = play(_ticket("overlap", seed))

    assert outcome.violations == ()


@pytest.mark.parametrize(
    "scenario", ["shift", "cut", "cut-two-dead", "retire", "partition", "emergency"]
)
def test_nothing_that_operators_and_work_do_breaks_the_bound(scenario: str) -> None:
    outcome = play(_ticket(scenario, 1))

    assert outcome.violations == ()


@pytest.mark.parametrize("mistake", sorted(MISTAKES))
def test_a_mistake_does_not_pass(mistake: str) -> None:
    outcomes = (play(_ticket("chaos", seed, mistake)) for seed in range(1, SEEDS_TO_CATCH + 1))

    assert any(outcome.violations for outcome in outcomes)


def test_a_run_is_repeated_exactly_by_its_seed() -> None:
    first, second = play(_ticket("shift", 7)), play(_ticket("shift", 7))

    assert first == second
