"""Time takes roles away and raises alarms; only an operator's word makes a node a stranger."""

import pytest

from cluster.identity.refusals import Rule
from cluster.identity.standing import (
    Revocations,
    Validity,
    check_revocation,
    judge_standing,
    judge_validity,
)
from cluster.ids import NodeId
from tests.identities import DAY, HOUR, NOW, Lab

LAB = Lab()
NODE = LAB.join(LAB.invite(lifetime_days=100), "gpu-17").identity
BEGIN, END = NODE.window.begin_unix_seconds, NODE.window.end_unix_seconds


def test_the_window_is_the_invite_s_and_begins_an_hour_ago() -> None:
    assert (BEGIN, END) == (NOW - HOUR, NOW + 100 * DAY)


@pytest.mark.parametrize(
    ("now", "validity", "roles", "alarm"),
    [
        pytest.param(
            BEGIN - 1,
            Validity.NOT_YET,
            (),
            "certificate of gpu-17 in rack r01 has not begun, it has no roles yet; "
            "compare the clocks",
            id="before",
        ),
        pytest.param(BEGIN, Validity.CURRENT, ("power", "work"), None, id="first-second"),
        pytest.param(END - 30 * DAY, Validity.CURRENT, ("power", "work"), None, id="30-days-left"),
        pytest.param(
            END - 30 * DAY + 1,
            Validity.ENDING,
            ("power", "work"),
            "certificate of gpu-17 in rack r01 ends in 29 days; `esnode cluster renew` on it",
            id="less-than-30-days-left",
        ),
        pytest.param(
            END,
            Validity.ENDING,
            ("power", "work"),
            "certificate of gpu-17 in rack r01 ends in 0 days; `esnode cluster renew` on it",
            id="last-second",
        ),
        pytest.param(
            END + 1,
            Validity.ENDED,
            (),
            "certificate of gpu-17 in rack r01 has ended, it has no roles left; "
            "`esnode cluster renew` on it",
            id="after",
        ),
    ],
)
def test_roles_are_in_force_while_the_certificate_is(
    now: int, validity: Validity, roles: tuple[str, ...], alarm: str | None
) -> None:
    standing = judge_standing(NODE, now)

    assert (standing.validity, standing.roles, standing.alarm) == (validity, roles, alarm)
    assert judge_validity(NODE.window, now) is validity


@pytest.mark.parametrize(
    ("revocations", "rule"),
    [
        pytest.param(Revocations(), None, id="nothing"),
        pytest.param(Revocations(node_ids=frozenset({NODE.node_id})), Rule.REVOKED, id="key"),
        pytest.param(Revocations(serials=frozenset({NODE.serial})), Rule.REVOKED, id="certificate"),
        pytest.param(
            Revocations(removals=frozenset({(NODE.node_id, NODE.serial)})),
            Rule.REMOVED,
            id="removed",
        ),
        pytest.param(
            Revocations(removals=frozenset({(NODE.node_id, 1)})),
            None,
            id="removed-with-an-older-certificate",
        ),
        pytest.param(
            Revocations(serials=frozenset({NODE.rights.serial})), None, id="its-invite-alone"
        ),
        pytest.param(
            Revocations(node_ids=frozenset({NodeId(b"x" * 16)}), serials=frozenset({1})),
            None,
            id="others",
        ),
    ],
)
def test_what_operators_withdraw_is_refused(revocations: Revocations, rule: Rule | None) -> None:
    refused = check_revocation(NODE, revocations)

    assert (refused.rule if refused else None) is rule
