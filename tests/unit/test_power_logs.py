"""Ledgers on disk: what a start finds, what a disk may do, and that nothing is taken back."""

from pathlib import Path

import pytest
import trio

from cluster.durable import RecordLog
from cluster.identity.files import node_folder
from cluster.ids import NodeId
from cluster.rack.ledger.book import Entry, MemberAdded, Opened, Started
from cluster.rack.ledger.book_wire import encode_entry
from cluster.rack.units import FIRST_EPOCH, SHARES_TOTAL, BudgetVersion, CurrencyId
from esnode.powering import logs as logs_module
from esnode.powering.logs import KIND, MARK, Ledgers, LedgerUnusable, PowerLogs
from tests.hosts import until

OWN, OTHER = NodeId(bytes(range(16))), NodeId(bytes(range(1, 17)))
RACK, FEED = CurrencyId("rack:r01"), CurrencyId("feed/a")
OPENED = Opened(
    epoch=FIRST_EPOCH,
    members=(OWN, OTHER),
    own_shares=SHARES_TOTAL,
    version=BudgetVersion(sequence=2, watts=5000),
)


class Disk:
    """A state folder, and what was said about it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        node_folder(folder).mkdir(mode=0o700, exist_ok=True)
        self.said: list[str] = []
        self.kept: list[tuple[CurrencyId, int]] = []
        self.logs = PowerLogs(folder, self.said.append)

    @property
    def path(self) -> Path:
        return self.folder / "power" / "ledger-rack:r01.log"

    def begin(self, own: NodeId = OWN, *named: CurrencyId) -> Ledgers:
        return self.logs.begin(own, RACK, frozenset(named))

    def note(self, currency: CurrencyId, number: int) -> None:
        self.kept.append((currency, number))

    async def write(self, *entries: Entry, currency: CurrencyId = RACK) -> None:
        wanted = len(self.kept) + len(entries)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.logs.run, OWN, self.note)
            for number, entry in enumerate(entries, 1):
                self.logs.keep(currency, number, entry)
            await until(lambda: len(self.kept) >= wanted)
            nursery.cancel_scope.cancel()


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def test_the_first_start_begins_an_empty_ledger_and_marks_the_key(disk: Disk) -> None:
    ledgers = disk.begin()

    assert not ledgers.is_lost
    assert ledgers.books[RACK].is_blank
    assert disk.path.stat().st_mode & 0o777 == 0o600
    assert (node_folder(disk.folder) / MARK).exists()


async def test_a_machine_may_hold_watts_from_the_opening_of_its_account_on(disk: Disk) -> None:
    assert not disk.logs.holds_any()
    disk.begin()
    await disk.write(Started(incarnation=1))
    assert not disk.logs.holds_any()

    await disk.write(OPENED)

    assert Disk(disk.folder).logs.holds_any()


def test_a_ledger_that_cannot_be_read_may_hold_watts(disk: Disk) -> None:
    disk.begin()
    disk.path.write_bytes(b"esnode power-ledger 2\nwhatever")

    assert disk.logs.holds_any()


async def test_what_was_written_is_there_after_a_start(disk: Disk) -> None:
    disk.begin()
    await disk.write(Started(incarnation=1), OPENED)
    await disk.write(Started(incarnation=1), currency=FEED)

    again = Disk(disk.folder).begin()

    assert disk.kept == [(RACK, 1), (RACK, 2), (FEED, 1)]
    assert again.books[RACK].own_shares == SHARES_TOTAL
    assert again.books[FEED].incarnation == 1
    assert again.notes == ()


@pytest.mark.parametrize(
    "named",
    [
        pytest.param((), id="by the mark beside the key"),
        pytest.param((RACK,), id="by an operator's record that gives it shares"),
    ],
)
def test_a_ledger_that_is_gone_is_lost_and_not_begun_anew(
    disk: Disk, named: tuple[CurrencyId, ...]
) -> None:
    disk.begin()
    disk.path.unlink()
    if named:
        (node_folder(disk.folder) / MARK).unlink()

    again = Disk(disk.folder).begin(OWN, *named)

    assert again.is_lost
    assert RACK not in again.books


def test_the_ledger_of_another_key_is_set_aside(disk: Disk) -> None:
    disk.begin(OTHER)

    ledgers = disk.begin(OWN)

    assert ledgers.is_lost  # the key bears the mark, and its own ledger is not there
    assert disk.path.with_name(f"{disk.path.name}.{OTHER.short}").exists()
    assert "is that of another key" in ledgers.notes[0]


async def test_a_torn_end_is_cut_and_told(disk: Disk) -> None:
    disk.begin()
    await disk.write(Started(incarnation=1), OPENED)
    with disk.path.open("ab") as file:
        file.write(b"\0\0\0\x10torn")

    again = Disk(disk.folder).begin()

    assert again.books[RACK].own_shares == SHARES_TOTAL
    assert "cut a damaged end of 8 bytes" in again.notes[0]


async def test_a_ledger_that_rots_within_is_left_alone_and_holds_nothing(disk: Disk) -> None:
    disk.begin()
    await disk.write(Started(incarnation=1), OPENED, MemberAdded(node_id=OTHER))
    rotten = bytearray(disk.path.read_bytes())
    rotten[rotten.index(encode_entry(OPENED)) + 3] ^= 1
    disk.path.write_bytes(rotten)

    with pytest.raises(LedgerUnusable, match="whole records follow: this node holds nothing"):
        Disk(disk.folder).begin()

    assert Disk(disk.folder).logs.holds_any()
    assert disk.path.read_bytes() == rotten
    assert not list(disk.path.parent.glob("*.cut"))


async def test_a_torn_end_is_told_also_if_somebody_has_looked_into_the_log_before(
    disk: Disk,
) -> None:
    disk.begin()
    await disk.write(Started(incarnation=1), OPENED)
    with disk.path.open("ab") as file:
        file.write(b"\0\0\0\x10torn")
    later = Disk(disk.folder)

    holds_any = later.logs.holds_any()
    first, second = later.begin(), later.begin()

    assert holds_any
    assert ["cut a damaged end of 8 bytes" in note for note in first.notes] == [True]
    assert second.notes == ()


@pytest.mark.parametrize(
    ("records", "line"),
    [
        pytest.param(
            [encode_entry(OPENED), encode_entry(OPENED)], "contradicts itself", id="twice opened"
        ),
        pytest.param(
            [b"\x93\x02\xa1x\x01"], "contradicts itself", id="an entry of a later version"
        ),
    ],
)
def test_a_log_that_cannot_be_believed_is_left_alone(
    disk: Disk, records: list[bytes], line: str
) -> None:
    disk.begin()
    file = RecordLog(disk.path, KIND)
    file.load()
    file.append(records)
    before = disk.path.read_bytes()

    with pytest.raises(LedgerUnusable, match=line) as caught:
        Disk(disk.folder).begin()

    assert "\n" not in str(caught.value)
    assert disk.path.read_bytes() == before


def test_a_log_of_a_later_version_is_refused_in_a_line(disk: Disk) -> None:
    disk.begin()
    disk.path.write_bytes(b"esnode power-ledger 2\nwhatever")

    with pytest.raises(LedgerUnusable, match="later version"):
        disk.begin()


async def test_a_disk_that_refuses_is_tried_again_and_told_once(disk: Disk) -> None:
    disk.begin()
    aside = disk.path.with_name("aside")
    disk.path.rename(aside)
    disk.path.mkdir()  # nothing can be written there

    async with trio.open_nursery() as nursery:
        nursery.start_soon(disk.logs.run, OWN, disk.note)
        disk.logs.keep(RACK, 1, Started(incarnation=1))
        await until(lambda: disk.logs.trouble is not None)
        disk.logs.keep(RACK, 2, OPENED)
        await trio.sleep(0.7)  # one more try
        assert disk.kept == []
        assert disk.logs.waiting_count == 2
        disk.path.rmdir()
        aside.rename(disk.path)
        await until(lambda: len(disk.kept) == 2)
        nursery.cancel_scope.cancel()

    assert len(disk.said) == 1
    assert disk.logs.trouble is None
    assert Disk(disk.folder).begin().books[RACK].own_shares == SHARES_TOTAL


async def test_a_long_log_is_put_together_into_one_entry(disk: Disk) -> None:
    disk.begin()
    many = [MemberAdded(node_id=OTHER) for _ in range(logs_module.COMPACT_ENTRIES + 1)]
    await disk.write(Started(incarnation=1), OPENED, *many)
    before = disk.path.stat().st_size

    book = Disk(disk.folder).begin().books[RACK]

    assert disk.path.stat().st_size < before / 10
    assert Disk(disk.folder).begin().books[RACK] == book
    assert book.own_shares == SHARES_TOTAL
