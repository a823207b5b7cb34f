"""The screen of `esnode cluster status`: the cluster's lines, its tables, its warnings.

Its own file because it only makes text out of a document, and is the same for one look, for
`--watch` and for a rack. It must not know where the document came from.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from esnode.cli.cluster_columns import NODE_COLUMNS, RACK_COLUMNS, Column, Row
from esnode.cli.cluster_filter import Condition, Order, sort_rows
from esnode.cli.cluster_table import Look, choose_columns, lay_out
from esnode.cli.cluster_text import (
    count,
    cut,
    figure,
    find,
    long_watts,
    percent,
    printable,
    quantity,
    short_duration,
)
from esnode.cli.text import UNKNOWN

STATES = ("alive", "degraded", "suspect", "failed", "left", "removed")
_SEVERITIES = {"critical": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Which parts of the status are wanted, and how."""

    parts: tuple[str, ...] = ("summary", "racks", "nodes")
    look: Look = field(default_factory=Look)
    is_wide: bool = False
    columns: tuple[Column, ...] | None = None
    condition: Condition | None = None
    order: Order | None = None

    @property
    def table_columns(self) -> tuple[Column, ...]:
        """All columns of the table that filter, order and columns speak of."""
        return RACK_COLUMNS if self.parts == ("racks",) else NODE_COLUMNS


def render(document: dict[str, Any], wish: Wish) -> str:
    """The whole screen."""
    blocks = []
    if "summary" in wish.parts:
        blocks.append(summary(document, wish.look))
    is_filtered = wish.condition is not None  # then nothing left is an answer, and is told
    if "racks" in wish.parts and (document["racks"] or (is_filtered and len(wish.parts) == 1)):
        is_asked = wish.parts == ("racks",)
        blocks.append(table_of(document["racks"], RACK_COLUMNS, wish, is_asked=is_asked))
    if "nodes" in wish.parts and (document["nodes"] or is_filtered):
        blocks.append(table_of(document["nodes"], NODE_COLUMNS, wish, is_asked=True))
    if "views" in document:
        blocks.append(views(document, wish.look))
    if "summary" in wish.parts or document["warnings"]:
        blocks.append(warnings(document["warnings"], wish.look))
    return "\n\n".join(block for block in blocks if block)


def selected_rows(rows: Sequence[Row], wish: Wish) -> list[Row]:
    """Those rows that the filter lets through, in their order."""
    condition = wish.condition
    kept = [row for row in rows if condition is None or condition(row)]
    return sort_rows(kept, wish.order)


def table_of(rows: Sequence[Row], columns: Sequence[Column], wish: Wish, *, is_asked: bool) -> str:
    """One table; `is_asked` where filter, order and columns are about it."""
    shown = selected_rows(rows, wish) if is_asked else list(rows)
    chosen = choose_columns(columns, wish.columns if is_asked else None, is_wide=wish.is_wide)
    if not shown:
        return "(no row is let through by --filter)"
    table = lay_out(shown, chosen, wish.look, is_fixed=is_asked and wish.columns is not None)
    if not table.left_out or not wish.look.has_header:
        return table.text
    names = ", ".join(name.lower() for name in table.left_out)
    return f"{table.text}\n{cut(f'(no room for {names})', wish.look.width or len(names) + 20)}"


def summary(document: dict[str, Any], look: Look) -> str:
    """The cluster in a few lines."""
    cluster = document["cluster"]
    state = printable(cluster["state"])
    head = (
        f"CLUSTER {printable(cluster.get('name'))} ({printable(cluster.get('id'))[:8]})  "
        f"{look.paint(state.upper() if state == 'isolated' else state, state)}"
    )
    asked = document.get("asked") or {}
    time = printable(document.get("generated_at"))[11:]
    parts = [f"{head}  {_view(cluster)}", f"asked {printable(asked.get('name'))}  {time}".rstrip()]
    plain_length = len(parts[0]) - (len(look.paint(state, state)) - len(state)) + len(parts[1]) + 3
    is_narrow = look.width is not None and plain_length > look.width
    lines = ["\n ".join(parts) if is_narrow else "   ".join(parts), f" nodes  {_nodes(cluster)}"]
    if versions := _versions(cluster):
        beside = f"{lines[-1]:<52}versions {versions}"
        fits = look.width is None or len(beside) <= look.width
        lines[-1:] = [beside] if fits else [lines[-1], f" agents {versions}"]
    lines += [f" power  {_power(document, look)}", f" gpus   {_gpus(cluster)}"]
    if work := _work(cluster):
        lines.append(f" work   {work}")
    return "\n".join(lines)


def _view(cluster: dict[str, Any]) -> str:
    digest = printable(find(cluster, "view", "digest"))[:8]
    agreeing, asked = find(cluster, "view", "agreeing"), find(cluster, "view", "asked")
    if figure(asked) is None or figure(agreeing) is None:
        return f"view {digest}"
    return f"view {digest}, agreed by {count(agreeing)} of {count(asked)}"


def _nodes(cluster: dict[str, Any]) -> str:
    counts = cluster["nodes"]
    parts = [f"{count(counts.get(state))} {state}" for state in STATES if figure(counts.get(state))]
    return f"{count(counts.get('total'))}: {', '.join(parts) or UNKNOWN}"


def _versions(cluster: dict[str, Any]) -> str:
    known = cluster.get("versions") or {}
    most_first = sorted(known.items(), key=lambda item: (-(figure(item[1]) or 0.0), item[0]))
    return ", ".join(f"{printable(version)} ×{count(nodes)}" for version, nodes in most_first)  # noqa: RUF001


def _power(document: dict[str, Any], look: Look) -> str:
    power = document["cluster"].get("power") or {}

    def shown(name: str) -> str:
        return quantity(power.get(name), lambda value: long_watts(value, look.units))

    draw, cap = (figure(find(power, name, "value")) for name in ("draw_watts", "cap_watts"))
    share = f" ({percent(draw / cap)} %)" if draw is not None and cap else ""
    text = f"{shown('draw_watts')} of {shown('cap_watts')}{share}"
    for name in ("headroom", "budget", "stranded"):
        if figure(find(power, f"{name}_watts", "value")) is not None:
            text += f"  {name} {shown(f'{name}_watts')}"
    ages = [
        age
        for node in document["nodes"]
        if node["state"] in ("alive", "degraded")
        and (age := figure(find(node, "power", "draw_watts", "age_seconds"))) is not None
    ]
    return f"{text}  oldest reading {short_duration(max(ages))}" if ages else text


def _gpus(cluster: dict[str, Any]) -> str:
    gpus = cluster.get("gpus") or {}
    if figure(gpus.get("total")) is None:
        return UNKNOWN
    parts = [f"{count(gpus.get(name))} {name}" for name in ("busy", "idle", "unhealthy")]
    return f"{count(gpus['total'])}: {', '.join(parts)}"


def _work(cluster: dict[str, Any]) -> str:
    """Nothing at all where no agent counts jobs."""
    jobs = cluster.get("jobs") or {}
    names = ("running", "migrating", "held", "queued")
    if all(figure(jobs.get(name)) is None for name in names):
        return ""
    return ", ".join(f"{count(jobs.get(name))} {name}" for name in names)


def warnings(given: Sequence[dict[str, Any]], look: Look) -> str:
    """A line each, the worst first."""

    def order(warning: dict[str, Any]) -> tuple[int, str]:
        return _SEVERITIES.get(str(warning.get("severity")), 1), str(warning.get("subject"))

    lines = []
    for warning in sorted(given, key=order):
        severity = printable(warning.get("severity"))
        since = short_duration(warning.get("since_seconds"))
        age = f" (for {since})" if since != UNKNOWN else ""
        mark = "-" if severity == "info" else "!"
        subject = printable(warning.get("subject"))
        text = printable(warning.get("text"))
        named = "" if subject in (UNKNOWN, "cluster") or subject in text else f"{subject}: "
        lines.append(look.paint(f"{mark} {severity}: {named}{text}{age}", severity))
    return "\n".join(lines)


def views(document: dict[str, Any], look: Look) -> str:
    """What each member itself sees, and where that differs from here."""
    given = document["views"]
    answered = [view for view in given if view.get("answered")]
    own = printable(find(document, "cluster", "view", "digest"))
    same = [view for view in answered if view.get("digest") == own]
    lines = [f"VIEWS  {len(answered)} of {len(given)} members answered, {len(same)} see the same"]
    for view in given:
        name = printable(view.get("name"))
        if not view.get("answered"):
            lines.append(look.paint(f" {name}: no answer", "warning"))
            continue
        if view in same and not view.get("disagreements"):
            continue
        sees = ", ".join(
            f"{count(number)} {printable(state)}"
            for state, number in (view.get("sees") or {}).items()
            if figure(number)
        )
        lines.append(look.paint(f" {name}: view {printable(view.get('digest'))[:8]}, sees {sees}",
                                "warning"))  # fmt: skip
        lines += [
            f"   {printable(one.get('subject'))} is {printable(one.get('state'))} there, "
            f"{printable(one.get('here'))} here"
            for one in view.get("disagreements") or []
        ]
    return "\n".join(lines)
