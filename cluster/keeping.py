"""What a node keeps of its cluster on disk, and what it begins with after a restart.

Its own file because the order is a promise: the epoch of a new life is on disk before anything is
sent, and what is believed after a restart is never older than what was believed before it. Three
files in the state folder beside `identity/`: `epoch`, `operator.log`, `roster.log`, and `heads`,
which is rewritten now and then. It must not know gossip's rules, nor run beside a second of itself.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cluster.codec import decode_document, encode_document
from cluster.durable import DurableFailed, EpochFile, RecordLog
from cluster.errors import Malformed
from cluster.gossip.effects import Head
from cluster.gossip.messages import Address, Version
from cluster.identity.operator_records import SignedRecord
from cluster.ids import NodeId
from cluster.papers import Paper, decode_papers, encode_paper

EPOCH = "epoch"
OPERATOR_LOG = "operator.log"
ROSTER_LOG = "roster.log"
HEADS = "heads"
_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What the life before this one left."""

    epoch: int
    """Of this life: raised, and on disk."""
    heads: Mapping[NodeId, Head] = field(repr=False)
    addresses: Mapping[NodeId, Address] = field(repr=False)
    """Where members were; worth a try when no seed answers."""
    papers: tuple[Paper, ...] = field(repr=False)
    notes: tuple[str, ...] = ()
    """What was found damaged, for people."""


class Keeping:
    """The files of one node."""

    def __init__(self, folder: Path) -> None:
        self._epoch = EpochFile(folder / EPOCH)
        self._operators = RecordLog(folder / OPERATOR_LOG, "operator-log")
        self._roster = RecordLog(folder / ROSTER_LOG, "roster")
        self._heads = RecordLog(folder / HEADS, "heads")

    def begin(self, own: NodeId) -> Remembered:
        """Read everything, and begin a new life.

        Raises:
            DurableFailed: something cannot be read, or the epoch cannot be written. Nothing may be
                sent then.
        """
        notes: list[str] = []
        records = self._load(self._operators, notes)
        papers = self._load(self._roster, notes)
        heads, addresses = _read_heads(self._load(self._heads, notes))
        if self._epoch.is_damaged():
            notes.append(f"{self._epoch.path}: is damaged; peers will say how far this node was")
        last = heads.get(own)
        epoch = max(self._epoch.read(), 0 if last is None else last.member.epoch) + 1
        self._epoch.write(epoch)
        return Remembered(
            epoch=epoch,
            heads={node_id: head for node_id, head in heads.items() if node_id != own},
            addresses={node_id: at for node_id, at in addresses.items() if node_id != own},
            papers=decode_papers((*records, *papers)),
            notes=tuple(notes),
        )

    def read_papers(self) -> tuple[Paper, ...]:
        """What is known of the cluster, for a node that says nothing: no new life begins.

        Raises:
            DurableFailed: something cannot be read.
        """
        notes: list[str] = []
        return decode_papers(
            (*self._load(self._operators, notes), *self._load(self._roster, notes))
        )

    def keep_epoch(self, epoch: int) -> None:
        """Write down the number of our life.

        Raises:
            DurableFailed: the disk refuses; nothing may be sent under it.
        """
        self._epoch.write(epoch)

    def keep_papers(self, papers: Iterable[Paper]) -> None:
        """Add papers.

        Raises:
            DurableFailed: the disk refuses; hand them in again.
        """
        known = list(papers)
        self._operators.append(encode_paper(one) for one in known if isinstance(one, SignedRecord))
        self._roster.append(encode_paper(one) for one in known if not isinstance(one, SignedRecord))

    def keep_heads(self, heads: Iterable[Head], addresses: Mapping[NodeId, Address]) -> None:
        """How far everybody is, and where.

        Raises:
            DurableFailed: the disk refuses; what was kept before still stands.
        """
        self._heads.replace(_encode_head(head, addresses.get(head.node_id)) for head in heads)

    def _load(self, log: RecordLog, notes: list[str]) -> tuple[bytes, ...]:
        kept = log.load()
        if kept.cut_bytes:
            notes.append(f"{log.path}: cut a damaged end of {kept.cut_bytes} bytes, kept as .cut")
        return kept.records


def forget(folder: Path) -> None:
    """Remove what was kept of a cluster that this machine is no longer in.

    Raises:
        DurableFailed: a file cannot be removed.
    """
    for name in (EPOCH, OPERATOR_LOG, ROSTER_LOG, HEADS):
        path = folder / name
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise DurableFailed(f"{path}: {error.strerror or 'cannot be removed'}") from None


def _encode_head(head: Head, address: Address | None) -> bytes:
    return encode_document(
        (
            _FORMAT,
            bytes(head.node_id),
            head.member.epoch,
            head.member.sequence,
            head.state.epoch,
            head.state.sequence,
            address,
        )
    )


def _read_heads(
    records: Iterable[bytes],
) -> tuple[dict[NodeId, Head], dict[NodeId, Address]]:
    heads: dict[NodeId, Head] = {}
    addresses: dict[NodeId, Address] = {}
    for record in records:
        try:
            match decode_document(record) if record else ():
                case (1, bytes() as id_, int() as me, int() as ms, int() as se, int() as ss, *rest):
                    node_id = NodeId.from_wire(id_)
                    heads[node_id] = Head(
                        node_id=node_id,
                        member=Version(epoch=me, sequence=ms),
                        state=Version(epoch=se, sequence=ss),
                    )
                    if rest and isinstance(rest[0], str):
                        addresses[node_id] = Address(rest[0])
                case _:
                    continue
        except Malformed:
            continue
    return heads, addresses
