"""`esnode cluster members` and `rack`: two smaller looks at the same state.

Their own file because `status` is long enough. They have its exit codes and its columns.
"""

import dataclasses
import json
import sys
from typing import Any
from urllib.parse import quote

import click

from esnode.cli.cluster_columns import MEMBER_COLUMNS, NODE_COLUMNS, RACK_COLUMNS
from esnode.cli.cluster_health import exit_code
from esnode.cli.cluster_places import reading_door, reading_what, tells_errors_in_one_line
from esnode.cli.cluster_screen import Wish, selected_rows, table_of, warnings
from esnode.cli.cluster_status import (
    SCHEMA,
    terminal_width,
    usage_errors,
    wish_of,
    with_looks,
)
from esnode.cli.cluster_table import Look, lay_out
from esnode.cli.cluster_text import colored, plain
from esnode.cli.context import EXIT_DEGRADED, wants_color

MEMBER_KEYS = (
    "id", "name", "rack", "state", "address", "version", "last_heard_seconds", "is_asked",
)  # fmt: skip


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON (esnode.cluster_members/1).")
@click.pass_context
@tells_errors_in_one_line
def members(ctx: click.Context, as_json: bool) -> None:
    """List the members with their addresses.

    \b
    esnode cluster members
    esnode cluster members --json | jq -r '.members[] | select(.state == "failed") | .name'

    Exit codes as of `esnode cluster status`.
    """
    from esnode.client import ask

    door = reading_door(ctx)
    document = ask(door, "/v1/cluster", schema=SCHEMA)
    with reading_what(door.shown):
        rows = sorted(document["nodes"], key=lambda node: (str(node["rack"]), str(node["name"])))
        code = exit_code(document, None)
    if as_json:
        shown = {
            "schema": "esnode.cluster_members/1",
            "members": [{key: node.get(key) for key in MEMBER_KEYS} for node in rows],
        }
        click.echo(json.dumps(shown, indent=2))
    else:
        paint = colored if wants_color(ctx) else plain
        look = Look(width=terminal_width(), paint=paint)
        click.echo(lay_out(rows, MEMBER_COLUMNS, look).text)
    sys.exit(code)


@click.command()
@click.argument("rack_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="The document (esnode.rack_status/1).")
@with_looks
@click.pass_context
@tells_errors_in_one_line
def rack(ctx: click.Context, /, rack_id: str, as_json: bool, **looks: Any) -> None:
    """Show one rack and its nodes, also one that this agent is not in.

    \b
    esnode cluster rack r02
    esnode cluster rack r02 --sort -tmax --json

    Exit code 1: the rack is not ok.
    """
    from cluster.ids import parse_rack
    from esnode.client import ask

    with usage_errors():
        wish = wish_of(ctx, "nodes", **looks)
    path = f"/v1/racks/{quote(parse_rack(rack_id))}"
    door = reading_door(ctx)
    document = ask(door, path, schema="esnode.rack_status/")
    with reading_what(door.shown):
        document = document | {"nodes": selected_rows(document["nodes"], wish)}
        screen, state = _render(document, wish), document["rack"]["state"]
    click.echo(json.dumps(document, indent=2) if as_json else screen)
    if state != "ok":
        sys.exit(EXIT_DEGRADED)


def _render(document: dict[str, Any], wish: Wish) -> str:
    wish = dataclasses.replace(wish, look=dataclasses.replace(wish.look, width=terminal_width()))
    head = dataclasses.replace(wish, columns=None, condition=None, order=None)
    blocks = [
        table_of([document["rack"]], RACK_COLUMNS, head, is_asked=False),
        table_of(document["nodes"], NODE_COLUMNS, wish, is_asked=True),
        warnings(document["warnings"], wish.look),
    ]
    return "\n\n".join(block for block in blocks if block)
