"""`python -m simulations`: what it prints, and with which code it ends."""

import json

import pytest

from simulations.__main__ import OK, USAGE, VIOLATED, main
from simulations.scenarios import SCENARIOS, Scenario
from simulations.stage import Stage


def fail(stage: Stage) -> None:
    """Something goes wrong."""
    stage.settle()
    stage.require(False, "the sky has fallen")
    stage.measure(skies=0)


def stumble(stage: Stage) -> None:
    """Our own code has a bug."""
    stage.settle()
    raise KeyError("no such thing")


BROKEN = {
    "fail": Scenario(name="fail", tell=fail),
    "stumble": Scenario(name="stumble", tell=stumble),
}


def test_the_list_names_every_scenario_and_says_what_happens(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["list"])

    lines = capsys.readouterr().out.splitlines()
    assert code == OK
    assert [line.split()[0] for line in lines] == list(SCENARIOS)
    assert all(len(line.split()) > 4 for line in lines)


def test_a_run_is_reported_as_a_document_with_its_schema(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["run", "mass-join", "--nodes", "4", "--seed", "5", "--json"])

    document = json.loads(capsys.readouterr().out)
    assert code == OK
    assert set(document) == {
        "schema", "scenario", "nodes", "seed", "ok", "violations", "violations_total",
        "trace_digest", "virtual_seconds", "wall_seconds", "figures",
    }  # fmt: skip
    assert document["schema"] == "esnode.simulation/1"
    assert (document["scenario"], document["nodes"], document["seed"]) == ("mass-join", 4, 5)
    assert (document["ok"], document["violations"]) == (True, [])
    assert document["figures"]["all_see_all_seconds"] < 3.0


def test_several_seeds_are_one_report_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["run", "mass-join", "--nodes", "3", "--seed", "5", "--seeds", "3", "--json"])

    seeds = [json.loads(line)["seed"] for line in capsys.readouterr().out.splitlines()]
    assert code == OK
    assert seeds == [5, 6, 7]


def test_people_get_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["run", "mass-join", "--nodes", "4"])

    lines = capsys.readouterr().out.splitlines()
    assert code == OK
    assert lines[0].startswith("mass-join, 4 nodes, seed 1: ok (")
    assert any(line.split()[0] == "all_see_all_seconds" for line in lines)


def test_a_violation_ends_with_code_1_and_the_line_that_repeats_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["run", "fail", "--nodes", "3", "--seed", "9"], BROKEN)

    lines = capsys.readouterr().out.splitlines()
    assert code == VIOLATED
    assert lines[0].startswith("fail, 3 nodes, seed 9: FAILED (")
    assert lines[-2] == "  ! 4.000 s  all: the sky has fallen"
    assert lines[-1] == "  to repeat: python -m simulations run fail --nodes 3 --seed 9"


def test_with_json_the_line_that_repeats_it_is_on_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["run", "fail", "--nodes", "3", "--json"], BROKEN)

    said = capsys.readouterr()
    violation = {"at_seconds": 4.0, "node": "all", "what": "the sky has fallen"}
    assert code == VIOLATED
    assert json.loads(said.out)["violations"] == [violation]
    assert said.err == "to repeat: python -m simulations run fail --nodes 3 --seed 1\n"


def test_an_error_of_the_code_is_a_violation_that_names_its_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["run", "stumble", "--nodes", "3"], BROKEN)

    said = capsys.readouterr().out
    assert code == VIOLATED
    assert "KeyError at test_command_line.py:" in said
    assert "no such thing" in said


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param("run moonrise", "no scenario is called 'moonrise'; there are:", id="unknown"),
        pytest.param("run crash --nodes 1", "--nodes '1': a whole number from 2 on", id="one"),
        pytest.param("run crash --nodes 3", "crash is told for 4 to 10000 nodes", id="too-few"),
        pytest.param("run crash --nodes 10001", "at most 10000", id="too-many"),
        pytest.param("run loss --nodes 9999", "loss is told for 2 to 2000 nodes", id="too-heavy"),
        pytest.param("run crash --nodes ten", "--nodes 'ten': a whole number", id="no-number"),
        pytest.param("run crash --seed x", "--seed 'x': a whole number from 0 on", id="bad-seed"),
        pytest.param("run crash --seeds 0", "--seeds '0': a whole number from 1 on", id="no-seeds"),
    ],
)
def test_a_wrong_command_line_is_one_clear_line_and_code_2(
    arguments: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(arguments.split())

    said = capsys.readouterr()
    assert code == USAGE
    assert said.out == ""
    assert complaint in said.err
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize("arguments", ["", "run", "run crash --no-such-option"])
def test_what_argparse_refuses_is_one_line_too(
    arguments: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments.split())

    assert ended.value.code == USAGE
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_help_shows_what_to_type(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])

    assert ended.value.code == OK
    assert "python -m simulations run crash" in capsys.readouterr().out
