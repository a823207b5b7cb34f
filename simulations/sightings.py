"""Questions to a fleet: who sees whom as what, since when, and how old what they know is.

Its own file because stories, checkers and tests ask the same. Asking changes nothing.
"""

from collections.abc import Iterable, Iterator

from cluster.gossip.effects import Status
from cluster.gossip.view import GossipView
from cluster.ids import NodeId
from simulations.fleet import Fleet
from simulations.node import Node

HERE = (Status.ALIVE, Status.DEGRADED)


def view_of(fleet: Fleet, node: Node) -> GossipView:
    """All that a running node shows."""
    assert node.gossip is not None, f"{node.name} does not run"
    return node.gossip.view(fleet.local(node))


def status_of(fleet: Fleet, observer: Node, subject: Node) -> Status | None:
    """What one shows for another."""
    member = view_of(fleet, observer).get(subject.node_id)
    return None if member is None else member.status


def sees_all(observer: Node, subjects: Iterable[Node]) -> bool:
    """Whether all of them, itself aside, are alive to it."""
    return all(observer.sees(one.node_id) for one in subjects if one is not observer)


def changes_to(fleet: Fleet, status: Status) -> list[tuple[float, Node, NodeId]]:
    """When which node took whom for this, in the order of time."""
    found = [
        (when, node, change.node_id)
        for node in fleet.nodes
        for when, change in node.told.changes
        if change.after is status
    ]
    return sorted(found, key=lambda one: one[0])


class AllSee:
    """Whether all observers have all subjects for alive; cheap to ask after every event."""

    def __init__(
        self, fleet: Fleet, subjects: Iterable[Node], observers: Iterable[Node] | None = None
    ) -> None:
        self._fleet = fleet
        self._subjects = list(subjects)
        self._observers = self._subjects if observers is None else list(observers)
        self._by_id = {one.node_id: one for one in self._subjects}
        self._changes_total = -1
        self._missing: tuple[Node, Node] | None = None

    def __call__(self) -> bool:
        """Whether it is so now."""
        if self._fleet.changes_total == self._changes_total:
            return False
        self._changes_total = self._fleet.changes_total
        if self._missing is not None and not _is_seen(*self._missing):
            return False
        self._missing = next(self._blind(), None)
        return self._missing is None

    @property
    def missing(self) -> str:
        """The first pair that lacks, in words."""
        pair = next(self._blind(), None)
        if pair is None:
            return "nobody"
        observer, subject = pair
        return f"{subject.name} is {observer.knows_of(subject.node_id)} at {observer.name}"

    def _blind(self) -> Iterator[tuple[Node, Node]]:
        for observer in self._observers:
            for subject in self._doubtful(observer):
                if not _is_seen(observer, subject):
                    yield observer, subject

    def _doubtful(self, observer: Node) -> list[Node]:
        """Those that it may not see: where it began with all of them, those it spoke of since."""
        if observer.core is None or not observer.assumed:
            return self._subjects
        if not all(one in observer.assumed for one in self._by_id):
            return self._subjects
        return [self._by_id[one] for one in observer.statuses if one in self._by_id]


def _is_seen(observer: Node, subject: Node) -> bool:
    return observer is subject or (observer.core is not None and observer.sees(subject.node_id))
