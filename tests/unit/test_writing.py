"""The task that puts what a node learned on disk, while the disk may refuse."""

from pathlib import Path

import trio
import trio.testing

from cluster.ids import NodeId
from cluster.keeping import OPERATOR_LOG, ROSTER_LOG, Keeping
from cluster.papers import Paper, decode_papers
from cluster.writing import Writing
from tests.rosters import Club


def papers() -> tuple[Paper, ...]:
    club = Club()
    club.roster.learn([club.introduce_operator()])
    return decode_papers(club.roster.give(()))


async def test_what_one_file_has_taken_is_not_written_again_because_the_other_refuses(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    keeping = Keeping(tmp_path)
    (tmp_path / ROSTER_LOG).mkdir()
    lines: list[str] = []
    writing = Writing(keeping, lines.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(writing.run)
        writing.keep_papers(papers())
        assert ROSTER_LOG in str(await writing.kept())
        size = (tmp_path / OPERATOR_LOG).stat().st_size

        await trio.sleep(60)
        nursery.cancel_scope.cancel()

    assert (tmp_path / OPERATOR_LOG).stat().st_size == size
    assert len(lines) == 1


async def test_kept_means_on_disk(tmp_path: Path) -> None:
    writing = Writing(Keeping(tmp_path), lambda _: None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(writing.run)
        writing.keep_papers(papers())

        trouble = await writing.kept()

        assert trouble is None
        remembered = Keeping(tmp_path).begin(NodeId(bytes(16)))
        assert len(remembered.papers) == len(papers())
        nursery.cancel_scope.cancel()
