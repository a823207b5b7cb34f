"""`esnode cluster events`: what has happened to members, and what happens next.

Its own file because a stream is another thing than an answer: it may break off and must go on
where it was. It must not know why members come and go; the agent's reasons are shown as they are.
"""

import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from esnode.cli.cluster_places import note, reading_door, reading_what, tells_errors_in_one_line
from esnode.cli.cluster_text import Painter, colored, figure, plain, printable
from esnode.cli.context import wants_color

if TYPE_CHECKING:
    from esnode.client import Door, ServedEvent

PATH = "/v1/cluster/events"
SCHEMA = "esnode.cluster_events/"
RECONNECT_SECONDS = (0.5, 1.0, 2.0, 5.0)
"""Between tries to find an agent that restarts; the last one again and again."""


@click.command()
@click.option("--follow", is_flag=True, help="Go on with each event as it comes.")
@click.option("--since", type=click.IntRange(min=0), metavar="ID", help="Those after this id.")
@click.option("--json", "as_json", is_flag=True, help="As JSON (esnode.cluster_events/1); with "
              "--follow one event a line.")  # fmt: skip
@click.pass_context
@tells_errors_in_one_line
def events(ctx: click.Context, follow: bool, since: int | None, as_json: bool) -> None:
    """Show what has happened to members; --follow goes on.

    When the agent restarts, --follow waits for it and says so. Ctrl-C ends it.

    \b
    esnode cluster events
    esnode cluster events --follow
    esnode cluster events --follow --json --since 41
    """
    door = reading_door(ctx)
    paint = colored if wants_color(ctx) else plain
    if follow:
        try:
            _follow(lambda: reading_door(ctx, known=door), since, paint, as_json=as_json)
        except KeyboardInterrupt:
            return
    else:
        _list(door, since, paint, as_json=as_json)


def event_line(event: Mapping[str, Any], paint: Painter) -> str:
    """One event on one line: when, whom, what became of it, and why."""
    at = printable(event.get("at"))
    when = f"{at[:10]} {at[11:19]}" if len(at) >= 19 else at
    subject, before = printable(event.get("subject")), event.get("before")
    after = None if event.get("after") is None else printable(event.get("after"))
    change = "" if after is None else paint(after, after)
    if change and before is not None:
        change = f"{printable(before)} -> {change}"
    kind = printable(event.get("kind"))
    what = change or kind if kind == "member" else f"{kind} {change}".rstrip()
    reason = printable(event.get("reason"))
    return f"{when}  {subject}  {what}" + (f"  ({reason})" if reason != "-" else "")


def _list(door: "Door", since: int | None, paint: Painter, *, as_json: bool) -> None:
    from esnode.client import ask

    document = ask(door, PATH, schema=SCHEMA)
    with reading_what(door.shown):
        shown = [one for one in document["events"] if since is None or one["id"] > since]
        lines = [event_line(one, paint) for one in shown]
    if as_json:
        click.echo(json.dumps(document | {"events": shown}, indent=2))
    elif shown:
        click.echo("\n".join(lines))
    else:
        note("no events yet" if since is None else f"no events after {since}")


def _follow(
    current_door: Callable[[], "Door"], since: int | None, paint: Painter, *, as_json: bool
) -> None:
    """Follow the stream through restarts of the agent."""
    from esnode import client

    last_id = "" if since is None else str(since)
    has_answered = False
    tries = 0
    while True:
        why = "the agent ended the stream"
        try:
            path = f"{PATH}?follow=1"
            for served in client.follow(current_door(), path, last_event_id=last_id):
                if tries:
                    note("the agent answers again")
                has_answered, tries = True, 0
                last_id = served.event_id or last_id
                if (line := _line(served, paint, as_json=as_json)) is not None:
                    click.echo(line)
            has_answered = True
        except client.AgentUnreachable as error:
            if not has_answered:
                raise
            why = str(error)
        except client.AgentRefused as error:
            if not has_answered or error.status not in (0, 500, 502, 503, 504):
                raise
            why = str(error)
        if not tries:
            note(f"{why}; waiting for it")
        time.sleep(RECONNECT_SECONDS[min(tries, len(RECONNECT_SECONDS) - 1)])
        tries += 1


def _line(served: "ServedEvent", paint: Painter, *, as_json: bool) -> str | None:
    """What to print of an event; None where it is none of ours."""
    try:
        event = json.loads(served.data)
    except ValueError:
        return None
    if not isinstance(event, dict) or figure(event.get("id")) is None:
        return None
    return json.dumps(event) if as_json else event_line(event, paint)
