"""Bytes of the power ledger: what was written is read again, and anything else is refused."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from cluster.codec import encode_document
from cluster.errors import Malformed
from cluster.ids import NodeId
from cluster.rack.ledger.book import (
    Book,
    BudgetTaken,
    Complied,
    Credited,
    Debited,
    Debt,
    Entry,
    Froze,
    Frozen,
    MemberAdded,
    Opened,
    Quarantined,
    Settled,
    Started,
    Summed,
    Switched,
)
from cluster.rack.ledger.book_wire import decode_entry, encode_entry
from cluster.rack.ledger.decrees import KINDS, decode_decree
from cluster.rack.ledger.messages import (
    Excess,
    Grant,
    Message,
    Receipt,
    Told,
    decode_message,
    encode_message,
)
from cluster.rack.rows import Credit, Promise, Row, Wants
from cluster.rack.units import SHARES_TOTAL, BudgetVersion, CurrencyId, Epoch

IDS = st.binary(min_size=16, max_size=16).map(NodeId)
NUMBERS = st.integers(0, 2**40)
SHARES = st.integers(0, SHARES_TOTAL)
EPOCHS = st.builds(Epoch, st.integers(1, 99), st.integers(0, 9))
VERSIONS = st.builds(BudgetVersion, sequence=NUMBERS, watts=st.integers(0, 10**7))
NUMBERS_OF = st.dictionaries(IDS, NUMBERS, max_size=4)
MEMBERS = st.lists(IDS, unique=True, max_size=5).map(tuple)
WANTS = st.builds(
    Wants,
    demand_watts=NUMBERS,
    minimum_watts=NUMBERS,
    maximum_watts=NUMBERS,
    priority=st.integers(0, 3),
    gain_ratio=st.integers(0, 3000).map(lambda parts: parts / 1000),
    gang=st.text("abc", max_size=5),
)
ROWS = st.builds(
    Row,
    node_id=IDS,
    stamp=NUMBERS,
    epoch=EPOCHS,
    shares=SHARES,
    version=VERSIONS,
    wants=WANTS,
    is_refusing=st.booleans(),
    is_frozen=st.booleans(),
    promises=st.lists(st.builds(Promise, to=IDS, sequence=NUMBERS, shares=SHARES), max_size=3).map(
        tuple
    ),
    credits=st.lists(st.builds(Credit, giver=IDS, sequence=NUMBERS), max_size=3).map(tuple),
)
MESSAGES = st.one_of(
    st.builds(Told, row=ROWS, is_urgent=st.booleans()),
    st.builds(Grant, epoch=EPOCHS, sequence=NUMBERS, shares=SHARES, row=ROWS),
    st.builds(Receipt, epoch=EPOCHS, sequence=NUMBERS, row=ROWS),
    st.builds(Excess, stamp=NUMBERS, cut_ppm=NUMBERS),
)
FROZEN = st.builds(Frozen, rank=st.integers(0, 9), digest=st.binary(min_size=16, max_size=16))
BOOKS = st.builds(
    Book,
    node_id=IDS,
    currency=st.just(CurrencyId("rack:r01")),
    incarnation=NUMBERS,
    epoch=st.none() | EPOCHS,
    members=MEMBERS,
    own_shares=SHARES,
    version=VERSIONS,
    complied=VERSIONS,
    outbox=st.dictionaries(IDS, st.builds(Debt, sequence=NUMBERS, shares=SHARES), max_size=3),
    out_sequences=NUMBERS_OF,
    last_in=NUMBERS_OF,
    frozen=st.none() | FROZEN,
    last_statement=st.none() | st.binary(max_size=40),
    quarantine=st.text("abc ", max_size=9),
)
ENTRIES = st.one_of(
    st.builds(Started, incarnation=NUMBERS),
    st.builds(Opened, epoch=EPOCHS, members=MEMBERS, own_shares=SHARES, version=VERSIONS),
    st.builds(Debited, to=IDS, sequence=NUMBERS, shares=SHARES),
    st.builds(Credited, giver=IDS, sequence=NUMBERS, shares=SHARES),
    st.builds(Settled, to=IDS, sequence=NUMBERS),
    st.builds(BudgetTaken, version=VERSIONS),
    st.builds(Complied, version=VERSIONS),
    st.builds(MemberAdded, node_id=IDS),
    st.builds(Froze, frozen=FROZEN),
    st.builds(
        Switched, epoch=EPOCHS, members=MEMBERS, own_shares=SHARES, statement=st.binary(max_size=9)
    ),
    st.builds(Quarantined, reason=st.text("abc", max_size=9)),
    st.builds(Summed, book=BOOKS),
)
_LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=9)
_FLAT = _LEAVES | st.binary(max_size=20) | st.lists(_LEAVES | st.binary(), max_size=4).map(tuple)
VALUES = _FLAT | st.lists(_FLAT, max_size=14).map(tuple)
"""No deeper than any document of ours."""
WORDS = st.sampled_from(
    ["row", "grant", "receipt", "stated", "excess", "opened", "debited", "summed", "switched"]
)


@given(ENTRIES)
def test_an_entry_comes_back_from_disk(entry: Entry) -> None:
    assert decode_entry(encode_entry(entry)) == entry


@given(MESSAGES)
def test_a_message_comes_back_from_the_wire(message: Message) -> None:
    currency = CurrencyId("rack:r01")

    assert decode_message(encode_message(currency, message)) == (currency, message)


@given(st.binary(max_size=200) | st.lists(VALUES, max_size=12).map(encode_document))
def test_any_bytes_are_read_or_refused_in_one_line(data: bytes) -> None:
    for read in (decode_entry, decode_message, *(_decree_of(kind) for kind in KINDS)):
        _read_or_refused(read, data)


@given(WORDS, st.lists(VALUES, max_size=8))
def test_what_almost_is_one_is_read_or_refused(word: str, values: list[object]) -> None:
    for data in (
        encode_document((1, word, *values)),  # type: ignore[arg-type]  # any values
        encode_document((1, "rack:r01", word, *values)),  # type: ignore[arg-type]  # any values
    ):
        for read in (decode_entry, decode_message):
            _read_or_refused(read, data)


def _decree_of(kind: str) -> Callable[[bytes], object]:
    return lambda data: decode_decree(kind, data)


def _read_or_refused(read: Callable[[bytes], object], data: bytes) -> None:
    line = ""
    try:
        read(data)
    except Malformed as error:
        line = str(error)
    assert "\n" not in line
