"""A node in a word."""

import pytest

from cluster.rack.actuator import ActuatorView
from esnode.powering.known import parked_reason


@pytest.mark.parametrize(
    ("wanted_watts", "floor_watts", "reason"),
    [
        pytest.param(0, 1200, "", id="it idles at its floor"),
        pytest.param(0, 1000, "", id="its floor is the lowest that it keeps"),
        pytest.param(300, 800, "", id="its shares make up for a low floor"),
        pytest.param(
            150, 800, "its cap of 950 W is below 1000 W, the lowest that its machine keeps",
            id="it cannot be given its minimum",
        ),
        pytest.param(None, 800, "", id="nobody has said what it may draw"),
    ],
)  # fmt: skip
def test_a_node_is_parked_when_its_machine_cannot_be_held_to_its_cap(
    wanted_watts: int | None, floor_watts: int, reason: str
) -> None:
    actuator = ActuatorView(
        wanted_watts=wanted_watts,
        in_force_watts=None,
        bound_watts=None,
        is_gate_open=False,
        is_refusing=False,
        is_settled=False,
    )

    assert parked_reason(actuator, floor_watts=floor_watts, lowest_watts=1000) == reason
