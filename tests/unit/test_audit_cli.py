"""`esnode audit`: tail and verify, over files alone."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from esnode.acting.words import Result as Outcome
from esnode.acting.words import Would
from esnode.audit import AuditJournal
from esnode.audit.entries import entry_after, entry_before, entry_note, entry_would
from esnode.audit.files import file_of
from esnode.cli import cli
from tests.acting_cases import proposal, rules, ticket_of


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty.toml").touch()
    monkeypatch.setenv("ESNODE_CONFIG", str(tmp_path / "empty.toml"))


def run(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["--state-dir", str(folder), "audit", *words])


def fill(folder: Path) -> Path:
    audit = AuditJournal(folder / "control", lambda: 1_800_000_000.0)
    ticket = ticket_of(rules().judge(proposal(), 100.0))
    audit.add(entry_note("paused by alice"))
    audit.add(entry_would(proposal(target="gpu GPU-b"), Would(line="would drain")))
    audit.add(entry_before(ticket, by="agent"))
    audit.add(
        entry_after(
            ticket,
            Outcome.DONE,
            read_back="closed to work",
            effect="3 C less",
            has_effect=True,
            latency_seconds=0.1,
        )
    )
    return file_of(folder / "control", 1)


def test_tail_shows_the_last_lines_for_people(tmp_path: Path) -> None:
    fill(tmp_path)

    result = run(tmp_path, "tail", "-n", "2")

    assert result.exit_code == 0
    before, after = result.stdout.splitlines()
    assert before == (
        "2027-01-15T08:00:00Z  before  act-1  cooling: drain: gpu GPU-a  because temperature 91.0 "
        "C (gpu)  by rule heat"
    )
    assert after == (
        "2027-01-15T08:00:00Z  after  act-1  cooling: done: gpu GPU-a  closed to work  3 C less"
    )


def test_tail_about_one_thing_as_json(tmp_path: Path) -> None:
    fill(tmp_path)

    result = run(tmp_path, "tail", "--about", "GPU-b", "--json")

    (line,) = result.stdout.splitlines()
    assert json.loads(line)["phase"] == "would"


def test_verify_says_that_it_is_whole_and_where_it_ends(tmp_path: Path) -> None:
    fill(tmp_path)

    people = run(tmp_path, "verify")
    machines = json.loads(run(tmp_path, "verify", "--json").stdout)

    assert people.exit_code == 0
    assert people.stdout.startswith("whole: 4 lines in 1 files")
    assert machines["head"] in people.stdout
    assert machines["is_whole"] is True


def test_verify_names_the_first_broken_place(tmp_path: Path) -> None:
    path = fill(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"alice", b"carol"))

    result = run(tmp_path, "verify")

    assert result.exit_code == 1
    assert f"broken at {path}:2: does not follow" in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize("words", [("tail",), ("verify",)])
def test_without_an_audit_there_is_nothing_and_no_error(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert run(tmp_path, *words).exit_code == 0


def test_what_is_no_folder_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "control").write_text("")

    result = run(tmp_path, "tail")

    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
