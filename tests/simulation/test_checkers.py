"""A checker that cannot fail checks nothing: each is shown what it is there for."""

from collections.abc import Callable

import pytest

from cluster.gossip.effects import MemberChanged, Send, Status
from cluster.gossip.messages import Address, Kind, Version
from cluster.signatures import KeyedHashKeyring
from simulations import faults
from simulations.checkers import Checkers
from simulations.fleet import Fleet
from simulations.forgery import datagram, forged, member_record, statement
from simulations.node import Node


class Trusting:
    """A verifier that believes everybody: the core of whoever has it is broken."""

    def verify(self, *, public_key: bytes, signature: bytes, message: bytes) -> bool:
        return True


def watched(count: int = 6, *, is_trusting: bool = False) -> tuple[Fleet, Checkers]:
    fleet = Fleet(count, rack_size=3)
    if is_trusting:
        fleet.verifier = Trusting()
    checkers = Checkers(fleet)
    fleet.begin_old()
    fleet.run_for(2.0)
    assert checkers.violations == []
    return fleet, checkers


def said(checkers: Checkers) -> str:
    return "; ".join(f"{one.node}: {one.what}" for one in checkers.violations)


def test_a_datagram_that_is_too_large_is_noticed() -> None:
    fleet, checkers = watched()

    fleet.do(fleet.nodes[1], [Send(to=fleet.nodes[2].address, datagram=bytes(1401))])

    assert "n001: sent 1401 bytes in one datagram to 10.0.0.2:7947" in said(checkers)


def test_a_healthy_member_that_is_given_up_is_noticed_and_one_that_is_not_well_is_not() -> None:
    fleet, checkers = watched()
    observer, well, ill = fleet.nodes[1:4]
    checkers.excuse(ill)

    for subject in (well, ill):
        change = MemberChanged(
            node_id=subject.node_id, before=Status.SUSPECT, after=Status.FAILED, reason="a whim"
        )
        fleet.do(observer, [change])

    assert said(checkers) == "n001: gave up n002, which is well and can be reached: a whim"


def test_one_that_is_cut_off_may_be_given_up_by_those_who_cannot_reach_it() -> None:
    fleet, checkers = watched()

    faults.cut_off(fleet, [fleet.nodes[2]])
    fleet.run_for(20.0)

    assert fleet.nodes[1].knows_of(fleet.nodes[2].node_id) is Status.FAILED
    assert checkers.violations == []


def raised_by_another(victim: Node, liar: Node) -> bytes:
    lie = member_record(victim, Version(epoch=9, sequence=9), signer=liar.signer)
    return datagram([forged(lie, victim.node_id)], liar.node_id)


def moved_by_another(victim: Node, liar: Node) -> bytes:
    elsewhere = (Address("10.6.6.6:7947"),)
    # The version is one that the victim has signed: its address is what is false.
    version = Version(epoch=1, sequence=2)
    member_record(victim, version)
    lie = member_record(victim, version, addresses=elsewhere, signer=liar.signer)
    return datagram([forged(lie, victim.node_id)], liar.node_id)


def state_by_another(victim: Node, liar: Node) -> bytes:
    lie = statement(Kind.STATE, Version(epoch=1, sequence=999), (b"0 W",), liar.signer)
    return datagram([forged(lie, victim.node_id)], liar.node_id)


@pytest.mark.parametrize(
    ("make_lie", "complaint"),
    [
        pytest.param(raised_by_another, "whose key said at most", id="a-raised-version"),
        pytest.param(moved_by_another, "which its key never said", id="a-false-address"),
        pytest.param(state_by_another, "that its key never signed", id="a-false-state"),
    ],
)
def test_what_a_broken_core_believes_of_others_is_noticed(
    make_lie: Callable[[Node, Node], bytes], complaint: str
) -> None:
    fleet, checkers = watched(is_trusting=True)
    observer, victim, liar = fleet.nodes[3:6]

    fleet.inject(observer, make_lie(victim, liar))
    fleet.run_for(1.5)

    assert complaint in said(checkers)


def test_a_removed_member_that_is_still_shown_is_noticed() -> None:
    fleet, checkers = watched()
    observer, removed = fleet.nodes[1:3]

    for tell in fleet.hooks.removed:
        tell(observer, removed.node_id)
    fleet.run_for(0.9)
    early = list(checkers.violations)
    fleet.run_for(0.2)

    assert early == []
    assert said(checkers) == "n001: shows n002 as alive, which was removed"


def peers(count: int = 5) -> tuple[Fleet, Checkers]:
    fleet = Fleet(count, has_papers=True)
    checkers = Checkers(fleet)
    fleet.begin_old(fleet.nodes[:-2])
    fleet.run_for(2.0)
    assert checkers.violations == []
    return fleet, checkers


def test_more_members_than_an_invite_was_for_are_noticed() -> None:
    fleet, checkers = peers()
    assert fleet.office is not None
    invite = fleet.office.invite(fleet.nodes[0].introduction.rack, uses=2)
    # Certificates say two, the office meant one: to it the cores that count to two are broken.
    fleet.office.uses[invite.serial] = 1

    for node in fleet.nodes[-2:]:
        fleet.enrol(node, invite)
        fleet.start(node, fleet.nodes[:1])
    fleet.run_for(3.0)

    assert "n000: has let 2 in by an invite for 1" in said(checkers)


def test_a_member_for_whom_no_operator_has_spoken_is_noticed() -> None:
    fleet, checkers = peers()
    assert fleet.office is not None
    invite = fleet.office.invite(fleet.nodes[0].introduction.rack)
    fleet.office.unapproved[invite.serial] = None

    fleet.enrol(fleet.nodes[-1], invite)
    fleet.start(fleet.nodes[-1], fleet.nodes[:1])
    fleet.run_for(2.0)

    assert "n000: has let n004 in, for whom no operator has spoken" in said(checkers)


def test_one_that_may_not_be_let_in_and_is_shown_is_noticed() -> None:
    fleet, checkers = peers()
    stranger = fleet.nodes[-1]

    checkers.bar(stranger)
    fleet.start(stranger, fleet.nodes[:1])
    fleet.run_for(2.0)

    assert "n000: shows n004, which may not be in: joined" in said(checkers)
    checkers.unbar(stranger)
    before = checkers.violations_total
    checkers.check_all()
    assert checkers.violations_total == before


def test_a_witness_remembers_what_was_signed_and_by_whom() -> None:
    fleet = Fleet(2)
    node, other = fleet.nodes
    keyring = KeyedHashKeyring()
    stranger = keyring.new_signer(fleet.world.chance("stranger").randbytes)

    member_record(node, Version(epoch=1, sequence=4))
    member_record(other, Version(epoch=7, sequence=1), signer=stranger)

    assert fleet.witness.newest(node.node_id) == Version(epoch=1, sequence=4)
    assert fleet.witness.newest(other.node_id) is None
