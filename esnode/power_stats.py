"""Rack power in figures, for `/metrics`: read when somebody scrapes."""

from collections import Counter
from collections.abc import Callable

from cluster.rack.ledger.charter import Charter
from esnode.metrics.model import RackPowerStats, Sample
from esnode.powering.driver import Powering
from esnode.powering.known import known_of
from esnode.status.power import PowerKnown
from esnode.status.power_rack import describe_currency, grade, stranded_watts

GRADES = ("A", "B", "C")


def count_power(powering: Powering) -> RackPowerStats | None:
    """What this node holds and its rack is; None where nothing is decreed."""
    known = known_of(powering)
    if not known.charters and known.view is None:
        return None
    view = known.view
    actuator = None if view is None else view.actuator
    return RackPowerStats(
        state=known.state,
        cap_wanted_watts=None if actuator is None else known.cap_watts(actuator.wanted_watts),
        cap_watts=None if actuator is None else known.cap_watts(actuator.in_force_watts),
        bound_watts=None if actuator is None else known.cap_watts(actuator.bound_watts),
        floor_watts=known.floor_watts,
        demand_watts=None if view is None else known.cap_watts(view.wants.demand_watts),
        shares_watts=()
        if view is None
        else tuple(((one.currency,), known.cap_watts(one.own_watts)) for one in view.ledgers),
        is_gate_open=known.is_gate_open,
        is_refusing=None if actuator is None else actuator.is_refusing,
        throttle_watts=None if view is None else view.throttle_watts,
        has_disk_trouble=known.has_disk_trouble,
        counts=tuple(sorted(known.counts.items())),
        budgets_watts=_each(known, lambda charter: charter.budget_watts),
        floors_watts=_each(known, lambda charter: sum(one.floor_watts for one in charter.slots)),
        grades=tuple(
            ((currency, one), one == grade(known, charter).grade)
            for currency, charter in sorted(known.charters.items())
            for one in GRADES
        ),
        stranded_watts=_each(known, lambda charter: stranded_watts(known, charter)),
        epochs=tuple(
            ((one.currency,), one.epoch.number)
            for one in (() if view is None else view.ledgers)
            if one.epoch is not None
        ),
        slots=_slots(known),
    )


def _each(known: PowerKnown, read: Callable[[Charter], int | None]) -> tuple[Sample, ...]:
    return tuple(
        ((currency,), read(charter)) for currency, charter in sorted(known.charters.items())
    )


def _slots(known: PowerKnown) -> tuple[Sample, ...]:
    samples: list[Sample] = []
    for currency in sorted(known.charters):
        described = describe_currency(known, currency)["slots"]
        assert isinstance(described, list)
        counts = Counter(str(slot["state"]) for slot in described)
        samples += [((currency, state), count) for state, count in sorted(counts.items())]
    return tuple(samples)
