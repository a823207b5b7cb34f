"""Rates of the host: what two samples say, and when they say nothing."""

from dataclasses import replace

import pytest

from esnode.fold.counters import Span
from esnode.fold.host import (
    HostFold,
    busy_ratio,
    cpu_usage,
    disk_usages,
    interface_usages,
    retransmission_ratio,
    swap_pages_per_second,
)
from esnode.readings.host import (
    CpuReading,
    DiskReading,
    MemoryReading,
    NetworkReading,
    NumaNodeReading,
    NumaReading,
)
from esnode.readings.sample import Reading
from tests.samples import cpu_at, sample
from tests.snapshots import DISK, NETWORK, interface

DEVICE = DISK.devices[0]


def times(user: float, idle: float, iowait: float = 0.0, guest: float = 0.0) -> tuple[float, ...]:
    return (user, 0.0, 0.0, idle, iowait, 0.0, 0.0, 0.0, guest, 0.0)


@pytest.mark.parametrize(
    ("before", "after", "ratio"),
    [
        pytest.param(times(0, 0), times(1, 3), 0.25, id="a-quarter"),
        pytest.param(times(0, 0), times(1, 1, iowait=2), 0.25, id="waiting-is-not-use"),
        pytest.param(times(0, 0), times(1, 3, guest=1), 0.25, id="guest-time-counts-once"),
        pytest.param(times(5, 5), times(5, 5), None, id="no-time-has-passed"),
        pytest.param(times(100, 100), times(1, 3), None, id="after-a-reset"),
        pytest.param(
            times(0, 10, iowait=1), times(1, 13, iowait=0.5), 0.25, id="a-small-step-back-is-none"
        ),
        pytest.param((0.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 3.0), 0.25, id="an-old-kernel"),
    ],
)
def test_busy_is_what_is_neither_idle_nor_waiting(
    before: tuple[float, ...], after: tuple[float, ...], ratio: float | None
) -> None:
    assert busy_ratio(before, after) == ratio


def test_each_core_and_each_node_has_its_own_utilisation() -> None:
    before = CpuReading(
        mode_seconds=times(0, 0),
        cpu_mode_seconds=((0, times(0, 0)), (1, times(0, 0)), (2, times(0, 0))),
    )
    after = CpuReading(
        mode_seconds=times(2, 2),
        cpu_mode_seconds=((0, times(1, 0)), (1, times(1, 1)), (3, times(0, 1))),
    )
    numa = NumaReading(
        nodes=(
            NumaNodeReading(node=0, cpus=(0, 1)),
            NumaNodeReading(node=1, cpus=(2, 3)),
            NumaNodeReading(node=2),
        )
    )

    usage = cpu_usage(Span(before=before, after=after, seconds=1.0), numa)

    assert usage.utilization_ratio == 0.5
    assert usage.core_utilization_ratios == ((0, 1.0), (1, 0.5))
    assert usage.node_utilization_ratios == ((0, 0.75),)


def test_the_processors_counters_are_held_when_they_step_back_a_little() -> None:
    fold = HostFold()
    held = []
    for at, user in ((0.0, 10.0), (5.0, 9.5), (10.0, 12.0), (15.0, 1.0)):
        reading = Reading(cpu=cpu_at(at, user, 100.0))
        cpu, _ = fold.fold_cpu(reading, now=at)
        assert cpu is not None
        assert cpu.mode_seconds is not None
        held.append(cpu.mode_seconds[0])

    assert held == [10.0, 10.0, 12.0, 1.0]


def test_the_counters_are_held_across_a_reading_without_them() -> None:
    fold = HostFold()
    fold.fold_cpu(Reading(cpu=cpu_at(0.0, 10.0, 100.0)), now=0.0)
    fold.fold_cpu(Reading(cpu=sample(CpuReading(load1=1.0), 5.0)), now=5.0)

    cpu, usage = fold.fold_cpu(Reading(cpu=cpu_at(10.0, 9.5, 105.0)), now=10.0)

    assert cpu is not None
    assert cpu.mode_seconds is not None
    assert cpu.mode_seconds[0] == 10.0
    assert usage.utilization_ratio is None


def test_the_same_sample_gives_the_same_answer_at_each_tick() -> None:
    fold = HostFold()
    first = Reading(cpu=cpu_at(0.0, 0.0, 0.0))
    second = Reading(cpu=cpu_at(5.0, 1.0, 4.0))

    fold.fold_cpu(first, now=1.0)
    answers = [fold.fold_cpu(second, now=now) for now in (5.0, 6.0, 7.0)]

    assert answers[0][1].utilization_ratio == pytest.approx(0.2)
    assert answers[0] == answers[1] == answers[2]


def test_a_stale_processor_says_nothing() -> None:
    fold = HostFold()
    reading = Reading(cpu=cpu_at(0.0, 1.0, 1.0))
    fold.fold_cpu(reading, now=0.0)

    assert fold.fold_cpu(reading, now=18.0)[0] is None


def test_a_disk_is_busy_for_the_time_it_had_requests_and_slow_by_their_mean() -> None:
    after = replace(
        DEVICE,
        io_time_seconds_total=DEVICE.io_time_seconds_total + 2.5,
        reads_completed_total=DEVICE.reads_completed_total + 30,
        writes_completed_total=DEVICE.writes_completed_total + 10,
        read_time_seconds_total=DEVICE.read_time_seconds_total + 3.0,
        write_time_seconds_total=DEVICE.write_time_seconds_total + 1.0,
    )

    (usage,) = disk_usages(span_of_disks(after))

    assert (usage.busy_ratio, usage.latency_seconds) == (0.5, 0.1)


@pytest.mark.parametrize(
    ("changes", "busy", "latency"),
    [
        pytest.param({}, 0.0, None, id="no-request-has-no-latency"),
        pytest.param({"io_time_seconds_total": 9.0}, 1.0, None, id="never-busier-than-always"),
        pytest.param({"io_time_seconds_total": 0.0}, None, None, id="reset-busy-time"),
        pytest.param(
            {"reads_completed_total": 0, "read_time_seconds_total": 0.0}, 0.0, None, id="reset"
        ),
    ],
)
def test_a_disk_says_nothing_where_nothing_follows(
    changes: dict[str, float], busy: float | None, latency: float | None
) -> None:
    (usage,) = disk_usages(span_of_disks(replace(DEVICE, **changes)))  # type: ignore[arg-type]

    assert (usage.busy_ratio, usage.latency_seconds) == (busy, latency)


def span_of_disks(after: object) -> Span[DiskReading]:
    return Span(before=DISK, after=DiskReading(devices=(after,)), seconds=5.0)  # type: ignore[arg-type]


def test_a_device_that_just_came_has_no_rates_yet() -> None:
    new = replace(DEVICE, device="nvme9n1")

    assert disk_usages(span_of_disks(new)) == ()


def test_an_interface_has_rates_of_both_ways_and_of_all_drops() -> None:
    before = interface("eth0")
    after = replace(
        before,
        receive_bytes_total=before.receive_bytes_total + 500,
        transmit_bytes_total=before.transmit_bytes_total + 1000,
        receive_dropped_total=before.receive_dropped_total + 4,
        transmit_dropped_total=before.transmit_dropped_total + 6,
    )
    new = interface("eth1")
    span = Span(
        before=NetworkReading(interfaces=(before,)),
        after=NetworkReading(interfaces=(after, new)),
        seconds=5.0,
    )

    (usage,) = interface_usages(span)

    assert (usage.receive_bytes_per_second, usage.transmit_bytes_per_second) == (100.0, 200.0)
    assert usage.drops_per_second == 2.0


def test_an_interface_that_was_reset_has_no_rate_for_what_was_reset() -> None:
    span = Span(
        before=NetworkReading(interfaces=(interface("eth0", 10),)),
        after=NetworkReading(interfaces=(interface("eth0", 1),)),
        seconds=5.0,
    )

    (usage,) = interface_usages(span)

    assert usage.receive_bytes_per_second is None
    assert usage.drops_per_second == 0.0


@pytest.mark.parametrize(
    ("again", "sent", "ratio"),
    [
        pytest.param(10, 100, 0.1, id="ten-percent"),
        pytest.param(1, 49, None, id="too-few-to-tell"),
        pytest.param(200, 100, 1.0, id="never-above-one"),
        pytest.param(-5, 100, None, id="reset"),
    ],
)
def test_retransmissions_are_told_only_of_enough_segments(
    again: int, sent: int, ratio: float | None
) -> None:
    after = replace(
        NETWORK, tcp_retransmitted_segments_total=11 + again, tcp_sent_segments_total=1000 + sent
    )

    assert retransmission_ratio(Span(before=NETWORK, after=after, seconds=5.0)) == ratio


@pytest.mark.parametrize(
    ("after", "pages"),
    [
        pytest.param((15, 30), 7.0, id="both-ways"),
        pytest.param((None, 30), None, id="one-way-unknown"),
        pytest.param((0, 30), None, id="reset"),
    ],
)
def test_swapping_is_what_goes_in_and_out(
    after: tuple[int | None, int | None], pages: float | None
) -> None:
    span = Span(
        before=MemoryReading(swap_in_pages_total=10, swap_out_pages_total=0),
        after=MemoryReading(swap_in_pages_total=after[0], swap_out_pages_total=after[1]),
        seconds=5.0,
    )

    assert swap_pages_per_second(span) == pages


def test_rates_are_absent_after_the_first_sample_and_after_a_gap() -> None:
    fold = HostFold()

    def rates(at: float) -> tuple[object, ...]:
        reading = Reading(disk=sample(DISK, at), network=sample(NETWORK, at))
        state = fold.fold_rates(reading, now=at)
        return state.disks, state.interfaces

    assert rates(0.0) == ((), ())
    assert all(rates(5.0))
    assert rates(60.0) == ((), ())
