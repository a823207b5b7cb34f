"""What a node knows of its cluster while its part in it does not run: keys and papers on disk.

Its own file because a machine that holds watts keeps its cap by its own books, whether or not a
port can be bound. It stands where a host would for whoever governs the machine: it knows who signed
what, and neither hears nor sends. It must not know why no host runs.
"""

from dataclasses import dataclass
from pathlib import Path

from cluster.assembly import make_roster
from cluster.credentials import load_node
from cluster.durable import DurableFailed
from cluster.enrolment import NodeKeys
from cluster.errors import PeerFault
from cluster.identity.files import IdentityUnusable, node_folder
from cluster.keeping import Keeping
from cluster.roster import Roster


@dataclass(frozen=True, slots=True, kw_only=True)
class LonePeer:
    """A peer that nobody hears."""

    roster: Roster


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """The place of a host."""

    keys: NodeKeys
    peer: LonePeer


def open_alone(state_folder: Path) -> Alone | None:
    """Read them; None where this machine has no identity, or what is there is unusable. Blocks."""
    try:
        keys = load_node(node_folder(state_folder))
        roster = make_roster(keys, Keeping(state_folder).read_papers())
    except (IdentityUnusable, DurableFailed, PeerFault):
        return None
    return Alone(keys=keys, peer=LonePeer(roster=roster))
