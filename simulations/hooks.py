"""Who is told of what happens in a fleet.

Its own file because checkers, stories and tests hang themselves in here, and the fleet knows none
of them. Whoever is told must change nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from cluster.gossip.effects import MemberChanged
from cluster.gossip.messages import Address
from cluster.ids import NodeId
from simulations.node import Node


@dataclass(slots=True)
class Hooks:
    """By what has happened."""

    sent: list[Callable[[Node, Address, bytes], None]] = field(default_factory=list)
    """A node has sent this."""
    changed: list[Callable[[Node, MemberChanged], None]] = field(default_factory=list)
    """A member is something else to a node."""
    removed: list[Callable[[Node, NodeId], None]] = field(default_factory=list)
    """An operator's record that removes somebody is at a node."""
    learned: list[Callable[[Node], None]] = field(default_factory=list)
    """A node has papers that it did not have."""
    stepped: list[Callable[[Node], None]] = field(default_factory=list)
    """A node has been handed something, and all that followed is done."""
