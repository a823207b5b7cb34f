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
        self._marks: dict[bytes, None] = {}
        self._of_node: dict[NodeId, list[bytes]] = {}
        self._admitters: dict[NodeId, list[NodeId]] = {}
        self._records: list[bytes] = []

    def has(self, encoded: bytes) -> bool:
        """Whether this very paper is kept."""
        return mark_of(encoded) in self._marks

    def lacking(self, marks: Iterable[bytes]) -> tuple[bytes, ...]:
        """Those of somebody else's marks that stand for nothing here."""
        return tuple(mark for mark in marks if mark not in self._marks)

    def by_marks(self, marks: Iterable[bytes]) -> tuple[bytes, ...]:
        """The papers that these marks stand for, as far as they are kept."""
        wanted = dict.fromkeys(marks)
        kept = (*self._records, *(one for papers in self._of_node.values() for one in papers))
        return tuple(paper for paper in kept if mark_of(paper) in wanted)

    def marks(self) -> tuple[bytes, ...]:
        """What stands for each of them."""
        return tuple(self._marks)

    def keep_chain(self, node_id: NodeId, encoded: bytes) -> None:
        """Certificates of a node."""
        self._keep(node_id, encoded)

    def keep_admission(self, node_id: NodeId, admitted_by: NodeId, encoded: bytes) -> None:
        """Somebody's word that a node may come."""
        self._keep(node_id, encoded)
        self._admitters.setdefault(node_id, []).append(admitted_by)

    def keep_record(self, encoded: bytes) -> None:
        """What an operator said."""
        self._marks[mark_of(encoded)] = None
        self._records.append(encoded)

    def records(self, marks: Iterable[bytes] = ()) -> tuple[bytes, ...]:
        """Operators' records, for somebody who has those of `marks`."""
        return _lacking(self._records, marks)

    def about(self, node_ids: Iterable[NodeId], marks: Iterable[bytes] = ()) -> tuple[bytes, ...]:
        """Papers of these nodes and of whoever admitted them, up to a founder; theirs come first.

        Of everybody, if nobody is named.
        """
        wanted = self._with_admitters(node_ids) or dict.fromkeys(self._of_node)
        papers = [paper for node_id in wanted for paper in self._of_node.get(node_id, ())]
        return _lacking(papers, marks)

    def _keep(self, node_id: NodeId, encoded: bytes) -> None:
        self._marks[mark_of(encoded)] = None
        self._of_node.setdefault(node_id, []).append(encoded)

    def _with_admitters(self, node_ids: Iterable[NodeId]) -> dict[NodeId, None]:
        found: dict[NodeId, None] = {}
        waiting = list(node_ids)
        while waiting:
            node_id = waiting.pop(0)
            if node_id not in found:
                found[node_id] = None
                waiting.extend(self._admitters.get(node_id, ()))
        return found


def _lacking(papers: Iterable[bytes], marks: Iterable[bytes]) -> tuple[bytes, ...]:
    has = dict.fromkeys(marks)
    return tuple(paper for paper in papers if not has or mark_of(paper) not in has)
