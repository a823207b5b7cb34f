"""What a rack draws: sums that say what is missing, and meters that cannot be right."""

import pytest

from cluster.rack.meter import MeterReading, NodeDraw, check_plausible, sum_of_nodes


def _draw(watts: float | None, age_seconds: float | None = 0.5, **rest: bool) -> NodeDraw:
    return NodeDraw(watts=watts, age_seconds=age_seconds, **rest)


def test_the_sum_of_nodes_adds_what_was_decreed_for_loads_without_an_agent() -> None:
    reading = sum_of_nodes([_draw(1000.0), _draw(500.0, 2.0)], static_watts=300)

    assert (reading.watts, reading.age_seconds, reading.missing_count) == (1800.0, 2.0, 0)
    assert reading.is_usable


@pytest.mark.parametrize(
    "silent",
    [
        pytest.param(_draw(None), id="it does not know"),
        pytest.param(_draw(700.0, None), id="of no known age"),
        pytest.param(_draw(700.0, 6.0), id="too old"),
    ],
)
def test_a_node_that_did_not_tell_is_missing_and_not_zero(silent: NodeDraw) -> None:
    reading = sum_of_nodes([_draw(1000.0), silent], static_watts=0)

    assert (reading.watts, reading.missing_count) == (1000.0, 1)


def test_nobody_who_tells_is_an_unknown_draw() -> None:
    reading = sum_of_nodes([_draw(None), _draw(None)], static_watts=300)

    assert reading.watts is None
    assert not reading.is_usable


def test_estimates_make_the_sum_less_accurate_by_their_part() -> None:
    metered = sum_of_nodes([_draw(1000.0)], static_watts=0)
    mixed = sum_of_nodes([_draw(1000.0), _draw(1000.0, is_estimated=True)], static_watts=0)

    assert metered.accuracy_ratio == pytest.approx(0.03)
    assert mixed.accuracy_ratio == pytest.approx(0.09)


def _metered(watts: float | None) -> MeterReading:
    return MeterReading(watts=watts, age_seconds=0.2, accuracy_ratio=0.03, source="strip 1")


@pytest.mark.parametrize(
    ("watts", "is_usable"),
    [
        pytest.param(12_000.0, True, id="as can be"),
        pytest.param(17_999.0, True, id="more than all should draw, and still a meter's word"),
        pytest.param(18_001.0, False, id="more than can be"),
        pytest.param(-1.0, False, id="below nothing"),
        pytest.param(None, False, id="no answer"),
    ],
)
def test_a_meter_is_believed_within_what_the_slots_can_draw(
    watts: float | None, is_usable: bool
) -> None:
    assert check_plausible(_metered(watts), most_watts=12_000).is_usable is is_usable
