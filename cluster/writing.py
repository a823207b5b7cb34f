"""The task that writes what a peer wants kept, beside everything else that the node does.

Its own file because a disk may be slow, full or stuck, and gossip must go on. Papers and heads wait
for the disk; what it refuses is tried again. A new epoch is different: nothing may be sent before
it is on disk, so until then the node is mute, and gossip repairs later what was lost.
"""

from collections.abc import Callable, Iterable, Mapping

import trio

from cluster.durable import DurableFailed
from cluster.gossip.effects import Head
from cluster.gossip.messages import Address
from cluster.identity.operator_records import SignedRecord
from cluster.ids import NodeId
from cluster.keeping import Keeping
from cluster.papers import Paper

RETRY_SECONDS = 5.0
PAPERS_MAX = 100_000
"""That wait for the disk; further ones are fetched from peers again after a restart."""


class Writing:
    """What is to be kept of one node."""

    def __init__(self, keeping: Keeping, complain: Callable[[str], None]) -> None:
        """`complain` is told once, in a line, when the disk begins to refuse."""
        self._keeping = keeping
        self._complain = complain
        self._records: list[Paper] = []
        """Of operators. Apart from other papers, as they lie in a file of their own: what one file
        has taken is not written again because the other refused."""
        self._papers: list[Paper] = []
        self._heads: tuple[tuple[Head, ...], Mapping[NodeId, Address]] | None = None
        self._epoch: int | None = None
        self._has_work = trio.Event()
        self._has_tried = trio.Event()
        self.trouble: str | None = None
        """Why something could not be kept, in one line, while that is so."""

    @property
    def is_mute(self) -> bool:
        """Whether nothing may be sent, since a new epoch is not on disk yet."""
        return self._epoch is not None

    def keep_papers(self, papers: Iterable[Paper]) -> None:
        """Add these."""
        for paper in papers:
            waiting = self._records if isinstance(paper, SignedRecord) else self._papers
            if len(waiting) < PAPERS_MAX:
                waiting.append(paper)
        self._has_work.set()

    async def kept(self) -> str | None:
        """Wait until the papers that were handed in are on disk; why not, if the disk refuses."""
        while self._records or self._papers:
            if self.trouble is not None:
                return self.trouble
            await self._has_tried.wait()
        return None

    def keep_heads(self, heads: tuple[Head, ...], addresses: Mapping[NodeId, Address]) -> None:
        """Put these in the place of those before."""
        self._heads = heads, addresses
        self._has_work.set()

    def keep_epoch(self, epoch: int) -> None:
        """Raise the number of this life; the node is mute until that is done."""
        self._epoch = epoch
        self._has_work.set()

    async def run(self) -> None:
        """Write as it comes, until cancelled."""
        while True:
            await self._has_work.wait()
            self._has_work = trio.Event()
            try:
                await trio.to_thread.run_sync(self._write, abandon_on_cancel=True)
                self.trouble = None
            except DurableFailed as error:
                if self.trouble is None:
                    self._complain(str(error))
                self.trouble = str(error)
                self._tell_tried()
                await trio.sleep(RETRY_SECONDS)
                self._has_work.set()
            self._tell_tried()

    def _tell_tried(self) -> None:
        tried, self._has_tried = self._has_tried, trio.Event()
        tried.set()

    def _write(self) -> None:
        """In a thread; each of the three is taken back only once it is on disk."""
        epoch = self._epoch
        if epoch is not None:
            self._keeping.keep_epoch(epoch)
            if self._epoch == epoch:
                self._epoch = None
        for waiting in (self._records, self._papers):
            papers = list(waiting)
            self._keeping.keep_papers(papers)
            del waiting[: len(papers)]
        heads = self._heads
        if heads is not None:
            self._keeping.keep_heads(*heads)
            if self._heads is heads:
                self._heads = None
