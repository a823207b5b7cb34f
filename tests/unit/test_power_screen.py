"""What `esnode power status`, `explain` and the wizard say, given documents."""

from typing import Any

import pytest
from click.testing import CliRunner

from esnode.cli.cluster_table import Look
from esnode.cli.power_gate import judge
from esnode.cli.power_screen import render
from esnode.cli.power_speaker import Look as LookAround
from esnode.cli.power_wizard import ask_all
from esnode.power_orders.genesis_file import Wish, WishedSlot
from esnode.power_orders.refusals import CannotOrder
from esnode.power_orders.sentences import explain
from tests.power_documents import (
    currency_document,
    founded,
    machine,
    power_document,
    slot_document,
    switch_document,
)

WIDE = Look()


def document(**more: Any) -> dict[str, Any]:
    """gpu-01 to gpu-03 under 20 kW, with another currency document where handed in."""
    return power_document(founded(), currencies=[currency_document(founded(), **more)])


def test_the_whole_screen() -> None:
    assert render(document(), WIDE) == (
        "NODE gpu-01  enforcing   draws 3.00 kW of 5.99 kW (shares of rack:r01)   gate open\n"
        "\n"
        "RACK:R01  grade A: enforced and metered   epoch 1.0\n"
        " budget    20.0 kW         by record 2 of the operators\n"
        " shared    15.5 kW         less 0 % margin and 4.50 kW of floors\n"
        " caps      20.0 kW         in force, static loads included\n"
        " draw      9.00 kW (45 %)  3 of 3 nodes tell\n"
        " headroom  10.5 kW         budget less draw and static loads\n"
        " stranded  0 W             held by nodes that do not answer\n"
        "\n"
        "SLOT  NODE            DRAW    CAP  SHARE  DEMAND  FLOOR  PRIO  STATE      AGE  WHY\n"
        "u01   gpu-01         3.00k  6.16k  6.17k   4.00k  1.00k     1  enforcing   0s  -\n"
        "u02   gpu-02         3.00k  6.16k  6.17k   4.00k  1.00k     1  enforcing   0s  -\n"
        "u03   gpu-03         3.00k  6.16k  6.17k   4.00k  1.00k     1  enforcing   0s  -\n"
        "u40   (static load)      -    500      -       -    500     -  static       -  "
        "counted at its maximum\n"
        "u41   (empty)            -  1.00k      -       -  1.00k     -  empty        -  -"
    )


def test_without_a_budget_it_says_how_to_begin() -> None:
    shown = render(power_document(), WIDE)

    assert shown.startswith("NODE gpu-01  ungoverned\n")
    assert "rack r01 has no power budget" in shown
    assert "esnode power genesis --propose" in shown


def test_a_draw_of_which_a_part_is_unknown_is_no_headroom() -> None:
    slots = [slot_document("u01", 1), slot_document("u02", 2, draw_watts=None), switch_document()]

    shown = render(document(slots=slots, draw_watts=3000, draw_known_count=1), WIDE)

    assert " draw      ~3.00 kW (15 %)  1 of 2 nodes tell" in shown
    assert " headroom  at most 16.5 kW" in shown
    assert "u02   gpu-02             -" in shown


def test_nothing_unknown_is_shown_as_0() -> None:
    unknown = dict.fromkeys(("caps_watts", "draw_watts", "stranded_watts"))

    shown = render(document(**unknown, draw_known_count=0), WIDE)

    for name in ("caps", "draw", "headroom", "stranded"):
        assert f"\n {name:<9} -" in shown


def test_trouble_is_told_in_words() -> None:
    slots = [
        slot_document("u01", 1),
        slot_document("u02", 2, state="silent", age_seconds=420.0, cap_watts=None, is_behind=True,
                      why="its watts stay reserved"),
        slot_document("u03", 3, state="missing", node=None),
    ]  # fmt: skip

    shown = render(
        document(
            slots=slots,
            grade="C",
            grade_reason="unprotected: nothing is known to hold u03",
            missing_slots=["u03"],
            outside_nodes=["gpu-09"],
            closing={"rank": 1, "absent": ["gpu-02"]},
            is_unanimous=False,
            alarms=["operator record 3: a second genesis is ignored"],
        ),
        WIDE,
    )

    assert "grade C: unprotected: nothing is known to hold u03" in shown
    assert " missing   u03, a slot for gpu-09" in shown
    assert "ends by retirement 1; waiting for the word of gpu-02" in shown
    assert "CONTESTED: lowest of a fork" in shown
    assert "silent, behind" in shown
    assert "a3a3a3a3" in shown  # no name is known, so the id
    assert "! rack:r01: operator record 3: a second genesis is ignored" in shown


def test_a_narrow_terminal_loses_what_matters_least_and_says_so() -> None:
    narrow = render(document(), Look(width=60))

    table = narrow[narrow.index("SLOT") :]
    assert all(len(line) <= 60 for line in table.splitlines())
    assert "(no room for" in table
    assert "CAP" in table.splitlines()[0]


def test_colours_are_never_the_only_sign() -> None:
    painted = render(document(), Look(paint=lambda text, word: f"<{word}>{text}</>"))

    assert "<ok>enforcing" in painted
    assert "<healthy>grade A</>" in painted


def test_devices_are_shown_on_request() -> None:
    devices = power_document()["devices"]
    devices[1] |= {"is_given_up": True, "limit_watts": None}

    shown = render(document() | {"devices": devices}, WIDE, has_gpus=True)

    assert "gpu 0    350    500     200      700  esnode    GPU-0" in shown
    assert "gpu 1    350      -     200      700  given up  GPU-1" in shown


def test_what_other_machines_say_does_not_steer_the_terminal() -> None:
    shown = render(document(grade_reason="\x1b[2Jnice") | {"alarms": ["a\nb\x07"]}, WIDE)

    assert "\x1b" not in shown
    assert "! a?b?" in shown


# -- explain --------------------------------------------------------------------------------------


def test_the_own_cap_is_explained_from_shares_to_hardware() -> None:
    assert explain(document(), "gpu-01") == [
        "gpu-01 may draw 6,166 W by rack:r01: 1,000 W are the floor of slot u01, charged always, "
        "and 5,166 W are its shares, 33.3 % of what the nodes share out.",
        "Its work would use 4,000 W, so it has enough; what it does not use goes to whoever is "
        "short (in the second of four classes).",
        "In its hardware 5,990 W are in force; that has settled.",
        "What binds it is: shares of rack:r01 (6,000 W).",
        "It draws 3,000 W, 50.1 % of its cap (by simulated).",
    ]


def test_another_node_is_explained_as_far_as_it_is_known() -> None:
    slots = [slot_document("u02", 2, state="silent", why="its watts stay reserved",
                           demand_watts=9000, is_behind=True)]  # fmt: skip

    said = explain(document(slots=slots), "a2a2a2")

    assert said[1].startswith("It is silent. Its hardware goes on holding the cap")
    assert "3,000 W more than it holds" in said[2]
    assert said[3].startswith("It still keeps an older budget")
    assert said[-1].endswith("ask it with --agent URL.")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        pytest.param({"is_unanimous": False}, "the lowest of its budgets holds", id="fork"),
        pytest.param({"closing": {"rank": 0, "absent": ["gpu-03"]}}, "waits for the word of gpu-03",
                     id="closing"),
    ],
)  # fmt: skip
def test_what_holds_the_whole_rack_up_is_part_of_the_reason(
    more: dict[str, Any], says: str
) -> None:
    assert any(says in one for one in explain(document(**more), "gpu-01"))


@pytest.mark.parametrize(
    ("cap", "says"),
    [
        pytest.param({"cover_watts": 120}, "120 W are given up while nodes have not", id="cover"),
        pytest.param({"throttle_watts": 90}, "measured to draw too much", id="emergency"),
        pytest.param({"wanted_watts": 1900}, "cannot be held below 2,400 W", id="low-floor"),
        pytest.param({"is_refusing": True}, "does not take a lower cap", id="refusing"),
        pytest.param({"is_settled": False}, "that has not settled yet", id="unsettled"),
    ],
)
def test_what_else_holds_the_own_cap_down_is_told(cap: dict[str, Any], says: str) -> None:
    known = document()
    known["cap"] |= cap

    assert any(says in one for one in explain(known, "gpu-01"))


def test_a_node_without_a_slot_is_parked_and_says_what_helps() -> None:
    slots = [slot_document("u02", 2)]
    parked = document(slots=slots) | {"state": "parked", "gate": {"is_open": False, "reason": "x"}}

    said = explain(parked, "gpu-01")

    assert "parked at its lowest cap" in said[0]
    assert "`esnode power join gpu-01 --slot SLOT`" in said[0]
    assert said[-1] == "No work may start on it: x."


def test_without_a_budget_there_is_nothing_to_explain() -> None:
    assert explain(power_document(), "gpu-01")[0].startswith("r01 has no power budget")
    with pytest.raises(CannotOrder, match="no slot of rack r01 is gpu-09's"):
        explain(document(), "gpu-09")


# -- gate -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "is_open", "is_settled", "expected"),
    [
        pytest.param("enforcing", True, True, True, id="enforcing"),
        pytest.param("enforcing", True, False, False, id="not-settled"),
        pytest.param("starting", False, False, False, id="starting"),
        pytest.param("starting", True, True, False, id="not-known-yet"),
        pytest.param("quarantined", False, True, False, id="quarantined"),
        pytest.param("ungoverned", True, False, True, id="ungoverned"),
        pytest.param("static", True, False, True, id="static"),
        pytest.param("parked", True, None, False, id="unknown-is-no-yes"),
        pytest.param("parked", True, True, True, id="idle-in-its-slot"),
    ],
)
def test_the_gate_is_open_only_where_both_are_said(
    state: str, is_open: bool, is_settled: bool | None, expected: bool
) -> None:
    told = power_document(founded()) | {"state": state, "gate": {"is_open": is_open, "reason": ""}}
    told["cap"] |= {"is_settled": is_settled}

    assert judge(told)[0] is expected


def test_a_node_in_no_slot_starts_no_work_whatever_its_gate_says() -> None:
    outside = document(slots=[slot_document("u02", 2)]) | {"state": "parked"}

    is_open, line = judge(outside)

    assert not is_open
    assert "`esnode power join gpu-01 --slot SLOT`" in line


# -- wizard ---------------------------------------------------------------------------------------


def look_around(*numbers: int) -> LookAround:
    return LookAround(
        said=None,  # type: ignore[arg-type]  # the questions do not look at the log
        charters={},
        machines=tuple(machine(number) for number in numbers),
        currencies=(),
        power=power_document(),
    )


def ask(typed: str) -> Wish:
    with CliRunner().isolation(input=typed):
        return ask_all(look_around(1, 2), None)


def test_enter_takes_what_is_proposed() -> None:
    wish = ask("\n" * 20)

    assert wish == Wish(
        currency="rack:r01",
        budget_watts=13_700,
        margin_ppm=30_000,
        slots=(
            WishedSlot(name="u01", node="gpu-01", floor_watts=2400),
            WishedSlot(name="u02", node="gpu-02", floor_watts=2400),
        ),
    )


def test_answers_are_asked_again_until_they_can_be_read() -> None:
    typed = "r01\nlots\n12kW\n70 %\n5 %\na1\n2.4kW\n-\ny\nu40\nmany\n500\nn\ny\nu41\n900\nn\n"

    wish = ask(typed)

    assert (wish.budget_watts, wish.margin_ppm) == (12_000, 50_000)
    assert wish.slots == (
        WishedSlot(name="a1", node="gpu-01", floor_watts=2400),
        WishedSlot(name="u40", floor_watts=500, is_static=True),
        WishedSlot(name="u41", floor_watts=900),
    )


def test_shares_may_be_weighed() -> None:
    wish = ask("\n\n\n\n\n\n\nn\n2\n0\n1\n\n\n")

    assert [slot.weight for slot in wish.slots] == [2, 1]
