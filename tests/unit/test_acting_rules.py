"""The rules of every actuator, one by one."""

import pytest

from esnode.acting.rules import EVERYTHING, Pause, Rules
from esnode.acting.words import FEATURES, Do, Evidence, Mode, Result, Skip, Would
from tests.acting_cases import COOLING, REAPING, evidence, proposal, rules, ticket_of

STOPPED = Pause(reason="maintenance", by="alice", at_unix_seconds=1.8e9)


def reason(verdict: object) -> str:
    assert isinstance(verdict, Skip), verdict
    return verdict.reason


def test_what_this_version_can_do_observes_by_default() -> None:
    rules = Rules(FEATURES, now=0.0)

    assert [rules.mode(feature.name) for feature in FEATURES] == [Mode.OBSERVE, Mode.OBSERVE]


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        pytest.param(Mode.OFF, Skip, id="off"),
        pytest.param(Mode.OBSERVE, Would, id="observe"),
        pytest.param(Mode.ENFORCE, Do, id="enforce"),
    ],
)
def test_the_mode_says_how_far_it_goes(mode: Mode, kind: type) -> None:
    assert isinstance(rules(mode).judge(proposal(), 100.0), kind)


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        pytest.param((), "no-evidence", id="none"),
        pytest.param((evidence(None),), "no-evidence", id="unknown-value"),
        pytest.param((evidence(age=15.1),), "stale", id="older-than-three-intervals"),
        pytest.param((evidence(is_failed=True),), "failed-source", id="collector-in-error"),
        pytest.param((evidence(), evidence(age=99.0)), "stale", id="one-of-two"),
    ],
)
def test_without_fresh_evidence_nothing_is_done(facts: tuple[Evidence, ...], word: str) -> None:
    verdict = rules().judge(proposal(facts=facts), 100.0)

    assert reason(verdict) == word


def test_evidence_of_exactly_three_intervals_is_fresh() -> None:
    assert isinstance(rules().judge(proposal(facts=(evidence(age=15.0),)), 100.0), Do)


def test_nothing_is_done_within_a_minute_of_a_start_a_wake_or_a_step_of_the_clock() -> None:
    held = rules()

    at_start = held.judge(proposal(), 59.0)
    after = held.judge(proposal(), 60.0)
    held.unsettle(100.0)
    unsettled = held.judge(proposal(target="gpu GPU-b"), 159.0)

    assert reason(at_start) == "settling"
    assert isinstance(after, Do)
    assert reason(unsettled) == "settling"


def test_a_condition_has_to_last_and_a_gap_begins_it_anew() -> None:
    held = rules()

    words = [held.judge(proposal("reaping"), now) for now in (100.0, 109.0, 145.0, 154.0, 155.0)]

    assert [reason(word) for word in words[:4]] == ["dwell"] * 4
    assert isinstance(words[4], Do)


def test_what_is_being_done_is_not_done_twice_and_then_cools_down() -> None:
    held = rules()
    held.judge(proposal("reaping"), 100.0)
    ticket = ticket_of(held.judge(proposal("reaping"), 110.0))

    during = held.judge(proposal("reaping"), 111.0)
    held.done(ticket, Result.DONE, has_effect=True, now=112.0)
    after = held.judge(proposal("reaping"), 113.0)
    for now in range(120, 170, 10):
        held.judge(proposal("reaping"), float(now))
    later = held.judge(proposal("reaping"), 170.0)

    assert reason(during) == "in-progress"
    assert reason(after) == "cooldown"
    assert isinstance(later, Do)


def test_observing_says_it_once_per_cool_down_and_costs_no_budget() -> None:
    held = rules(Mode.OBSERVE)

    words = [held.judge(proposal("reaping"), 100.0 + now) for now in range(0, 61, 5)]

    assert sum(isinstance(word, Would) for word in words) == 1
    assert held.remaining_count("reaping", 200.0) == 3
    assert held.actions["reaping", "observe", "would"] == 1


def test_a_pause_stops_all_or_one_until_it_is_ended() -> None:
    held = rules()
    held.pause("cooling", STOPPED)

    one = held.judge(proposal(), 100.0)
    held.judge(proposal("reaping"), 100.0)
    other = held.judge(proposal("reaping"), 110.0)
    held.pause(EVERYTHING, STOPPED)
    held.judge(proposal("reaping", target="b"), 110.0)
    all_of_them = held.judge(proposal("reaping", target="b"), 120.0)
    held.resume(EVERYTHING)
    after = held.judge(proposal(), 130.0)

    assert reason(one) == "paused"
    assert isinstance(other, Do)
    assert reason(all_of_them) == "paused"
    assert isinstance(after, Do)


def test_to_resume_one_feature_does_not_end_a_pause_of_all() -> None:
    held = rules()
    held.pause(EVERYTHING, STOPPED)

    held.resume("cooling")

    assert reason(held.judge(proposal(), 100.0)) == "paused"


def test_a_spent_budget_makes_it_observe_with_one_alarm_until_somebody_looks() -> None:
    held = rules()
    for number in range(4):
        held.judge(proposal("reaping", target=f"pid {number}"), 100.0)
    words = [held.judge(proposal("reaping", target=f"pid {number}"), 111.0) for number in range(4)]
    after = held.judge(proposal("reaping", target="pid 3"), 112.0)
    an_hour_later = held.mode("reaping")
    held.resume("reaping")

    assert [isinstance(word, Do) for word in words[:3]] == [True] * 3
    assert isinstance(words[3], Skip)
    assert words[3].reason == "budget"
    assert "only observes" in words[3].alarm
    assert isinstance(after, Would)
    assert an_hour_later is Mode.OBSERVE
    assert held.mode("reaping") is Mode.ENFORCE


def test_the_budget_comes_back_with_the_hour() -> None:
    held = rules()
    for number in range(3):
        held.judge(proposal("reaping", target=f"pid {number}"), 100.0)
        held.judge(proposal("reaping", target=f"pid {number}"), 110.0)

    assert held.remaining_count("reaping", 3709.0) == 0
    assert held.remaining_count("reaping", 3710.0) == 3


def test_one_owner_of_gpus_in_ten_minutes() -> None:
    held = rules()

    first = held.judge(proposal(target="a", owner="alice"), 100.0)
    same = held.judge(proposal(target="b", owner="alice"), 101.0)
    other = held.judge(proposal(target="c", owner="bob"), 102.0)
    nobodys = held.judge(proposal(target="d"), 103.0)
    later = held.judge(proposal(target="c", owner="bob"), 701.0)

    assert [isinstance(one, Do) for one in (first, same, nobodys, later)] == [True] * 4
    assert reason(other) == "owner"


def test_an_action_without_effect_three_times_in_a_row_is_given_up_for_that_target() -> None:
    held = rules()
    alarms = []
    for now in (100.0, 101.0, 102.0):
        ticket = ticket_of(held.judge(proposal(), now))
        alarms.append(held.done(ticket, Result.DONE, has_effect=False, now=now))

    given_up = held.judge(proposal(), 103.0)
    elsewhere = held.judge(proposal(target="gpu GPU-b"), 103.0)
    held.resume("cooling")

    assert alarms[:2] == ["", ""]
    assert "given up" in alarms[2]
    assert reason(given_up) == "no-effect"
    assert isinstance(elsewhere, Do)
    assert isinstance(held.judge(proposal(), 104.0), Do)


def test_an_effect_in_between_or_an_unknown_one_does_not_give_up() -> None:
    held = rules()
    for now, effect in enumerate([False, False, True, False, None, False]):
        ticket = ticket_of(held.judge(proposal(), 100.0 + now))
        assert held.done(ticket, Result.DONE, has_effect=effect, now=100.0 + now) == ""

    assert isinstance(held.judge(proposal(), 110.0), Do)


def test_what_could_not_be_written_down_was_not_done() -> None:
    held = rules()
    ticket = ticket_of(held.judge(proposal(), 100.0))

    held.cancel(ticket)

    assert held.remaining_count("cooling", 100.0) == COOLING.per_hour_count
    assert held.skipped["cooling", "no-audit"] == 1
    assert isinstance(held.judge(proposal(), 101.0), Do)


def test_what_is_remembered_is_bounded_and_what_stands_is_recent() -> None:
    held = rules(Mode.OBSERVE)
    for number in range(1500):
        held.judge(proposal(target=f"gpu {number}"), 100.0 + number)

    assert len(held.memory.conditions) == 1000
    assert [one.word for one in held.standing(1599.0, age_seconds=0.0)] == ["would"]


def test_a_feature_that_is_not_there_is_our_own_mistake() -> None:
    with pytest.raises(KeyError):
        Rules((REAPING,), now=0.0).judge(proposal("cooling"), 100.0)
