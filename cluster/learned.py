"""What became different when a roster saw new papers: values for gossip, for the disk, for people.

Its own file because `roster` makes it and `peer` obeys it. It must not know how either is done.
"""

from dataclasses import dataclass

from cluster.gossip.members import Introduction
from cluster.identity.operator_records import SignedRecord
from cluster.ids import NodeId
from cluster.papers import Paper


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What is different now."""

    introduced: tuple[Introduction, ...] = ()
    excluded: tuple[tuple[NodeId, str], ...] = ()
    readmitted: tuple[Introduction, ...] = ()
    papers: tuple[Paper, ...] = ()
    """New ones, to be kept on disk."""
    records: tuple[SignedRecord, ...] = ()
    """Operators' records that stand and are new: to be passed on and obeyed."""
    alarms: tuple[str, ...] = ()

    def joined(self, other: "Learned") -> "Learned":
        """Both, this one first."""
        return Learned(
            introduced=(*self.introduced, *other.introduced),
            excluded=(*self.excluded, *other.excluded),
            readmitted=(*self.readmitted, *other.readmitted),
            papers=(*self.papers, *other.papers),
            records=(*self.records, *other.records),
            alarms=(*self.alarms, *other.alarms),
        )


NOTHING = Learned()
