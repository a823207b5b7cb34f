"""Thermal care over the simulated machine's own physics: hours of heat, dying fans, bad sensors."""

import random
from dataclasses import replace

import pytest

from esnode.control.thermal import Settings
from esnode.drivers.simulated.machine import FaultInjected
from tests.thermal_halls import Hall, weather

HELD_SECONDS_MAX = 20.0
"""How long in a row a GPU's own protection may have to help. A heat sink has a time constant of 20
to 30 s, and with looks every 5 s three that agree take 10."""

CHANGES_PER_HOUR_MAX = 100
TURNS_PER_HOUR_MAX = 8
WORDS_PER_HOUR_MAX = 16
"""How often its state may be another one."""

CALM_SECONDS = 2 * 3600.0

HASTY = Settings(
    reset_celsius=0.0,
    reset_seconds=0.0,
    penalty_min_seconds=0.0,
    penalty_max_seconds=0.0,
)
"""The mistake: no hysteresis, no pause, no penalty."""

GREEDY = replace(HASTY, raise_ratio=0.2, raise_seconds=10.0)
"""And what was taken is given back as fast as it was taken."""


def problems(hall: Hall, hours: float) -> list[str]:
    """What a person at the rack would complain of."""
    found = []
    for uuid, seen in hall.seen.items():
        if seen.held_seconds_max > HELD_SECONDS_MAX:
            found.append(f"{uuid}: at slowdown for {seen.held_seconds_max:.0f} s")
        if seen.most_changes_in_an_hour() > CHANGES_PER_HOUR_MAX:
            found.append(f"{uuid}: {seen.most_changes_in_an_hour()} changes in an hour")
        if seen.turns() > TURNS_PER_HOUR_MAX * hours:
            found.append(f"{uuid}: turned around {seen.turns()} times")
        if len(seen.words) > WORDS_PER_HOUR_MAX * hours:
            found.append(f"{uuid}: another state {len(seen.words)} times")
    return found


def ceilings(hall: Hall) -> list[int | None]:
    return [care.ceiling_watts for care in hall.latest.values()]


@pytest.mark.parametrize(
    ("seed", "spec", "look_seconds"),
    [
        pytest.param(0, "h100x2", 1.0, id="h100-every-second"),
        pytest.param(1, "h100x2", 5.0, id="h100-every-5-seconds"),
        pytest.param(2, "h200x1", 5.0, id="h200-every-5-seconds"),
        pytest.param(3, "b200x1", 1.0, id="b200-every-second"),
        pytest.param(4, "b200x2", 5.0, id="b200-every-5-seconds"),
        pytest.param(5, "a100x2", 5.0, id="a100-every-5-seconds"),
        pytest.param(6, "l40sx2", 5.0, id="l40s-every-5-seconds"),
    ],
)
def test_bad_weather_is_borne_and_full_power_comes_back(
    seed: int, spec: str, look_seconds: float
) -> None:
    hall = Hall(spec, seed=str(seed), look_seconds=look_seconds)

    weather(hall, random.Random(seed), hours=4)
    hall.run(CALM_SECONDS)

    assert problems(hall, hours=4) == []
    assert any(seen.changes for seen in hall.seen.values()), "the weather was never bad"
    assert set(ceilings(hall)) == {None}


def test_a_lasting_wave_ends_in_a_steady_ceiling() -> None:
    hall = Hall("h100x1")
    hall.load(1.0)
    hall.heat(50.0)
    hall.run(1800.0)
    (seen,) = hall.seen.values()
    settled_at = hall.now

    hall.run(2 * 3600.0)

    assert seen.turns(since_seconds=settled_at) <= 1
    assert seen.held_seconds_max <= HELD_SECONDS_MAX
    assert not seen.stopped


@pytest.mark.parametrize("cooling_ratio", [0.3, 0.5, 0.7])
def test_a_weak_fan_lowers_its_own_gpu_alone(cooling_ratio: float) -> None:
    hall = Hall("h100x2", look_seconds=5.0)
    hall.load(1.0)
    hall.run(600.0)

    hall.cool(0, cooling_ratio)
    hall.run(6 * 3600.0)

    broken, sound = hall.seen.values()
    assert broken.changes
    assert not sound.changes
    assert problems(hall, hours=6) == []


def test_a_fan_that_stands_still_drains_the_gpu_and_stops_its_work() -> None:
    hall = Hall("h100x2")
    hall.load(1.0)
    hall.run(600.0)

    hall.cool(0, 0.1)
    hall.run(3600.0)

    broken, sound = hall.seen.values()
    assert broken.drained
    assert broken.stopped
    assert broken.held_seconds_max <= 60.0
    assert broken.hottest_celsius < 95.0
    assert not sound.drained


def test_work_that_comes_and_goes_at_a_weak_fan_is_turned_around_ever_less() -> None:
    hall = Hall("h100x1", look_seconds=2.0)
    hall.cool(0, 0.5)
    for _ in range(18):
        hall.load(1.0)
        hall.run(600.0)
        hall.load(0.0)
        hall.run(600.0)

    (seen,) = hall.seen.values()
    early, late = seen.turns(0.0, 7200.0), seen.turns(14_400.0, 21_600.0)
    assert seen.changes
    assert late <= early
    assert seen.turns() <= TURNS_PER_HOUR_MAX * 6


def test_a_sensor_that_sticks_while_cool_is_made_up_for_by_the_devices_own_word() -> None:
    hall = Hall("h100x1")
    hall.load(0.1)
    hall.run(300.0)
    hall.happen(FaultInjected(gpu=hall.machine.gpus[0].uuid, kind="sensor-stuck"))

    hall.load(1.0)
    hall.heat(50.0)
    hall.run(4 * 3600.0)

    (seen,) = hall.seen.values()
    (care,) = hall.latest.values()
    assert care.ceiling_watts is not None
    assert seen.held_seconds_max <= HELD_SECONDS_MAX
    assert seen.held_seconds_total <= 300.0
    assert seen.most_changes_in_an_hour() <= CHANGES_PER_HOUR_MAX


@pytest.mark.parametrize("loss", ["blind", "silent"])
def test_a_sensor_that_goes_holds_the_ceiling_for_as_long_as_it_is_gone(loss: str) -> None:
    hall = Hall("h100x1")
    hall.load(1.0)
    hall.heat(50.0)
    hall.run(900.0)
    (uuid,) = hall.seen
    (held,) = ceilings(hall)
    assert held is not None

    getattr(hall, loss).add(uuid)
    hall.heat(30.0)
    hall.run(4 * 3600.0)

    assert ceilings(hall) == [held]
    assert hall.latest[uuid].word == "unknown"
    assert not hall.latest[uuid].is_taking_work

    getattr(hall, loss).clear()
    hall.run(CALM_SECONDS)

    assert ceilings(hall) == [None]
    assert hall.latest[uuid].is_taking_work


def test_without_care_the_devices_have_to_protect_themselves() -> None:
    hall = Hall("h100x1", is_enforcing=False)
    hall.load(1.0)
    hall.heat(50.0)

    hall.run(1800.0)

    assert problems(hall, hours=0.5)


def shifting_work_in_hot_air(settings: Settings | None) -> list[str]:
    """Two hours of five minutes' work and five minutes' rest, and what there is to complain of."""
    hall = Hall("h100x1", settings=settings, look_seconds=2.0)
    hall.heat(46.0)
    for _ in range(12):
        hall.load(1.0)
        hall.run(300.0)
        hall.load(0.3)
        hall.run(300.0)
    return problems(hall, hours=2)


def test_shifting_work_in_hot_air_is_borne() -> None:
    assert shifting_work_in_hot_air(None) == []


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        pytest.param(HASTY, "turned around", id="no-hysteresis"),
        pytest.param(HASTY, "changes in an hour", id="no-hysteresis-counts"),
        pytest.param(GREEDY, "another state", id="no-patience"),
    ],
)
def test_care_without_hysteresis_is_seen_to_swing(settings: Settings, complaint: str) -> None:
    assert any(complaint in problem for problem in shifting_work_in_hot_air(settings))
