"""In which order jobs wait, and who may go before whom."""

from typing import Any

import pytest

from esnode.placing.queueing import (
    AGED_PRIORITY_MAX,
    AGEING_SECONDS,
    RESERVATIONS_MAX,
    RESERVING_SECONDS,
    effective_priority,
    may_pass,
    order,
    ready_at_seconds,
    sets_aside,
)
from tests.placing_places import machine, need, running

NOW = 10_000.0


@pytest.mark.parametrize(
    ("priority", "waited", "expected"),
    [
        pytest.param(4, 0.0, 4, id="just come"),
        pytest.param(4, AGEING_SECONDS - 1, 4, id="not yet a level"),
        pytest.param(4, AGEING_SECONDS, 5, id="one level"),
        pytest.param(0, 100 * AGEING_SECONDS, AGED_PRIORITY_MAX, id="no more than the highest age"),
        pytest.param(8, 100 * AGEING_SECONDS, 8, id="the two highest do not age"),
        pytest.param(9, 0.0, 9, id="the highest"),
        pytest.param(4, -50.0, 4, id="from the future"),
    ],
)
def test_a_job_grows_more_important_while_it_waits(
    priority: int, waited: float, expected: int
) -> None:
    one = need(priority=priority, waiting_since_seconds=NOW - waited)

    assert effective_priority(one, NOW) == expected


def test_a_broken_promise_counts_as_the_highest_age() -> None:
    one = need(priority=1, waiting_since_seconds=NOW, promised_at_seconds=NOW - 1)

    assert effective_priority(one, NOW) == AGED_PRIORITY_MAX
    assert effective_priority(one, NOW - 2) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"priority": 5}, {"priority": 4}, id="priority"),
        pytest.param(
            {"priority": 4, "waiting_since_seconds": NOW - 1},
            {"priority": 4, "waiting_since_seconds": NOW},
            id="first come, first served",
        ),
        pytest.param(
            {"priority": 3, "waiting_since_seconds": NOW - 2 * AGEING_SECONDS},
            {"priority": 4, "waiting_since_seconds": NOW},
            id="age",
        ),
        pytest.param(
            {"priority": 8, "waiting_since_seconds": NOW},
            {"priority": 7, "waiting_since_seconds": 0.0},
            id="the two highest before any age",
        ),
        pytest.param({"job": "a"}, {"job": "b"}, id="id"),
        pytest.param(
            {"priority": 3, "room_node": "n1"}, {"priority": 9}, id="room has been made for it"
        ),
    ],
)
def test_who_goes_first(first: dict[str, Any], second: dict[str, Any]) -> None:
    one = need(**{"job": "one", "waiting_since_seconds": NOW, **first})
    two = need(**{"job": "two", "waiting_since_seconds": NOW, **second})

    assert order([two, one], NOW) == [one, two]


@pytest.mark.parametrize(
    ("already", "waited", "expected"),
    [
        pytest.param(0, 0.0, True, id="the head at once"),
        pytest.param(1, RESERVING_SECONDS - 1, False, id="another not yet"),
        pytest.param(1, RESERVING_SECONDS, True, id="another that has waited long"),
        pytest.param(RESERVATIONS_MAX, 1e9, False, id="not too many"),
    ],
)
def test_who_sets_something_aside(already: int, waited: float, expected: bool) -> None:
    one = need(waiting_since_seconds=NOW - waited)

    assert sets_aside(one, already, NOW) is expected


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        pytest.param(1, 100.0, id="the first that ends"),
        pytest.param(2, 100.0, id="both GPUs of it"),
        pytest.param(3, 200.0, id="the next"),
        pytest.param(4, float("inf"), id="one whose end nobody knows"),
        pytest.param(5, float("inf"), id="more than are held"),
        pytest.param(0, float("inf"), id="something else is missing"),
    ],
)
def test_when_gpus_are_expected_to_be_free(missing: int, expected: float) -> None:
    place = machine(
        running=(
            running("a", 0, ends_at_seconds=200.0),
            running("b", 1, 2, ends_at_seconds=100.0),
            running("c", 3),
        )
    )

    assert ready_at_seconds(place, [f"g{index}" for index in range(8)], missing) == expected


@pytest.mark.parametrize(
    ("runs_for", "ready_at", "expected"),
    [
        pytest.param(60.0, NOW + 60, True, id="over in time"),
        pytest.param(61.0, NOW + 60, False, id="a second too long"),
        pytest.param(None, NOW + 60, False, id="nobody knows how long it runs"),
        pytest.param(60.0, float("inf"), False, id="nobody knows when it is needed"),
    ],
)
def test_who_may_pass(runs_for: float | None, ready_at: float, expected: bool) -> None:
    assert may_pass(need(runs_for_seconds=runs_for), ready_at, NOW) is expected
