"""What can happen to a machine: its process dies, stops, is back; its disk is old or copied.

Its own file so that a story reads as a list of misfortunes. It must not know what anybody should
make of them.
"""

import math
from collections.abc import Iterable

from cluster.gossip.messages import Address
from simulations.fleet import Fleet
from simulations.node import Clock, Node


def crash(node: Node, *, is_host_up: bool) -> None:
    """The process is gone; its machine refuses what comes for it, or is silent."""
    node.end()
    node.is_host_up = is_host_up


def pause(node: Node) -> None:
    """The process stops, as by SIGSTOP; the kernel keeps what comes, as far as there is room."""
    node.is_paused = True


def resume(fleet: Fleet, node: Node) -> None:
    """The process goes on."""
    node.is_paused = False
    fleet.serve(node)
    fleet.wake(node)


def restart(fleet: Fleet, node: Node, *, is_host_up: bool = True) -> None:
    """The process is gone and back at once, with what its disk holds."""
    crash(node, is_host_up=is_host_up)
    fleet.start(node)


def set_disk_back(node: Node) -> None:
    """Its disk is that of a new machine, but for its key; a restart follows."""
    node.epoch, node.heads, node.papers = 0, {}, []


def move(fleet: Fleet, node: Node, address: Address) -> None:
    """A running node at a new address; what goes to the old one is lost."""
    del fleet.by_address[node.address]
    node.address = address
    fleet.by_address[address] = node
    fleet.ask(node, lambda core, now: core.move((address,), now))


def slow(fleet: Fleet, node: Node, work_seconds: tuple[float, float]) -> None:
    """From now on each datagram takes a node so long; nothing is done meanwhile."""
    node.work_seconds = work_seconds
    node.work_chance = fleet.world.chance(f"work of {node.number}")


def speed_up(fleet: Fleet, node: Node) -> None:
    """A slow machine is itself again."""
    node.work_chance = None
    node.is_serving = False
    node.busy_until_seconds = -math.inf
    fleet.serve(node)
    fleet.wake(node)


def cut_off(fleet: Fleet, nodes: Iterable[Node], *, side: int = 1) -> None:
    """These reach only each other, and nobody else them."""
    for node in nodes:
        fleet.network.put(node.address, side)
    fleet.network.cut(0, side)


def clone(fleet: Fleet, node: Node, address: Address) -> Node:
    """A second machine from a copy of a disk: the same key, the same epoch, another address."""
    twin = Node(
        number=len(fleet.nodes),
        signer=node.signer,
        introduction=node.introduction,
        address=address,
        clock=Clock(),
        epoch=node.epoch - 1,
        heads=dict(node.heads),
        papers=list(node.papers),
        enrolment=node.enrolment,
        known=dict(node.known),
        seeds=node.seeds,
    )
    fleet.nodes.append(twin)
    fleet.by_address[address] = twin
    return twin
