"""Stories in which the first version of the gossip did worse than it does now."""

import pytest

from cluster.gossip.effects import Status
from cluster.gossip.messages import Address
from simulations import faults
from simulations.fleet import Fleet
from simulations.network import CUT
from simulations.sightings import AllSee, changes_to, status_of, view_of
from tests.gossip_stories import joined


@pytest.mark.parametrize("seed", range(1, 7))
def test_whoever_joins_knows_at_once_who_has_failed_before(seed: int) -> None:
    fleet = Fleet(12, seed=seed)
    late, dead = fleet.nodes[11], fleet.nodes[4]
    for node in fleet.nodes[:11]:
        fleet.start(node, [] if node.number == 0 else [fleet.nodes[0]])
    fleet.run_for(3.0)
    faults.crash(dead, is_host_up=False)
    fleet.run_for(10.0)

    fleet.start(late, [fleet.nodes[0]])
    known = fleet.run_for(0.5, until=lambda: late.knows_of(dead.node_id) is Status.FAILED)

    assert known


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_all_give_a_silent_node_up_at_nearly_the_same_moment(seed: int) -> None:
    fleet = joined(30, seed=seed)

    faults.crash(fleet.nodes[7], is_host_up=False)
    fleet.run_for(9.0)

    moments = [when for when, _, _ in changes_to(fleet, Status.FAILED)]
    assert len(moments) == 29
    assert moments[-1] - moments[0] <= 0.2


@pytest.mark.parametrize("seed", [1, 2])
def test_a_fifth_that_dies_at_once_is_given_up_by_all_within_nine_seconds(seed: int) -> None:
    fleet = Fleet(50, seed=seed)
    fleet.begin_old()
    fleet.run_for(3.0)

    began = fleet.now
    for node in fleet.nodes[10:20]:
        faults.crash(node, is_host_up=False)
    fleet.run_for(9.0)

    moments = [when - began for when, _, _ in changes_to(fleet, Status.FAILED)]
    assert len(moments) == 40 * 10
    assert min(moments) >= 5.5


def test_two_machines_with_one_key_outdo_each_other_ever_more_slowly() -> None:
    fleet = joined(8)
    original = fleet.nodes[3]
    twin = faults.clone(fleet, original, Address("10.99.0.1:7947"))

    fleet.start(twin, [fleet.nodes[0]])
    fleet.run_for(60.0)

    assert max(original.epoch, twin.epoch) <= 16
    others = [node for node in fleet.nodes if node not in (original, twin)]
    assert {status_of(fleet, node, original) for node in others} == {Status.DEGRADED}
    assert any(one.node_id == original.node_id for one in original.told.equivocated)
    given_up = {node_id for _, node, node_id in changes_to(fleet, Status.FAILED) if node in others}
    assert given_up <= {original.node_id}


def test_who_was_accused_by_one_that_nobody_could_hear_is_told_of_it_afterwards() -> None:
    fleet = joined(10)
    mute = fleet.nodes[4]
    fleet.network.put(mute.address, 1)
    fleet.network.lead(1, 0, CUT)
    fleet.run_for(20.0)
    before = {status_of(fleet, mute, node) for node in fleet.nodes if node is not mute}

    fleet.network.heal()
    healed = fleet.run_for(6.0, until=AllSee(fleet, fleet.nodes))

    assert Status.SUSPECT in before or Status.FAILED in before
    assert healed


def test_a_half_that_is_gone_makes_nobody_believe_that_it_is_unwell_itself() -> None:
    fleet = joined(20)

    faults.cut_off(fleet, fleet.nodes[10:])
    fleet.run_for(16.0)

    scores = [view_of(fleet, node).health_score for node in fleet.nodes]
    assert max(scores) <= 2


def test_one_that_restarts_again_and_again_looks_degraded() -> None:
    fleet = joined(6)
    node = fleet.nodes[2]

    for _ in range(4):
        faults.restart(fleet, node)
        fleet.run_for(2.0)

    assert status_of(fleet, fleet.nodes[0], node) is Status.DEGRADED
    assert changes_to(fleet, Status.FAILED) == []


@pytest.mark.parametrize("is_old", [False, True], ids=["joined", "old"])
def test_who_was_removed_is_shown_for_a_while_and_then_forgotten(is_old: bool) -> None:
    fleet = Fleet(4)
    if is_old:
        fleet.begin_old()
    else:
        fleet.start_all()
    fleet.run_for(5.0)
    removed, observer = fleet.nodes[2], fleet.nodes[1]
    record = b"an operator's record"
    fleet.removals[record] = removed.node_id

    fleet.obey(observer, record)
    fleet.run_for(60.0)
    shown = status_of(fleet, observer, removed)
    fleet.run_for(600.0)
    forgotten = status_of(fleet, observer, removed)
    fleet.ask(observer, lambda core, now: core.readmit(removed.introduction, now))
    back = fleet.run_for(10.0, until=lambda: observer.sees(removed.node_id))

    assert shown is Status.REMOVED
    assert forgotten is None
    assert back
    assert len(view_of(fleet, observer).members) == 3
