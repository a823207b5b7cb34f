"""A short run of each kind; the long ones are `python -m tests.fuzz`."""

import json

import pytest

from tests.fuzz import datagrams, documents
from tests.fuzz.__main__ import main


def no_progress(done: int, count: int) -> None:
    pass


def test_twenty_thousand_hostile_datagrams_change_no_member_and_leave_no_memory() -> None:
    outcome = datagrams.run(20_000, 1, no_progress)

    assert outcome.violations == []
    assert outcome.count == 20_000


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        pytest.param("frames", 20_000, id="frames"),
        pytest.param("papers", 2_000, id="papers"),
        pytest.param("tokens", 5_000, id="tokens"),
    ],
)
def test_spoiled_documents_are_read_or_refused(kind: str, count: int) -> None:
    outcome = documents.run(kind, count, 1, no_progress)

    assert outcome.violations == []
    assert outcome.count == count


def test_a_run_is_repeated_by_its_seed() -> None:
    first, second = (datagrams.run(500, 7, no_progress) for _ in range(2))

    assert first.figures["rejected"] == second.figures["rejected"]
    assert first.figures["effects"] == second.figures["effects"]


def test_the_command_reports_and_exits_with_what_came_of_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["tokens", "--count", "50", "--seed", "3", "--json"])

    document = json.loads(capsys.readouterr().out)
    assert code == 0
    assert (document["schema"], document["ok"], document["count"]) == ("esnode.fuzz/1", True, 50)
