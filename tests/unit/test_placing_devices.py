"""The predecessor's choice of a device."""

from dataclasses import replace
from typing import Any

import pytest

from esnode.placing.devices import Device, Task, choose, score, submit

GPU = Device(
    id="gpu0",
    kind="gpu",
    peak_flops_tflops=100.0,
    mem_gb=80.0,
    power_watts_idle=50.0,
    power_watts_max=250.0,
    current_load=0.0,
)
TASK = Task(id="t", est_flops=1e14, est_bytes=2e9, latency_class="high")


@pytest.mark.parametrize(
    ("task", "device", "expected"),
    [
        pytest.param({}, {}, -1.0 - 0.7 * 90.0 - 0.6, id="one second at 50 + 0.2 * 200 W"),
        pytest.param({"latency_class": "medium"}, {}, -0.7 - 63.0 - 0.6, id="medium latency"),
        pytest.param({"latency_class": "low"}, {}, -0.4 - 63.0 - 0.6, id="low latency"),
        pytest.param(
            {}, {"real_power_watts": 10.0}, -1.0 - 7.0 - 0.6, id="the measured draw is better"
        ),
        pytest.param(
            {},
            {"current_load": 0.5},
            -2.0 - 0.7 * 190.0 * 2.0 - 0.125 - 0.6,
            id="half of it is busy: half as fast, 0.7 of the range",
        ),
        pytest.param({"est_flops": 0.0}, {}, -0.6, id="nothing to compute"),
    ],
)
def test_the_score_is_the_predecessors(
    task: dict[str, Any], device: dict[str, Any], expected: float
) -> None:
    assert score(replace(TASK, **task), replace(GPU, **device)) == pytest.approx(expected)


def test_equal_scores_go_to_the_lowest_id() -> None:
    devices = [replace(GPU, id=name) for name in ("gpu2", "gpu0", "gpu1")]

    chosen = choose(TASK, devices)

    assert chosen is not None
    assert chosen.id == "gpu0"


@pytest.mark.parametrize(
    ("device", "task", "is_thermal_on"),
    [
        pytest.param({"current_load": 0.95}, {}, False, id="too busy"),
        pytest.param({"temperature_celsius": 85.1}, {}, True, id="too hot"),
        pytest.param({}, {"preferred_kinds": ("cpu",)}, False, id="of another kind"),
    ],
)
def test_a_task_that_no_device_takes_is_queued(
    device: dict[str, Any], task: dict[str, Any], is_thermal_on: bool
) -> None:
    devices = [replace(GPU, **device)]

    result = submit(replace(TASK, **task), devices, is_thermal_on=is_thermal_on)

    assert (result.status, result.assigned_device) == ("Queued", None)
    assert result.devices == tuple(devices)


@pytest.mark.parametrize(
    "device",
    [
        pytest.param({"temperature_celsius": 99.0}, id="heat, with thermal management off"),
        pytest.param({"temperature_celsius": None}, id="no sensor"),
    ],
)
def test_heat_forbids_nothing_where_it_is_not_managed_or_not_known(device: dict[str, Any]) -> None:
    is_thermal_on = device["temperature_celsius"] is None

    result = submit(TASK, [replace(GPU, **device)], is_thermal_on=is_thermal_on)

    assert result.assigned_device == "gpu0"


@pytest.mark.parametrize(
    ("est_flops", "load"),
    [pytest.param(3e13, 0.4, id="its share"), pytest.param(1e16, 0.6, id="half at most")],
)
def test_an_assigned_task_adds_to_the_load(est_flops: float, load: float) -> None:
    result = submit(replace(TASK, est_flops=est_flops), [replace(GPU, current_load=0.1)])

    assert result.status == "Assigned"
    assert result.devices[0].current_load == pytest.approx(load)
    assert result.devices[0].assigned_tasks == ("t",)
