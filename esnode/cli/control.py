"""`esnode control`: what this node does by itself; pause it, resume it, take it back.

Its own file because it has to work in an emergency: a pause is made as a file even where no agent
answers. It must not know what the features do.
"""

import json
import os
import pwd
from pathlib import Path
from typing import Any

import click

from esnode.cli.cluster_places import control_door, state_folder, tells_errors_in_one_line
from esnode.cli.cluster_places import with_socket as with_socket_option
from esnode.cli.context import EXIT_DEGRADED, EXIT_NOT_ALLOWED, EXIT_USAGE, fail
from esnode.clock import unix_seconds

PATH = "/v1/control/rules"
SCHEMA = "esnode.control/"
FEATURES = ("thermal", "preemption")


@click.group()
def control() -> None:
    """See, pause and undo what this node does by itself.

    Each feature is off, observes (says what it would do), or enforces, by the configuration:
    control_thermal, control_preemption. A pause holds until somebody resumes, over restarts too.
    Pausing never raises a power cap.

    \b
      esnode control status
      esnode control plan                    what would be done now
      esnode control pause --reason "fans are being changed"
      esnode control resume
      esnode why GPU-1a2b                    what was decided about it, and why

    Without any command: touch STATE_DIR/control/PAUSED, or kill -USR2 the agent.

    Exit codes: 0 done (plan: nothing to do), 1 something would be done or is amiss, 2 wrong usage,
    3 agent not reachable, 4 not allowed.
    """


@control.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON (esnode.control/1).")
@with_socket_option
@click.pass_context
@tells_errors_in_one_line
def status(ctx: click.Context, socket_path: str | None, *, as_json: bool) -> None:
    """Show modes, budgets, pauses and leases.

    \b
      esnode control status --json
    """
    document = _fetch(ctx, socket_path)
    if as_json:
        click.echo(json.dumps(document))
        return
    for line in status_lines(document):
        click.echo(line)


@control.command()
@click.option("--feature", metavar="NAME", help="One feature alone.")
@click.option("--json", "as_json", is_flag=True, help="As JSON (esnode.control_plan/1).")
@with_socket_option
@click.pass_context
@tells_errors_in_one_line
def plan(
    ctx: click.Context, socket_path: str | None, feature: str | None, *, as_json: bool
) -> None:
    """Print what is wanted now, and what the rules say to it: exit 0 nothing, 1 something.

    \b
      esnode control plan --feature thermal
    """
    document = _fetch(ctx, socket_path)
    wanted = [one for one in document["decisions"] if feature in (None, one["feature"])]
    if as_json:
        click.echo(json.dumps({"schema": "esnode.control_plan/1", "decisions": wanted}))
    for one in () if as_json else wanted:
        click.echo(f"{one['feature']}: {one['action']}: {one['target']}")
        click.echo(f"  {one['word']}: {one['line']}")
        click.echo(f"  because {', '.join(one['evidence'])}")
    if not wanted and not as_json:
        click.echo("nothing")
    if wanted:
        ctx.exit(EXIT_DEGRADED)


@control.command()
@click.argument("feature", required=False)
@click.option("--reason", default="", metavar="TEXT", help="For whoever finds it paused.")
@with_socket_option
@click.pass_context
@tells_errors_in_one_line
def pause(ctx: click.Context, feature: str | None, socket_path: str | None, reason: str) -> None:
    """Stop FEATURE, or everything, within a second and until somebody resumes it.

    \b
      esnode control pause thermal --reason "fans are being changed"
    """
    _order(ctx, socket_path, "pause", feature, reason)


@control.command()
@click.argument("feature", required=False)
@with_socket_option
@click.pass_context
@tells_errors_in_one_line
def resume(ctx: click.Context, feature: str | None, socket_path: str | None) -> None:
    """Let FEATURE, or everything, act again; what fell back to observing or was given up, too.

    \b
      esnode control resume thermal
    """
    _order(ctx, socket_path, "resume", feature, "")


@control.command()
@click.argument("lease", required=False)
@click.option("--all", "is_all", is_flag=True, help="All of them.")
@with_socket_option
@click.pass_context
@tells_errors_in_one_line
def undo(ctx: click.Context, lease: str | None, socket_path: str | None, *, is_all: bool) -> None:
    """Put back what a lease changed. Power caps are no leases: nothing raises them this way.

    \b
      esnode control undo act-12
      esnode control undo --all
    """
    from esnode.client import ask

    if (lease is None) is not is_all:
        fail("name one lease, or say --all; `esnode control status` lists them", code=EXIT_USAGE)
    order = {} if lease is None else {"lease": lease}
    ask(control_door(ctx, socket_path), f"{PATH}/undo", schema=SCHEMA, order=order)
    click.echo("put back")


def _fetch(ctx: click.Context, socket_path: str | None) -> dict[str, Any]:
    from esnode.client import ask

    return ask(control_door(ctx, socket_path), PATH, schema=SCHEMA)


def _order(
    ctx: click.Context, socket_path: str | None, verb: str, feature: str | None, reason: str
) -> None:
    from esnode.client import AgentUnreachable, ask

    order = {**({"feature": feature} if feature else {}), **({"reason": reason} if reason else {})}
    what = feature or "everything"
    try:
        ask(control_door(ctx, socket_path), f"{PATH}/{verb}", schema=SCHEMA, order=order)
    except AgentUnreachable as error:
        _by_file(state_folder(ctx), verb, feature or "", reason)
        click.echo(f"note: {error}", err=True)
        where = "its next agent obeys"
        click.echo(f"{what} is {'paused' if verb == 'pause' else 'resumed'}: {where}")
    else:
        click.echo(f"{what} is {'paused' if verb == 'pause' else 'resumed'}")


def _by_file(state: Path, verb: str, feature: str, reason: str) -> None:
    """The same, where no agent answers."""
    from esnode.acting.rules import Pause
    from esnode.audit.files import FOLDER
    from esnode.pauses import end_pause, make_pause

    if feature and feature not in FEATURES:
        fail(f"no feature {feature!r}; there are {', '.join(FEATURES)}", code=EXIT_USAGE)
    if verb == "pause":
        pause = Pause(reason=reason, by=_user(), at_unix_seconds=unix_seconds())
        trouble = make_pause(state / FOLDER, feature, pause)
    else:
        trouble = "; ".join(
            filter(None, (end_pause(state / FOLDER, one) for one in _files(feature)))
        )
    if trouble:
        fail(trouble, code=EXIT_NOT_ALLOWED)


def _files(feature: str) -> tuple[str, ...]:
    return (feature,) if feature else ("", *FEATURES)


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def status_lines(document: dict[str, Any]) -> list[str]:
    """The document for people."""
    lines = []
    if document["trouble"]:
        lines.append(f"nothing is done: {document['trouble']}")
    if document["pause"]:
        lines.append(f"PAUSED, all of it: {_pause_line(document['pause'])}")
    for one in document["features"]:
        left = f"{one['budget_remaining']} of {one['budget_per_hour']} an hour left"
        lines.append(f"{one['name']:<12}{one['mode']:<9}{left}")
        lines.append(f"            {one['summary']}")
        if one["pause"]:
            lines.append(f"            paused: {_pause_line(one['pause'])}")
        if one["tripped"]:
            lines.append(f"            fell back: {one['tripped']}")
    lines += [
        f"lease {one['id']}: {one['kind']} of {one['target']}, {one['left_seconds']:.0f} s left"
        for one in document["leases"]
    ]
    return lines


def _pause_line(pause: dict[str, Any]) -> str:
    return f"by {pause['by']} since {pause['at']}: {pause['reason'] or 'no reason'}"
