"""The state folder: one agent at a time, and where to find it."""

import json
import os
from pathlib import Path

import pytest

from esnode.state import StateFolder, StateInUse, StateUnusable, announced_address


def test_a_second_agent_is_told_who_holds_the_folder(tmp_path: Path) -> None:
    first = StateFolder(tmp_path)
    try:
        with pytest.raises(StateInUse) as caught:
            StateFolder(tmp_path)
    finally:
        first.close()

    assert str(caught.value) == (
        f"another agent (pid {os.getpid()}) uses {tmp_path}; stop it, or give this one a folder "
        "of its own with --state-dir"
    )


def test_a_folder_is_made_for_its_owner_only_and_is_free_again_after_the_end(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a" / "b"

    for _ in range(2):
        StateFolder(path).close()

    assert path.stat().st_mode & 0o777 == 0o711


def test_a_file_in_place_of_the_folder_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()

    with pytest.raises(StateUnusable) as caught:
        StateFolder(path)

    assert str(caught.value) == f"{path}: File exists"


@pytest.mark.parametrize(
    ("listening", "asked"),
    [
        pytest.param("http://0.0.0.0:9100", "http://127.0.0.1:9100", id="everywhere"),
        pytest.param("http://[::]:9100", "http://[::1]:9100", id="everywhere-over-ipv6"),
        pytest.param("https://10.0.0.7:9100", "https://10.0.0.7:9100", id="one-address"),
    ],
)
def test_a_running_agent_is_found_by_its_folder(tmp_path: Path, listening: str, asked: str) -> None:
    folder = StateFolder(tmp_path)
    folder.announce([listening], "0.1.0")

    found = announced_address(tmp_path)
    folder.close()

    assert found == asked
    assert announced_address(tmp_path) is None


def test_the_word_of_a_killed_agent_is_not_believed_even_when_its_pid_lives_again(
    tmp_path: Path,
) -> None:
    StateFolder(tmp_path).close()
    (tmp_path / "agent.json").write_text(
        json.dumps({"pid": os.getpid(), "addresses": ["http://127.0.0.1:9100"]})
    )

    assert announced_address(tmp_path) is None


@pytest.mark.parametrize(
    "document",
    [
        pytest.param("", id="empty"),
        pytest.param("{", id="broken"),
        pytest.param("[1]", id="another-shape"),
        pytest.param(json.dumps({"pid": 1 << 22 | 1, "addresses": ["http://x"]}), id="dead"),
        pytest.param(json.dumps({"pid": 10**30, "addresses": ["http://x"]}), id="no-pid-at-all"),
        pytest.param(json.dumps({"pid": os.getpid(), "addresses": []}), id="no-address"),
    ],
)
def test_a_note_that_says_nothing_useful_is_no_agent(tmp_path: Path, document: str) -> None:
    (tmp_path / "agent.json").write_text(document)

    assert announced_address(tmp_path) is None
