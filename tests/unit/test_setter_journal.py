import json
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from esnode.setter.journal import NAME, Journal, JournalFailed


def lines(path: Path) -> list[object]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_lines_are_kept_for_their_owner_alone(tmp_path: Path) -> None:
    journal = Journal(tmp_path)

    journal.append({"n": 1})
    journal.append({"n": 2})

    assert lines(tmp_path / NAME) == [{"n": 1}, {"n": 2}]
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600


def test_a_full_journal_makes_room_and_keeps_one_before_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path, bytes_max=20)

    for n in range(1, 7):
        journal.append({"n": n})  # eight bytes each, so two fit

    assert lines(tmp_path / NAME) == [{"n": 5}, {"n": 6}]
    assert lines(tmp_path / f"{NAME}.1") == [{"n": 3}, {"n": 4}]
    assert sorted(os.listdir(tmp_path)) == [NAME, f"{NAME}.1"]


def test_a_line_longer_than_the_journal_is_kept_all_the_same(tmp_path: Path) -> None:
    journal = Journal(tmp_path, bytes_max=20)

    journal.append({"n": "x" * 100})

    assert len(lines(tmp_path / NAME)) == 1


def test_a_line_that_a_crash_tore_stays_apart_from_the_next(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text('{"n":1}\n{"n":')

    Journal(tmp_path).append({"n": 3})

    assert (tmp_path / NAME).read_text() == '{"n":1}\n{"n":\n{"n":3}\n'


def test_text_from_outside_stays_on_its_line(tmp_path: Path) -> None:
    Journal(tmp_path).append({"reason": 'a\n{"phase":"before"}\u2028\ud800'})

    assert len((tmp_path / NAME).read_bytes().splitlines()) == 1


def test_a_missing_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(JournalFailed, match=rf"nowhere/{NAME}: No such file or directory"):
        Journal(tmp_path / "nowhere").append({})


def test_a_journal_comes_back_with_its_folder(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "late")
    with pytest.raises(JournalFailed):
        journal.append({"n": 1})

    (tmp_path / "late").mkdir()
    journal.append({"n": 2})

    assert lines(journal.path) == [{"n": 2}]


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_what_is_no_file_is_not_written_to(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "target"
    target.write_text("")
    if kind == "link":
        (tmp_path / NAME).symlink_to(target)
    elif kind == "fifo":
        os.mkfifo(tmp_path / NAME)
    else:
        (tmp_path / NAME).mkdir()

    with pytest.raises(JournalFailed):
        Journal(tmp_path).append({"n": 1})

    assert target.read_text() == ""


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """Let the kernel refuse to make files longer, as a full disk does in the middle of a line."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_no_half_line(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append({"n": 1})

    with files_of_at_most(12), pytest.raises(JournalFailed) as caught:
        journal.append({"n": 2})
    journal.append({"n": 3})

    assert "\n" not in str(caught.value)
    assert lines(journal.path) == [{"n": 1}, {"n": 3}]
