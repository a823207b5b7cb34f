"""Who is answered at once, and who waits for others."""

import pytest

from cluster.wishes import APART_SECONDS, HOLD_SECONDS, QUIET_SECONDS, Crowd


def test_who_comes_alone_is_answered_at_once() -> None:
    crowd = Crowd()

    until = crowd.arrive(100.0)

    assert crowd.wait_seconds(until, 100.0) == 0.0


def test_who_comes_soon_after_another_waits_for_the_quiet() -> None:
    crowd = Crowd()
    crowd.arrive(100.0)

    until = crowd.arrive(100.2)

    assert crowd.wait_seconds(until, 100.2) == pytest.approx(QUIET_SECONDS)
    assert crowd.wait_seconds(until, 100.25) == pytest.approx(0.05)
    assert crowd.wait_seconds(until, 100.2 + QUIET_SECONDS) == 0.0


def test_each_newcomer_makes_those_before_it_wait_on() -> None:
    crowd = Crowd()
    crowd.arrive(100.0)
    until = crowd.arrive(100.05)

    crowd.arrive(100.1)

    assert crowd.wait_seconds(until, 100.15) == pytest.approx(0.05)


def test_a_stream_of_newcomers_holds_no_answer_for_ever() -> None:
    crowd = Crowd()
    crowd.arrive(100.0)
    until = crowd.arrive(100.01)

    for number in range(2, 100):
        crowd.arrive(100.0 + number / 100)

    assert crowd.wait_seconds(until, 100.5) == pytest.approx(0.01)
    assert crowd.wait_seconds(until, 100.01 + HOLD_SECONDS) == 0.0


def test_newcomers_that_are_far_apart_are_no_crowd() -> None:
    crowd = Crowd()
    crowd.arrive(100.0)

    until = crowd.arrive(100.01 + APART_SECONDS)

    assert crowd.wait_seconds(until, 100.01 + APART_SECONDS) == 0.0
