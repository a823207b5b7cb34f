"""The scenarios of `python -m simulations.power`: their figures, reports and exit codes."""

import json

import pytest

from simulations.power.__main__ import OK, USAGE, VIOLATED, main
from simulations.power.checker import Violation
from simulations.power.outcome import Outcome, Summary
from simulations.power.runner import Ticket, play
from simulations.power.scenarios import SCENARIOS

SECONDS_MAX = {
    "shift": ("to_98_percent_seconds", 60.0),
    "cut": ("to_the_new_budget_seconds", 4.0),
    "cut-two-dead": ("to_the_new_budget_seconds", 8.0),
    "retire": ("all_in_the_new_epoch_seconds", 5.0),
    "retire-absent": ("all_in_the_new_epoch_seconds", 36.0),
    "partition": ("each_half_to_90_percent_seconds", 8.0),
    "emergency": ("below_the_budget_seconds", 3.0),
    "two-operators": ("to_the_lower_budget_seconds", 5.0),
    "two-feeds": ("to_the_lower_feed_seconds", 4.0),
}
"""Far above what is measured: these are broken only by something that hangs."""


@pytest.mark.parametrize("name", SECONDS_MAX)
def test_a_calm_rack_does_it_in_time_and_breaks_nothing(name: str) -> None:
    figure, most = SECONDS_MAX[name]

    outcome = play(Ticket(scenario=name, nodes=8, seed=3, loss_ratio=0.2))

    seconds = outcome.figures[figure]
    assert outcome.violations == ()
    assert seconds is not None
    assert seconds <= most


@pytest.mark.parametrize("seed", [1, 2])
def test_machines_of_four_kinds_keep_the_promise_in_the_storm(seed: int) -> None:
    outcome = play(Ticket(scenario="mixed", nodes=8, seed=seed, loss_ratio=0.2))

    assert outcome.violations == ()
    assert outcome.figures["one_epoch_total"] == 1
    assert outcome.figures["quarantined_total"] == 0


def test_two_operators_at_once_are_told_to_everybody_and_settled_by_one() -> None:
    outcome = play(Ticket(scenario="two-operators", nodes=8, seed=5, loss_ratio=0.2))

    assert outcome.violations == ()
    assert outcome.figures["not_alarmed_total"] == 0
    assert outcome.figures["settled_seconds"] is not None


def test_one_feed_can_carry_what_both_did() -> None:
    outcome = play(Ticket(scenario="two-feeds", nodes=8, seed=5, loss_ratio=0.2))

    carried = outcome.figures["carried_by_one_feed_ratio"]
    assert outcome.violations == ()
    assert carried is not None
    assert carried <= 1.0
    assert outcome.figures["restored_seconds"] is not None


def test_siblings_of_a_gang_are_equally_fast() -> None:
    outcome = play(Ticket(scenario="gang", nodes=8, seed=2, loss_ratio=0.2))

    spread, wasted = (outcome.figures[name] for name in ("spread_in_a_gang_ratio", "wasted_ratio"))
    assert outcome.violations == ()
    assert spread is not None
    assert spread <= 0.05
    assert wasted is not None
    assert wasted <= 0.02


def test_watts_are_served_nearly_as_by_an_ideal_controller() -> None:
    outcome = play(Ticket(scenario="contrasts", nodes=8, seed=1, loss_ratio=0.2))

    ours = outcome.figures["ours_of_central_ratio"]
    assert outcome.violations == ()
    assert ours is not None
    assert ours >= 0.97
    assert outcome.figures["ours_could_draw_too_much_seconds"] == 0


def test_a_run_is_repeated_exactly_by_its_seed() -> None:
    ticket = Ticket(scenario="overlap", nodes=8, seed=11, loss_ratio=0.2)

    assert play(ticket) == play(ticket)


def test_the_list_names_everything_that_can_be_played(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["list"])

    names = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line]
    assert code == OK
    assert set(SCENARIOS) <= set(names)


def test_documents_come_one_a_line_with_their_sum_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["cut", "--nodes", "8", "--seeds", "2", "--seed", "5", "--json"])

    *runs, total = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert code == OK
    assert [one["seed"] for one in runs] == [5, 6]
    assert all(one["ok"] and one["schema"] == "esnode.power-simulation/1" for one in runs)
    assert (total["summary_of"], total["seeds_total"]) == ("cut", 2)
    assert total["figures"]["to_the_new_budget_seconds"]["never_total"] == 0


def test_a_mistake_that_is_switched_in_ends_with_the_line_that_repeats_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["shift", "--nodes", "8", "--mistake", "grant-before-lowering"])

    text = capsys.readouterr().out
    assert code == VIOLATED
    assert "FAILED in 1" in text
    assert "to repeat: python -m simulations.power shift --nodes 8 --seed 1 --loss 0.2" in text
    assert "--mistake grant-before-lowering" in text


def test_a_plan_can_be_explored_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["explore", "--plan", "budget", "--states", "200"])

    assert code == OK
    assert "budget: 200 states (not all there are)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["chaos", "--nodes", "2"], "4 to 200", id="too few nodes"),
        pytest.param(["chaos", "--loss", "1"], "0 to 0.9", id="all is lost"),
        pytest.param(["chaos", "--seeds", "0"], "--seeds is 1 or more", id="no seed"),
        pytest.param(["chaos", "--mistake", "haste"], "no mistake is called", id="a mistake"),
        pytest.param(["explore", "--plan", "all"], "nothing called 'all'", id="a plan"),
    ],
)
def test_a_wrong_command_line_is_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(arguments)

    error = capsys.readouterr().err
    assert code == USAGE
    assert words in error
    assert error.count("\n") == 1


def test_an_unknown_scenario_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["earthquake"])

    assert ended.value.code == USAGE
    assert capsys.readouterr().err.count("\n") == 1


def test_a_summary_ranks_figures_and_adds_up_totals() -> None:
    runs = [
        Outcome(
            scenario="shift",
            nodes=16,
            seed=seed,
            loss_ratio=0.0,
            violations=(Violation(1.5, "caps", "2 W in force, 1 W allowed"),) if seed == 3 else (),
            violations_total=4 if seed == 3 else 0,
            virtual_seconds=1.0,
            figures={"seconds": None if seed == 2 else float(seed), "events_total": 10},
        )
        for seed in range(1, 6)
    ]

    summary = Summary(outcomes=runs, wall_seconds=1.0)

    figures = summary.document()["figures"]
    assert figures == {
        "seconds": {"p50": 4.0, "p95": 5.0, "p99": 5.0, "mean": 3.25, "never_total": 1},
        "events_total": 50,
    }
    assert summary.broken == [runs[2]]
    assert "seed 3, 1.500 s, caps: 2 W in force, 1 W allowed (4 in all)" in summary.table()
