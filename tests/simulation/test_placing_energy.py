"""The benchmark of placement, small: the score saves energy and does not cost time."""

import statistics

from tests.benchmarks.placement.__main__ import RULES, Outcome, simulate

SEEDS = (1, 2, 3)


def outcomes(rule: str) -> list[Outcome]:
    return [simulate(RULES[rule](seed), seed, job_count=60, node_count=20) for seed in SEEDS]


def test_the_score_uses_less_energy_than_best_fit_and_ends_no_later() -> None:
    ours, best_fit = outcomes("ours"), outcomes("best-fit")

    def middle(found: list[Outcome], field: str) -> float:
        return statistics.median(getattr(one, field) for one in found)

    assert middle(ours, "energy_joules") < middle(best_fit, "energy_joules")
    assert middle(ours, "busy_joules") < middle(best_fit, "busy_joules")
    assert middle(ours, "makespan_seconds") <= middle(best_fit, "makespan_seconds")
    assert middle(ours, "turnaround_seconds") <= middle(best_fit, "turnaround_seconds")


def test_the_same_seed_gives_the_same_outcome() -> None:
    one, other = (simulate(RULES["ours"](1), 1, job_count=40, node_count=20) for _ in range(2))

    assert one.makespan_seconds == other.makespan_seconds
    assert one.energy_joules == other.energy_joules
