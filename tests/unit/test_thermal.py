"""Thermal care, rule by rule, with looks made by hand."""

import pytest

from esnode.control.heat import Level, Look, worst_of
from esnode.control.thermal import Care, ThermalCare

GPU = "GPU-a"


def look(at: float, margin: float | None = 20.0, **more: object) -> Look:
    values: dict[str, object] = {
        "minimum_watts": 200,
        "maximum_watts": 700,
        "draw_watts": 700.0,
        "margin_celsius": margin,
        "is_slowed_by_heat": False,
        **more,
    }
    return Look(gpu=GPU, at_seconds=at, **values)  # type: ignore[arg-type]  # by name


class Life:
    """One GPU's care under a clock that only goes on."""

    def __init__(self) -> None:
        self.care = ThermalCare()
        self.now = 0.0

    def feel(self, margin: float | None, seconds: float = 1.0, **more: object) -> Care:
        """A margin, looked at every second for so long; what is said at the end of it."""
        until = self.now + seconds
        while self.now < until:
            self.now += 1.0
            (care,) = self.care.take([look(self.now, margin, **more)], self.now)
        return care

    def wait(self, seconds: float) -> Care:
        """Nobody looks."""
        self.now += seconds
        (care,) = self.care.take([], self.now)
        return care


@pytest.mark.parametrize(
    ("seen", "level"),
    [
        pytest.param(look(0.0, 8.5), Level.OK, id="margin-enough"),
        pytest.param(look(0.0, 8.0), Level.WARM, id="margin-8"),
        pytest.param(look(0.0, 4.0), Level.HOT, id="margin-4"),
        pytest.param(look(0.0, 2.0), Level.SEVERE, id="margin-2"),
        pytest.param(look(0.0, 0.0), Level.CRITICAL, id="margin-0"),
        pytest.param(look(0.0, -3.0), Level.CRITICAL, id="margin-below-0"),
        pytest.param(
            look(0.0, 20.0, core_celsius=99.0, slowdown_celsius=89.0), Level.OK, id="margin-first"
        ),
        pytest.param(
            look(0.0, None, core_celsius=83.0, slowdown_celsius=89.0), Level.HOT, id="slowdown"
        ),
        pytest.param(
            look(0.0, None, core_celsius=83.0, shutdown_celsius=95.0), Level.HOT, id="shutdown"
        ),
        pytest.param(look(0.0, None, core_celsius=79.9), Level.OK, id="fixed-79.9"),
        pytest.param(look(0.0, None, core_celsius=80.0), Level.WARM, id="fixed-80"),
        pytest.param(look(0.0, None, core_celsius=85.0), Level.HOT, id="fixed-85"),
        pytest.param(look(0.0, None, core_celsius=90.0), Level.CRITICAL, id="fixed-90"),
        pytest.param(look(0.0, 20.0, memory_celsius=92.0), Level.HOT, id="memory"),
        pytest.param(look(0.0, 20.0, inlet_celsius=60.0), Level.WARM, id="inlet-never-more"),
    ],
)
def test_the_worst_sensor_says_the_level(seen: Look, level: Level) -> None:
    worst = worst_of(seen.warmths)

    assert worst is not None
    assert worst.level is level


def test_one_wrong_look_changes_nothing() -> None:
    life = Life()
    life.feel(20.0, 5.0)

    care = life.feel(1.0)

    assert care.word == "ok"
    assert care.ceiling_watts is None
    assert care.is_taking_work


def test_three_of_four_looks_are_enough() -> None:
    life = Life()
    life.feel(20.0, 5.0)
    life.feel(7.0, 2.0)
    life.feel(9.0)

    care = life.feel(7.0)

    assert care.word == "warm"
    assert not care.is_taking_work
    assert care.ceiling_watts is None


def test_where_looks_are_rare_ten_seconds_are_enough() -> None:
    care = ThermalCare()
    care.take([look(0.0, 3.0)], 0.0)

    (after,) = care.take([look(10.0, 3.0)], 10.0)

    assert after.word == "hot"


def test_the_same_look_shown_again_does_not_count_twice() -> None:
    care = ThermalCare()
    for now in (0.0, 1.0, 2.0, 3.0):
        (after,) = care.take([look(0.0, 1.0)], now)

    assert after.word == "ok"


def test_hot_lowers_by_steps_from_the_draw_to_the_lowest_and_no_further() -> None:
    life = Life()

    first = life.feel(3.0, 3.0, draw_watts=600.0)
    second = life.feel(3.0, 10.0, draw_watts=565.0)
    last = life.feel(3.0, 300.0, draw_watts=200.0)

    assert first.ceiling_watts == 600 - 35
    assert second.ceiling_watts == 565 - 35
    assert last.ceiling_watts == 200
    assert not last.must_drain


def test_severe_cuts_a_fifth_at_once_and_drains() -> None:
    life = Life()

    care = life.feel(1.0, 3.0)

    assert care.word == "hot"
    assert care.ceiling_watts == 700 - 140
    assert care.must_drain
    assert not care.must_stop


def test_critical_stops_preemptible_work_only_while_it_is_critical() -> None:
    life = Life()

    at_worst = life.feel(-1.0, 3.0)
    cooler = life.feel(10.0)

    assert at_worst.word == "critical"
    assert at_worst.must_stop
    assert not cooler.must_stop
    assert cooler.must_drain


def test_a_device_that_slows_itself_down_is_cut_now_and_degraded() -> None:
    life = Life()
    life.feel(20.0, 5.0)

    care = life.feel(20.0, is_slowed_by_heat=True)

    assert care.ceiling_watts == 560
    assert care.must_drain
    assert care.is_degraded
    assert not life.feel(20.0, 130.0).is_degraded


def test_the_device_is_believed_even_without_a_temperature() -> None:
    life = Life()

    care = life.feel(None, is_slowed_by_heat=True)

    assert care.word == "unknown"
    assert care.ceiling_watts == 560
    assert care.is_degraded


def test_a_level_is_left_five_degrees_below_it_for_two_minutes() -> None:
    life = Life()
    life.feel(7.0, 3.0)

    near = life.feel(12.0, 300.0)
    not_yet = life.feel(13.5, 119.0)
    after = life.feel(13.5, 3.0)

    assert near.word == "warm"
    assert not_yet.word == "warm"
    assert after.word == "ok"
    assert not after.is_taking_work, "on trial"
    assert life.feel(13.5, 60.0).is_taking_work


def test_power_comes_back_by_two_per_cent_each_half_minute() -> None:
    life = Life()
    low = life.feel(3.0, 3.0, draw_watts=600.0).ceiling_watts
    assert low == 565

    held = life.feel(20.0, 120.0)
    first = life.feel(20.0, 62.0)
    later = life.feel(20.0, 30.0)
    last = life.feel(20.0, 600.0)

    assert held.ceiling_watts == 565
    assert first.ceiling_watts == 565 + 14
    assert later.ceiling_watts == 565 + 28
    assert last.ceiling_watts is None


def test_the_penalty_doubles_with_each_flap_up_to_half_an_hour_and_is_forgotten() -> None:
    life = Life()
    waits = []
    for _ in range(7):
        life.feel(7.0, 3.0)
        life.feel(20.0, 121.0)
        began = life.now
        while not life.feel(20.0).is_taking_work:
            pass
        waits.append(round((life.now - began) / 10) * 10)

    life.feel(20.0, 7200.0)
    life.feel(7.0, 3.0)
    life.feel(20.0, 125.0)
    is_taking_after_a_minute = life.feel(20.0, 60.0).is_taking_work

    assert waits == [60, 120, 240, 480, 960, 1800, 1800]
    assert is_taking_after_a_minute


def test_old_looks_hold_everything() -> None:
    life = Life()
    held = life.feel(3.0, 3.0)

    care = life.wait(3600.0)

    assert care.word == "unknown"
    assert care.ceiling_watts == held.ceiling_watts
    assert not care.is_taking_work
    assert "unknown for 3600 s" in care.lines[0]


def test_calm_that_nobody_saw_does_not_count() -> None:
    life = Life()
    life.feel(7.0, 3.0)
    life.feel(20.0, 1.0)
    life.wait(600.0)

    care = life.feel(20.0, 2.0)

    assert care.word == "warm"


def test_a_gpu_that_never_said_a_temperature_is_unknown_and_left_alone() -> None:
    life = Life()

    care = life.feel(None, 30.0)

    assert care.word == "unknown"
    assert care.is_taking_work
    assert care.ceiling_watts is None


def test_a_gpu_without_settable_power_is_drained_and_says_so() -> None:
    life = Life()

    care = life.feel(1.0, 3.0, minimum_watts=None, maximum_watts=None)

    assert care.ceiling_watts is None
    assert care.must_drain
    assert "its power cannot be limited" in care.lines


def test_a_restart_goes_on_where_it_was() -> None:
    before = Life()
    held = before.feel(1.0, 3.0)
    kept = before.care.keep(before.now)

    after = Life()
    after.care.begin(kept, 0.0)

    assert after.wait(0.0).ceiling_watts == held.ceiling_watts
    assert not after.feel(20.0, 3.0).is_taking_work
    assert after.feel(20.0, 110.0).ceiling_watts == held.ceiling_watts
    assert after.feel(20.0, 2000.0).ceiling_watts is None
