"""Beginnings that stories of the gossip share, and one whole story to be run in its own process."""

import sys

from cluster.gossip.effects import Status
from simulations import faults
from simulations.fleet import Fleet
from simulations.sightings import AllSee, changes_to


def joined(count: int, *, seed: int = 1, rack_size: int = 10) -> Fleet:
    """A cluster that came together by a mass join and has come to rest."""
    fleet = Fleet(count, seed=seed, rack_size=rack_size)
    fleet.start_all()
    fleet.run_for(5.0)
    assert AllSee(fleet, fleet.nodes)()
    return fleet


def run_eventful(seed: int) -> str:
    """Join, loss, a crash, a pause: the digest of all that was sent and decided."""
    fleet = joined(12, seed=seed, rack_size=4)
    fleet.network.change(loss_ratio=0.1, duplicate_ratio=0.1)
    faults.crash(fleet.nodes[3], is_host_up=False)
    faults.pause(fleet.nodes[5])
    fleet.run_for(4.0)
    faults.resume(fleet, fleet.nodes[5])
    fleet.run_for(6.0)
    assert changes_to(fleet, Status.FAILED)
    return fleet.world.trace_digest


if __name__ == "__main__":
    print(run_eventful(int(sys.argv[1])))
