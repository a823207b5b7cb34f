"""Which machines never trade, by their configuration."""

from dataclasses import replace
from pathlib import Path

import pytest

from esnode.config import Config
from esnode.plan import Hardware
from esnode.power_parts import make_powering
from esnode.powering.means import Hardwareless

SIMULATED = Config(hardware="simulated:h100x2")


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        pytest.param(SIMULATED, "", id="a simulated machine trades"),
        pytest.param(
            replace(SIMULATED, power_control="observe"),
            "power_control = observe: nothing is written to the hardware",
            id="observe",
        ),
        pytest.param(
            replace(SIMULATED, power_control="off"),
            "power_control = off: nothing is written to the hardware",
            id="off",
        ),
        pytest.param(
            replace(SIMULATED, enable_gpu=False),
            "enable_gpu is off: no device is opened",
            id="without GPUs",
        ),
    ],
)
def test_why_a_machine_never_trades(tmp_path: Path, config: Config, reason: str) -> None:
    powering = make_powering(config, Hardware(config, {}), tmp_path, lambda line: None)

    assert powering.static_reason == reason
    assert powering.means.terms.is_observing == (config.power_control != "enforce")
    assert isinstance(powering.hardware, Hardwareless) == (not config.enable_gpu)
    assert list(tmp_path.iterdir()) == []


def test_the_operators_figures_reach_the_parts(tmp_path: Path) -> None:
    config = replace(
        SIMULATED,
        power_settle=3.5,
        power_priority=2,
        power_limit_watts=4000.0,
        power_rest_watts=900.0,
    )

    powering = make_powering(config, Hardware(config, {}), tmp_path, lambda line: None)

    terms = powering.means.terms
    assert (terms.settle_seconds, terms.priority, terms.limit_watts) == (3.5, 2, 4000)
    assert not isinstance(powering.hardware, Hardwareless)
    assert powering.hardware.devices.chassis.rest_watts == 900
