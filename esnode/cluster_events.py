"""What happened in the cluster, as this agent saw it: the last thousand events, and who follows.

Its own file because events outlive the effects that they were made of, and because a slow reader
must not hold up gossip: it is handed what it missed, as far as that is kept. It must not know how
an event is shown.
"""

from collections import deque
from collections.abc import Callable, Sequence

import trio

from cluster.gossip.effects import Equivocated, MemberChanged, Paused
from cluster.ids import NodeId
from cluster.peer import Alarm, Effect, OperatorSpoke, Withdrawn
from esnode.operator_text import record_line
from esnode.status.gpu import Document
from esnode.status.times import utc_text

KEPT_EVENTS = 1000


class ClusterEvents:
    """The events of one life of the agent."""

    def __init__(self, unix_clock: Callable[[], float]) -> None:
        self._unix_clock = unix_clock
        self._events: deque[Document] = deque(maxlen=KEPT_EVENTS)
        self._number = int(unix_clock() * 1000)
        """Counts on from the time, so that whoever follows through a restart misses nothing."""
        self._changed = trio.Event()
        self.is_closed = False

    def hear(self, effect: Effect, name_of: Callable[[NodeId], str]) -> Document | None:
        """Make an event of an effect, if it is one for people."""
        match effect:
            case MemberChanged(node_id=node_id, before=before, after=after, reason=reason):
                return self.add(
                    "member",
                    name_of(node_id),
                    subject_id=node_id,
                    before=None if before is None else str(before),
                    after=str(after),
                    reason=reason,
                )
            case Equivocated(node_id=node_id):
                reason = "said two things under one number; its figures are not used"
                name = name_of(node_id)
                return self.add("equivocation", name, subject_id=node_id, reason=reason)
            case Paused(pause_seconds=seconds):
                reason = f"this node did not run for {seconds:.1f} s; it accuses nobody for a while"
                return self.add("pause", "self", reason=reason)
            case OperatorSpoke(record=record):
                return self.add("operator", "cluster", reason=record_line(record))
            case Withdrawn(reason=reason):
                return self.add("self", "self", after="removed", reason=reason)
            case Alarm(line=line):
                return self.add("alarm", "cluster", reason=line)
            case _:
                return None

    def add(
        self,
        kind: str,
        subject: str,
        *,
        subject_id: NodeId | None = None,
        before: str | None = None,
        after: str | None = None,
        reason: str = "",
    ) -> Document:
        """One more event; whoever waits is woken."""
        self._number += 1
        event: Document = {
            "id": self._number,
            "at": utc_text(self._unix_clock()),
            "kind": kind,
            "subject": subject,
            "subject_id": None if subject_id is None else subject_id.hex(),
            "before": before,
            "after": after,
            "reason": reason,
        }
        self._events.append(event)
        changed, self._changed = self._changed, trio.Event()
        changed.set()
        return event

    def after(self, number: int) -> Sequence[Document]:
        """Those kept after this one; all of them for one from a clock that was set back."""
        if number > self._number:
            number = 0
        return [event for event in self._events if int(str(event["id"])) > number]

    async def newer(self, number: int) -> Sequence[Document]:
        """The same, waiting for one; empty when the agent is going."""
        while not self.is_closed:
            events = self.after(number)
            if events:
                return events
            await self._changed.wait()
        return []

    def close(self) -> None:
        """End all waiting: the agent is going."""
        self.is_closed = True
        self._changed.set()
