"""What lowerings show of the time in which hardware settles."""

import pytest

from esnode.control.settling import WATCH_SECONDS, SettleSeen, Settling


def after(draws: list[tuple[float, float]]) -> SettleSeen | None:
    """A GPU is lowered to 400 W at 100 s; it then draws so much at these times."""
    settling = Settling()
    settling.limited("gpu0", 400, is_lowering=True, now=100.0)
    for at, watts in draws:
        settling.drew({"gpu0": (watts, 0.1)}, at + 0.1)
    return settling.seen


@pytest.mark.parametrize(
    ("draws", "expected"),
    [
        pytest.param([(100.5, 380.0)], None, id="it drew less anyway"),
        pytest.param([(100.5, 600.0)], None, id="not below yet"),
        pytest.param([(100.5, 600.0), (101.0, 410.0)], (0.5, 1.0), id="within the meter's error"),
        pytest.param([(100.0, 600.0), (100.5, 390.0)], None, id="read before the limit was taken"),
        pytest.param(
            [(101.0, 600.0), (102.0, 500.0), (103.0, 390.0), (104.0, 600.0)], (2.0, 3.0), id="late"
        ),
        pytest.param(
            [(101.0, 600.0), (101.0 + WATCH_SECONDS, 600.0)], (61.0, 61.0), id="it does not obey"
        ),
    ],
)
def test_a_lowering_shows_by_draws_above_and_then_below_the_new_limit(
    draws: list[tuple[float, float]], expected: tuple[float, float] | None
) -> None:
    seen = after(draws)

    known = seen and (round(seen.at_least_seconds, 6), round(seen.at_most_seconds, 6))
    assert known == expected


def test_a_raise_in_between_makes_it_prove_nothing() -> None:
    settling = Settling()
    settling.limited("gpu0", 400, is_lowering=True, now=100.0)
    settling.drew({"gpu0": (600.0, 0.0)}, 100.5)
    settling.limited("gpu0", 700, is_lowering=False, now=101.0)
    settling.drew({"gpu0": (390.0, 0.0)}, 102.0)

    assert settling.seen is None


def test_the_slowest_of_a_hundred_is_left_out() -> None:
    settling = Settling()
    for number in range(100):
        began = 100.0 * number
        settling.limited("gpu0", 400, is_lowering=True, now=began)
        slow = 30.0 if number == 50 else 0.5
        settling.drew({"gpu0": (600.0, 0.0)}, began + slow)
        settling.drew({"gpu0": (390.0, 0.0)}, began + slow + 0.5)

    assert settling.seen == SettleSeen(
        at_least_seconds=0.5, at_most_seconds=1.0, lowerings_count=100
    )
