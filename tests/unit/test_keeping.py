"""What a node begins with after a restart."""

from pathlib import Path

import pytest

from cluster.durable import DurableFailed
from cluster.gossip.effects import Head
from cluster.gossip.messages import Address, Version
from cluster.identity.operator_records import NodeRevoked
from cluster.ids import NodeId
from cluster.keeping import EPOCH, HEADS, ROSTER_LOG, Keeping, forget
from cluster.papers import decode_papers
from tests.rosters import Club

OWN = NodeId(b"o" * 16)
OTHER = NodeId(b"x" * 16)


def head(node_id: NodeId, epoch: int) -> Head:
    return Head(
        node_id=node_id,
        member=Version(epoch=epoch, sequence=3),
        state=Version(epoch=epoch, sequence=77),
    )


def test_each_life_has_a_higher_epoch(tmp_path: Path) -> None:
    assert [Keeping(tmp_path).begin(OWN).epoch for _ in range(3)] == [1, 2, 3]


def test_what_was_kept_comes_back(tmp_path: Path) -> None:
    club = Club()
    club.admit(club.newcomer("n2"))
    club.roster.learn([club.introduce_operator()])
    club.roster.learn([club.say(NodeRevoked(node_id=OTHER))])
    papers = decode_papers(club.roster.give(()))
    keeping = Keeping(tmp_path)
    keeping.begin(OWN)

    keeping.keep_papers(papers)
    keeping.keep_heads([head(OTHER, 4), head(OWN, 1)], {OTHER: Address("10.0.0.2:7947")})
    remembered = Keeping(tmp_path).begin(OWN)

    assert sorted(map(repr, remembered.papers)) == sorted(map(repr, papers))
    assert remembered.heads == {OTHER: head(OTHER, 4)}
    assert remembered.addresses == {OTHER: "10.0.0.2:7947"}
    assert remembered.notes == ()


def test_a_lost_epoch_goes_on_from_what_the_heads_remember(tmp_path: Path) -> None:
    keeping = Keeping(tmp_path)
    keeping.begin(OWN)
    keeping.keep_heads([head(OWN, 41)], {})
    (tmp_path / EPOCH).write_bytes(b"\0" * 128)

    remembered = Keeping(tmp_path).begin(OWN)

    assert remembered.epoch == 42
    assert any("damaged" in note for note in remembered.notes)


def test_a_damaged_end_of_the_roster_is_told_and_the_rest_is_used(tmp_path: Path) -> None:
    club = Club()
    club.admit(club.newcomer("n2"))
    keeping = Keeping(tmp_path)
    keeping.begin(OWN)
    keeping.keep_papers(decode_papers(club.roster.give(())))
    path = tmp_path / ROSTER_LOG
    path.write_bytes(path.read_bytes()[:-5])

    remembered = Keeping(tmp_path).begin(OWN)

    assert len(remembered.papers) == 3
    assert any("cut a damaged end" in note for note in remembered.notes)


def test_without_an_epoch_on_disk_nothing_begins(tmp_path: Path) -> None:
    (tmp_path / EPOCH).mkdir()

    with pytest.raises(DurableFailed, match="epoch"):
        Keeping(tmp_path).begin(OWN)


def test_another_cluster_finds_nothing_of_the_one_before(tmp_path: Path) -> None:
    keeping = Keeping(tmp_path)
    keeping.begin(OWN)
    keeping.keep_heads([head(OTHER, 4)], {})

    forget(tmp_path)

    assert not (tmp_path / HEADS).exists()
    assert Keeping(tmp_path).begin(OWN).epoch == 1
