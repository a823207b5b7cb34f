"""What this machine could use of its rack's power, from its snapshots.

Its own file because demand is folded over time, beside the caps and apart from them. It must not
know shares.
"""

from collections.abc import Callable

from cluster.rack.demand import Demand, Load
from cluster.rack.rows import Wants
from esnode.powering.devices import Devices
from esnode.powering.loads import Learning, NodeDraw, device_loads, is_held_back, node_draw
from esnode.snapshot import Snapshot


class Wishes:
    """The demand of one machine."""

    def __init__(self, priority: int = 1, promised_watts: Callable[[], int] = lambda: 0) -> None:
        self._priority = priority
        self._demand = Demand()
        self._learning = Learning()
        self.promised_watts = promised_watts
        """What work here must be able to draw beyond the lowest limits of the devices."""
        self.draw = NodeDraw(watts=None, source="", is_estimated=True)

    def take(self, snapshot: Snapshot, devices: Devices, *, is_settled: bool, now: float) -> None:
        """What the machine does now; `is_settled` while its cap is in force for long enough."""
        loads = device_loads(snapshot)
        devices.loaded(loads, now)
        watts = devices.devices_watts
        self._learning.observe(
            devices.rest,
            snapshot,
            watts,
            cap_watts=devices.in_force_watts if is_settled and devices.cap_watts else None,
            efficiency=devices.efficiency,
            now=now,
        )
        self.draw = node_draw(snapshot, watts, devices.rest, devices.efficiency)

    def wants(
        self, snapshot: Snapshot, devices: Devices, floor_watts: int, *, is_short: bool, now: float
    ) -> Wants:
        """The same as what the rack is told; all above the floor of the slot."""
        maximum = max(0, devices.highest_watts - floor_watts)
        load = Load(
            draw_watts=self.draw.watts,
            cap_watts=devices.cap_watts,
            is_capped=is_held_back(device_loads(snapshot)),
            floor_watts=floor_watts,
            maximum_watts=maximum,
        )
        estimate = self._demand.read(load, now, is_any_short=is_short)
        promised = self.promised_watts()
        minimum = min(maximum, max(0, devices.lowest_watts + promised - floor_watts))
        demand = estimate.demand_watts
        return Wants(
            demand_watts=max(demand, minimum) if promised else demand,
            minimum_watts=minimum,
            maximum_watts=maximum,
            priority=self._priority,
        )
