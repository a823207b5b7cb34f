"""What this machine does, as rack power needs to know it, from a snapshot.

Pure. Its own file because a draw is only worth something beside the moment at which it was read: a
machine's meter and its devices are compared only when both are fresh and both hold still. It must
not know caps.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from esnode.control.rest import Rest
from esnode.control.supply import Efficiency
from esnode.powering.devices import DeviceLoad
from esnode.snapshot import GpuState, Snapshot

FRESH_SECONDS = 2.0
"""Older draws of meter and devices are not of one moment."""
METER_SECONDS_MAX = 10.0
"""An older meter says nothing of the present draw."""
STILL_RATIO = 0.03
"""Of the draw: devices that moved more between two looks do not hold still."""
POWER_CAP = "sw_power_cap"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDraw:
    """What the whole machine draws at its inlet."""

    watts: float | None
    source: str
    is_estimated: bool


def device_loads(snapshot: Snapshot) -> dict[str, DeviceLoad]:
    """What each GPU and each processor package does."""
    loads = {state.uuid: _gpu_load(state) for state in snapshot.gpus}
    for zone in snapshot.power.zones:
        if zone.power_watts is not None:
            loads[zone.path] = DeviceLoad(draw_watts=zone.power_watts, is_capped=None)
    return loads


def is_held_back(loads: Mapping[str, DeviceLoad]) -> bool | None:
    """Whether a device says that its limit holds it back; None where none says anything."""
    said = [load.is_capped for load in loads.values() if load.is_capped is not None]
    return any(said) if said else None


def node_draw(
    snapshot: Snapshot, devices_watts: float | None, rest: Rest, efficiency: Efficiency
) -> NodeDraw:
    """The draw by the machine's own meter; else its devices' and the estimate of all else."""
    power = snapshot.power.node
    if power is not None and not power.is_estimated and power.age_seconds <= METER_SECONDS_MAX:
        return NodeDraw(watts=power.power_watts, source=power.source, is_estimated=False)
    if devices_watts is None:
        return NodeDraw(watts=None, source="", is_estimated=True)
    watts = efficiency.wall_watts(devices_watts + rest.watts)
    return NodeDraw(watts=watts, source="model", is_estimated=True)


class Learning:
    """Feeds the estimate of the rest with what meter and devices say of one moment."""

    def __init__(self) -> None:
        self._before: tuple[float, float] | None = None

    def observe(
        self,
        rest: Rest,
        snapshot: Snapshot,
        devices_watts: float | None,
        *,
        cap_watts: int | None,
        efficiency: Efficiency,
        now: float,
    ) -> None:
        """Take in one snapshot; `cap_watts` is None while no cap is in force and settled."""
        power = snapshot.power.node
        if power is None or power.is_estimated or power.age_seconds > FRESH_SECONDS:
            return
        is_fresh = all((gpu.age_seconds or 0.0) <= FRESH_SECONDS for gpu in snapshot.gpus)
        seen = None
        if devices_watts is not None and is_fresh:
            both = (power.power_watts, devices_watts)
            if self._before is not None and self._before != both:
                is_still = all(
                    abs(one - before) <= STILL_RATIO * max(one, before)
                    for one, before in zip(both, self._before, strict=True)
                )
                seen = devices_watts if is_still else None
            self._before = both
        rest.observe(
            draw_watts=power.power_watts,
            devices_watts=seen,
            cap_watts=cap_watts,
            efficiency=efficiency,
            now=now,
        )


def _gpu_load(state: GpuState) -> DeviceLoad:
    reading = state.reading
    if reading is None:
        return DeviceLoad(draw_watts=None, is_capped=None)
    reasons = reading.throttle_reasons
    return DeviceLoad(
        draw_watts=reading.power_watts,
        is_capped=None if reasons is None else POWER_CAP in reasons,
        age_seconds=state.age_seconds,
    )
