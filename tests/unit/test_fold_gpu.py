"""What is counted of each GPU, and what of it survives absence and faults."""

from dataclasses import replace

import pytest

from esnode.fold.gpu import ECC_MEMORY_SECONDS, GpuFold, total_draw_watts, uncorrected_errors
from esnode.readings.gpu import EccCount, GpuReading
from esnode.readings.sample import Reading
from esnode.snapshot import GpuState
from tests.samples import bare_gpu, gpus_at, source
from tests.snapshots import gpu_uuid


def only(fold: GpuFold, reading: Reading, now: float) -> GpuState:
    (state,) = fold.fold(reading, now=now)
    return state


def at(seconds: float, **fields: object) -> Reading:
    return gpus_at(seconds, {0: bare_gpu(0, **fields)})


def uncorrected(errors: int) -> tuple[EccCount, ...]:
    return (
        EccCount(error="corrected", scope="volatile", location="total", errors_total=99),
        EccCount(error="uncorrected", scope="aggregate", location="total", errors_total=77),
        EccCount(error="uncorrected", scope="volatile", location="total", errors_total=errors),
    )


def test_throttled_time_is_half_of_the_interval_for_each_end_that_shows_it() -> None:
    fold = GpuFold()
    steps: list[tuple[float, tuple[str, ...]]] = [
        (0.0, ()),
        (4.0, ("sw_power_cap",)),
        (8.0, ("sw_power_cap", "hw_slowdown")),
        (12.0, ()),
    ]

    for seconds, reasons in steps:
        state = only(fold, at(seconds, throttle_reasons=reasons), seconds)

    assert state.throttle_seconds_total == (("hw_slowdown", 4.0), ("sw_power_cap", 8.0))


def test_throttled_time_of_a_gap_is_left_out() -> None:
    fold = GpuFold()
    only(fold, at(0.0, throttle_reasons=("sw_power_cap",)), 0.0)

    state = only(fold, at(100.0, throttle_reasons=("sw_power_cap",)), 100.0)

    assert state.throttle_seconds_total == (("sw_power_cap", 0.0),)


def test_energy_is_the_devices_own_counter_when_it_has_one() -> None:
    state = only(GpuFold(), at(0.0, energy_joules_total=1e6, power_average_watts=100.0), 0.0)

    assert (state.energy_joules_total, state.energy_source) == (1e6, "counter")


def test_energy_is_integrated_where_the_device_does_not_count() -> None:
    fold = GpuFold()
    only(fold, at(0.0, power_instant_watts=100.0), 0.0)

    state = only(fold, at(10.0, power_average_watts=300.0), 10.0)

    assert (state.energy_joules_total, state.energy_source) == (2000.0, "integrated")


def test_a_counter_that_cannot_be_read_once_is_unknown_and_not_another_total() -> None:
    fold = GpuFold()
    only(fold, at(0.0, energy_joules_total=1e6, power_average_watts=100.0), 0.0)

    without = only(fold, at(5.0, power_average_watts=100.0), 5.0)
    again = only(fold, at(10.0, energy_joules_total=1.001e6, power_average_watts=100.0), 10.0)

    assert (without.energy_joules_total, without.energy_source) == (None, "counter")
    assert again.energy_joules_total == 1.001e6


def test_a_device_that_tells_neither_has_no_energy() -> None:
    state = only(GpuFold(), at(0.0, temperature_celsius=40.0), 0.0)

    assert (state.energy_joules_total, state.energy_source) == (None, "")


def test_a_new_uncorrected_error_flags_the_gpu_for_a_while() -> None:
    fold = GpuFold()
    seen = [
        only(fold, at(now, ecc=uncorrected(errors)), now).has_new_ecc_errors
        for now, errors in [
            (0.0, 5),
            (10.0, 5),
            (20.0, 6),
            (20.0 + ECC_MEMORY_SECONDS, 6),
            (30.0 + ECC_MEMORY_SECONDS, 6),
        ]
    ]

    assert seen == [False, False, True, True, False]


def test_errors_found_at_the_start_or_after_a_driver_reload_are_not_new() -> None:
    fold = GpuFold()

    for now, errors in ((0.0, 9), (10.0, 0), (20.0, 0)):
        assert not only(fold, at(now, ecc=uncorrected(errors)), now).has_new_ecc_errors


def test_an_error_that_came_while_the_count_was_unreadable_is_still_new() -> None:
    fold = GpuFold()
    only(fold, at(0.0, ecc=uncorrected(0)), 0.0)
    only(fold, at(10.0), 10.0)

    assert only(fold, at(20.0, ecc=uncorrected(1)), 20.0).has_new_ecc_errors


@pytest.mark.parametrize(
    ("ecc", "errors"),
    [
        pytest.param(uncorrected(3), 3, id="volatile-total"),
        pytest.param((), None, id="a-part-that-does-not-count"),
    ],
)
def test_uncorrected_errors_are_those_since_the_driver_was_loaded(
    ecc: tuple[EccCount, ...], errors: int | None
) -> None:
    assert uncorrected_errors(bare_gpu(0, ecc=ecc)) == errors


@pytest.mark.parametrize(
    ("reading", "now", "reason"),
    [
        pytest.param(
            gpus_at(0.0, {}, states={0: source(f"gpu:{gpu_uuid(0)}", "pending")}),
            1.0,
            "not read yet",
            id="never-read",
        ),
        pytest.param(
            gpus_at(
                0.0, {0: bare_gpu(0)}, states={0: source(f"gpu:{gpu_uuid(0)}", "failed", "lost")}
            ),
            1.0,
            "lost",
            id="its-last-read-failed",
        ),
        pytest.param(
            gpus_at(
                0.0, {0: bare_gpu(0)}, states={0: source(f"gpu:{gpu_uuid(0)}", "stalled", "late")}
            ),
            1.0,
            "late",
            id="it-hangs",
        ),
        pytest.param(gpus_at(0.0, {0: bare_gpu(0)}), 18.0, "last answered 18 s ago", id="stale"),
    ],
)
def test_a_gpu_that_did_not_answer_lately_is_down_with_its_reason(
    reading: Reading, now: float, reason: str
) -> None:
    state = only(GpuFold(), reading, now)

    assert (state.is_up, state.reading, state.reason) == (False, None, reason)
    assert state.index == 0


def test_gpus_are_in_the_drivers_order_and_those_without_a_place_come_last() -> None:
    reading = gpus_at(0.0, {index: bare_gpu(index) for index in (2, 0, 10, 1)})
    unknown = source("gpu:GPU-unlisted", "pending")
    reading = replace(reading, sources=(unknown, *reading.sources))

    states = GpuFold().fold(reading, now=0.0)

    assert [state.index for state in states] == [0, 1, 2, 10, None]


def test_a_gpu_keeps_its_place_while_the_list_is_stale() -> None:
    fold = GpuFold()
    fold.fold(gpus_at(0.0, {1: bare_gpu(1), 0: bare_gpu(0)}), now=0.0)
    later = replace(gpus_at(30.0, {1: bare_gpu(1), 0: bare_gpu(0)}), gpu=None)

    assert [state.index for state in fold.fold(later, now=30.0)] == [0, 1]


def test_a_gpu_that_is_gone_is_not_shown_and_its_totals_go_on_when_it_is_back() -> None:
    fold = GpuFold()
    only(fold, at(0.0, power_average_watts=100.0), 0.0)
    only(fold, at(10.0, power_average_watts=100.0), 10.0)

    assert fold.fold(gpus_at(20.0, {}), now=20.0) == ()
    back = only(fold, at(30.0, power_average_watts=100.0), 30.0)

    assert back.energy_joules_total == 1000.0


TELLING: dict[int, GpuReading] = {
    0: bare_gpu(0, power_average_watts=100.0, power_instant_watts=900.0),
    1: bare_gpu(1, power_instant_watts=50.0),
}


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        pytest.param(gpus_at(0.0, TELLING), 150.0, id="all-tell"),
        pytest.param(gpus_at(0.0, TELLING | {2: bare_gpu(2)}), None, id="one-has-no-meter"),
        pytest.param(
            gpus_at(0.0, TELLING, states={1: source(f"gpu:{gpu_uuid(1)}", "stalled")}),
            None,
            id="one-hangs",
        ),
        pytest.param(
            gpus_at(0.0, TELLING, found=8), None, id="some-are-not-watched-or-cannot-be-opened"
        ),
        pytest.param(Reading(sources=(source("gpu", "pending"),)), None, id="not-listed-yet"),
        pytest.param(Reading(sources=(source("gpu", "failed"),)), None, id="driver-broken"),
        pytest.param(Reading(sources=(source("gpu", "unavailable"),)), 0.0, id="no-gpus"),
        pytest.param(Reading(), 0.0, id="turned-off"),
    ],
)
def test_the_total_draw_is_of_all_gpus_or_unknown(reading: Reading, expected: float | None) -> None:
    states = GpuFold().fold(reading, now=0.0)

    assert total_draw_watts(reading, states, now=0.0) == expected
