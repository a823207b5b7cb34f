"""What comes in from the network.

Its own file because drivers and simulations make these. It must not know what becomes of them.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from cluster.gossip.messages import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Datagram:
    """Bytes that came from an address."""

    source: Address
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The machine at an address says that nobody listens there (ICMP port unreachable)."""

    address: Address


Input: TypeAlias = Datagram | Refused
