"""What the agent counts of each GPU: throttled seconds, joules, new errors. Keyed by UUID."""

from dataclasses import dataclass, field

from esnode.fold.counters import Integral
from esnode.readings.gpu import GpuReading
from esnode.readings.sample import Reading, Sample, SourceStatus
from esnode.snapshot import GpuState

ECC_MEMORY_SECONDS = 600.0
"""How long new uncorrected errors keep a GPU flagged: long enough to be seen by an alert rule."""


@dataclass(slots=True)
class _Device:
    """The memory kept of one GPU."""

    index: int | None = None
    last: Sample[GpuReading] | None = None
    throttle_seconds: dict[str, float] = field(default_factory=dict)
    energy: Integral = field(default_factory=Integral)
    energy_source: str = ""
    """Decided by the first reading that tells either: a change would be a jump in the total."""
    last_uncorrected: int | None = None
    uncorrected_at: float | None = None


class GpuFold:
    """The GPUs' states from successive readings."""

    def __init__(self) -> None:
        self._devices: dict[str, _Device] = {}
        """Kept of GPUs that are gone as well: they come back, and totals must not start anew."""

    def fold(self, reading: Reading, *, now: float) -> tuple[GpuState, ...]:
        """One state for each GPU that the driver lists or that a source still waits for."""
        statuses = {s.target: s for s in reading.sources if s.collector == "gpu" and s.target}
        listed = reading.gpu.fresh(now) if reading.gpu else None
        order = {gpu.uuid: gpu.index for gpu in listed.gpus} if listed else {}
        states = []
        for uuid, status in statuses.items():
            device = self._devices.setdefault(uuid, _Device())
            device.index = order.get(uuid, device.index)
            states.append(self._state(uuid, device, reading.gpus.get(uuid), status, now=now))
        # One whose index is not known comes last.
        states.sort(key=lambda state: (state.index is None, state.index or 0, state.uuid))
        return tuple(states)

    def _state(
        self,
        uuid: str,
        device: _Device,
        sample: Sample[GpuReading] | None,
        status: SourceStatus,
        *,
        now: float,
    ) -> GpuState:
        if sample is not None and sample is not device.last:
            _take(device, sample)
        value = sample.fresh(now) if sample is not None else None
        if sample is None or value is None or status.state != "ok":
            return GpuState(
                uuid=uuid,
                is_up=False,
                reason=status.reason or _silence(sample, now),
                index=device.index if sample is None else sample.value.identity.index,
            )
        is_counted = device.energy_source == "counter"
        return GpuState(
            uuid=uuid,
            is_up=True,
            index=value.identity.index,
            reading=value,
            age_seconds=now - sample.taken_at_seconds,
            throttle_seconds_total=tuple(sorted(device.throttle_seconds.items())),
            energy_joules_total=value.energy_joules_total if is_counted else device.energy.total,
            energy_source=device.energy_source,
            has_new_ecc_errors=(
                device.uncorrected_at is not None
                and now - device.uncorrected_at <= ECC_MEMORY_SECONDS
            ),
        )


def _silence(sample: Sample[GpuReading] | None, now: float) -> str:
    if sample is None:
        return "not read yet"
    return f"last answered {now - sample.taken_at_seconds:.0f} s ago"


def _take(device: _Device, sample: Sample[GpuReading]) -> None:
    last, device.last = device.last, sample
    reading = sample.value
    for reason in reading.throttle_reasons or ():
        device.throttle_seconds.setdefault(reason, 0.0)
    if last is not None:
        seconds = sample.taken_at_seconds - last.taken_at_seconds
        if 0 < seconds <= sample.stale_after_seconds:
            # Half of the interval for each end at which the reason was seen (trapezoid rule).
            for end in (last.value, reading):
                for reason in end.throttle_reasons or ():
                    device.throttle_seconds[reason] += seconds / 2
    device.energy.fold(
        reading.power_watts, sample.taken_at_seconds, gap_seconds=sample.stale_after_seconds
    )
    if not device.energy_source:
        if reading.energy_joules_total is not None:
            device.energy_source = "counter"
        elif device.energy.total is not None:
            device.energy_source = "integrated"
    errors = uncorrected_errors(reading)
    before = device.last_uncorrected
    if errors is not None:
        if before is not None and errors > before:
            device.uncorrected_at = sample.taken_at_seconds
        device.last_uncorrected = errors


def uncorrected_errors(reading: GpuReading) -> int | None:
    """Uncorrected errors since the driver was loaded; ``None`` when the part does not count."""
    counts = [
        count.errors_total
        for count in reading.ecc
        if count.error == "uncorrected" and count.scope == "volatile" and count.location == "total"
    ]
    return counts[0] if counts else None


def total_draw_watts(reading: Reading, states: tuple[GpuState, ...], *, now: float) -> float | None:
    """What all GPUs of the machine draw; 0 where there are none, or where nobody is to look.

    ``None`` when one that the driver counts does not tell, be it down or not watched, and when it
    cannot be said which there are: a part of the sum would pass for the whole.
    """
    listing = next((s for s in reading.sources if s.collector == "gpu" and not s.target), None)
    if listing is None or listing.state == "unavailable":
        return 0.0
    inventory = reading.gpu.fresh(now) if reading.gpu else None
    if inventory is None:
        return None
    draws = [
        state.reading.power_watts
        for state in states
        if state.reading is not None and state.reading.power_watts is not None
    ]
    return sum(draws) if len(draws) == max(inventory.found_count, len(states)) else None
