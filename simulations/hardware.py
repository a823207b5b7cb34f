"""The machines of a fleet before anything runs on them: names, racks, addresses, keys and clocks.

Its own file because it is done once, and by chance of its own. It must not know what will run.
"""

import random
from collections.abc import Callable

from cluster.gossip.introduction import Introduction
from cluster.gossip.messages import Address
from cluster.ids import NodeId, NodeName, RackId
from cluster.signatures import Signer
from simulations.node import Clock, Node

_MILLION = 1_000_000
_OFFSET_SECONDS_MAX = 1e6
"""Machines have been up for so long, at most, when a run begins."""


def make_nodes(
    count: int,
    *,
    rack_size: int,
    new_signer: Callable[[], Signer],
    hardware: random.Random,
    drift_ppm: float,
) -> list[Node]:
    """So many machines, rack by rack."""
    return [
        _make_node(number, rack_size, new_signer(), _clock(hardware, drift_ppm))
        for number in range(count)
    ]


def _make_node(number: int, rack_size: int, signer: Signer, clock: Clock) -> Node:
    introduction = Introduction(
        node_id=NodeId.of_public_key(signer.public_key),
        public_key=signer.public_key,
        name=NodeName(f"n{number:03}"),
        rack=RackId(f"r{number // rack_size:02}"),
    )
    address = Address(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}:7947")
    return Node(number, signer, introduction, address, clock)


def _clock(hardware: random.Random, drift_ppm: float) -> Clock:
    if not drift_ppm:
        return Clock()
    return Clock(
        rate_ratio=1.0 + hardware.uniform(-drift_ppm, drift_ppm) / _MILLION,
        offset_seconds=hardware.uniform(0.0, _OFFSET_SECONDS_MAX),
    )
