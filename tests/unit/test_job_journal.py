"""The journal of jobs under damage and refusing disks."""

import os

import pytest

from cluster.durable import DurableFailed
from esnode.workloads.book import Contradicted, Phase
from esnode.workloads.journal import JobJournal, JournalUnusable
from tests.job_records import JOB, NOW, OTHER, ended, starting, stopped, submitted


def journal_at(folder):
    return JobJournal(folder, lambda: NOW)


async def filled(folder):
    journal = journal_at(folder)
    assert journal.load() == ""
    await journal.add(submitted())
    await journal.add(starting())
    return journal


async def test_what_was_written_is_there_after_a_restart(tmp_path):
    await filled(tmp_path)

    again = journal_at(tmp_path)
    again.load()

    assert again.book.get(JOB).phase is Phase.RUNNING
    assert os.stat(again.path).st_mode & 0o077 == 0


async def test_a_torn_end_is_cut_and_told(tmp_path):
    journal = await filled(tmp_path)
    content = journal.path.read_bytes()
    journal.path.write_bytes(content[:-3])

    again = journal_at(tmp_path)
    line = again.load()

    assert "cut a damaged end" in line
    assert again.book.get(JOB).phase is Phase.QUEUED


async def test_a_record_that_does_not_follow_is_not_written(tmp_path):
    journal = await filled(tmp_path)
    size = journal.path.stat().st_size

    with pytest.raises(Contradicted):
        await journal.add(starting(attempt=2))

    assert journal.path.stat().st_size == size


async def test_a_disk_that_refuses_changes_nothing(tmp_path):
    journal = await filled(tmp_path)
    aside = tmp_path / "aside"
    journal.folder.rename(aside)

    with pytest.raises(DurableFailed):
        await journal.add(ended())

    assert journal.book.get(JOB).phase is Phase.RUNNING
    aside.rename(journal.folder)
    await journal.add(ended())
    assert journal.book.get(JOB).phase is Phase.ENDED


async def test_a_journal_that_contradicts_itself_is_left_alone(tmp_path):
    journal = await filled(tmp_path)
    content = journal.path.read_bytes()
    header = content.index(b"\n") + 1
    journal.path.write_bytes(content + content[header:])

    with pytest.raises(JournalUnusable) as unusable:
        journal_at(tmp_path).load()

    assert "no job is started" in str(unusable.value)
    assert journal.path.read_bytes() == content + content[header:]


async def test_many_records_are_put_together_and_say_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr("esnode.workloads.journal.COMPACT_RECORDS", 4)
    journal = await filled(tmp_path)
    await journal.add(submitted(OTHER))
    await journal.add(ended())
    await journal.add(starting(OTHER))
    for attempt in range(6):
        await journal.add(stopped(OTHER))
        await journal.add(starting(OTHER, attempt=attempt + 2))

    again = journal_at(tmp_path)
    again.load()

    assert list(again.book) == list(journal.book)
    assert again.path.read_bytes().count(b'"kept"') == 2
