"""What may happen to a job at one node, and what may not: two copies, a right passed twice."""

import pytest

from esnode.workloads.book import Book, Contradicted, Phase
from esnode.workloads.records import (
    Forgotten,
    Purpose,
    Result,
    decode_record,
    encode_record,
)
from tests.job_records import (
    JOB,
    NOW,
    declined,
    ended,
    handed,
    released,
    reowned,
    starting,
    stop_asked,
    stopped,
    submitted,
)


def phase_of(book):
    job = book.get(JOB)
    return None if job is None else job.phase


def test_a_job_is_queued_runs_and_ends():
    book = Book([submitted()])
    assert phase_of(book) is Phase.QUEUED

    book.apply(starting())
    assert phase_of(book) is Phase.RUNNING

    book.apply(ended(energy_joules=5.0, exit_code=0))
    job = book.get(JOB)
    assert (job.phase, job.result, job.energy_joules) == (Phase.ENDED, Result.SUCCEEDED, 5.0)


def test_a_job_that_made_room_is_queued_again_and_what_it_used_is_added_up():
    book = Book([submitted(), starting(), stop_asked(purpose=Purpose.REQUEUE)])
    assert phase_of(book) is Phase.STOPPING

    book.apply(stopped(energy_joules=3.0, promised_by_unix_seconds=NOW + 60))
    book.apply(starting(attempt=2))
    book.apply(ended(energy_joules=4.0))

    job = book.get(JOB)
    assert (job.requeues_count, job.energy_joules) == (1, 7.0)


@pytest.mark.parametrize(
    ("records", "next_record"),
    [
        pytest.param([], starting(), id="start of an unknown job"),
        pytest.param([submitted()], submitted(), id="submitted twice"),
        pytest.param([submitted(), starting()], starting(attempt=2), id="started twice"),
        pytest.param([submitted(), starting(), ended()], starting(), id="started after its end"),
        pytest.param([submitted(), handed()], starting(epoch=2), id="started after its hand-over"),
        pytest.param([submitted(), handed()], starting(epoch=1), id="started by an old right"),
        pytest.param([submitted(), handed()], handed(epoch=3), id="handed over twice"),
        pytest.param([submitted(), starting()], handed(), id="handed over while it runs"),
        pytest.param(
            [submitted(), handed(), released()], reowned(), id="taken back from its owner"
        ),
        pytest.param([submitted(), handed()], reowned(epoch=2), id="an epoch that stands still"),
        pytest.param([declined(epoch=2)], submitted(epoch=2), id="accepted after it was declined"),
        pytest.param([submitted(epoch=3)], submitted(epoch=4), id="a second right to a held job"),
        pytest.param(
            [submitted(), starting(), stop_asked()], stop_asked(), id="cancelled a second time"
        ),
        pytest.param([submitted()], stopped(), id="queued again without having run"),
        pytest.param(
            [submitted()],
            Forgotten(job=JOB, epoch=1, at_unix_seconds=NOW),
            id="forgotten while it is wanted",
        ),
    ],
)
def test_what_would_make_two_copies_or_none_is_refused(records, next_record):
    book = Book(records)
    before = list(book)

    with pytest.raises(Contradicted):
        book.check(next_record)
    with pytest.raises(Contradicted):
        book.apply(next_record)
    assert list(book) == before


def test_a_right_that_was_given_away_comes_back_with_a_higher_epoch():
    book = Book([submitted(), handed(), released()])
    assert phase_of(book) is Phase.GONE

    book.apply(submitted(epoch=3, from_node="cd" * 16))

    assert (phase_of(book), book.get(JOB).epoch) == (Phase.QUEUED, 3)


def test_a_right_that_nobody_took_is_this_nodes_again():
    book = Book([submitted(), handed(), reowned()])

    assert (phase_of(book), book.get(JOB).epoch) == (Phase.QUEUED, 3)
    book.apply(starting(epoch=3))


HISTORIES = [
    pytest.param([submitted()], id="queued"),
    pytest.param([submitted(), starting()], id="running"),
    pytest.param([submitted(), starting(), stop_asked()], id="stopping"),
    pytest.param([submitted(), starting(), stop_asked(), ended()], id="ended"),
    pytest.param([submitted(), handed()], id="handed"),
    pytest.param([declined()], id="declined"),
]


@pytest.mark.parametrize("records", HISTORIES)
def test_a_book_that_was_summed_up_is_the_same_book(records):
    book = Book(records)

    summed = [decode_record(encode_record(record)) for record in book.sum_up(NOW)]

    assert list(Book(summed)) == list(book)


@pytest.mark.parametrize("records", HISTORIES)
def test_records_are_read_as_they_were_written(records):
    assert [decode_record(encode_record(record)) for record in records] == records


def test_a_record_of_a_later_version_keeps_what_this_one_knows():
    data = encode_record(submitted()).replace(b'"uid"', b'"colour":"red","uid"')

    assert decode_record(data) == submitted()
