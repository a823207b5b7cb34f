"""The papers that are kept, as they came: about whom each is, and who vouches for whom.

Its own file because finding what to give somebody is another matter than judging who is in
(`roster`). Whatever is kept here has been judged before. It must not know what a paper says.
"""

from collections.abc import Iterable

from cluster.ids import NodeId
from cluster.papers import mark_of


class Dossiers:
    """Encoded papers by node."""

    def __init__(self) -> None:
        self._papers: dict[bytes, bytes] = {}
        """By mark."""
        self._of_node: dict[NodeId, list[bytes]] = {}
        self._admitters: dict[NodeId, list[NodeId]] = {}
        self._records: list[bytes] = []
        """Marks, as those of each node are."""

    def has(self, encoded: bytes) -> bool:
        """Whether this very paper is kept."""
        return mark_of(encoded) in self._papers

    def lacking(self, marks: Iterable[bytes]) -> tuple[bytes, ...]:
        """Those of somebody else's marks that stand for nothing here."""
        return tuple(mark for mark in marks if mark not in self._papers)

    def by_marks(self, marks: Iterable[bytes]) -> tuple[bytes, ...]:
        """The papers that these marks stand for, as far as they are kept."""
        wanted = frozenset(marks)
        kept = (*self._records, *(mark for marks in self._of_node.values() for mark in marks))
        return tuple(self._papers[mark] for mark in kept if mark in wanted)

    def marks(self) -> tuple[bytes, ...]:
        """What stands for each of them."""
        return tuple(self._papers)

    def keep_chain(self, node_id: NodeId, encoded: bytes) -> None:
        """Certificates of a node."""
        self._keep(self._of_node.setdefault(node_id, []), encoded)

    def keep_admission(self, node_id: NodeId, admitted_by: NodeId, encoded: bytes) -> None:
        """Somebody's word that a node may come."""
        self._keep(self._of_node.setdefault(node_id, []), encoded)
        self._admitters.setdefault(node_id, []).append(admitted_by)

    def keep_record(self, encoded: bytes) -> None:
        """What an operator said."""
        self._keep(self._records, encoded)

    def records(self, marks: Iterable[bytes] = ()) -> tuple[bytes, ...]:
        """Operators' records, for somebody who has those of `marks`."""
        return self._lacking(self._records, marks)

    def about(self, node_ids: Iterable[NodeId], marks: Iterable[bytes] = ()) -> tuple[bytes, ...]:
        """Papers of these nodes and of whoever admitted them, up to a founder; theirs come first.

        Of everybody, if nobody is named.
        """
        wanted = self._with_admitters(node_ids) or dict.fromkeys(self._of_node)
        kept = [mark for node_id in wanted for mark in self._of_node.get(node_id, ())]
        return self._lacking(kept, marks)

    def _keep(self, place: list[bytes], encoded: bytes) -> None:
        mark = mark_of(encoded)
        self._papers[mark] = encoded
        place.append(mark)

    def _lacking(self, kept: Iterable[bytes], marks: Iterable[bytes]) -> tuple[bytes, ...]:
        has = frozenset(marks)
        return tuple(self._papers[mark] for mark in kept if mark not in has)

    def _with_admitters(self, node_ids: Iterable[NodeId]) -> dict[NodeId, None]:
        found: dict[NodeId, None] = {}
        waiting = list(node_ids)
        while waiting:
            node_id = waiting.pop(0)
            if node_id not in found:
                found[node_id] = None
                waiting.extend(self._admitters.get(node_id, ()))
        return found
