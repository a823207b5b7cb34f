import pytest

from esnode.control.split import (
    Chassis,
    NodePart,
    apply_limits,
    bound_watts,
    floor_watts,
    maximum_watts,
    split,
)
from esnode.control.supply import BadCurve, Efficiency
from esnode.readings.limits import Kind, Limit, LimitRange

CHASSIS = Chassis(rest_watts=1000, efficiency=Efficiency(points=((0, 0.8),)))
"""A flat 80 %, so that every figure below can be worked out in the head."""

CURVE = Efficiency(points=((1000, 0.9), (3000, 0.96), (6000, 0.92)))


def part(
    device: str,
    *,
    low: int = 200,
    high: int = 700,
    demand: float | None = None,
    enforced: int | None = None,
    is_settable: bool = True,
    weight: int = 1,
    kind: Kind = "gpu",
) -> NodePart:
    return NodePart(
        range=LimitRange(device=device, kind=kind, minimum_watts=low, maximum_watts=high),
        demand_watts=demand,
        is_settable=is_settable,
        enforced_watts=enforced,
        weight=weight,
    )


def watts_of(limits: tuple[Limit, ...]) -> list[int]:
    return [limit.watts for limit in limits]


def test_the_bound_is_all_limits_and_the_rest_through_the_supply() -> None:
    parts = [part("a", enforced=300), part("b", enforced=500)]

    assert bound_watts(parts, CHASSIS) == (300 + 500 + 1000) / 0.8 == 2250


def test_a_part_that_takes_no_limit_counts_at_its_maximum() -> None:
    parts = [part("a", enforced=300), part("b", enforced=300, is_settable=False)]

    assert bound_watts(parts, CHASSIS) == (300 + 700 + 1000) / 0.8 == 2500


def test_an_unknown_limit_leaves_no_bound() -> None:
    assert bound_watts([part("a", enforced=300), part("b", enforced=None)], CHASSIS) is None


def test_an_unknown_limit_of_a_part_that_takes_none_changes_nothing() -> None:
    assert bound_watts([part("b", enforced=None, is_settable=False)], CHASSIS) == 2125


def test_the_floor_and_the_maximum_are_those_of_the_ranges() -> None:
    parts = [part("a", enforced=650), part("b", low=100, high=350), part("c", is_settable=False)]

    assert floor_watts(parts, CHASSIS) == 2500  # (200 + 100 + 700 + 1000) / 0.8
    assert maximum_watts(parts, CHASSIS) == 3438  # 2750 / 0.8 = 3437.5, rounded up


@pytest.mark.parametrize(
    ("cap", "demands", "expected"),
    [
        pytest.param(2250, [700.0, 700.0], [400, 400], id="short-is-shared-equally"),
        pytest.param(2250, [250.0, 700.0], [250, 550], id="who-needs-less-gets-what-he-needs"),
        pytest.param(2251, [700.0, 700.0], [400, 400], id="no-watt-is-made-of-a-fraction"),
        pytest.param(2252, [700.0, 700.0], [401, 400], id="the-odd-watt-goes-to-the-first"),
        pytest.param(2500, [250.0, 300.0], [500, 500], id="what-nobody-needs-is-room-for-bursts"),
        pytest.param(2500, [100.0, 650.0], [350, 650], id="room-only-after-need"),
        pytest.param(2250, [None, 300.0], [500, 300], id="unknown-demand-is-the-maximum"),
        pytest.param(9999, [250.0, 300.0], [700, 700], id="never-above-the-range"),
        pytest.param(1000, [700.0, 700.0], [200, 200], id="never-below-the-range"),
        pytest.param(2250, [249.2, 700.0], [250, 550], id="need-is-rounded-up"),
    ],
)
def test_a_cap_is_split_by_need(cap: int, demands: list[float | None], expected: list[int]) -> None:
    parts = [part(name, demand=demand) for name, demand in zip("ab", demands, strict=True)]

    assert watts_of(split(cap, parts, CHASSIS)) == expected


def test_what_is_short_is_shared_by_weight() -> None:
    parts = [
        part("a", demand=700.0, low=100, weight=2),
        part("b", demand=700.0, low=100, weight=1),
    ]

    # (2125 * 0.8) - 1000 = 700, two to one
    assert watts_of(split(2125, parts, CHASSIS)) == [467, 233]


def test_a_part_that_takes_no_limit_is_paid_for_first() -> None:
    parts = [part("a"), part("b", is_settable=False), part("c")]

    limits = split(3000, parts, CHASSIS)

    assert limits == (Limit(device="a", watts=350), Limit(device="c", watts=350))


def test_a_processor_is_split_like_any_other_part() -> None:
    parts = [part("gpu", demand=700.0), part("intel-rapl:0", low=180, high=350, kind="cpu")]

    assert watts_of(split(2125, parts, CHASSIS)) == [350, 350]


@pytest.mark.parametrize(
    ("enforced", "demands", "expected"),
    [
        pytest.param([400, 400], [399.0, 700.0], [400, 400], id="a-watt-of-demand-is-no-write"),
        pytest.param([386, 400], [700.0, 700.0], [386, 400], id="a-raise-of-14-W-is-no-write"),
        pytest.param([385, 400], [700.0, 700.0], [400, 400], id="a-raise-of-15-W-is"),
        pytest.param([410, 400], [700.0, 700.0], [400, 400], id="the-cap-needs-these-10-W"),
        pytest.param([410, 390], [700.0, 700.0], [410, 390], id="unlike-and-yet-within-the-cap"),
        pytest.param([410, 398], [700.0, 700.0], [400, 398], id="only-what-the-cap-needs"),
        pytest.param([None, 395], [700.0, 700.0], [400, 395], id="unknown-is-written"),
        pytest.param([4090, 400], [700.0, 700.0], [400, 400], id="beyond-the-range-is-written"),
    ],
)
def test_a_small_change_is_not_worth_a_write(
    enforced: list[int | None], demands: list[float], expected: list[int]
) -> None:
    parts = [
        part(name, demand=demand, enforced=watts)
        for name, demand, watts in zip("ab", demands, enforced, strict=True)
    ]

    assert watts_of(split(2250, parts, CHASSIS)) == expected


def test_limits_are_applied_to_the_parts_they_name() -> None:
    parts = [part("a", enforced=700), part("b", enforced=None)]

    after = apply_limits(parts, [Limit(device="b", watts=300)])

    assert [one.enforced_watts for one in after] == [700, 300]


def test_a_machine_without_settable_parts_gets_no_limits() -> None:
    assert split(2000, [part("a", is_settable=False)], CHASSIS) == ()
    assert split(2000, [], CHASSIS) == ()


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        pytest.param(0, 1000 / 0.9, id="idle-draws-what-the-first-point-draws"),
        pytest.param(1000, 1000 / 0.9, id="at-a-point"),
        pytest.param(2000, 2000 / 0.93, id="between-two"),
        pytest.param(3000, 3000 / 0.96, id="at-the-best"),
        pytest.param(6750, 6750 / 0.91, id="a-falling-curve-goes-on-falling"),
        pytest.param(90000, 90000 / 0.9, id="down-to-the-worst-of-the-curve"),
    ],
)
def test_the_inlet_draws_what_the_curve_says(load: int, expected: float) -> None:
    assert CURVE.wall_watts(load) == pytest.approx(expected)


def test_a_rising_curve_does_not_go_on_rising() -> None:
    rising = Efficiency(points=((1000, 0.9), (3000, 0.96)))

    assert rising.wall_watts(6000) == pytest.approx(6000 / 0.96)


def test_a_draw_that_no_load_explains_leaves_nothing() -> None:
    assert CURVE.load_watts(1000) == -1
    assert CURVE.load_watts(1112) == 1000


@pytest.mark.parametrize(
    ("points", "complaint"),
    [
        pytest.param((), "needs a point", id="empty"),
        pytest.param(((100, 0.0),), "impossible", id="nothing-arrives"),
        pytest.param(((100, 1.1),), "impossible", id="more-than-all"),
        pytest.param(((-1, 0.9),), "impossible", id="negative"),
        pytest.param(((100, 0.9), (100, 0.95)), "does not come after", id="twice"),
        pytest.param(((100, 0.4), (110, 0.9)), "draw less", id="more-load-less-draw"),
    ],
)
def test_a_curve_that_no_supply_has_is_refused(
    points: tuple[tuple[int, float], ...], complaint: str
) -> None:
    with pytest.raises(BadCurve, match=complaint):
        Efficiency(points=points)
