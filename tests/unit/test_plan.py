"""Which collectors a configuration wants, and how often each is asked."""

import pytest

from esnode.collect import Plan
from esnode.config import Config
from esnode.plan import Hardware, make_plan


def plan_of(**settings: object) -> Plan:
    config = Config(**settings)  # type: ignore[arg-type]
    return make_plan(config, Hardware(config, {}))


def intervals(plan: Plan) -> dict[str, float]:
    return {planned.collector.name: planned.interval_seconds for planned in plan.collectors}


def test_by_default_all_but_the_applications_are_asked() -> None:
    plan = plan_of()

    assert intervals(plan) == {
        **dict.fromkeys(
            ("cpu", "memory", "disk", "filesystem", "network", "numa", "power", "gpu"), 5.0
        ),
        "ipmi": 30.0,
    }
    assert plan.disabled == ("app",)


@pytest.mark.parametrize(("interval", "expected"), [(0.5, 0.5), (60.0, 60.0), (3600.0, 60.0)])
def test_energy_counters_are_read_before_they_can_go_round_twice(
    interval: float, expected: float
) -> None:
    asked = intervals(plan_of(scrape_interval=interval))

    assert (asked["power"], asked["cpu"]) == (expected, interval)


def test_a_simulated_machine_has_a_meter_unless_power_is_off() -> None:
    assert "chassis" in intervals(plan_of(hardware="simulated:h100x1"))
    assert "chassis" not in intervals(plan_of(hardware="simulated:h100x1", enable_power=False))
    assert "chassis" not in intervals(plan_of())
