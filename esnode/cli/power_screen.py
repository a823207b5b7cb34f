"""The screen of `esnode power status`: currencies in a few lines each, their slots, this machine.

Its own file because it only makes text out of a document. Unknown is ``-``, never 0. It must not
know where the document came from.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from esnode.cli.cluster_columns import ALWAYS, Column, Row
from esnode.cli.cluster_table import Look, Table, lay_out
from esnode.cli.cluster_text import (
    Units,
    count,
    cut,
    figure,
    find,
    long_watts,
    percent,
    printable,
    quantity,
    short_duration,
    watts,
)
from esnode.cli.power_text import figures, name_or
from esnode.cli.text import UNKNOWN

GRADE_WORDS = {"A": "healthy", "B": "healthy", "C": "critical"}
STATE_WORDS = {
    "enforcing": "ok", "static": "ok", "off": "ok", "empty": "ok",
    "missing": "critical", "silent": "warning", "refusing": "critical",
    "quarantined": "critical", "closing": "warning", "parked": "warning",
}  # fmt: skip
"""How each state is coloured; the state itself is printed as well."""
EMPTY_WORDS = {"static": "static load", "empty": "empty"}


def render(document: Mapping[str, Any], look: Look, *, has_gpus: bool = False) -> str:
    """The whole screen."""
    blocks = [_own(document, look)]
    for one in document["currencies"]:
        blocks += [_summary(one, look), _slots(one, look)]
    if has_gpus:
        blocks += [_devices(document["devices"], look), _settle(document.get("cap") or {})]
    if not document["currencies"]:
        blocks.append(
            f"rack {printable(document['rack'])} has no power budget: nothing is written to the "
            "hardware.\n`esnode power genesis --propose > FILE` begins one."
        )
    blocks.append(_alarms(document, look))
    return "\n\n".join(block for block in blocks if block)


def _own(document: Mapping[str, Any], look: Look) -> str:
    """The machine of the agent that was asked, in a line."""
    cap = document.get("cap") or {}
    state = str(document["state"])
    gate = document["gate"]
    is_governed = state not in ("ungoverned", "unavailable")
    parts = [
        f"NODE {printable(document['node'])}  {look.paint(state, STATE_WORDS.get(state, state))}",
    ]
    if is_governed:
        draw, in_force = (_watts(cap.get(key), look) for key in ("draw_watts", "in_force_watts"))
        reason = f" ({printable(cap['reason'])})" if cap.get("reason") else ""
        parts.append(f"draws {draw} of {in_force}{reason}")
        parts.append(
            "gate open" if gate["is_open"] else f"gate closed: {printable(gate['reason'])}"
        )
    line = "   ".join(parts)
    if look.width is not None and len(line) > look.width:
        line = "\n ".join(parts)
    detail = document.get("detail")
    is_news = detail and detail != cap.get("reason")
    return f"{line}\n {printable(detail)}" if is_news else line


def _summary(one: Mapping[str, Any], look: Look) -> str:
    """A currency's budget, and what has become of it."""
    grade = str(one["grade"])
    shown = look.paint(f"grade {grade}", GRADE_WORDS.get(grade, "warning"))
    epoch = one.get("epoch")
    when = f"epoch {epoch[0]}.{epoch[1]}" if epoch else "not a member"
    budget, draw = figure(one["budget_watts"]), figure(one["draw_watts"])
    slots = one["slots"]
    telling = [slot for slot in slots if slot["state"] not in ("empty", "off", "static")]
    is_part = (figure(one.get("draw_known_count")) or 0) < len(telling)
    margin = figure(one.get("margin_ratio"))
    words = UNKNOWN if margin is None else f"{percent(margin)} %"
    agreed = "" if one.get("is_unanimous") is not False else "; CONTESTED: lowest of a fork"
    head = (
        f"{printable(one['currency']).upper()}  {shown}: {printable(one.get('grade_reason'))}   "
        f"{when}"
    )
    facts = [
        (
            "budget",
            _watts(budget, look),
            f"by record {count(one.get('version'))} of the operators{agreed}",
        ),
        (
            "shared",
            _watts(one.get("shared_watts"), look),
            f"less {words} margin and {_watts(one.get('floors_watts'), look)} of floors",
        ),
        ("caps", _watts(one.get("caps_watts"), look), "in force, static loads included"),
        (
            "draw",
            _draw(draw, budget, look, is_part=is_part),
            f"{count(one.get('draw_known_count'))} of {len(telling)} nodes tell",
        ),
        (
            "headroom",
            _headroom(draw, budget, slots, look, is_part=is_part),
            "budget less draw and static loads",
        ),
        (
            "stranded",
            _watts(one.get("stranded_watts"), look),
            "held by nodes that do not answer",
        ),
    ]
    lines = [head, figures(facts, right=(), indent=" ")]
    missing = [printable(name) for name in one.get("missing_slots") or ()]
    missing += [f"a slot for {printable(name)}" for name in one.get("outside_nodes") or ()]
    if missing:
        lines.append(f" missing   {', '.join(missing)}")
    if closing := one.get("closing"):
        absent = ", ".join(printable(name) for name in closing.get("absent") or ())
        lines.append(
            f" closing   the epoch ends by retirement {count(closing.get('rank'))}"
            + (f"; waiting for the word of {absent}" if absent else "")
        )
    return "\n".join(lines)


def _draw(draw: float | None, budget: float | None, look: Look, *, is_part: bool) -> str:
    if draw is None:
        return UNKNOWN
    mark = "~" if is_part else ""
    share = f" ({percent(draw / budget)} %)" if budget else ""
    return f"{mark}{_watts(draw, look)}{share}"


def _headroom(
    draw: float | None, budget: float | None, slots: Sequence[Row], look: Look, *, is_part: bool
) -> str:
    """What is left; a static load counts in full where nobody measures it."""
    if draw is None or budget is None:
        return UNKNOWN
    unmeasured = [
        figure(slot.get("floor_watts")) or 0.0
        for slot in slots
        if slot["state"] == "static" and figure(slot.get("draw_watts")) is None
    ]
    return f"{'at most ' if is_part else ''}{_watts(budget - draw - sum(unmeasured), look)}"


def _watts(value: object, look: Look) -> str:
    amount = figure(value)
    return UNKNOWN if amount is None else long_watts(amount, look.units)


def _watts_column(name: str, key: str, *, keeps: int) -> Column:
    return Column(
        name=name,
        write=lambda row, units: (
            UNKNOWN if (w := figure(row.get(key))) is None else watts(w, units)
        ),
        read=lambda row: figure(row.get(key)),
        is_right=True,
        keeps=keeps,
    )


def _who(row: Row) -> str:
    known = row.get("node")
    if known is None and row.get("node_id"):
        return str(row["node_id"])[:8]
    return name_or(known, EMPTY_WORDS.get(str(row.get("state")), "nobody"))


def _state(row: Row) -> str:
    state = printable(row.get("state"))
    return f"{state}, behind" if row.get("is_behind") is True else state


SLOT_COLUMNS: tuple[Column, ...] = (
    Column(
        name="SLOT",
        write=lambda row, _: printable(row.get("slot")),
        read=lambda row: str(row.get("slot")),
        keeps=ALWAYS,
    ),
    Column(name="NODE", write=lambda row, _: _who(row), read=_who, keeps=16),
    _watts_column("DRAW", "draw_watts", keeps=15),
    _watts_column("CAP", "cap_watts", keeps=17),
    _watts_column("SHARE", "share_watts", keeps=13),
    _watts_column("DEMAND", "demand_watts", keeps=12),
    _watts_column("FLOOR", "floor_watts", keeps=6),
    Column(
        name="PRIO",
        write=lambda row, _: count(row.get("priority")),
        read=lambda row: figure(row.get("priority")),
        is_right=True,
        keeps=8,
    ),
    Column(name="STATE", write=lambda row, _: _state(row), read=_state, keeps=ALWAYS),
    Column(
        name="AGE",
        write=lambda row, _: short_duration(row.get("age_seconds")),
        read=lambda row: figure(row.get("age_seconds")),
        is_right=True,
        keeps=9,
    ),
    Column(
        name="WHY",
        write=lambda row, _: printable(row.get("why")),
        read=lambda row: str(row.get("why")),
        is_flexible=True,
        keeps=10,
    ),
)


def _slots(one: Mapping[str, Any], look: Look) -> str:
    painted = Look(
        width=look.width,
        units=look.units,
        paint=lambda text, word: look.paint(text, STATE_WORDS.get(word.partition(",")[0], word)),
    )
    return _with_left_out(lay_out(one["slots"], SLOT_COLUMNS, painted), look)


def _set_by(row: Row) -> str:
    if row.get("is_given_up"):
        return "given up"
    said = printable(row.get("set_by"))
    return f"{said}, refusing" if row.get("is_refusing") is True else said


DEVICE_COLUMNS: tuple[Column, ...] = (
    Column(
        name="DEVICE",
        write=lambda row, _: f"{printable(row.get('kind'))} {count(row.get('index'))}",
        read=lambda row: figure(row.get("index")),
        keeps=ALWAYS,
    ),
    _watts_column("DRAW", "draw_watts", keeps=15),
    _watts_column("LIMIT", "limit_watts", keeps=17),
    _watts_column("LOWEST", "minimum_watts", keeps=10),
    _watts_column("HIGHEST", "maximum_watts", keeps=10),
    Column(
        name="SET BY",
        write=lambda row, _: _set_by(row),
        read=lambda row: str(row.get("set_by")),
        keeps=14,
    ),
    Column(
        name="ID",
        write=lambda row, _: printable(row.get("device")),
        read=lambda row: str(row.get("device")),
        is_flexible=True,
        keeps=5,
    ),
)


def _devices(devices: Sequence[Row], look: Look) -> str:
    if not devices:
        return "no device of this machine takes a limit"
    return _with_left_out(lay_out(devices, DEVICE_COLUMNS, look), look)


def _settle(cap: Mapping[str, Any]) -> str:
    """The configured settle time beside what lowerings have shown."""
    configured, seen = figure(cap.get("settle_seconds")), cap.get("settle_seen")
    if configured is None or not isinstance(seen, Mapping):
        return ""
    return (
        f"after a lowering draws were below it within {seen['at_most_seconds']:.1f} s (99th of "
        f"100, by {count(seen.get('lowerings_count'))} seen); power_settle is {configured:g} s"
    )


def _with_left_out(table: Table, look: Look) -> str:
    if not table.left_out:
        return table.text
    names = ", ".join(name.lower() for name in table.left_out)
    return f"{table.text}\n{cut(f'(no room for {names})', look.width or len(names) + 20)}"


def _alarms(document: Mapping[str, Any], look: Look) -> str:
    lines = [str(line) for line in document.get("alarms") or ()]
    for one in document["currencies"]:
        lines += [f"{one['currency']}: {line}" for line in one.get("alarms") or ()]
    return "\n".join(f"! {look.paint(printable(line), 'warning')}" for line in dict.fromkeys(lines))


def render_other_rack(rack: Mapping[str, Any], asked: str, look: Look) -> str:
    """A rack that is not the agent's own: what its nodes told, or its totals and why no more."""
    name = printable(rack["id"])
    power = rack.get("power") or {}
    if power.get("currencies"):
        blocks = [f"RACK {name}, as its nodes told rack {printable(asked)}"]
        for one in power["currencies"]:
            blocks += [_summary(one, look), _slots(one, look)]
        blocks.append(_alarms({"currencies": power["currencies"]}, look))
        return "\n\n".join(block for block in blocks if block)
    if power.get("is_governed") is False:
        return f"rack {name} has no power budget: nothing is written to the hardware."
    why = "ask a node of it (--agent URL) for its slots"
    if power.get("is_answered") is False:
        why = "no node of it answers now"

    def total(name: str) -> str:
        return quantity(find(rack, "power", name), lambda value: long_watts(value, Units.AUTO))

    return "\n".join(
        [
            f"RACK {name}, as rack {printable(asked)} knows it: totals only; {why}",
            f" budget    {total('budget_watts')}",
            f" caps      {total('cap_watts')}",
            f" draw      {total('draw_watts')}",
            f" headroom  {total('headroom_watts')}",
        ]
    )
