import pytest

from esnode.drivers.simulated.parts import (
    COMPUTE,
    CURVES,
    DECODE,
    MIXED,
    PARTS,
    UnknownSpec,
    canonical_spec,
    individual,
    parse_spec,
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("h100x2", ["h100", "h100"], id="one part"),
        pytest.param("A100x1", ["a100"], id="any case"),
        pytest.param(" l40sx1 ", ["l40s"], id="a name that ends in a letter"),
        pytest.param("b200x1+h200x1", ["b200", "h200"], id="two parts in order"),
        pytest.param("mixed", ["h100"] * 4 + ["l40s"] * 2, id="the named mix"),
    ],
)
def test_a_spec_is_one_part_per_gpu_in_order(text: str, names: list[str]) -> None:
    assert [part.key for part in parse_spec(text)] == names


@pytest.mark.parametrize(
    "text",
    ["", "h100", "h100x", "x8", "h100x0", "h100x65", "h100x99999999999", "h100x40+h100x40",
     "h100x8+", "h100 x8", "rtx9x1", "h100x-1", "h100x1.5", "mixed+h100x1", "h100x8\n+l40sx1"],
)  # fmt: skip
def test_a_spec_that_cannot_be_built_names_the_known_parts_in_one_line(text: str) -> None:
    with pytest.raises(UnknownSpec) as caught:
        parse_spec(text)

    assert "a100, b200, h100, h200, l40s" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_ways_to_write_a_machine_are_the_same_machine() -> None:
    assert canonical_spec("H100x1+h100x3+L40Sx2") == canonical_spec("mixed") == "h100x4+l40sx2"


@pytest.mark.parametrize("part", PARTS.values(), ids=lambda part: part.key)
def test_a_part_is_consistent(part) -> None:
    assert part.idle_watts < part.limit_min_watts < part.limit_max_watts
    assert part.limit_min_watts <= part.limit_default_watts <= part.limit_max_watts
    assert part.max_operating_celsius < part.slowdown_celsius < part.shutdown_celsius
    assert part.clock_idle_hertz < part.clock_max_hertz


def test_a_part_at_full_power_in_default_air_stays_below_its_operating_limit() -> None:
    hottest = {
        part.key: 30 + 1.06 * part.limit_max_watts * part.thermal_resistance_celsius_per_watt
        for part in PARTS.values()
    }

    assert all(hottest[key] < PARTS[key].max_operating_celsius for key in PARTS), hottest


def test_the_h100_limits_are_those_of_the_recorded_capture() -> None:
    h100 = PARTS["h100"]

    assert (h100.limit_min_watts, h100.limit_default_watts, h100.limit_max_watts) == (200, 700, 700)
    assert (h100.name, h100.memory_total_bytes) == ("NVIDIA H100 80GB HBM3", 81559 * 2**20)


@pytest.mark.parametrize(
    ("curve", "power_ratio", "throughput_ratio"),
    [
        pytest.param(COMPUTE, 1.0, 1.0, id="compute at full power"),
        pytest.param(COMPUTE, 0.1, 0.0, id="compute at its floor"),
        pytest.param(COMPUTE, 0.857, 0.857, id="training at 600 of 700 W loses 10 to 15 per cent"),
        pytest.param(MIXED, 0.8, 0.927, id="image work at 80 per cent keeps 93"),
        pytest.param(MIXED, 0.7, 0.885, id="image work at 70 per cent keeps 88"),
        pytest.param(DECODE, 0.43, 1.0, id="decode above its knee loses nothing"),
        pytest.param(DECODE, 0.2, 0.712, id="decode below its knee does"),
    ],
)
def test_throughput_follows_the_published_points(curve, power_ratio, throughput_ratio) -> None:
    assert curve.throughput_ratio(power_ratio) == pytest.approx(throughput_ratio, abs=0.01)


def test_more_power_is_never_slower() -> None:
    for curve in CURVES.values():
        points = [curve.throughput_ratio(percent / 100) for percent in range(101)]

        assert points == sorted(points)


def test_boards_of_one_part_differ_a_little_and_always_the_same() -> None:
    boards = [individual("h100", f"GPU-{i}") for i in range(50)]

    assert boards == [individual("h100", f"GPU-{i}") for i in range(50)]
    assert len({board.idle_watts for board in boards}) > 30
    assert all(0.95 * 69.6 <= board.idle_watts <= 1.05 * 69.6 for board in boards)
    assert all(0.97 <= board.demand_ratio <= 1.0 for board in boards)
