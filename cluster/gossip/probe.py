"""One question to one member, and one that is asked for somebody else.

Its own file because a round is where evidence comes from: whom it asked, since when, who helped,
what came back. It decides nothing. It must not know members or messages.
"""

from dataclasses import dataclass, field

from cluster.gossip.messages import Address, Version
from cluster.ids import NodeId


@dataclass(slots=True, kw_only=True)
class Round:
    """A probe of ours. Asked directly, then again and through helpers, then judged."""

    target: NodeId
    version: Version
    """Of the target when it was asked: silence says nothing about a later one."""
    address: Address
    nonce: int
    began_seconds: float
    again_seconds: float
    ends_seconds: float
    is_again: bool = False
    """Helpers have been asked."""
    is_refused: bool = False
    helpers: dict[NodeId, None] = field(default_factory=dict)
    nacks: dict[NodeId, None] = field(default_factory=dict)

    @property
    def due_seconds(self) -> float:
        """When something has to be done about it."""
        return self.ends_seconds if self.is_again else self.again_seconds


@dataclass(slots=True, kw_only=True)
class Favour:
    """A probe for somebody else, with that one's nonce."""

    asker: NodeId
    reply_to: Address
    target: NodeId
    address: Address
    nack_seconds: float


@dataclass(slots=True, kw_only=True)
class Errand:
    """A ping whose silence proves nothing: to one who is given up, or when we leave."""

    target: NodeId
    sent_seconds: float
