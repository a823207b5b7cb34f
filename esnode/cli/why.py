"""`esnode why`: what was decided about a job, GPU, pid or unit, by what rule, on what evidence.

Its own file because it joins two sources: what the agent says now, and what its files say of
before. With the agent down the files alone answer, and it says so. It must not know features.
"""

import click

from esnode.cli.audit import audit_folder, shown, telling_unreadable
from esnode.cli.cluster_places import control_door, note, with_socket
from esnode.cli.context import EXIT_DEGRADED
from esnode.cli.control import PATH, SCHEMA


@click.command()
@click.argument("what")
@click.option("-n", "count", type=click.IntRange(1), default=10, show_default=True, help="Lines.")
@with_socket
@click.pass_context
def why(ctx: click.Context, what: str, count: int, socket_path: str | None) -> None:
    """Say what this node decided about WHAT: a job, a GPU, a pid, a unit or a ticket.

    \b
      esnode why GPU-1a2b
      esnode why act-12

    Exit codes: 0 something is known, 1 nothing is, 2 wrong usage, 4 not allowed.
    """
    from esnode.audit import is_about, read_entries

    now = _now_lines(ctx, what, socket_path)
    folder = audit_folder(ctx)
    with telling_unreadable(folder):
        before = [shown(entry) for entry in read_entries(folder) if is_about(entry, what)]
    for line in now:
        click.echo(line)
    for line in before[-count:]:
        click.echo(line)
    if not now and not before:
        click.echo(f"nothing was decided about {what}: not in {folder}, and not now", err=True)
        ctx.exit(EXIT_DEGRADED)


def _now_lines(ctx: click.Context, what: str, socket_path: str | None) -> list[str]:
    """What the rules say of it now."""
    from esnode.audit.reading import Entry, is_about
    from esnode.client import AgentRefused, AgentUnreachable, ask

    try:
        document = ask(control_door(ctx, socket_path), PATH, schema=SCHEMA)
        return [
            f"now  {one['word']}  {one['feature']}: {one['action']}: {one['target']}  {one['line']}"
            f"  because {', '.join(one['evidence'])}  by rule {one['rule']}"
            for one in document["decisions"]
            if is_about(Entry(file="", line_number=0, fields=one), what)
        ]
    except (AgentUnreachable, AgentRefused) as error:
        note(f"{error}; what follows is from the files alone")
        return []
