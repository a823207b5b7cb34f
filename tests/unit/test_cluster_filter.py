"""Filters, orders and exit codes of `esnode cluster status`."""

from typing import Any

import pytest

from esnode.cli.cluster_columns import NODE_COLUMNS
from esnode.cli.cluster_filter import BadExpression, parse_filter, parse_order, sort_rows
from esnode.cli.cluster_health import exit_code, parse_conditions
from tests.cluster_documents import counts, node, rack, silent_node, status_document, warning
from tests.cluster_documents import quantity as given

ROWS = (
    node("n01", draw=3000.0, flags=["capped"]),
    node("n02", rack="r02", draw=900.0, last_heard_seconds=400.0),
    silent_node("n03", rack="r02", state="failed"),
)


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        pytest.param("rack=r02", ["n02", "n03"], id="equal"),
        pytest.param("rack=r02 and state!=alive", ["n03"], id="and"),
        pytest.param("state=failed or draw>2k", ["n01", "n03"], id="or-with-a-unit"),
        pytest.param("rack=r01 or rack=r02 and draw<1kW", ["n01", "n02"], id="and-binds-tighter"),
        pytest.param("not rack=r02", ["n01"], id="not"),
        pytest.param("draw=-", ["n03"], id="unknown"),
        pytest.param("draw!=-", ["n01", "n02"], id="known"),
        pytest.param("draw!=0", ["n01", "n02"], id="unknown-is-no-number"),
        pytest.param("draw<100000", ["n01", "n02"], id="unknown-is-not-small"),
        pytest.param("seen>5m", ["n02"], id="a-time-span"),
        pytest.param("util>=92%", ["n01", "n02"], id="as-the-screen-shows-it"),
        pytest.param("flags~cap", ["n01"], id="contains"),
        pytest.param("flags!=capped", ["n02", "n03"], id="no-text-is-another-text"),
        pytest.param("STATE = 'Failed'", ["n03"], id="case-quotes-and-spaces"),
    ],
)
def test_a_filter_lets_through_what_it_says(expression: str, names: list[str]) -> None:
    condition = parse_filter(expression, NODE_COLUMNS)

    assert [row["name"] for row in ROWS if condition(row)] == names


@pytest.mark.parametrize(
    ("expression", "line"),
    [
        pytest.param("", "--filter at its end: write e.g.", id="empty"),
        pytest.param("rack", "--filter at 'rack'", id="no-comparison"),
        pytest.param("rack=r01 and", "--filter at its end", id="nothing-behind-and"),
        pytest.param("rack=r01 state=alive", "--filter at 'state=alive'", id="no-joint"),
        pytest.param("and rack=r01", "--filter at 'and rack=r01'", id="begins-with-and"),
        pytest.param("colour=red", "no column 'colour'; there are node, rack", id="no-column"),
        pytest.param("draw>-", "unknown has no size", id="larger-than-unknown"),
    ],
)
def test_an_expression_that_is_none_says_where(expression: str, line: str) -> None:
    with pytest.raises(BadExpression) as caught:
        parse_filter(expression, NODE_COLUMNS)

    assert line in str(caught.value)


@pytest.mark.parametrize(
    ("order", "names"),
    [
        pytest.param("draw", ["n02", "n01", "n03"], id="smallest-first"),
        pytest.param("-draw", ["n01", "n02", "n03"], id="largest-first-unknown-last"),
        pytest.param("-Node", ["n03", "n02", "n01"], id="by-text"),
    ],
)
def test_rows_are_sorted_and_the_unknown_is_last(order: str, names: list[str]) -> None:
    rows = sort_rows(ROWS, parse_order(order, NODE_COLUMNS))

    assert [row["name"] for row in rows] == names


@pytest.mark.parametrize(
    ("fail_on", "change", "expected"),
    [
        pytest.param(None, {"state": "healthy"}, 0, id="healthy"),
        pytest.param(None, {"state": "degraded"}, 1, id="degraded"),
        pytest.param(None, {"state": "isolated"}, 5, id="isolated"),
        pytest.param("none", {"state": "isolated"}, 5, id="isolated-always-tells"),
        pytest.param("none", {"state": "degraded"}, 0, id="none"),
        pytest.param("failed", {"state": "degraded", "nodes": counts("suspect")}, 0, id="not-it"),
        pytest.param("failed,suspect", {"nodes": counts("suspect")}, 1, id="one-of-them"),
        pytest.param("gpus", {"gpus": {"unhealthy": 1}}, 1, id="gpus"),
        pytest.param("gpus", {"gpus": {"unhealthy": None}}, 0, id="unknown-gpus"),
    ],
)
def test_the_exit_code_follows_the_cluster_or_what_is_listed(
    fail_on: str | None, change: dict[str, Any], expected: int
) -> None:
    document = status_document(node("n01"))
    document["cluster"] |= change

    assert exit_code(document, parse_conditions(fail_on)) == expected


@pytest.mark.parametrize(
    ("fail_on", "parts", "expected"),
    [
        pytest.param("overcap", {"racks": [rack("r01", "alive")]}, 0, id="under-the-cap"),
        pytest.param(
            "overcap",
            {"racks": [rack("r01", power={"draw_watts": given(15e3), "cap_watts": given(14e3)})]},
            1,
            id="over-the-cap",
        ),
        pytest.param(
            "overcap", {"racks": [rack("r01", power={"draw_watts": given(15e3)})]}, 0, id="no-cap"
        ),
        pytest.param(
            "stale", {"nodes": [node("a", power={"draw_watts": given(1.0, age=60.0)})]}, 1, id="old"
        ),
        pytest.param("stale", {"nodes": [silent_node("a")]}, 0, id="nothing-is-not-old"),
        pytest.param("critical", {"warnings": [warning("a-b", "warning", "x", "y")]}, 0, id="less"),
        pytest.param("warning", {"warnings": [warning("a-b", "critical", "x", "y")]}, 1, id="more"),
        pytest.param("a-b", {"warnings": [warning("a-b", "info", "x", "y")]}, 1, id="a-code"),
        pytest.param("views", {"views": [{"disagreements": [{}]}]}, 1, id="views"),
    ],
)
def test_conditions_look_at_racks_nodes_and_warnings(
    fail_on: str, parts: dict[str, Any], expected: int
) -> None:
    document = status_document(node("n01")) | parts

    assert exit_code(document, parse_conditions(fail_on)) == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("failing", "no condition 'failing'; there are degraded", id="unknown"),
        pytest.param("none,failed", "none stands alone", id="none-and"),
    ],
)
def test_a_condition_that_is_none_is_named(text: str, line: str) -> None:
    with pytest.raises(BadExpression, match=line):
        parse_conditions(text)
