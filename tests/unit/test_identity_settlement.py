"""What the admissions of several members amount to, whoever gathers them."""

from dataclasses import replace

import pytest

from cluster.identity.admission import (
    Admissions,
    sign_admission,
)
from cluster.identity.refusals import Rule
from cluster.identity.settlement import settle
from tests.identities import DAY, NOW, R02
from tests.identity_admissions import FOUNDED, FOUNDER, LAB, admit, flags, invites, names


def test_uses_exceeded_by_two_members_at_once_go_to_the_earliest() -> None:
    invite = LAB.invite(uses=2)
    other_invite = LAB.invite()
    other = LAB.join(other_invite, "gpu-09")
    one, two, three = (LAB.join(invite, f"gpu-1{number}") for number in range(3))
    records = (
        FOUNDED,
        admit(other, by=FOUNDER, at=NOW + 1),
        admit(one, by=FOUNDER, at=NOW + 30),
        admit(two, by=other, at=NOW + 20),
        admit(three, by=other, at=NOW + 40, uses=2),
    )

    settlement = settle(Admissions().merge(records), invites=invites(invite, other_invite))

    assert names(settlement) == ["gpu-01", "gpu-09", "gpu-11", "gpu-10"]
    assert flags(settlement) == [("gpu-12", Rule.USES_SPENT)]
    assert settlement.uses[invite.rights.serial] == 2


def test_two_admissions_of_one_second_are_ordered_by_id() -> None:
    invite = LAB.invite(uses=1)
    nodes = [LAB.join(invite, f"gpu-1{number}") for number in range(4)]
    records = [admit(node, by=FOUNDER) for node in nodes]

    settlement = settle(Admissions().merge((FOUNDED, *records)), invites=invites(invite))

    smallest = min(nodes, key=lambda node: node.identity.node_id)
    assert smallest.identity.node_id in settlement.by_node
    assert len(settlement.flagged) == 3


def test_an_operator_s_approval_lifts_a_flag_and_pushes_nobody_out() -> None:
    invite = LAB.invite(uses=1)
    first, second = LAB.join(invite, "gpu-10"), LAB.join(invite, "gpu-11")
    records = (FOUNDED, admit(first, by=FOUNDER, at=NOW + 5), admit(second, by=FOUNDER, at=NOW + 9))
    word = frozenset({(second.identity.node_id, invite.rights.serial)})

    before = settle(Admissions().merge(records), invites=invites(invite))
    after = settle(Admissions().merge(records), invites=invites(invite), approved=word)

    assert flags(before) == [("gpu-11", Rule.USES_SPENT)]
    assert names(after) == ["gpu-01", "gpu-10", "gpu-11"]
    assert flags(after) == []


@pytest.mark.parametrize(
    ("at", "rule"),
    [
        pytest.param(NOW + DAY + 1, Rule.ADMISSION_ENDED, id="too-late"),
        pytest.param(NOW - DAY, Rule.LIFETIME, id="before-the-invite"),
    ],
)
def test_an_admission_outside_of_the_invite_s_time_is_flagged(at: int, rule: Rule) -> None:
    invite = LAB.invite()
    node = LAB.join(invite, "gpu-10")

    settlement = settle(
        Admissions().merge((FOUNDED, admit(node, by=FOUNDER, at=at))), invites=invites(invite)
    )

    assert flags(settlement) == [("gpu-10", rule)]


def test_whoever_was_never_let_in_lets_nobody_in() -> None:
    invite = LAB.invite()
    thief, friend = LAB.join(invite, "gpu-10"), LAB.join(invite, "gpu-11")
    records = (FOUNDED, admit(thief, by=thief), admit(friend, by=thief))

    settlement = settle(Admissions().merge(records), invites=invites(invite))

    assert names(settlement) == ["gpu-01"]
    assert sorted(flags(settlement)) == [
        ("gpu-10", Rule.SELF_ADMISSION),
        ("gpu-11", Rule.UNKNOWN_ADMITTER),
    ]


def test_a_node_that_two_members_admit_takes_one_use() -> None:
    invite, other_invite = LAB.invite(uses=1), LAB.invite()
    other, node = LAB.join(other_invite, "gpu-09"), LAB.join(invite, "gpu-10")
    records = (
        FOUNDED,
        admit(other, by=FOUNDER, at=NOW + 1),
        admit(node, by=FOUNDER, at=NOW + 5),
        admit(node, by=other, at=NOW + 6),
    )

    settlement = settle(Admissions().merge(records), invites=invites(invite, other_invite))

    assert names(settlement) == ["gpu-01", "gpu-09", "gpu-10"]
    assert settlement.uses[invite.rights.serial] == 1
    assert flags(settlement) == []


def test_a_stranger_s_earlier_record_takes_nothing_from_a_member() -> None:
    invite = LAB.invite()
    member, thief = LAB.join(invite, "gpu-10"), LAB.join(invite, "gpu-11")
    records = (
        FOUNDED,
        admit(member, by=FOUNDER, at=NOW + 5),
        admit(member, by=thief, at=NOW),
    )

    settlement = settle(Admissions().merge(records), invites=invites(invite))

    assert names(settlement) == ["gpu-01", "gpu-10"]
    assert flags(settlement) == []


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        pytest.param({"invite_serial": 999}, Rule.NOT_ADMITTED, id="unknown-invite"),
        pytest.param({"rack": R02}, Rule.RACK, id="other-rack"),
    ],
)
def test_an_admission_that_its_invite_does_not_cover_is_flagged(
    change: dict[str, object], rule: Rule
) -> None:
    invite = LAB.invite()
    node = LAB.join(invite, "gpu-10")
    record = replace(admit(node, by=FOUNDER).record, **change)

    settlement = settle(
        Admissions().merge((FOUNDED, sign_admission(record, FOUNDER.signer))),
        invites=invites(invite),
    )

    assert flags(settlement) == [("gpu-10", rule)]


def test_approval_invites_stand_only_with_the_operator_s_word() -> None:
    invite = LAB.invite(needs_approval=True)
    node = LAB.join(invite, "gpu-10")
    admissions = Admissions().merge((FOUNDED, admit(node, by=FOUNDER, at=NOW + 1)))
    word = frozenset({(node.identity.node_id, invite.rights.serial)})

    without = settle(admissions, invites=invites(invite))
    with_it = settle(admissions, invites=invites(invite), approved=word)

    assert flags(without) == [("gpu-10", Rule.AWAITS_APPROVAL)]
    assert names(with_it) == ["gpu-01", "gpu-10"]


def test_a_reimaged_node_is_two_keys_of_one_name() -> None:
    invite = LAB.invite()
    before, after = LAB.join(invite, "gpu-10"), LAB.join(invite, "gpu-10")
    records = (FOUNDED, admit(after, by=FOUNDER, at=NOW + 9), admit(before, by=FOUNDER, at=NOW + 1))

    settlement = settle(Admissions().merge(records), invites=invites(invite))

    assert settlement.shared_names() == {
        "gpu-10": (before.identity.node_id, after.identity.node_id)
    }
    word = frozenset({(before.identity.name, before.identity.node_id)})
    assert settlement.shared_names(forgotten=word) == {}


def test_a_node_that_comes_by_a_fresh_invite_keeps_its_id() -> None:
    invite, fresh = LAB.invite(uses=1), LAB.invite(uses=1)
    node = LAB.join(invite, "gpu-10")
    records = (
        FOUNDED,
        admit(node, by=FOUNDER, at=NOW + 1),
        admit(node, by=FOUNDER, at=NOW + 9, invite=fresh.rights.serial),
    )

    settlement = settle(Admissions().merge(records), invites=invites(invite, fresh))

    assert names(settlement) == ["gpu-01", "gpu-10", "gpu-10"]
    latest = settlement.by_node[node.identity.node_id]
    assert latest.invite_serial == fresh.rights.serial
    assert settlement.shared_names() == {}
