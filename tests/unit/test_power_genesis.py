"""A genesis: what a file may say, what becomes of it, and what is refused."""

import tomllib
from collections.abc import Sequence
from fractions import Fraction

import pytest

from cluster.rack.ledger.decrees import Founded, Slot, encode_decree
from cluster.rack.units import SHARES_TOTAL
from esnode.power_orders.founding import plan_genesis
from esnode.power_orders.genesis_file import MARGIN_PPM_DEFAULT, read_wish
from esnode.power_orders.genesis_text import write_proposal
from esnode.power_orders.known import Machine
from esnode.power_orders.proposal import Own, propose
from esnode.power_orders.quantities import BadQuantity, read_part, read_watts, read_weight
from esnode.power_orders.refusals import CannotOrder
from tests.power_documents import RACK, charter_of, founded, machine, node_id

MACHINES = (machine(1), machine(2), machine(3))
FILE = """
rack = "r01"
budget = "20 kW"
margin = "5 %"

[[slots]]
slot = "u01"
node = "gpu-01"
floor = 1000

[[slots]]
slot = "u02"
node = "gpu-02"
floor = "1.2kW"

[[slots]]
slot = "u40"
static = true
watts = 500

[[slots]]
slot = "u41"
floor = 1000
"""


def plan(text: str, machines: Sequence[Machine] = MACHINES):  # type: ignore[no-untyped-def]
    return plan_genesis(read_wish(tomllib.loads(text)), machines, {})


@pytest.mark.parametrize(
    ("written", "watts"),
    [
        pytest.param(52000, 52_000, id="a number"),
        pytest.param("52000", 52_000, id="a text"),
        pytest.param("52kW", 52_000, id="kilowatts"),
        pytest.param("52.5 kW", 52_500, id="and a half"),
        pytest.param("1,200 W", 1200, id="with a comma"),
        pytest.param("0.001 MW", 1000, id="megawatts"),
        pytest.param(1200.0, 1200, id="a whole float"),
    ],
)
def test_watts_are_read_as_people_write_them(written: object, watts: int) -> None:
    assert read_watts(written) == watts


@pytest.mark.parametrize(
    ("written", "says"),
    [
        pytest.param("much", "write watts", id="a word"),
        pytest.param("-5", "write watts", id="less than none"),
        pytest.param("1.5 W", "only whole watts", id="half a watt"),
        pytest.param("500 MW", "at most", id="more than a hall"),
        pytest.param(True, "is bool", id="a truth"),
        pytest.param(float("nan"), "write watts", id="no number"),
        pytest.param("٥٢", "write watts", id="digits of another script"),
    ],
)
def test_what_is_no_watts_is_told(written: object, says: str) -> None:
    with pytest.raises(BadQuantity, match=says):
        read_watts(written)


def test_parts_are_exact_and_weights_whole() -> None:
    assert read_part("3 %") == read_part(0.03) == Fraction(3, 100)
    assert read_part("33.4%") == Fraction(334, 1000)
    assert read_weight("8") == 8
    with pytest.raises(BadQuantity, match='did you mean "3 %"'):
        read_part(3)
    with pytest.raises(BadQuantity, match="from 1 to 1000"):
        read_weight("0")


def test_a_file_becomes_a_record_that_adds_up() -> None:
    planned = plan(FILE)

    assert planned.founded == Founded(
        currency=RACK,
        budget_watts=20_000,
        margin_ppm=50_000,
        slots=(
            Slot(name="u01", floor_watts=1000, node_id=node_id(1)),
            Slot(name="u02", floor_watts=1200, node_id=node_id(2)),
            Slot(name="u40", floor_watts=500, is_static=True),
            Slot(name="u41", floor_watts=1000),
        ),
        shares=((node_id(1), SHARES_TOTAL // 2), (node_id(2), SHARES_TOTAL // 2)),
    )
    encode_decree(planned.founded)


def test_what_will_happen_is_said_in_whole_watts_that_add_up() -> None:
    planned = plan(FILE)

    assert planned.floors_watts == 3700
    assert planned.margin_watts == 1000
    assert planned.shared_watts == 15_300
    assert [slot.first_cap_watts for slot in planned.slots] == [8650, 8850, None, None]
    assert planned.first_caps_watts == 8650 + 8850 + 500 + 1000 <= 19_000


def test_who_is_left_out_and_who_is_silent_is_told() -> None:
    machines = (machine(1), machine(2, state="failed"), machine(3))

    notes = plan(FILE, machines).notes

    assert any("gpu-03: of this rack and in no slot; parked" in note for note in notes)
    assert any("gpu-02 does not answer: the rack is unprotected" in note for note in notes)
    assert "empty, and charged all the same: u41" in notes


def test_a_node_that_draws_more_than_its_first_cap_is_told() -> None:
    machines = (machine(1, draw_watts=9000.0), machine(2))

    assert any(
        "gpu-01 draws 9,000 W now and is lowered" in one for one in plan(FILE, machines).notes
    )


@pytest.mark.parametrize(
    ("one", "two", "shares"),
    [
        pytest.param("", "", (500_000_000, 500_000_000), id="equal"),
        pytest.param("weight = 3", "", (750_000_000, 250_000_000), id="by weight"),
        pytest.param('share = "60 %"', "share = 0.4", (600_000_000, 400_000_000), id="as parts"),
        pytest.param(
            'share = "33.33333333 %"', 'share = "66.66666667 %"', (333_333_333, 666_666_667),
            id="to the last share",
        ),
        pytest.param("weight = 1", "weight = 2", (333_333_333, 666_666_667), id="thirds"),
    ],
)  # fmt: skip
def test_all_shares_are_given_out(one: str, two: str, shares: tuple[int, int]) -> None:
    text = FILE.replace('node = "gpu-01"', f'node = "gpu-01"\n{one}').replace(
        'node = "gpu-02"', f'node = "gpu-02"\n{two}'
    )

    given = plan(text).founded.shares

    assert tuple(held for _, held in given) == shares
    assert sum(held for _, held in given) == SHARES_TOTAL


REFUSED = [
    pytest.param('"20 kW"', '"3 kW"', "floors and static loads add up to 3,700 W", id="floors"),
    pytest.param('"gpu-02"', '"gpu-09"', "slot u02: unknown node 'gpu-09'", id="unknown-node"),
    pytest.param('"gpu-02"', '"gpu-01"', "gpu-01 stands in two slots: u01 and u02", id="two-slots"),
    pytest.param('rack = "r01"', 'rack = "r07"', "unknown rack r07; known are r01", id="rack"),
    pytest.param('"u02"', '"u01"', "slot u01 is named twice", id="slot-twice"),
    pytest.param(
        'node = "gpu-01"', 'node = "gpu-01"\nshare = "60 %"', "each node needs one: u02 has none",
        id="one-share",
    ),
    pytest.param(
        "static = true", 'static = true\nweight = 2', "a static load holds no shares", id="static"
    ),
    pytest.param("watts = 500", "", "slot u40: a static load needs watts", id="static-watts"),
    pytest.param("watts = 500", "floor = 500", "(not a floor)", id="static-floor"),
    pytest.param("floor = 1000", "", "slot u01: it needs a floor", id="no-floor"),
    pytest.param("floor = 1000", "watts = 9", "watts are those of a static load", id="watts"),
    pytest.param('margin = "5 %"', 'margin = "60 %"', "at most half of the budget", id="margin"),
    pytest.param('margin = "5 %"', "margin = 5", 'did you mean "5 %"?', id="margin-unit"),
    pytest.param('margin = "5 %"', 'margn = "5 %"', "did you mean margin?", id="misspelt"),
    pytest.param('budget = "20 kW"', "", "budget: how many watts?", id="no-budget"),
    pytest.param('rack = "r01"', "", "rack: which one?", id="no-rack"),
    pytest.param('slot = "u02"', "", "slot number 2: it needs a name", id="no-name"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "says"), REFUSED)
def test_what_does_not_add_up_is_refused_in_a_line(old: str, new: str, says: str) -> None:
    with pytest.raises(CannotOrder) as refused:
        plan(FILE.replace(old, new, 1))

    assert any(says in line for line in refused.value.lines), refused.value.lines


def test_shares_that_do_not_add_up_are_refused_with_their_sum() -> None:
    text = FILE.replace('"gpu-01"', '"gpu-01"\nshare = "60 %"').replace(
        '"gpu-02"', '"gpu-02"\nshare = "50 %"'
    )

    with pytest.raises(CannotOrder, match="shares add up to 110 %, not to 100 %"):
        plan(text)


def test_every_mistake_of_a_file_is_told_at_once() -> None:
    text = (
        FILE.replace('"20 kW"', '"lots"')
        .replace("floor = 1000", "floor = -1")
        .replace("watts = 500", "")
    )

    with pytest.raises(CannotOrder) as refused:
        plan(text)

    assert len(refused.value.lines) == 4
    assert refused.value.is_usage


def test_a_node_of_another_rack_is_refused_in_a_rack_but_not_in_a_row() -> None:
    machines = (machine(1), machine(2, rack="r02"))

    with pytest.raises(CannotOrder, match="slot u02: gpu-02 is in rack r02, not in r01"):
        plan(FILE, machines)
    row = plan(FILE.replace('rack = "r01"', 'currency = "row:3"'), machines)
    assert row.founded.currency == "row:3"


def test_a_second_genesis_is_refused() -> None:
    wish = read_wish(tomllib.loads(FILE))

    with pytest.raises(CannotOrder, match="rack:r01 has had its genesis"):
        plan_genesis(wish, MACHINES, {RACK: charter_of(founded())})


def test_a_reimaged_machine_is_the_key_that_was_not_removed() -> None:
    machines = (machine(1), machine(7, name="gpu-02", state="removed"), machine(2))

    assert plan(FILE, machines).founded.slots[1].node_id == node_id(2)


def test_two_keys_of_one_name_are_not_guessed_at() -> None:
    machines = (machine(1), machine(7, name="gpu-02", state="failed"), machine(2))

    with pytest.raises(CannotOrder, match="'gpu-02' is ambiguous"):
        plan(FILE, machines)


OWN = Own(
    lowest_watts=2400, highest_watts=7100, gpu_minimum_watts=1600, gpu_maximum_watts=5600,
    gpu_count=8,
)  # fmt: skip


def test_a_proposal_says_on_what_each_floor_rests() -> None:
    machines = (
        machine(1),
        machine(2),
        machine(6, draw_watts=2200.0),
        machine(3, gpu_count=4, gpu_limit_watts=2000.0, draw_watts=None),
        machine(4, draw_watts=900.0, gpu_draw_watts=None, gpu_limit_watts=None, gpu_count=0),
        machine(5, rack="r02"),
        machine(8, lowest_watts=1840.5, highest_watts=10_200.0),
    )

    proposal = propose("r01", machines, OWN)

    assert [(one.slot.floor_watts, one.reason.partition(" (")[0]) for one in proposal.slots] == [
        (2400, "by its own agent: lowest limits of its devices and rest"),
        (2400, "as gpu-01, which has the same GPUs"),
        (900, "GPUs at 600 W"),
        (1130, "draws 900 W now; no GPU is known"),
        (2850, "GPUs at 1600 W"),
        (1850, "by its own agent: lowest limits of its devices and rest"),
    ]
    assert proposal.slots[-1].maximum_watts == 10_200
    assert proposal.wish.budget_watts == 2 * (2400 + 2400 + 900 + 1130 + 2850 + 1850)


def test_a_proposed_file_can_be_read_and_founded() -> None:
    proposal = propose("r01", MACHINES, OWN)

    text = write_proposal(proposal)
    planned = plan(text)

    assert read_wish(tomllib.loads(text)) == proposal.wish
    assert planned.founded.margin_ppm == MARGIN_PPM_DEFAULT
    assert planned.founded.budget_watts == 7100 + 2 * (1000 + 5600)


def test_a_rack_without_nodes_cannot_be_proposed() -> None:
    with pytest.raises(CannotOrder, match="no node is in rack r09; racks with nodes are r01"):
        propose("r09", MACHINES, OWN)
