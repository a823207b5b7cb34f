"""What is done when the meter says that the rack draws too much."""

from random import Random

import pytest

from cluster.rack.emergency import (
    HOLD_SECONDS_MAX,
    HOLD_SECONDS_MIN,
    MEASUREMENT_AGE_SECONDS_MAX,
    MILLION,
    REPEAT_SECONDS,
    WITNESS_SECONDS,
    CutChanged,
    Emergency,
    EmergencyMessage,
    Proclaim,
    class_cut_ratio,
)
from tests.rack_rows import node

ME, OTHER, THIRD = node(1), node(2), node(3)
BUDGET_TOTAL_WATTS = 40_000
DYNAMIC_WATTS = 20_000
NOW = 100.0


def new() -> Emergency:
    return Emergency(ME, first_stamp=0, rng=Random(7))


def message(cut_parts: int, *, stamp: int = 1, witness: int = 2) -> EmergencyMessage:
    return EmergencyMessage(witness=node(witness), stamp=stamp, cut_parts_per_million=cut_parts)


def measure(
    emergency: Emergency, watts: float | None, now: float = NOW, *, age_seconds: float = 0.0
) -> list[int]:
    """What is proclaimed."""
    effects = emergency.measured(
        watts, age_seconds, BUDGET_TOTAL_WATTS, now, budget_watts=DYNAMIC_WATTS
    )
    return [
        effect.message.cut_parts_per_million for effect in effects if isinstance(effect, Proclaim)
    ]


def cut(emergency: Emergency, now: float = NOW) -> int:
    return emergency.view(now).cut_parts_per_million


@pytest.mark.parametrize(
    ("watts", "age_seconds"),
    [
        pytest.param(39_800.0, 0.0, id="just not too much"),
        pytest.param(None, 0.0, id="not known"),
        pytest.param(99_000.0, MEASUREMENT_AGE_SECONDS_MAX + 0.1, id="long ago"),
    ],
)
def test_what_is_not_seen_to_be_too_much_is_none(watts: float | None, age_seconds: float) -> None:
    emergency = new()

    assert measure(emergency, watts, age_seconds=age_seconds) == []

    assert cut(emergency) == 0
    assert emergency.throttle_watts(2000, 1) == 0
    assert emergency.deadline() is None


def test_the_excess_and_something_on_top_is_cut_here_and_proclaimed() -> None:
    emergency = new()

    effects = emergency.measured(41_800.0, 0.0, BUDGET_TOTAL_WATTS, NOW, budget_watts=DYNAMIC_WATTS)

    # 2000 W of 20 000 W, times 1.15.
    assert effects == [
        Proclaim(message=EmergencyMessage(witness=ME, stamp=1, cut_parts_per_million=115_000)),
        CutChanged(cut_parts_per_million=115_000, reason="the rack draws 41800 W of 40000 W"),
    ]
    assert emergency.throttle_watts(2000, 1) == 230


def test_whoever_hears_of_it_cuts_alike() -> None:
    emergency = new()

    effects = emergency.receive(message(115_000), NOW)

    assert effects == [
        CutChanged(cut_parts_per_million=115_000, reason=f"{OTHER.short} measured too much power")
    ]
    assert emergency.throttle_watts(2000, 1) == 230


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(message(115_000), id="the same again"),
        pytest.param(message(400_000), id="the same stamp with another cut"),
        pytest.param(message(400_000, stamp=0), id="an older stamp"),
        pytest.param(message(115_000, stamp=2), id="a newer one of the same"),
        pytest.param(message(90_000, witness=3), id="another witness of the same excess"),
        pytest.param(message(400_000, witness=1), id="a word of our own, come back"),
        pytest.param(message(0, stamp=2), id="no cut"),
        pytest.param(message(-5, stamp=2), id="less than none"),
    ],
)
def test_nothing_is_cut_twice_for_one_excess(later: EmergencyMessage) -> None:
    emergency = new()
    emergency.receive(message(115_000), NOW)

    assert emergency.receive(later, NOW + 0.2) == []

    assert cut(emergency) == 115_000


def test_more_is_cut_while_it_is_still_too_much() -> None:
    emergency = new()
    measure(emergency, 41_800.0)

    assert measure(emergency, 40_800.0, NOW + 1) == [172_500]

    assert cut(emergency) == 172_500


@pytest.mark.parametrize(
    ("after_seconds", "age_seconds", "expected"),
    [
        pytest.param(REPEAT_SECONDS - 0.1, 0.0, [], id="too soon"),
        pytest.param(1.0, 0.9, [], id="taken before the cut could show"),
        pytest.param(1.0, 0.4, [230_000], id="taken after it"),
    ],
)
def test_a_measurement_from_before_the_cut_is_no_reason_for_another(
    after_seconds: float, age_seconds: float, expected: list[int]
) -> None:
    emergency = new()
    measure(emergency, 41_800.0)

    again = measure(emergency, 41_800.0, NOW + after_seconds, age_seconds=age_seconds)

    assert again == expected


def test_a_witness_adds_to_what_another_one_has_cut() -> None:
    emergency = new()
    emergency.receive(message(200_000), NOW)

    assert measure(emergency, 41_800.0, NOW + 1) == [315_000]


def test_one_witness_alone_gets_no_more_than_half() -> None:
    emergency = new()

    emergency.receive(message(900_000), NOW)
    emergency.receive(message(1_000_000, stamp=2), NOW + 1)

    assert cut(emergency, NOW + 1) == 500_000


@pytest.mark.parametrize(
    ("after_seconds", "expected"),
    [
        pytest.param(WITNESS_SECONDS, 700_000, id="both at one time"),
        pytest.param(WITNESS_SECONDS + 0.1, 500_000, id="one of them long ago"),
    ],
)
def test_two_witnesses_get_what_both_want(after_seconds: float, expected: int) -> None:
    emergency = new()
    emergency.receive(message(900_000), NOW)

    emergency.receive(message(700_000, witness=3), NOW + after_seconds)

    assert cut(emergency, NOW + after_seconds) == expected
    assert emergency.view(NOW + after_seconds).witnesses == (
        (OTHER, THIRD) if expected > 500_000 else (THIRD,)
    )


def test_an_impossible_cut_is_all_there_is() -> None:
    emergency = new()
    emergency.receive(message(9 * MILLION), NOW)
    emergency.receive(message(9 * MILLION, witness=3), NOW)

    assert emergency.throttle_watts(2000, 1) == 2000
    assert emergency.throttle_watts(-5, 1) == 0


def test_without_a_dynamic_budget_all_is_proclaimed() -> None:
    effects = new().measured(41_800.0, 0.0, BUDGET_TOTAL_WATTS, NOW, budget_watts=0)

    assert isinstance(effects[0], Proclaim)
    assert effects[0].message.cut_parts_per_million == MILLION


def test_a_cut_is_held_and_then_let_go_by_degrees() -> None:
    emergency = new()
    emergency.receive(message(100_000), NOW)
    steps, held = [], []

    now = NOW
    while (due := emergency.deadline()) is not None:
        assert emergency.advance(due - 0.01) == []
        held.append(due - now)
        now = due
        [effect] = emergency.advance(now)
        assert isinstance(effect, CutChanged)
        steps.append(effect.cut_parts_per_million)

    assert steps == [70_000, 49_000, 34_300, 24_010, 16_807, 11_764, 8_234, 0]
    assert HOLD_SECONDS_MIN <= held[0] <= HOLD_SECONDS_MAX
    assert all(5.0 <= seconds <= 10.0 for seconds in held[1:])
    assert emergency.advance(now + 100) == []


def test_another_alarm_holds_the_cut_for_longer() -> None:
    emergency = new()
    emergency.receive(message(100_000), NOW)

    emergency.receive(message(50_000, stamp=2), NOW + 50)

    due = emergency.deadline()
    assert due is not None
    assert due >= NOW + 50 + HOLD_SECONDS_MIN
    assert cut(emergency, NOW + 50) == 100_000


@pytest.mark.parametrize(
    ("cut_ratio", "watts_by_class", "expected"),
    [
        pytest.param(0.1, [], [0.1, 0.1, 0.1, 0.1], id="nothing is known"),
        pytest.param(0.1, [0, 9000, 0, 0], [0.05, 0.1, 0.2, 0.4], id="all of one class"),
        pytest.param(0.1, [0, 8000, 0, 1000], [0.0375, 0.075, 0.15, 0.3], id="two classes"),
        pytest.param(0.4, [0, 8000, 0, 1000], [0.1625, 0.325, 0.65, 1.0], id="one emptied"),
        pytest.param(1.0, [1000, 1000, 1000, 1000], [1.0, 1.0, 1.0, 1.0], id="all emptied"),
        pytest.param(0.5, [1000, 0, 0, 0], [0.5, 1.0, 1.0, 1.0], id="nobody but the first"),
        pytest.param(0.1, [1, 1, 1, 1, 1], [0.1] * 4, id="classes of another version"),
    ],
)
def test_lower_classes_give_more_and_all_together_give_the_cut(
    cut_ratio: float, watts_by_class: list[int], expected: list[float]
) -> None:
    ratios = [class_cut_ratio(cut_ratio, priority, watts_by_class) for priority in range(4)]

    assert ratios == pytest.approx(expected)


def test_a_class_that_nobody_knows_is_the_nearest_one() -> None:
    watts_by_class = (1000, 1000, 1000, 1000)

    assert class_cut_ratio(0.1, 9, watts_by_class) == class_cut_ratio(0.1, 3, watts_by_class)
    assert class_cut_ratio(0.1, -1, watts_by_class) == class_cut_ratio(0.1, 0, watts_by_class)
