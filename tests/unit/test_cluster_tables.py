"""What `esnode cluster status` draws: tables that fit, marks that mean something, filters."""

import copy
import dataclasses
from typing import Any

import pytest

from esnode.cli.cluster_columns import MEMBER_COLUMNS, NODE_COLUMNS, RACK_COLUMNS
from esnode.cli.cluster_filter import parse_filter
from esnode.cli.cluster_node import render_node
from esnode.cli.cluster_screen import Wish, render, summary, views, warnings
from esnode.cli.cluster_table import Look, lay_out
from esnode.cli.cluster_text import (
    Units,
    colored,
    long_watts,
    plain,
    printable,
    quantity,
    short_duration,
    watts,
)
from tests.cluster_documents import (
    UNKNOWN,
    node,
    rack,
    silent_node,
    small_cluster,
    status_document,
    warning,
)
from tests.cluster_documents import quantity as given

WIDE = Wish(look=Look())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(UNKNOWN, "-", id="not-reported"),
        pytest.param(None, "-", id="not-in-the-document"),
        pytest.param(given(0.0), "0", id="a-real-zero"),
        pytest.param(given(950.0), "950", id="measured"),
        pytest.param(given(9800.0, estimated=True), "~9.80k", id="estimated"),
        pytest.param(given(9800.0, age=31.0), "9.80k?", id="last-known"),
        pytest.param(given(9800.0, age=31.0, estimated=True), "~9.80k?", id="both"),
        pytest.param(given(9800.0, age=None), "9.80k", id="age-unknown"),
        pytest.param({"value": "many"}, "-", id="no-number"),
        pytest.param({"value": True}, "-", id="no-number-either"),
    ],
)
def test_a_quantity_carries_its_marks(value: Any, expected: str) -> None:
    assert quantity(value, watts) == expected


@pytest.mark.parametrize(
    ("value", "units", "short", "long"),
    [
        pytest.param(0.4, Units.AUTO, "0", "0 W", id="nothing"),
        pytest.param(999.4, Units.AUTO, "999", "999 W", id="below-a-thousand"),
        pytest.param(999.6, Units.AUTO, "1.00k", "1,000 W", id="rounds-up"),
        pytest.param(3210.0, Units.AUTO, "3.21k", "3.21 kW", id="three-figures"),
        pytest.param(12_949.0, Units.AUTO, "12.9k", "12.9 kW", id="tens"),
        pytest.param(129_490.0, Units.AUTO, "129k", "129 kW", id="hundreds"),
        pytest.param(1_294_900.0, Units.AUTO, "1.29M", "1.29 MW", id="mega"),
        pytest.param(12_949.0, Units.WATTS, "12,949", "12,949 W", id="watts"),
        pytest.param(950.0, Units.KILOWATTS, "0.95", "0.95 kW", id="kilowatts"),
    ],
)
def test_watts_are_written_in_three_figures_or_in_one_unit(
    value: float, units: Units, short: str, long: str
) -> None:
    assert (watts(value, units), long_watts(value, units)) == (short, long)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(None, "-", id="unknown"),
        pytest.param(-1.0, "0s", id="a-clock-that-went-back"),
        pytest.param(0.2, "0s", id="now"),
        pytest.param(99.9, "99s", id="seconds"),
        pytest.param(360, "6m", id="minutes"),
        pytest.param(7200, "2h", id="hours"),
        pytest.param(200_000, "2d", id="days"),
    ],
)
def test_time_spans_are_short(seconds: float | None, expected: str) -> None:
    assert short_duration(seconds) == expected


def test_a_text_of_another_machine_cannot_steer_the_terminal() -> None:
    assert printable("0.4\x1b[2J\nx") == "0.4?[2J?x"


def test_a_node_of_which_nothing_is_known_shows_dashes_and_no_zero() -> None:
    row = silent_node("n09")

    table = lay_out([row], NODE_COLUMNS[:14], Look(has_header=False))

    assert table.text.split() == ["n09", "r01", "alive", *["-"] * 11]


def test_what_a_silent_node_said_last_is_marked() -> None:
    table = lay_out([node("n05", state="failed")], NODE_COLUMNS[:12], Look(has_header=False))

    assert table.text.split()[5:] == ["3.21k?", "3.50k?", "8/8", "92?", "71?", "81?", "6"]


def test_the_summary_names_state_view_and_what_there_is() -> None:
    text = summary(small_cluster(), Look())

    assert text.splitlines() == [
        "CLUSTER prod-a (7c1e0000)  degraded  view 4182ab90, agreed by 11 of 12   "
        "asked n03  12:04:31Z",
        " nodes  3: 1 alive, 1 suspect, 1 failed             versions 0.4.0 ×11, 0.3.9 ×1",  # noqa: RUF001  # as people write it
        " power  38.2 kW of 42.0 kW (91 %)  headroom 3.80 kW  oldest reading 1s",
        " gpus   96: 81 busy, 12 idle, 3 unhealthy",
        " work   63 running, 2 migrating, 1 held, 4 queued",
    ]


def test_a_cluster_of_which_little_is_known_is_not_made_up() -> None:
    document = status_document(silent_node("n01"))
    document["cluster"] |= {
        "view": {"digest": None, "members": 1, "agreeing": None, "asked": None},
        "versions": {},
        "power": dict.fromkeys(document["cluster"]["power"], UNKNOWN),
        "gpus": dict.fromkeys(("total", "busy", "idle", "unhealthy")),
        "jobs": dict.fromkeys(("running", "migrating", "held", "queued")),
    }

    assert summary(document, Look()).splitlines() == [
        "CLUSTER prod-a (7c1e0000)  healthy  view -   asked n03  12:04:31Z",
        " nodes  1: 1 alive",
        " power  - of -",
        " gpus   -",
    ]


def test_being_cut_off_stands_in_capitals() -> None:
    document = status_document(node("n01"), state="isolated")

    assert "  ISOLATED  " in summary(document, Look())


def test_racks_count_those_that_work_of_those_that_should() -> None:
    row = rack("r02", "alive", "degraded", "failed", "left", "removed")

    table = lay_out([row], RACK_COLUMNS[:10], Look(has_header=False))

    assert table.text.split() == [
        "r02", "2/3", "12.9k", "14.0k", "92", "1.10k", "ok", "32/32", "84", "detail", "2s",
    ]  # fmt: skip


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_every_line_of_the_tables_fits_the_terminal(width: int) -> None:
    document = small_cluster()
    document["nodes"].append(node("gpu-17.hall-2.a-rather-long-name", flags=["a", "b", "c" * 40]))

    lines = render(document, Wish(parts=("racks", "nodes"), look=Look(width=width))).splitlines()

    assert all(len(line) <= width for line in lines if not line.startswith("!"))
    header = next(line for line in lines if line.startswith("NODE"))
    assert {"NODE", "STATE"} <= set(header.split())


def test_columns_for_which_there_is_no_room_are_named() -> None:
    text = render(small_cluster(), Wish(parts=("nodes",), look=Look(width=80)))

    assert "(no room for ver, score)" in text


def test_columns_that_say_nothing_go_first() -> None:
    rows = [
        node(
            "n01",
            power={"draw_watts": UNKNOWN, "cap_watts": UNKNOWN, "limit_watts": UNKNOWN},
            gpus={**node("n01")["gpus"], "cap_watts": UNKNOWN},
        )
    ]

    table = lay_out(rows, NODE_COLUMNS[:14], Look(width=62))

    assert table.left_out == ("VER", "DRAW", "GPUCAP", "FLAGS")


def test_colours_are_added_to_the_words_and_never_stand_for_them() -> None:
    document = small_cluster()

    bare = render(document, WIDE)
    painted = render(document, dataclasses.replace(WIDE, look=Look(paint=colored)))

    assert "\x1b[31mfailed" in painted
    import click

    assert click.unstyle(painted) == bare


def test_warnings_stand_below_the_worst_first() -> None:
    text = warnings(
        [
            warning("a-b", "info", "cluster", "one agent is newer"),
            warning("c-d", "warning", "n05", "suspect"),
            warning("e-f", "critical", "r02", "draws more than its cap"),
        ],
        Look(),
    )

    assert text.splitlines() == [
        "! critical: r02: draws more than its cap (for 6m)",
        "! warning: n05: suspect (for 6m)",
        "- info: one agent is newer (for 6m)",
    ]


def test_views_that_differ_are_told_with_what_differs() -> None:
    own = "4182ab90cd12ef34"
    document = status_document(
        node("n01"),
        views=[
            {"id": "1", "name": "n01", "answered": True, "digest": own, "sees": {"alive": 3}},
            {"id": "2", "name": "n02", "answered": False, "digest": None, "sees": {}},
            {
                "id": "3",
                "name": "n03",
                "answered": True,
                "digest": "ffff000011112222",
                "sees": {"alive": 2, "failed": 1, "left": 0},
                "disagreements": [{"subject": "n01", "state": "failed", "here": "alive"}],
            },
        ],
    )

    assert views(document, Look()).splitlines() == [
        "VIEWS  2 of 3 members answered, 1 see the same",
        " n02: no answer",
        " n03: view ffff0000, sees 2 alive, 1 failed",
        "   n01 is failed there, alive here",
    ]


def test_one_node_is_told_in_full() -> None:
    known = render_node(
        node("n05", state="suspect", accusers=["n01"], observed_address="10.9.0.1:7947"),
        units=Units.AUTO,
        paint=plain,
    )
    unknown = render_node(silent_node("n09", state="failed"), units=Units.AUTO, paint=plain)

    assert "state        suspect for 60m\n" in known
    assert "announced, 10.9.0.1:7947 observed\n" in known
    assert "draw         3.21 kW?  (nvml, 1s old)\n" in known
    assert "accused by   n01\n" in known
    assert "draw         -\n" in unknown
    assert "gpus         -\n" in unknown
    assert " 0\n" not in unknown.replace("flaps        0\n", "")


def paths_of(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    found = [path] if path else []
    for name, value in items:
        found += paths_of(value, (*path, name))
    return found


KEPT = {"schema", "cluster", "nodes", "racks", "warnings", "name", "state", "id"}
OPTIONAL = [
    path
    for path in paths_of(small_cluster())
    if isinstance(path[-1], str) and not (path[-1] in KEPT or path[0] == "asked")
]


@pytest.mark.parametrize("path", OPTIONAL, ids=lambda path: ".".join(map(str, path)))
def test_an_agent_that_leaves_a_field_out_is_still_shown(path: tuple[Any, ...]) -> None:
    for is_there in (True, False):
        document = copy.deepcopy(small_cluster())
        inner = document
        for name in path[:-1]:
            inner = inner[name]
        if is_there:
            inner[path[-1]] = None
        else:
            del inner[path[-1]]
        text = render(document, dataclasses.replace(WIDE, is_wide=True))
        assert "n01" in text


def test_members_are_listed_as_one_knows_it() -> None:
    text = lay_out([node("n01", is_asked=True), silent_node("n09")], MEMBER_COLUMNS, Look()).text

    assert text.splitlines()[0].split() == [
        "Node", "Address", "State", "Rack", "Version", "Id", "Heard",
    ]  # fmt: skip
    assert text.splitlines()[2].split() == ["n09", "-", "alive", "r01", "-", "0000d755", "-"]


def test_a_filter_that_lets_nothing_through_says_so() -> None:
    """As `cluster status` hands it over: the rows are chosen before they are drawn."""
    document = small_cluster() | {"nodes": [], "warnings": []}
    wish = Wish(look=Look(), parts=("nodes",), condition=parse_filter("draw>3k", NODE_COLUMNS))

    assert render(document, wish) == "(no row is let through by --filter)"
