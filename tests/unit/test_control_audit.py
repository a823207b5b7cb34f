"""The chained audit: what is written, what is refused, and what `verify` finds."""

import json
import os
import resource
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from esnode.acting.words import Mode, Result, Would
from esnode.audit import AuditFailed, AuditJournal, is_about, read_entries, verify
from esnode.audit.chain import FIRST
from esnode.audit.entries import entry_after, entry_before, entry_would
from esnode.audit.files import file_of, files_in
from tests.acting_cases import proposal, rules, ticket_of

AT = 1_800_000_000.0


def journal(folder: Path, *, bytes_max: int = 8 << 20, files_max: int = 16) -> AuditJournal:
    return AuditJournal(folder, lambda: AT, bytes_max=bytes_max, files_max=files_max)


def fill(folder: Path, count: int = 5) -> Path:
    audit = journal(folder)
    for number in range(count):
        audit.add({"phase": "note", "line": f"line {number}"})
    return file_of(folder, 1)


def test_lines_are_chained_numbered_and_private(tmp_path: Path) -> None:
    path = fill(tmp_path / "control")

    lines = [json.loads(line) for line in path.read_text().splitlines()]
    found = verify(path.parent)
    assert [line["number"] for line in lines] == [1, 2, 3, 4, 5]
    assert lines[0]["previous"] == FIRST
    assert lines[0]["at"] == "2027-01-15T08:00:00Z"
    assert (found.broken, found.line_count, found.first_number) == ("", 5, 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_chain_goes_on_after_a_restart(tmp_path: Path) -> None:
    fill(tmp_path)
    head = verify(tmp_path).head

    journal(tmp_path).add({"phase": "note"})

    last = list(read_entries(tmp_path))[-1]
    assert last.fields["previous"] == head
    assert verify(tmp_path).line_count == 6


def change_a_letter(lines: list[bytes]) -> list[bytes]:
    return [lines[0], lines[1].replace(b"line 1", b"line 9"), *lines[2:]]


@pytest.mark.parametrize(
    ("tamper", "place"),
    [
        pytest.param(change_a_letter, "audit-000001.jsonl:3: does not follow", id="changed"),
        pytest.param(lambda lines: lines[:2] + lines[3:], ":3: does not follow", id="taken-out"),
        pytest.param(lambda lines: lines[1:], ":1: does not follow", id="first-taken-out"),
        pytest.param(
            lambda lines: [lines[0], lines[0], *lines[1:]], ":2: does not follow", id="put-in"
        ),
        pytest.param(
            lambda lines: [lines[1], lines[0], *lines[2:]], ":1: does not follow", id="swapped"
        ),
        pytest.param(lambda lines: [lines[0], b"{", *lines[1:]], ":2: is no line", id="no-line"),
        pytest.param(
            lambda lines: [lines[0] + b"\r", *lines[1:]], ":2: does not follow", id="an-end-of-line"
        ),
    ],
)
def test_whatever_was_changed_shows_with_its_place(
    tmp_path: Path, tamper: Callable[[list[bytes]], list[bytes]], place: str
) -> None:
    path = fill(tmp_path)
    lines = path.read_bytes().splitlines()

    path.write_bytes(b"\n".join(tamper(lines)) + b"\n")

    assert place in verify(tmp_path).broken


def test_a_wrong_number_shows_although_the_hash_fits(tmp_path: Path) -> None:
    path = fill(tmp_path, 1)
    lines = path.read_bytes()
    second = {"number": 7, "previous": verify(tmp_path).head}

    path.write_bytes(lines + json.dumps(second).encode() + b"\n")

    assert verify(tmp_path).broken == "audit-000001.jsonl:2: is number 7, and 2 is due"


def test_lines_off_the_end_show_only_by_the_head_that_was_noted(tmp_path: Path) -> None:
    path = fill(tmp_path)
    noted = verify(tmp_path).head

    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))

    assert verify(tmp_path).broken == ""
    assert verify(tmp_path).head != noted


@pytest.mark.parametrize("kept", [1, 20, 60])
def test_a_torn_line_is_cut_told_and_chained_over(tmp_path: Path, kept: int) -> None:
    path = fill(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole + whole.splitlines()[-1][:kept])
    before = verify(tmp_path)

    journal(tmp_path).add({"phase": "note", "line": "after"})

    note, after = list(read_entries(tmp_path))[-2:]
    assert before.broken == "audit-000001.jsonl:6: is torn"
    assert note.text("line") == f"a torn line of {kept} bytes was cut off here"
    assert note.text("cut") == whole.splitlines()[-1][:kept].decode()
    assert after.text("line") == "after"
    assert verify(tmp_path).broken == ""


def test_a_line_torn_at_the_very_beginning_leaves_an_empty_chain(tmp_path: Path) -> None:
    file_of(tmp_path, 1).write_bytes(b'{"num')

    journal(tmp_path).add({"phase": "note"})

    assert (verify(tmp_path).broken, verify(tmp_path).line_count) == ("", 2)


def test_files_are_followed_by_files_and_the_oldest_go(tmp_path: Path) -> None:
    audit = journal(tmp_path, bytes_max=1000, files_max=3)
    for number in range(60):
        audit.add({"phase": "note", "line": f"line {number}"})

    found = verify(tmp_path)
    files = files_in(tmp_path)
    assert found.broken == ""
    assert found.file_count == 3
    assert files[0][0] > 1
    assert found.first_number is not None
    assert found.first_number + found.line_count == 61
    assert all(path.stat().st_size <= 1000 for _, path in files)

    journal(tmp_path, bytes_max=1000, files_max=3).add({"phase": "note"})
    assert verify(tmp_path).broken == ""


def test_a_change_before_a_file_ended_shows_in_the_next(tmp_path: Path) -> None:
    audit = journal(tmp_path, bytes_max=1000)
    for number in range(20):
        audit.add({"phase": "note", "line": f"line {number}"})
    first, second = files_in(tmp_path)[0][1], files_in(tmp_path)[1][1]
    lines = first.read_bytes().splitlines(keepends=True)

    first.write_bytes(b"".join(lines[:-1]))

    assert verify(tmp_path).broken.startswith(f"{second.name}:1: does not follow")


@pytest.fixture
def no_room() -> Callable[[int], None]:
    """Lets files of this process grow to so many bytes only."""

    def limit(size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield limit  # type: ignore[misc]  # a fixture that cleans up
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_refuses_the_line_whole_and_the_next_goes_on(
    tmp_path: Path, no_room: Callable[[int], None]
) -> None:
    audit = journal(tmp_path)
    audit.add({"phase": "note", "line": "first"})
    size = file_of(tmp_path, 1).stat().st_size

    no_room(size + 50)
    with pytest.raises(AuditFailed, match="cannot be written"):
        audit.add({"phase": "note", "line": "x" * 200})
    is_whole = file_of(tmp_path, 1).stat().st_size == size
    no_room(resource.RLIM_INFINITY)
    audit.add({"phase": "note", "line": "after"})

    assert is_whole
    assert [entry.text("line") for entry in read_entries(tmp_path)] == ["first", "after"]
    assert verify(tmp_path).broken == ""


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_what_is_no_file_is_refused_in_one_line(tmp_path: Path, kind: str) -> None:
    path = file_of(tmp_path, 1)
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(tmp_path / "elsewhere")
    else:
        os.mkfifo(path)

    with pytest.raises(AuditFailed):
        journal(tmp_path).add({"phase": "note"})


def test_an_action_is_two_lines_with_one_id(tmp_path: Path) -> None:
    ticket = ticket_of(rules().judge(proposal(), 100.0))
    audit = journal(tmp_path)

    audit.add(entry_before(ticket, by="agent"))
    audit.add(
        entry_after(
            ticket,
            Result.DONE,
            read_back="500 W",
            effect="4 C less",
            has_effect=True,
            latency_seconds=0.25,
        )
    )

    before, after = read_entries(tmp_path)
    assert before.text("id") == after.text("id") == ticket.id
    assert (before.text("phase"), after.text("phase")) == ("before", "after")
    assert before.fields["evidence"] == [
        {"what": "temperature", "value": 91.0, "unit": "C", "age_seconds": 1.0, "source": "gpu"}
    ]
    assert after.fields["result"] == "done"


@pytest.mark.parametrize(
    ("what", "is_it"),
    [
        pytest.param("GPU-a", True, id="gpu"),
        pytest.param("job-7", True, id="job"),
        pytest.param("cooling", True, id="feature"),
        pytest.param("GPU-b", False, id="other-gpu"),
        pytest.param("job-70", False, id="longer"),
        pytest.param("7", False, id="too-short-for-a-part"),
        pytest.param("GPU", False, id="too-short"),
    ],
)
def test_lines_are_found_by_what_they_are_about(tmp_path: Path, what: str, is_it: bool) -> None:
    assert rules(Mode.OBSERVE).mode("cooling") is Mode.OBSERVE
    audit = journal(tmp_path)
    audit.add(entry_would(proposal(), Would(line="would drain")))

    (entry,) = read_entries(tmp_path)

    assert is_about(entry, what) is is_it
