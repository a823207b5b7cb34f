"""Rates of the processor, the disks, the network and the swap between two samples."""

from dataclasses import replace

from esnode.fold.counters import (
    STEP_BACK_TOLERANCE_SECONDS,
    Span,
    SpanTracker,
    held,
    increase,
    rate_per_second,
)
from esnode.readings.host import (
    CPU_MODES,
    CpuReading,
    CpuTimes,
    DiskReading,
    MemoryReading,
    NetworkReading,
    NumaReading,
)
from esnode.readings.sample import Reading, Sample
from esnode.snapshot import CpuUsage, DiskUsage, InterfaceUsage, RatesState

MINIMUM_SENT_SEGMENTS = 50
"""Below this many sent TCP segments in an interval one retransmission is no sign of trouble."""

_IDLE_MODES = (CPU_MODES.index("idle"), CPU_MODES.index("iowait"))
_COUNTED_MODES = CPU_MODES.index("guest")  # guest time is contained in user time


class HostFold:
    """What follows from successive host readings."""

    def __init__(self) -> None:
        self._cpu = SpanTracker[CpuReading]()
        self._disk = SpanTracker[DiskReading]()
        self._network = SpanTracker[NetworkReading]()
        self._memory = SpanTracker[MemoryReading]()
        self._cpu_before: Sample[CpuReading] | None = None
        self._held_cpu: CpuReading | None = None
        self._held_modes: CpuTimes | None = None

    def fold_cpu(self, reading: Reading, *, now: float) -> tuple[CpuReading | None, CpuUsage]:
        """The processor's reading with its counters held, and its utilisation."""
        span, _ = self._cpu.fold(reading.cpu, now=now)
        usage = CpuUsage()
        if span is not None:
            numa = reading.numa.fresh(now) if reading.numa else None
            usage = cpu_usage(span, numa)
        return self._hold(reading.cpu, now=now), usage

    def _hold(self, sample: Sample[CpuReading] | None, *, now: float) -> CpuReading | None:
        """The reading with seconds by mode that never step back a little."""
        current = sample.fresh(now) if sample else None
        if sample is None or current is None or sample is self._cpu_before:
            return self._held_cpu if current is not None else None
        self._cpu_before = sample
        if current.mode_seconds is not None:
            if self._held_modes is not None:
                current = _with_held_modes(current, self._held_modes)
            self._held_modes = current.mode_seconds
        self._held_cpu = current
        return current

    def fold_rates(self, reading: Reading, *, now: float) -> RatesState:
        """Disks, interfaces, TCP and swap."""
        disk, _ = self._disk.fold(reading.disk, now=now)
        network, _ = self._network.fold(reading.network, now=now)
        memory, _ = self._memory.fold(reading.memory, now=now)
        return RatesState(
            disks=disk_usages(disk) if disk else (),
            interfaces=interface_usages(network) if network else (),
            tcp_retransmission_ratio=retransmission_ratio(network) if network else None,
            swap_pages_per_second=swap_pages_per_second(memory) if memory else None,
        )


def _with_held_modes(current: CpuReading, before: CpuTimes) -> CpuReading:
    assert current.mode_seconds is not None
    return replace(
        current,
        mode_seconds=tuple(
            held(old, new, STEP_BACK_TOLERANCE_SECONDS)
            for old, new in zip(before, current.mode_seconds, strict=False)
        ),
    )


def busy_ratio(before: CpuTimes, after: CpuTimes) -> float | None:
    """Share of the time between two readings that was not idle; ``None`` after a reset."""
    total = idle = 0.0
    for mode, (old, new) in enumerate(zip(before, after, strict=False)):
        if mode >= _COUNTED_MODES:
            break
        grown = max(0.0, new - old) if old - new <= STEP_BACK_TOLERANCE_SECONDS else None
        if grown is None:
            return None
        total += grown
        if mode in _IDLE_MODES:
            idle += grown
    return None if total <= 0 else min(1.0, max(0.0, 1.0 - idle / total))


def cpu_usage(span: Span[CpuReading], numa: NumaReading | None) -> CpuUsage:
    """Utilisation of the machine, each core and each NUMA node."""
    before, after = span.before, span.after
    whole = None
    if before.mode_seconds and after.mode_seconds:
        whole = busy_ratio(before.mode_seconds, after.mode_seconds)
    old = dict(before.cpu_mode_seconds)
    cores: list[tuple[int, float]] = []
    for cpu, times in after.cpu_mode_seconds:
        ratio = busy_ratio(old[cpu], times) if cpu in old else None
        if ratio is not None:
            cores.append((cpu, ratio))
    by_cpu = dict(cores)
    nodes: list[tuple[int, float]] = []
    for node in numa.nodes if numa else ():
        ratios = [by_cpu[cpu] for cpu in node.cpus if cpu in by_cpu]
        if ratios:
            nodes.append((node.node, sum(ratios) / len(ratios)))
    return CpuUsage(
        utilization_ratio=whole,
        core_utilization_ratios=tuple(cores),
        node_utilization_ratios=tuple(nodes),
    )


def disk_usages(span: Span[DiskReading]) -> tuple[DiskUsage, ...]:
    """Busy share and mean request time of each device present in both samples."""
    usages = []
    old = {device.device: device for device in span.before.devices}
    for after in span.after.devices:
        before = old.get(after.device)
        if before is None:
            continue
        busy = increase(before.io_time_seconds_total, after.io_time_seconds_total)
        requests = increase(
            before.reads_completed_total + before.writes_completed_total,
            after.reads_completed_total + after.writes_completed_total,
        )
        waited = increase(
            before.read_time_seconds_total + before.write_time_seconds_total,
            after.read_time_seconds_total + after.write_time_seconds_total,
        )
        latency = waited / requests if requests and waited is not None else None
        usages.append(
            DiskUsage(
                device=after.device,
                busy_ratio=None if busy is None else min(1.0, busy / span.seconds),
                latency_seconds=latency,
            )
        )
    return tuple(usages)


def interface_usages(span: Span[NetworkReading]) -> tuple[InterfaceUsage, ...]:
    """Traffic and drops of each interface present in both samples."""
    usages = []
    old = {interface.interface: interface for interface in span.before.interfaces}
    for after in span.after.interfaces:
        before = old.get(after.interface)
        if before is None:
            continue
        usages.append(
            InterfaceUsage(
                interface=after.interface,
                receive_bytes_per_second=rate_per_second(
                    before.receive_bytes_total, after.receive_bytes_total, span.seconds
                ),
                transmit_bytes_per_second=rate_per_second(
                    before.transmit_bytes_total, after.transmit_bytes_total, span.seconds
                ),
                drops_per_second=rate_per_second(
                    before.receive_dropped_total + before.transmit_dropped_total,
                    after.receive_dropped_total + after.transmit_dropped_total,
                    span.seconds,
                ),
            )
        )
    return tuple(usages)


def retransmission_ratio(span: Span[NetworkReading]) -> float | None:
    """Retransmitted per sent segments, when enough were sent to tell."""
    again = increase(
        span.before.tcp_retransmitted_segments_total, span.after.tcp_retransmitted_segments_total
    )
    sent = increase(span.before.tcp_sent_segments_total, span.after.tcp_sent_segments_total)
    if again is None or sent is None or sent < MINIMUM_SENT_SEGMENTS:
        return None
    return min(1.0, again / sent)


def swap_pages_per_second(span: Span[MemoryReading]) -> float | None:
    """Pages swapped in and out a second."""
    before, after = span.before, span.after
    read = rate_per_second(before.swap_in_pages_total, after.swap_in_pages_total, span.seconds)
    written = rate_per_second(before.swap_out_pages_total, after.swap_out_pages_total, span.seconds)
    return None if read is None or written is None else read + written
