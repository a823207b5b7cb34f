"""What must outlive the process."""

import errno
import os
import stat
from pathlib import Path

import pytest

from cluster.durable import DurableFailed, EpochFile, RecordLog


def log_at(path: Path, *records: bytes) -> RecordLog:
    log = RecordLog(path / "it.log", "test")
    log.load()
    log.append(records)
    return log


def read_again(path: Path) -> tuple[tuple[bytes, ...], int]:
    kept = RecordLog(path / "it.log", "test").load()
    return kept.records, kept.cut_bytes


def test_records_come_back_in_their_order(tmp_path: Path) -> None:
    log = log_at(tmp_path, b"one", b"")
    log.append([b"three" * 1000])

    assert read_again(tmp_path) == ((b"one", b"", b"three" * 1000), 0)
    assert stat.S_IMODE((tmp_path / "it.log").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "at", [pytest.param(0, id="length"), pytest.param(5, id="check"), pytest.param(9, id="record")]
)
def test_damage_with_whole_records_behind_it_is_no_torn_tail(tmp_path: Path, at: int) -> None:
    log_at(tmp_path, b"first", b"second", b"third")
    path = tmp_path / "it.log"
    whole = path.read_bytes()
    begin = whole.index(b"second") - 8
    damaged = bytearray(whole)
    damaged[begin + at] ^= 0x40
    path.write_bytes(damaged)

    with pytest.raises(DurableFailed, match=f"damaged at byte {begin}, and whole records follow"):
        RecordLog(path, "test").load(may_lose_records=False)

    assert path.read_bytes() == damaged
    assert read_again(tmp_path)[0] == (b"first",)


def test_a_torn_tail_alone_is_cut_also_where_nothing_may_be_lost(tmp_path: Path) -> None:
    log_at(tmp_path, b"first", b"second")
    path = tmp_path / "it.log"
    path.write_bytes(path.read_bytes()[:-2])

    kept = RecordLog(path, "test").load(may_lose_records=False)

    assert (kept.records, kept.cut_bytes) == ((b"first",), 12)


def test_a_log_that_was_never_written_holds_nothing(tmp_path: Path) -> None:
    assert read_again(tmp_path) == ((), 0)


def test_every_torn_tail_is_cut_and_kept_and_appending_goes_on(tmp_path: Path) -> None:
    log_at(tmp_path, b"first", b"second")
    whole = (tmp_path / "it.log").read_bytes()
    begin = len(whole) - len(b"second") - 8
    for end in range(begin + 1, len(whole)):
        (tmp_path / "it.log").write_bytes(whole[:end])

        log = RecordLog(tmp_path / "it.log", "test")
        kept = log.load()
        log.append([b"third"])

        assert (kept.records, kept.cut_bytes) == ((b"first",), end - begin)
        assert (tmp_path / "it.log.cut").read_bytes() == whole[begin:end]
        assert read_again(tmp_path) == ((b"first", b"third"), 0)


@pytest.mark.parametrize("offset", [0, 4, 9])
def test_a_flipped_bit_cuts_from_there(tmp_path: Path, offset: int) -> None:
    log_at(tmp_path, b"first", b"second")
    path = tmp_path / "it.log"
    content = bytearray(path.read_bytes())
    content[len(content) - len(b"second") - 8 + offset] ^= 1
    path.write_bytes(content)

    assert read_again(tmp_path)[0] == (b"first",)


@pytest.mark.parametrize("length", range(1, 14))
def test_a_log_torn_in_its_first_line_begins_anew(tmp_path: Path, length: int) -> None:
    log_at(tmp_path, b"first")
    path = tmp_path / "it.log"
    path.write_bytes(path.read_bytes()[:length])

    log = RecordLog(path, "test")
    assert log.load().records == ()
    log.append([b"again"])

    assert read_again(tmp_path) == ((b"again",), 0)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(b"esnode test 2\nwhatever", "later version", id="of-a-later-version"),
        pytest.param(b"esnode other 1\n", "not a log of this kind", id="of-another-kind"),
        pytest.param(b"#!/bin/sh\necho hello, this is a script\n", "move it away", id="foreign"),
    ],
)
def test_a_file_that_is_not_ours_is_refused_and_left_alone(
    tmp_path: Path, content: bytes, says: str
) -> None:
    (tmp_path / "it.log").write_bytes(content)

    with pytest.raises(DurableFailed, match=says):
        RecordLog(tmp_path / "it.log", "test").load()

    assert (tmp_path / "it.log").read_bytes() == content


def test_a_disk_that_refuses_leaves_the_log_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_at(tmp_path, b"first")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(DurableFailed, match="No space left"):
            log.append([b"second"])
    log.append([b"third"])

    assert read_again(tmp_path) == ((b"first", b"third"), 0)


def test_all_records_are_replaced_at_once(tmp_path: Path) -> None:
    log = log_at(tmp_path, b"old", b"older")

    log.replace([b"new"])
    log.append([b"newer"])

    assert [one for one in read_again(tmp_path)[0] if one] == [b"new", b"newer"]


def test_an_epoch_is_the_highest_that_was_written_whole(tmp_path: Path) -> None:
    epoch = EpochFile(tmp_path / "epoch")
    assert epoch.read() == 0

    for number in (1, 2, 3, 9):
        epoch.write(number)

        assert EpochFile(tmp_path / "epoch").read() == number


def test_whatever_is_torn_in_one_slot_the_other_one_holds(tmp_path: Path) -> None:
    path = tmp_path / "epoch"
    for number in (6, 7):
        EpochFile(path).write(number)
    whole = path.read_bytes()
    for offset in range(len(whole)):
        damaged = bytearray(whole)
        damaged[offset] ^= 0xFF
        path.write_bytes(damaged)

        assert EpochFile(path).read() in (6, 7)
        assert not EpochFile(path).is_damaged()


@pytest.mark.parametrize("content", [b"", b"7\n", b"\0" * 128, bytes(range(128))])
def test_an_epoch_that_is_gone_is_known_to_be(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "epoch"
    path.write_bytes(content)

    assert EpochFile(path).is_damaged()
    EpochFile(path).write(5)
    assert EpochFile(path).read() == 5


def test_the_epoch_file_never_grows_after_its_first_write(tmp_path: Path) -> None:
    epoch = EpochFile(tmp_path / "epoch")
    epoch.write(1)
    size = (tmp_path / "epoch").stat().st_size

    for number in range(2, 50):
        epoch.write(number)

    assert (tmp_path / "epoch").stat().st_size == size


def test_records_after_a_replacement_whose_name_did_not_reach_the_disk_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_at(tmp_path, *[b"x" * 50 for _ in range(40)])
    synced: list[Path] = []

    def refuse_the_second_time(folder: Path) -> None:
        synced.append(folder)
        if len(synced) in (2, 3):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("cluster.durable.sync_folder", refuse_the_second_time)
    with pytest.raises(DurableFailed):
        log.replace([b"sum"])
    with pytest.raises(DurableFailed):
        log.append([b"later"])  # the name is not on disk yet
    log.append([b"later"])

    records, cut_bytes = read_again(tmp_path)
    assert records == (b"sum", b"", b"later")
    assert cut_bytes == 0


def test_a_hole_of_zeros_is_no_row_of_records(tmp_path: Path) -> None:
    log_at(tmp_path, b"one")
    path = next(tmp_path.iterdir())
    with path.open("ab") as file:
        file.write(bytes(400))

    records, cut_bytes = read_again(tmp_path)

    assert records == (b"one", b"")
    assert cut_bytes == 392


def test_nothing_is_written_beyond_the_end_of_a_file_that_became_shorter(tmp_path: Path) -> None:
    log = log_at(tmp_path, b"one", b"two")
    path = next(tmp_path.iterdir())
    path.write_bytes(path.read_bytes()[:30])

    with pytest.raises(DurableFailed):
        log.append([b"three"])
