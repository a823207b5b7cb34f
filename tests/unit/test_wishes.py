"""Which exchanges of papers are begun, and which are not worth it."""

import pytest

from cluster.gossip.messages import Address
from cluster.ids import NodeId
from cluster.peer import Exchange
from cluster.wishes import is_granted_by

ASK = Address("10.0.0.1:7947")
SOMEBODY = NodeId(b"a" * 16)
EVERYTHING = Exchange(ask=ASK)
OF_ONE = Exchange(ask=ASK, node_ids=(SOMEBODY,))
TELLING = Exchange(ask=ASK, offered=(b"a paper",))


@pytest.mark.parametrize(
    ("running", "wish", "is_granted"),
    [
        pytest.param(EVERYTHING, EVERYTHING, True, id="all-that-is-lacking-twice"),
        pytest.param(EVERYTHING, OF_ONE, False, id="somebody-met-since-then"),
        pytest.param(EVERYTHING, TELLING, False, id="something-to-tell"),
        pytest.param(OF_ONE, EVERYTHING, False, id="more-than-is-being-asked"),
    ],
)
def test_a_wish_is_dropped_only_where_what_runs_will_grant_it(
    running: Exchange, wish: Exchange, is_granted: bool
) -> None:
    assert is_granted_by(running, wish) is is_granted
