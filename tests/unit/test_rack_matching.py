"""Who gives to whom."""

import pytest

from cluster.rack.matching import Transfer, pair
from tests.rack_rows import node


@pytest.mark.parametrize(
    ("donors", "takers", "expected"),
    [
        pytest.param({}, {1: 5}, [], id="nobody gives"),
        pytest.param({1: 5}, {}, [], id="nobody takes"),
        pytest.param({1: 5}, {2: 5}, [(1, 2, 5)], id="one to one"),
        pytest.param({1: 9}, {2: 5}, [(1, 2, 5)], id="the rest stays with the donor"),
        pytest.param({1: 5}, {2: 9}, [(1, 2, 5)], id="the taker stays short"),
        pytest.param(
            {1: 5, 3: 5}, {2: 7, 4: 3}, [(1, 2, 5), (3, 2, 2), (3, 4, 3)], id="side by side"
        ),
        pytest.param(
            {3: 5, 1: 5}, {4: 3, 2: 7}, [(1, 2, 5), (3, 2, 2), (3, 4, 3)], id="in one order"
        ),
        pytest.param({1: 0, 3: 4}, {2: 0, 4: 4}, [(3, 4, 4)], id="nothing is no transfer"),
    ],
)
def test_donors_and_takers_are_paired_as_they_lie_beside_each_other(
    donors: dict[int, int], takers: dict[int, int], expected: list[tuple[int, int, int]]
) -> None:
    transfers = pair(
        {node(n): spare for n, spare in donors.items()},
        {node(n): missing for n, missing in takers.items()},
    )

    assert list(transfers) == [Transfer(node(g), node(t), shares) for g, t, shares in expected]
