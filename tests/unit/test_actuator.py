"""One node's cap on its way into hardware: what bounds the draw at each instant."""

import pytest

from cluster.rack.actuator import (
    RAISE_WATTS_MIN,
    TRIES_MAX,
    Actuator,
    Effect,
    GateClosed,
    GateOpened,
    HardwareRefused,
    WriteCap,
)

SETTLE = 2.0
MAXIMUM = 4000


def made(*, is_gate_open: bool = False, now: float = 0.0) -> Actuator:
    """An actuator that has just begun."""
    return Actuator(
        maximum_watts=MAXIMUM, is_gate_open=is_gate_open, now=now, settle_seconds=SETTLE
    )


def settled(watts: int, *, now: float = 10.0) -> Actuator:
    """One whose hardware has kept this cap for long."""
    actuator = made(is_gate_open=True)
    actuator.observed(watts, now - SETTLE - 1.0)
    look(actuator, watts, now - SETTLE)
    look(actuator, watts, now)
    actuator.want(watts, now)
    assert actuator.bound_watts(now) == watts
    return actuator


def look(actuator: Actuator, watts: int | None, until: float) -> list[Effect]:
    """Look at the hardware as often as an agent does, from the last look until then."""
    effects: list[Effect] = []
    at = actuator._looked_seconds
    while at < until:
        at = min(until, at + 0.2)
        effects += actuator.observed(watts, at)
    return effects


def writes(effects: list[Effect]) -> list[int]:
    """The caps that are to be written."""
    return [one.watts for one in effects if isinstance(one, WriteCap)]


def test_nothing_is_known_before_the_hardware_was_looked_at() -> None:
    actuator = made()

    assert actuator.bound_watts(0.0) is None
    assert actuator.want(500, 0.0) == [WriteCap(watts=500)]
    assert actuator.bound_watts(0.0) is None


def test_a_new_life_reckons_with_the_highest_cap_until_a_settle_time_has_passed() -> None:
    actuator = made(is_gate_open=True, now=5.0)

    actuator.observed(500, 5.0)
    look(actuator, 500, 6.9)
    early = actuator.bound_watts(6.9)
    look(actuator, 500, 7.0)

    assert early == MAXIMUM
    assert actuator.bound_watts(7.0) == 500


def test_a_raise_counts_from_the_call_on() -> None:
    actuator = settled(500)

    effects = actuator.want(900, 10.0)

    assert writes(effects) == [900]
    assert actuator.bound_watts(10.0) == 900


def test_a_lowering_counts_only_once_it_has_settled() -> None:
    actuator = settled(900)

    effects = actuator.want(500, 10.0)
    during = actuator.bound_watts(10.0)
    actuator.written(500, 10.1)
    look(actuator, 500, 12.09)
    early = actuator.bound_watts(12.11)
    look(actuator, 500, 12.11)

    assert writes(effects) == [500]
    assert during == 900
    assert early == 900
    assert actuator.bound_watts(12.11) == 500


def test_a_lowering_that_has_settled_counts_only_after_a_look_that_began_after_that() -> None:
    actuator = settled(900)
    actuator.want(500, 10.0)
    actuator.written(500, 10.1)
    look(actuator, 500, 11.9)

    actuator.observed(500, 13.0, begun=12.0)
    slow_look = actuator.bound_watts(13.0)
    actuator.observed(500, 13.1)

    assert slow_look == 900
    assert actuator.bound_watts(13.1) == 500


def test_whoever_was_halted_or_hangs_in_a_look_knows_nothing() -> None:
    actuator = settled(900)
    actuator.want(500, 10.0)
    actuator.written(500, 10.1)
    look(actuator, 500, 12.2)

    assert actuator.bound_watts(13.6) == 500
    assert actuator.bound_watts(14.0) is None
    assert actuator.view(14.0).in_force_watts is None


@pytest.mark.parametrize(
    "found", [pytest.param(500, id="as it was"), pytest.param(MAXIMUM, id="reset meanwhile")]
)
def test_what_was_not_looked_at_for_long_may_have_been_anything_until_just_now(found: int) -> None:
    actuator = settled(500)

    effects = actuator.observed(found, 60.0)
    for effect in effects:
        if isinstance(effect, WriteCap):
            actuator.written(500, 60.1)

    assert actuator.bound_watts(60.2) == MAXIMUM
    look(actuator, 500, 61.9)
    assert actuator.bound_watts(61.9) == MAXIMUM
    look(actuator, 500, 62.3)
    assert actuator.bound_watts(62.3) == 500


def test_the_gate_closes_when_the_hardware_has_forgotten_its_cap_and_opens_once_it_holds() -> None:
    actuator = settled(500)
    actuator.want(600, 10.0)
    actuator.written(600, 10.1)
    look(actuator, 600, 12.5)

    effects = actuator.observed(MAXIMUM, 12.6)
    actuator.written(600, 12.7)
    during = look(actuator, 600, 14.6)
    after = look(actuator, 600, 14.8)

    assert GateClosed(reason="the cap that was set is not in force any more") in effects
    assert GateOpened() not in during
    assert GateOpened() in after


def test_a_raise_that_was_asked_for_may_show_late_although_the_read_back_denies_it() -> None:
    actuator = settled(500)
    actuator.want(900, 10.0)

    actuator.written(500, 10.1)
    actuator.want(500, 10.1)
    look(actuator, 500, 12.0)
    early = actuator.bound_watts(12.0)
    look(actuator, 500, 12.2)

    assert early == 900
    assert actuator.bound_watts(12.2) == 500


def test_a_read_back_that_says_nothing_leaves_what_was_before_and_then_nothing() -> None:
    actuator = settled(900)
    actuator.want(500, 10.0)

    effects = actuator.written(None, 10.1)

    assert actuator.bound_watts(10.2) == 900
    assert actuator.bound_watts(20.0) is None
    assert writes(effects) == [500]


def test_one_write_at_a_time_and_then_what_is_wanted_by_then() -> None:
    actuator = settled(900)
    actuator.want(500, 10.0)

    meanwhile = actuator.want(300, 10.01)
    after = actuator.written(500, 10.1)

    assert writes(meanwhile) == []
    assert writes(after) == [300]


def test_a_small_raise_is_not_worth_a_write_and_a_small_lowering_is() -> None:
    actuator = settled(500)

    assert actuator.want(500 + RAISE_WATTS_MIN - 1, 10.0) == []
    assert writes(actuator.want(499, 10.0)) == [499]


def test_nobody_gets_more_than_the_hardware_can_draw() -> None:
    actuator = settled(500)

    assert writes(actuator.want(10 * MAXIMUM, 10.0)) == [MAXIMUM]


def test_after_four_tries_the_hardware_counts_as_refusing() -> None:
    actuator = settled(900)
    actuator.want(500, 10.0)

    told = [actuator.written(900, 10.0 + 0.1 * number) for number in range(1, TRIES_MAX + 1)]

    assert [writes(one) for one in told] == [[500], [500], [500], []]
    assert HardwareRefused(wanted_watts=500, in_force_watts=900) in told[-1]
    assert actuator.is_refusing
    assert actuator.bound_watts(10.5) == 900


def test_refusing_hardware_is_asked_more_and_more_seldom_and_for_ever() -> None:
    actuator = settled(900)
    actuator.want(500, 10.0)
    now = 10.0
    for _ in range(TRIES_MAX):
        actuator.written(900, now)

    waits = []
    for _ in range(7):
        due = actuator.deadline()
        assert due is not None
        waits.append(round(due - now, 2))
        now = max(now, due)
        while not writes(actuator.advance(now)):
            later = actuator.deadline()
            assert later is not None
            waits[-1] += round(later - now, 2)
            now = later
        actuator.written(900, now)

    assert [round(one, 1) for one in waits] == [0.3, 0.6, 1.2, 2.4, 4.8, 5.0, 5.0]


def test_hardware_that_obeys_again_is_not_refusing() -> None:
    actuator = settled(900)
    actuator.want(500, 10.0)
    for _ in range(TRIES_MAX):
        actuator.written(900, 10.0)

    actuator.advance(11.0)
    actuator.written(500, 11.1)
    look(actuator, 500, 13.2)

    assert not actuator.is_refusing
    assert actuator.bound_watts(13.2) == 500


def test_a_lowering_does_not_wait_for_the_retry_of_another() -> None:
    actuator = settled(900)
    actuator.want(500, 10.0)
    for _ in range(TRIES_MAX):
        actuator.written(900, 10.0)

    assert writes(actuator.want(400, 10.01)) == [400]


def test_hardware_that_takes_no_higher_cap_is_not_asked_without_a_pause() -> None:
    actuator = settled(500)
    actuator.want(900, 10.0)

    first = actuator.written(500, 10.1)
    early = actuator.advance(10.2)
    due = actuator.advance(10.5)

    assert (writes(first), writes(early), writes(due)) == ([], [], [900])
    assert not actuator.is_refusing


def test_somebody_else_who_raises_the_cap_is_overruled_and_counts() -> None:
    actuator = settled(500)

    effects = actuator.observed(800, 10.0)

    assert writes(effects) == [500]
    assert actuator.bound_watts(10.0) == 800


def test_a_look_during_a_write_says_nothing() -> None:
    actuator = settled(900)
    actuator.want(500, 10.0)

    assert actuator.observed(500, 10.01) == []
    assert actuator.bound_watts(10.02) == 900


def test_looks_during_a_long_write_keep_what_is_in_force_known_and_the_gate_open() -> None:
    actuator = settled(900)
    actuator.want(500, 10.0)

    effects = look(actuator, 900, 12.0)

    assert effects == []
    assert actuator.bound_watts(12.0) == 900
    assert actuator.view(12.0).in_force_watts == 900
    actuator.written(500, 12.1)
    assert actuator.bound_watts(12.1) == 900
    look(actuator, 500, 14.2)
    assert actuator.bound_watts(14.2) == 500


@pytest.mark.parametrize(
    "found", [pytest.param(None, id="nothing"), pytest.param(MAXIMUM, id="more than was known")]
)
def test_a_look_during_a_write_that_finds_something_else_vouches_for_nothing(
    found: int | None,
) -> None:
    actuator = settled(900)
    actuator.want(500, 10.0)

    effects = look_while_writing(actuator, found)

    assert actuator.bound_watts(12.0) is None
    assert [type(one) for one in effects] == [GateClosed]


def look_while_writing(actuator: Actuator, watts: int | None) -> list[Effect]:
    """From 10.0 to 12.0, as often as an agent does."""
    return [one for tick in range(1, 11) for one in actuator.observed(watts, 10.0 + 0.2 * tick)]


# -- the gate --------------------------------------------------------------------------------------


def test_the_gate_opens_only_once_the_cap_is_set_and_has_settled() -> None:
    actuator = made()
    actuator.observed(MAXIMUM, 0.0)

    asked = actuator.want(500, 0.0)
    written = actuator.written(500, 0.1)
    early = look(actuator, 500, 2.05)
    due = look(actuator, 500, 2.15)

    assert [GateOpened() in one for one in (asked, written, early, due)] == [
        False, False, False, True,
    ]  # fmt: skip


def test_the_gate_stays_closed_while_nobody_has_said_what_is_wanted() -> None:
    actuator = made()
    actuator.observed(100, 0.0)

    assert actuator.advance(100.0) == []
    assert not actuator.view(100.0).is_gate_open


@pytest.mark.parametrize(
    ("read", "words"),
    [pytest.param(900, "does not take a lower cap", id="it refuses"),
     pytest.param(None, "does not take a lower cap", id="nobody knows")],
)  # fmt: skip
def test_the_gate_closes_when_the_cap_cannot_be_brought_down(read: int | None, words: str) -> None:
    actuator = settled(900)
    actuator.want(500, 10.0)

    told = [actuator.written(read, 10.0) for _ in range(TRIES_MAX)]

    closed = [one for one in told[-1] if isinstance(one, GateClosed)]
    assert [one for effects in told[:-1] for one in effects if isinstance(one, GateClosed)] == []
    assert len(closed) == 1
    assert words in closed[0].reason


def test_the_gate_does_not_flap_when_what_was_refused_is_wanted_no_more() -> None:
    actuator = settled(900)
    actuator.want(500, 10.0)
    for _ in range(TRIES_MAX):
        actuator.written(900, 10.0)
    assert not actuator.view(10.0).is_gate_open

    effects = [*actuator.want(900, 10.1)]
    for tenth in range(50):
        effects += actuator.observed(900, 10.2 + tenth / 10)

    assert [one for one in effects if isinstance(one, GateOpened | GateClosed)] == [GateOpened()]


def test_a_view_says_all_of_it() -> None:
    actuator = settled(900)
    actuator.want(500, 10.0)
    actuator.written(500, 10.1)

    view = actuator.view(10.2)

    assert (view.wanted_watts, view.in_force_watts, view.bound_watts) == (500, 500, 900)
    assert (view.is_gate_open, view.is_refusing, view.is_settled) == (True, False, False)
    look(actuator, 500, 12.2)
    assert actuator.view(12.2).is_settled
