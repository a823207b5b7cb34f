"""Small worlds of three ledgers, in every order: nothing is broken, and what is wrong is found."""

from dataclasses import replace

import pytest

from cluster.rack.ledger.ledger import Ledger
from simulations.power.explorer import PLANS, Explorer
from simulations.power.mistakes import EagerLedger, HastyLedger
from simulations.power.small_world import Gift, Plan

ONE_TRANSFER = Plan(
    name="one",
    summary="one transfer, one death, perhaps a reboot",
    gifts=(Gift(giver=0, to=1, shares=10**8),),
    crashes=1,
    reboots=1,
)


@pytest.mark.parametrize(
    ("plan", "states_min"),
    [
        pytest.param(ONE_TRANSFER, 500, id="a transfer with a death"),
        pytest.param(replace(PLANS["transfer"], crashes=0), 500, id="two transfers"),
        pytest.param(replace(PLANS["retire-two"], crashes=0), 5000, id="two ranks"),
    ],
)
def test_no_order_of_events_breaks_a_promise(plan: Plan, states_min: int) -> None:
    found = Explorer(plan).explore()

    assert found.violations == ()
    assert found.is_complete
    assert found.states_total >= states_min


@pytest.mark.parametrize("name", PLANS)
def test_the_first_states_of_each_plan_break_nothing(name: str) -> None:
    found = Explorer(PLANS[name]).explore(1000)

    assert found.violations == ()
    assert found.states_total == 1000


@pytest.mark.parametrize(
    ("make", "words"),
    [
        pytest.param(EagerLedger, "W in force", id="granting before lowering"),
        pytest.param(HastyLedger, "shares too many", id="sending before keeping"),
    ],
)
def test_a_mistake_is_found_with_the_way_to_it(make: type[Ledger], words: str) -> None:
    found = Explorer(ONE_TRANSFER, make=make).explore()

    what, events = found.violations[0]
    assert words in what
    assert "give" in [name for name, _, _ in events]
