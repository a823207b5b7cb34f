"""Which flags are raised, at which figure, and what the score counts."""

from dataclasses import replace

import pytest

from esnode.diagnose import KINDS, Thresholds, diagnose
from esnode.readings.gpu import GpuReading
from esnode.snapshot import DiskUsage, Flag, GpuState, InterfaceUsage, RatesState
from tests.samples import bare_gpu
from tests.snapshots import gpu_uuid

THRESHOLDS = Thresholds()
NO_RATES = RatesState()


def gpu(reading: GpuReading | None, *, has_new_ecc_errors: bool = False) -> GpuState:
    return GpuState(
        uuid=gpu_uuid(0),
        is_up=reading is not None,
        reading=reading,
        has_new_ecc_errors=has_new_ecc_errors,
    )


def disk(busy: float | None = None, latency: float | None = None) -> RatesState:
    return RatesState(disks=(DiskUsage(device="sda", busy_ratio=busy, latency_seconds=latency),))


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        pytest.param(
            disk(busy=0.8),
            [Flag(kind="disk_busy", subject="sda", detail="busy 80% of the time")],
            id="busy-disk",
        ),
        pytest.param(disk(busy=0.79), [], id="not-busy-enough"),
        pytest.param(
            disk(latency=0.05),
            [Flag(kind="disk_latency", subject="sda", detail="requests took 50 ms on average")],
            id="slow-disk",
        ),
        pytest.param(disk(), [], id="a-disk-of-which-nothing-is-known"),
        pytest.param(
            RatesState(interfaces=(InterfaceUsage(interface="eth0", drops_per_second=1.0),)),
            [Flag(kind="network_drops", subject="eth0", detail="1.0 packets dropped a second")],
            id="drops",
        ),
        pytest.param(
            RatesState(interfaces=(InterfaceUsage(interface="eth0"),)), [], id="unknown-drops"
        ),
        pytest.param(
            RatesState(tcp_retransmission_ratio=0.02),
            [
                Flag(
                    kind="tcp_retransmissions", subject="", detail="2.0% of TCP segments sent again"
                )
            ],
            id="retransmissions",
        ),
        pytest.param(
            RatesState(swap_pages_per_second=256.0),
            [Flag(kind="swap", subject="", detail="256 pages swapped a second")],
            id="swapping",
        ),
        pytest.param(RatesState(swap_pages_per_second=255.0), [], id="a-little-swapping"),
    ],
)
def test_a_figure_at_its_threshold_raises_a_flag(rates: RatesState, expected: list[Flag]) -> None:
    assert list(diagnose(rates, (), THRESHOLDS).flags) == expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(
            gpu(bare_gpu(0, throttle_reasons=("gpu_idle", "sw_power_cap", "hw_slowdown"))),
            [("gpu_throttle", "clocks held back by sw_power_cap, hw_slowdown")],
            id="throttled",
        ),
        pytest.param(gpu(bare_gpu(0, throttle_reasons=("gpu_idle",))), [], id="idle"),
        pytest.param(
            gpu(bare_gpu(0, throttle_reasons=("applications_clocks_setting",))),
            [],
            id="an-operators-choice",
        ),
        pytest.param(
            gpu(bare_gpu(0, throttle_reasons=("hw_thermal_slowdown",))),
            [("gpu_throttle", "clocks held back by hw_thermal_slowdown")],
            id="heat",
        ),
        pytest.param(gpu(bare_gpu(0, throttle_reasons=None)), [], id="reasons-unknown"),
        pytest.param(gpu(bare_gpu(0)), [], id="reasons-unknown"),
        pytest.param(
            gpu(bare_gpu(0, is_remap_pending=True), has_new_ecc_errors=True),
            [
                (
                    "gpu_ecc",
                    "new uncorrected memory errors, row remapping waits for a reset",
                )
            ],
            id="memory-errors",
        ),
        pytest.param(
            gpu(bare_gpu(0, is_remap_failed=True)),
            [("gpu_ecc", "row remapping failed")],
            id="no-rows-left",
        ),
        pytest.param(gpu(None, has_new_ecc_errors=True), [], id="not-answering"),
    ],
)
def test_a_gpu_is_flagged_for_what_costs_work_or_data(
    state: GpuState, expected: list[tuple[str, str]]
) -> None:
    flags = diagnose(NO_RATES, (state,), THRESHOLDS).flags

    assert [(flag.kind, flag.detail) for flag in flags] == expected
    assert {flag.subject for flag in flags} <= {gpu_uuid(0)}


def test_the_score_counts_kinds_and_not_devices() -> None:
    rates = RatesState(
        disks=tuple(DiskUsage(device=f"sd{i}", busy_ratio=1.0) for i in range(40)),
        swap_pages_per_second=1000.0,
    )

    health = diagnose(rates, (), THRESHOLDS)

    assert (len(health.flags), health.score) == (41, 2)


def test_thresholds_are_the_operators() -> None:
    strict = replace(THRESHOLDS, disk_busy_ratio=0.1)

    assert diagnose(disk(busy=0.2), (), strict).score == 1
    assert diagnose(disk(busy=0.2), (), THRESHOLDS).score == 0


def test_every_flag_is_of_a_known_kind_and_can_be_asked_for() -> None:
    rates = RatesState(
        disks=(DiskUsage(device="sda", busy_ratio=1.0, latency_seconds=1.0),),
        interfaces=(InterfaceUsage(interface="eth0", drops_per_second=9.0),),
        tcp_retransmission_ratio=1.0,
        swap_pages_per_second=1e6,
    )
    states = (gpu(bare_gpu(0, throttle_reasons=("hw_slowdown",)), has_new_ecc_errors=True),)

    health = diagnose(rates, states, THRESHOLDS)

    assert tuple(flag.kind for flag in health.flags) == KINDS
    assert health.score == len(KINDS)
    assert health.has("disk_busy")
    assert health.has("disk_busy", "sda")
    assert not health.has("disk_busy", "sdb")
