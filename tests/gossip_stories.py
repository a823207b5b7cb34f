"""Beginnings that stories of the gossip share, and one whole story to be run in its own process."""

import sys

from cluster.gossip.effects import Status
from tests.gossip_world import World


def joined(count: int, *, seed: int = 1, rack_size: int = 10) -> World:
    """A cluster that came together by a mass join and has come to rest."""
    world = World(count, seed=seed, rack_size=rack_size)
    world.start_all()
    world.run_for(5.0)
    assert world.all_see(world.nodes)
    return world


def run_eventful(seed: int) -> str:
    """Join, loss, a crash, a pause: the digest of all that was sent and decided."""
    world = joined(12, seed=seed, rack_size=4)
    world.loss_ratio = world.duplicate_ratio = 0.1
    world.crash(world.nodes[3], is_host_up=False)
    world.pause(world.nodes[5])
    world.run_for(4.0)
    world.resume(world.nodes[5])
    world.run_for(6.0)
    assert world.changes_to(Status.FAILED)
    return world.trace_digest


if __name__ == "__main__":
    print(run_eventful(int(sys.argv[1])))
