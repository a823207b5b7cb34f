"""The power of another rack: what its nodes told, and nothing where they told nothing."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from cluster.ids import RackId
from cluster.rack.model import NodeState
from esnode.status.power_elsewhere import ToldNode, describe_power_elsewhere
from tests.unit.test_power_rack_document import CHARTER, RACK, A, B, row_of

R01 = RackId("r01")
STATE = NodeState(agent_version="0", power_draw_watts=2500.0, power_cap_watts=4000.0)


def told(name: str, row_owner: object = None) -> ToldNode:
    owner = A if row_owner is None else row_owner
    state = replace(STATE, power_rows=((RACK, row_of(owner)),))  # type: ignore[arg-type]  # an id
    return ToldNode(name=name, state=state, age_seconds=0.5)


@pytest.mark.parametrize(
    ("nodes", "grade", "states"),
    [
        pytest.param(
            {A: told("gpu-01"), B: told("gpu-02", B)}, "A", ["enforcing", "enforcing"], id="both"
        ),
        pytest.param({A: told("gpu-01")}, "C", ["enforcing", "missing"], id="one"),
        pytest.param(
            {A: told("gpu-01"), B: told("gpu-02", A)}, "C", ["enforcing", "missing"],
            id="a row of somebody else",
        ),
    ],
)  # fmt: skip
def test_a_rack_is_graded_by_what_its_own_nodes_told(
    nodes: Mapping[Any, ToldNode], grade: str, states: list[str]
) -> None:
    described: Any = describe_power_elsewhere(R01, {RACK: CHARTER}, nodes)

    (currency,) = described["currencies"]
    assert currency["grade"] == grade
    assert [slot["state"] for slot in currency["slots"]][:2] == states


@pytest.mark.parametrize(
    ("charters", "nodes", "is_answered", "is_governed"),
    [
        pytest.param({RACK: CHARTER}, {}, False, True, id="nobody answers"),
        pytest.param({}, {A: told("gpu-01")}, True, False, id="no budget"),
    ],
)
def test_what_nobody_told_is_not_called_unprotected(
    charters: Mapping[Any, Any], nodes: Mapping[Any, ToldNode], is_answered: bool, is_governed: bool
) -> None:
    described = describe_power_elsewhere(R01, charters, nodes)

    assert described["currencies"] == []
    assert (described["is_answered"], described["is_governed"]) == (is_answered, is_governed)
