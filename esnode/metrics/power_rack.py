"""Families about rack power: this node's cap, and its rack as this node knows it.

Absent where no operator has decreed a budget. Watts are those of whole machines at their inlets.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from esnode.metrics.model import Labels, RackPowerStats, Sample, Value, View, families

_BASIC = frozenset({"power_cap_watts", "rack_power_budget_watts"})
_STATES = (
    "ungoverned", "starting", "enforcing", "parked", "quarantined", "static", "observing",
    "unavailable",
)  # fmt: skip


def _one(get: Callable[[RackPowerStats], Value]) -> Callable[[View], Iterable[Sample]]:
    def read(view: View) -> Iterator[Sample]:
        if view.rack_power is not None:
            yield (), get(view.rack_power)

    return read


def _each(
    expand: Callable[[RackPowerStats], Iterable[tuple[Labels, Value]]],
) -> Callable[[View], Iterable[Sample]]:
    def read(view: View) -> Iterator[Sample]:
        if view.rack_power is not None:
            yield from expand(view.rack_power)

    return read


def _states(stats: RackPowerStats) -> Iterator[tuple[Labels, Value]]:
    for state in _STATES:
        yield (state,), state == stats.state


_family = partial(families, "rack_power", basic=_BASIC)

RACK_POWER = (
    *_family(("state",), ("power_control_state", "gauge", "1 for the state that this node's part in rack power is in.", _each(_states))),
    *_family(
        (),
        ("power_cap_watts", "gauge", "Cap of the whole machine that is in force, by the devices' own word.", _one(lambda p: p.cap_watts)),
        ("power_cap_wanted_watts", "gauge", "Cap of the whole machine that should be in force.", _one(lambda p: p.cap_wanted_watts)),
        ("power_cap_bound_watts", "gauge", "The highest cap that may still show in the draw.", _one(lambda p: p.bound_watts)),
        ("power_floor_watts", "gauge", "What is always charged for this node's slot.", _one(lambda p: p.floor_watts)),
        ("power_demand_watts", "gauge", "What this machine would draw if no cap held it.", _one(lambda p: p.demand_watts)),
        ("power_throttle_watts", "gauge", "Given up because the rack was measured to draw too much.", _one(lambda p: p.throttle_watts)),
        ("power_gate_open", "gauge", "1 while work may be started here.", _one(lambda p: p.is_gate_open)),
        ("power_refusing", "gauge", "1 while the hardware does not take a lower cap.", _one(lambda p: p.is_refusing)),
        ("power_disk_trouble", "gauge", "1 while entries of the ledger wait for a disk that refuses.", _one(lambda p: p.has_disk_trouble)),
        ("power_transfers_given_total", "counter", "Transfers of shares to other nodes since the agent started.", _one(lambda p: p.count("Debited"))),
        ("power_transfers_taken_total", "counter", "Transfers of shares from other nodes since the agent started.", _one(lambda p: p.count("Credited"))),
        ("power_cap_writes_total", "counter", "Caps written to the hardware since the agent started.", _one(lambda p: p.count("cap_writes"))),
        ("power_refusals_total", "counter", "Times that the hardware did not take a lower cap.", _one(lambda p: p.count("refusals"))),
        ("power_alarms_total", "counter", "Alarms of rack power since the agent started.", _one(lambda p: p.count("alarms"))),
        ("power_messages_total", "counter", "Messages about power that were sent.", _one(lambda p: p.count("sent"))),
        ("power_malformed_total", "counter", "Messages about power that were none.", _one(lambda p: p.count("malformed"))),
    ),
    *_family(
        ("currency",),
        ("power_share_watts", "gauge", "What this node's shares are worth, floor included.", _each(lambda p: p.shares_watts)),
        ("rack_power_budget_watts", "gauge", "The budget in force, as an operator signed it.", _each(lambda p: p.budgets_watts)),
        ("rack_power_floors_watts", "gauge", "What is always charged for the slots together.", _each(lambda p: p.floors_watts)),
        ("rack_power_stranded_watts", "gauge", "Held by nodes that do not answer.", _each(lambda p: p.stranded_watts)),
        ("rack_power_epoch", "gauge", "Epoch of the ledger at this node.", _each(lambda p: p.epochs)),
    ),
    *_family(("currency", "grade"), ("rack_power_grade", "gauge", "1 for the grade of the rack: A enforced and metered, B enforced, C unprotected.", _each(lambda p: p.grades))),
    *_family(("currency", "state"), ("rack_power_slots", "gauge", "Slots of the rack by state.", _each(lambda p: p.slots))),
)  # fmt: skip
