"""Fleets of whole peers: certificates, admissions and operators' records go their real ways."""

import random

import pytest

from cluster.errors import Malformed
from cluster.gossip.effects import Status
from cluster.identity.admission import SignedAdmission
from cluster.identity.operator_records import NodeApproved, NodeRemoved, NodeRevoked
from cluster.keyring import Ed25519Signer
from cluster.papers import Chain
from simulations import faults
from simulations.fleet import Fleet
from simulations.keys import Keys
from simulations.node import Node
from simulations.office import Office
from simulations.sightings import AllSee, status_of


def members_of(node: Node) -> list[str]:
    return sorted(one.name for one in node.peer.roster.identities().values())


def names(nodes: list[Node]) -> list[str]:
    return [node.name for node in nodes]


def together(count: int = 6) -> Fleet:
    fleet = Fleet(count, has_papers=True)
    fleet.start_all()
    assert fleet.run_for(5.0, until=AllSee(fleet, fleet.nodes))
    fleet.run_for(2.0)
    return fleet


def test_a_founder_and_whoever_it_lets_in_become_a_cluster() -> None:
    fleet = together()

    admissions = [one for one in fleet.nodes[3].papers if isinstance(one, SignedAdmission)]

    assert [members_of(node) for node in fleet.nodes] == [names(fleet.nodes)] * 6
    assert {one.record.name for one in admissions} == set(names(fleet.nodes))
    assert all(node.told.alarms == [] for node in fleet.nodes)


def test_nodes_without_a_founder_stay_strangers() -> None:
    fleet = Fleet(4, has_papers=True)
    _, *others = fleet.nodes

    for node in others:
        fleet.start(node, others[:1])
    fleet.run_for(10.0)

    assert [members_of(node) for node in others] == [[]] * 3
    assert all(node.statuses == {} for node in others)


def test_a_restart_begins_with_the_papers_on_disk() -> None:
    fleet = together()
    node = fleet.nodes[4]

    faults.restart(fleet, node)

    assert members_of(node) == names(fleet.nodes)
    assert fleet.run_for(3.0, until=AllSee(fleet, fleet.nodes))


def test_a_member_whose_disk_is_a_new_one_needs_no_second_invite() -> None:
    fleet = together()
    node = fleet.nodes[4]

    faults.crash(node, is_host_up=True)
    faults.set_disk_back(node)
    fleet.start(node, fleet.nodes[:1])
    before = members_of(node)
    back = fleet.run_for(5.0, until=AllSee(fleet, fleet.nodes))

    assert before == []
    assert back
    assert members_of(node) == names(fleet.nodes)


def test_an_old_fleet_is_one_that_has_long_let_everybody_in() -> None:
    fleet = Fleet(6, rack_size=3, has_papers=True)

    fleet.begin_old()
    fleet.run_for(3.0)

    assert [members_of(node) for node in fleet.nodes] == [names(fleet.nodes)] * 6
    assert AllSee(fleet, fleet.nodes)()
    assert all(node.told.changes == [] for node in fleet.nodes)


@pytest.mark.parametrize("is_key_revoked", [True, False], ids=["revoked", "removed"])
def test_whom_an_operator_withdraws_is_told_and_ends(is_key_revoked: bool) -> None:
    fleet = together()
    bad, others = fleet.nodes[4], [node for node in fleet.nodes if node.number != 4]
    statement = (
        NodeRevoked(node_id=bad.node_id)
        if is_key_revoked
        else NodeRemoved(node_id=bad.node_id, serial=bad.identity.serial)
    )

    fleet.order(others[2], statement)
    fleet.run_for(2.0)

    assert {status_of(fleet, node, bad) for node in others} == {Status.REMOVED}
    assert bad.withdrawn is not None
    assert not bad.is_running
    assert [len(node.told.records) for node in others] == [1, 2, 2, 2, 2]


def test_who_was_withdrawn_is_so_still_after_all_have_restarted() -> None:
    fleet = together()
    bad, others = fleet.nodes[4], [node for node in fleet.nodes if node.number != 4]
    removed: list[str] = []
    fleet.order(others[2], NodeRevoked(node_id=bad.node_id))
    fleet.run_for(2.0)
    fleet.hooks.removed.append(lambda node, _: removed.append(node.name))

    for node in others:
        faults.crash(node, is_host_up=True)
    for node in others:
        fleet.start(node, others[:1])
    fleet.start(bad, others[:1])
    fleet.run_for(5.0)

    assert set(removed) == set(names(fleet.nodes))
    assert AllSee(fleet, others)()
    assert {node.knows_of(bad.node_id) for node in others} <= {None, Status.REMOVED}


def test_one_that_waits_for_an_operator_is_told_so_and_let_in_by_a_word() -> None:
    fleet = Fleet(4, has_papers=True)
    members, late = fleet.nodes[:3], fleet.nodes[3]
    assert fleet.office is not None
    invite = fleet.office.invite(late.introduction.rack, needs_approval=True)
    fleet.begin_old(members)
    fleet.enrol(late, invite)

    fleet.start(late, members[:1])
    fleet.run_for(5.0)
    before = [members_of(node) for node in members]
    fleet.order(members[1], NodeApproved(node_id=late.node_id, invite_serial=invite.serial))
    came = fleet.run_for(5.0, until=AllSee(fleet, fleet.nodes))

    assert before == [names(members)] * 3
    assert late.told.refusals[0] == "n003: waits for an operator's approval"
    assert came


def test_papers_do_not_pass_a_cut_and_whoever_is_silent_is_waited_for() -> None:
    fleet = Fleet(4, has_papers=True)
    members, late = fleet.nodes[:3], fleet.nodes[3]
    fleet.begin_old(members)
    faults.cut_off(fleet, [late])

    fleet.start(late, members)
    fleet.run_for(12.0)
    before = members_of(late)
    fleet.network.heal()
    came = fleet.run_for(10.0, until=AllSee(fleet, fleet.nodes))

    assert before == []
    assert came


def test_one_verifier_knows_hashed_keys_and_real_ones() -> None:
    keys, chance = Keys(), random.Random(1)
    hashed, real = keys.new_signer(chance.randbytes), Ed25519Signer.generate(chance.randbytes)

    outcomes = [
        keys.verify(public_key=holder.public_key, signature=signer.sign(b"word"), message=b"word")
        for holder in (hashed, real)
        for signer in (hashed, real)
    ]

    assert outcomes == [True, False, False, True]


def test_certificates_that_no_office_has_made_prove_nothing() -> None:
    office = Office(random.Random(1).randbytes)

    with pytest.raises(Malformed, match="not certificates of this cluster"):
        office.judge(Chain(node_der=b"node", issuer_der=b"invite"))
