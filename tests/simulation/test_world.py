"""Time, networks and machines of a simulation behave as they say."""

import random

import pytest

from cluster.gossip.effects import Status
from cluster.gossip.envelope import Reason
from cluster.gossip.messages import Address
from simulations import faults
from simulations.fleet import Fleet
from simulations.network import CUT, Network, Way
from simulations.node import SOCKET_BUFFER_COUNT, Clock
from simulations.sightings import AllSee, changes_to, view_of
from simulations.world import World
from tests.gossip_stories import joined

HERE, THERE = Address("10.0.0.1:1"), Address("10.0.0.2:1")


def test_things_happen_in_the_order_of_time_and_of_asking() -> None:
    world = World(1)
    done: list[str] = []

    for when, word in ((2.0, "c"), (1.0, "a"), (1.0, "b"), (9.0, "later")):
        world.at(when, done.append, word)
    world.run_until(5.0)

    assert done == ["a", "b", "c"]
    assert world.now == 5.0


def test_what_is_asked_for_in_the_past_happens_now() -> None:
    world = World(1)
    moments: list[float] = []
    world.run_until(5.0)

    world.at(1.0, lambda: moments.append(world.now))
    world.run_until(6.0)

    assert moments == [5.0]


def test_chance_of_one_concern_is_not_that_of_another_nor_of_another_seed() -> None:
    draws = [
        World(seed).chance(concern).random() for seed, concern in ((1, "a"), (1, "b"), (2, "a"))
    ]

    assert len(set(draws)) == 3
    assert World(1).chance("a").random() == draws[0]


def network() -> Network:
    return Network(random.Random(1))


def arrivals(net: Network, sender: Address, receiver: Address, count: int = 1000) -> list[float]:
    return [delay for _ in range(count) for delay in net.delays(sender, receiver)]


def test_a_cut_in_one_direction_leaves_the_other_open_but_no_stream() -> None:
    net = network()
    net.put(THERE, 1)

    net.lead(0, 1, CUT)

    assert arrivals(net, HERE, THERE) == []
    assert len(arrivals(net, THERE, HERE)) == 1000
    assert not net.is_open(HERE, THERE)
    net.heal()
    assert net.is_open(HERE, THERE)
    assert len(arrivals(net, HERE, THERE)) == 1000


def test_losses_doubles_and_delays_are_as_asked() -> None:
    net = network()

    net.change(loss_ratio=0.25, duplicate_ratio=0.5, delay_seconds=(0.1, 0.2))
    delays = arrivals(net, HERE, THERE, 4000)

    assert len(delays) == pytest.approx(4000 * 1.5 * 0.75, rel=0.05)
    assert 0.1 <= min(delays) < 0.11
    assert 0.19 < max(delays) <= 0.2


def test_some_are_overtaken_by_what_was_sent_later() -> None:
    net = network()

    net.change(overtaken_ratio=0.1)
    late = [delay for delay in arrivals(net, HERE, THERE) if delay > 0.002]

    assert 50 < len(late) < 150
    assert max(late) <= 0.052


def test_one_link_can_be_worse_than_all_others() -> None:
    net = network()

    net.link(HERE, THERE, Way(delay_min_seconds=1.0, delay_max_seconds=1.0))

    assert arrivals(net, HERE, THERE, 1) == [1.0]
    assert arrivals(net, THERE, HERE, 1)[0] < 0.01


def test_a_clock_that_runs_wrong_comes_back_to_the_same_moment() -> None:
    clock = Clock(rate_ratio=1.0001, offset_seconds=12345.0)

    assert clock.local(100.0) == pytest.approx(12445.01)
    assert clock.world(clock.local(100.0)) == pytest.approx(100.0)


def test_a_fleet_whose_clocks_differ_finds_together_and_notices_a_crash() -> None:
    fleet = Fleet(6, drift_ppm=500.0)
    fleet.start_all()
    together = fleet.run_for(3.0, until=AllSee(fleet, fleet.nodes))

    fleet.run_for(2.0)
    faults.crash(fleet.nodes[2], is_host_up=False)
    fleet.run_for(10.0)

    assert together
    assert len({fleet.local(node) for node in fleet.nodes}) == 6
    assert len(changes_to(fleet, Status.FAILED)) == 5


def test_what_comes_for_a_stopped_process_waits_as_far_as_there_is_room() -> None:
    fleet = joined(3)
    node = fleet.nodes[1]
    faults.pause(node)

    for number in range(SOCKET_BUFFER_COUNT + 100):
        fleet.inject(node, bytes([number % 256]) * 60)
    waiting = len(node.inbox)
    faults.resume(fleet, node)

    assert waiting == SOCKET_BUFFER_COUNT
    assert node.dropped_total == 100
    assert node.inbox == node.inbox.__class__()


def test_a_slow_machine_does_one_thing_after_the_other() -> None:
    fleet = joined(3)
    node = fleet.nodes[1]
    faults.slow(fleet, node, (0.1, 0.1))
    done = []

    for _ in range(3):
        fleet.inject(node, bytes(60))
    fleet.run_for(0.05)
    for _ in range(4):
        done.append(node.told.rejected[Reason.FORMAT])
        fleet.run_for(0.1)

    assert done == [0, 1, 2, 3]
    faults.speed_up(fleet, node)
    fleet.run_for(3.0)
    assert AllSee(fleet, fleet.nodes)()


def test_a_fleet_that_begins_old_is_one_that_has_joined() -> None:
    old, new = Fleet(8, rack_size=4), joined(8, rack_size=4)

    old.begin_old()
    old.run_for(5.0)

    for here, there in zip(old.nodes, new.nodes, strict=True):
        one, other = view_of(old, here), view_of(new, there)
        assert one.digest == other.digest
        assert [member.node_id for member in one.members] == [
            member.node_id for member in other.members
        ]
        assert {member.status for member in one.members} == {Status.ALIVE}
        assert [member.state is None for member in one.members] == [
            member.state is None for member in other.members
        ]


def test_of_an_old_fleet_one_that_restarts_comes_back_by_what_others_tell_it() -> None:
    fleet = Fleet(8, rack_size=4)
    fleet.begin_old()
    fleet.run_for(3.0)
    node = fleet.nodes[5]

    faults.restart(fleet, node)
    back = fleet.run_for(3.0, until=AllSee(fleet, fleet.nodes))

    assert back
    assert node.epoch == 2
    assert node.assumed == {}
