import pytest

from esnode.control.rest import Rest
from esnode.control.supply import Efficiency

FLAT = Efficiency(points=((0, 0.8),))


def look(
    rest: Rest, now: float, *, draw: float, devices: float | None, cap: int | None = None
) -> None:
    rest.observe(draw_watts=draw, devices_watts=devices, cap_watts=cap, efficiency=FLAT, now=now)


def test_the_data_sheet_counts_until_something_is_seen() -> None:
    assert Rest(2000).watts == 2000


def test_the_worst_seen_counts_at_once_with_a_margin() -> None:
    rest = Rest(1000)

    look(rest, 0.0, draw=5000.0, devices=1999.0)

    # 5000 W at the inlet are at most 4000 W of load, the next watt of load being the bound
    assert rest.watts == 2103  # 2002 * 1.05, rounded up


def test_what_was_learned_is_forgotten_slowly() -> None:
    rest = Rest(1000)
    look(rest, 0.0, draw=5000.0, devices=2000.0)
    worst = rest.watts

    for second in range(1, 61):
        look(rest, float(second), draw=3750.0, devices=2000.0)

    # After one of ten minutes a tenth of the 1000 W is forgotten, with their margin.
    assert worst - rest.watts == pytest.approx(100, abs=6)


def test_a_device_that_does_not_say_what_it_draws_teaches_nothing() -> None:
    rest = Rest(1000)

    look(rest, 0.0, draw=5000.0, devices=None)

    assert rest.watts == 1000


def test_what_can_be_learned_is_bounded() -> None:
    rest = Rest(1000, most_watts=1500)

    look(rest, 0.0, draw=9000.0, devices=0.0)

    assert rest.watts == 1575


def test_an_excess_over_the_cap_is_added_each_second_until_the_cap_holds() -> None:
    rest = Rest(1000)

    for second in range(4):
        look(rest, float(second), draw=4100.0, devices=None, cap=4000)

    assert rest.surplus_watts == 300
    assert rest.watts == 1300


def test_an_excess_that_nobody_saw_is_not_integrated() -> None:
    rest = Rest(1000)
    look(rest, 0.0, draw=4100.0, devices=None, cap=4000)

    look(rest, 3600.0, draw=4100.0, devices=None, cap=4000)

    assert rest.surplus_watts == 200


def test_the_surplus_never_exceeds_the_cap() -> None:
    rest = Rest(1000)

    for second in range(100):
        look(rest, float(second), draw=9000.0, devices=None, cap=4000)

    assert rest.surplus_watts == 4000


def test_the_surplus_goes_back_while_the_cap_holds() -> None:
    rest = Rest(1000)
    for second in range(4):
        look(rest, float(second), draw=4100.0, devices=None, cap=4000)

    for second in range(4, 54):
        look(rest, float(second), draw=3900.0, devices=None, cap=4000)
    after_50_seconds = rest.surplus_watts
    for second in range(54, 1000):
        look(rest, float(second), draw=3900.0, devices=None, cap=4000)

    assert after_50_seconds == 111  # 300 / e, rounded up
    assert rest.surplus_watts == 0


def test_a_clock_that_stands_still_changes_nothing() -> None:
    rest = Rest(1000)
    look(rest, 5.0, draw=4100.0, devices=None, cap=4000)

    look(rest, 5.0, draw=4100.0, devices=None, cap=4000)
    look(rest, 4.0, draw=4100.0, devices=None, cap=4000)

    assert rest.watts == 1000
