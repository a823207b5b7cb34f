"""`esnode cluster status`: what the agent that is asked says of the whole, once or over and over.

Its own file because it turns options into a wish, and answers into exit codes. It must not know how
a table looks.
"""

import dataclasses
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from esnode.cli.cluster_filter import BadExpression, find_column, parse_filter, parse_order
from esnode.cli.cluster_health import exit_code, parse_conditions
from esnode.cli.cluster_node import render_node
from esnode.cli.cluster_nodes import find_node
from esnode.cli.cluster_places import note, reading_door, reading_what, tells_errors_in_one_line
from esnode.cli.cluster_screen import Wish, render, selected_rows
from esnode.cli.cluster_table import Look
from esnode.cli.cluster_text import Units, colored, plain
from esnode.cli.context import EXIT_USAGE, fail, wants_color
from esnode.clock import monotonic_seconds

if TYPE_CHECKING:
    from esnode.client import Door

SCHEMA = "esnode.cluster_status/"
WATCH_SECONDS_MIN = 0.2
Command = TypeVar("Command", bound=Callable[..., Any])
_PARTS = {"nodes": ("nodes",), "racks": ("racks",), "summary": ("summary",)}


def seconds_of(option: str, text: str) -> float:
    """A time span as people write it; a bare number is seconds."""
    from esnode.config.values import BadValue, parse_duration_seconds

    try:
        return parse_duration_seconds(f"{text}s" if text.replace(".", "", 1).isdigit() else text)
    except BadValue as error:
        fail(f"{option}: {text!r} {error}", code=EXIT_USAGE)


def with_looks(command: Command) -> Command:
    """The options that choose rows and columns."""
    for option in reversed(
        (
            click.option("--wide", "is_wide", is_flag=True, help="All columns."),
            click.option("--columns", metavar="A,B", help="These columns, in this order."),
            click.option("--sort", metavar="COLUMN", help="By a column; -COLUMN from the largest."),
            click.option("--filter", "expression", metavar="EXPR", help="Rows: 'state!=alive'."),
            click.option("--no-header", is_flag=True, help="Without the line of column names."),
            click.option(
                "--units",
                type=click.Choice([unit.value for unit in Units]),
                default=Units.AUTO.value,
                help="How watts are written; auto is three figures, k for thousands.",
            ),
        )
    ):
        command = option(command)
    return command


@click.command()
@click.option("--json", "as_json", is_flag=True, help="The document (esnode.cluster_status/1).")
@click.option("--watch", is_flag=False, flag_value="2s", metavar="[TIME]",
              help="Over and over; every 2 s unless TIME is given.")  # fmt: skip
@click.option("--view", type=click.Choice(["local", "all"]), default="local",
              help="all: ask every member what it sees, and compare.")  # fmt: skip
@click.option("--nodes", "part", flag_value="nodes", help="Only the table of nodes.")
@click.option("--racks", "part", flag_value="racks", help="Only the table of racks.")
@click.option("--summary", "part", flag_value="summary", help="Only the cluster's lines.")
@click.option("--node", "node", metavar="NODE", help="One node in full, by name or id.")
@with_looks
@click.option("--fail-on", metavar="LIST",
              help="What makes exit code 1: failed,suspect,degraded,overcap,stale,gpus,views,"
                   "warning,critical, codes of warnings, or none.")  # fmt: skip
@click.option("--timeout", default="3s", show_default=True, help="For the whole answer.")
@click.pass_context
@tells_errors_in_one_line
def status(
    ctx: click.Context,
    /,
    as_json: bool,
    watch: str | None,
    view: str,
    part: str | None,
    node: str | None,
    fail_on: str | None,
    timeout: str,
    **looks: Any,
) -> None:
    """Show the cluster, its racks and its nodes, as this agent sees them.

    `-` is not reported, `~` an estimate, `?` the last known value of something that may have
    another by now. Nothing unknown is shown as 0.

    \b
    esnode cluster status
    esnode cluster status --watch
    esnode cluster status --nodes --filter 'rack=r01 and state!=alive' --sort -draw
    esnode cluster status --node gpu-05
    esnode cluster status --json --fail-on failed,overcap
    esnode cluster status --view all

    Exit codes: 0 healthy, 1 degraded (see --fail-on), 2 wrong usage or no cluster, 3 agent not
    reachable, 4 not allowed, 5 this side is cut off from the rest of the cluster.
    """
    with usage_errors():
        conditions = parse_conditions(fail_on)
        wish = wish_of(ctx, part, **looks)
    path = "/v1/cluster" if view == "local" else "/v1/cluster?view=all"
    read = _reader(ctx, path, seconds_of("--timeout", timeout), wish)

    def show(document: dict[str, Any], width: int | None) -> str:
        if as_json:
            return json.dumps(document)
        if node is not None:
            found = find_node(document, node)
            return render_node(found, units=wish.look.units, paint=wish.look.paint)
        return render(document, _at_width(wish, width))

    if watch is not None:
        interval = max(WATCH_SECONDS_MIN, seconds_of("--watch", watch))
        _watch(read, show, interval, as_json=as_json)
        return
    document = read()
    if as_json:
        click.echo(json.dumps(document, indent=2))
    else:
        click.echo(show(document, terminal_width()))
    sys.exit(exit_code(document, conditions))


def wish_of(
    ctx: click.Context,
    part: str | None,
    *,
    is_wide: bool,
    columns: str | None,
    sort: str | None,
    expression: str | None,
    no_header: bool,
    units: str,
) -> Wish:
    """What the options ask for.

    Raises:
        BadExpression: one of them cannot be read.
    """
    paint = colored if wants_color(ctx) else plain
    wish = Wish(
        parts=("summary", "racks", "nodes") if part is None else _PARTS[part],
        look=Look(units=Units(units), has_header=not no_header, paint=paint),
        is_wide=is_wide,
    )
    known = wish.table_columns
    return dataclasses.replace(
        wish,
        columns=None
        if columns is None
        else tuple(find_column(name, known) for name in columns.split(",") if name.strip()),
        condition=None if expression is None else parse_filter(expression, known),
        order=None if sort is None else parse_order(sort, known),
    )


@contextmanager
def usage_errors() -> Iterator[None]:
    """An expression that cannot be read is wrong usage."""
    try:
        yield
    except BadExpression as error:
        fail(str(error), code=EXIT_USAGE)


def terminal_width() -> int | None:
    """How many columns there are; None where no terminal is."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _at_width(wish: Wish, width: int | None) -> Wish:
    return dataclasses.replace(wish, look=dataclasses.replace(wish.look, width=width))


def _reader(
    ctx: click.Context, path: str, seconds: float, wish: Wish
) -> Callable[[], dict[str, Any]]:
    """Reads the document; an agent that does not answer is looked for again before the next."""
    from esnode.client import AgentUnreachable

    door = reading_door(ctx)

    def read() -> dict[str, Any]:
        nonlocal door
        try:
            return _read(door, path, seconds, wish)
        except AgentUnreachable:
            door = reading_door(ctx, known=door)
            raise

    return read


def _read(door: "Door", path: str, seconds: float, wish: Wish) -> dict[str, Any]:
    """The document, with its rows filtered and sorted as they will be shown."""
    from esnode.client import ask

    document = ask(door, path, schema=SCHEMA, timeout_seconds=seconds)
    with reading_what(door.shown):
        # What every part of the screen rests on, looked at once.
        _ = document["cluster"]["state"], document["cluster"]["nodes"], document["warnings"]
        name = "racks" if wish.parts == ("racks",) else "nodes"
        rows = selected_rows(document[name], wish)
        _ = document["racks"], [row["state"] for row in (*rows, *document["nodes"])]
        return document | {name: rows}


def _watch(
    read: Callable[[], dict[str, Any]],
    show: Callable[[dict[str, Any], int | None], str],
    interval_seconds: float,
    *,
    as_json: bool,
) -> None:
    """Show the status over and over; an agent that does not answer for a while is told and waited
    for, but one that is in no cluster ends it.
    """
    from esnode.cli.live import Screen
    from esnode.client import AgentUnreachable

    is_terminal = sys.stdout.isatty() and not as_json
    screen = Screen(is_colored=False)
    next_at = monotonic_seconds()
    sequence = 0
    last = ""
    try:
        while True:
            sequence += 1
            try:
                document = read()
            except AgentUnreachable as error:
                if sequence == 1:
                    raise
                _tell_silence(screen, str(error), last, sequence, is_terminal, as_json)
            else:
                document = {**document, "seq": sequence} if as_json else document
                last = show(document, terminal_width())
                if is_terminal:
                    screen.draw("esnode cluster status   Ctrl-C ends it", _clipped(last))
                else:
                    click.echo(last if as_json else f"{last}\n")
            next_at = max(next_at + interval_seconds, monotonic_seconds())
            time.sleep(max(0.0, next_at - monotonic_seconds()))
    except KeyboardInterrupt:
        if is_terminal:
            click.echo()


def _tell_silence(
    screen: Any, line: str, last: str, sequence: int, is_terminal: bool, as_json: bool
) -> None:
    if as_json:
        click.echo(json.dumps({"schema": "esnode.error/1", "seq": sequence, "error": line}))
    elif is_terminal:
        screen.draw(f"NOT REACHABLE NOW, what follows is old: {line}", _clipped(last))
    else:
        note(f"esnode: {line}")


def _clipped(text: str) -> str:
    """As many lines as the terminal has, with room for the head."""
    lines = text.splitlines()
    room = max(4, shutil.get_terminal_size().lines - 3)
    if len(lines) <= room:
        return text
    hidden = len(lines) - room + 1
    return "\n".join([*lines[: room - 1], f"(and {hidden} lines more)"])
