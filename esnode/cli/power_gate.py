"""`esnode power gate`: wait until this machine may start work.

Its own file because units, prologs and boot scripts rest on its exit code: 0 is said only by an
agent that knows its cap to be set and settled. Whatever else happens, and whoever does not answer,
is not 0. It must not know why the gate is closed; the agent says so.
"""

import json
import time
from typing import TYPE_CHECKING, Any

import click

from esnode.cli.cluster_places import control_door, note, with_socket
from esnode.cli.cluster_status import seconds_of
from esnode.cli.context import EXIT_DEGRADED, fail
from esnode.clock import monotonic_seconds

if TYPE_CHECKING:
    from esnode.client import Door

ASK_SECONDS = 0.25
TOLD_SECONDS = 1.0
FREE_STATES = ("ungoverned", "observing", "static")
"""Nothing is capped there, so nothing has to settle."""
UNSURE_STATES = ("starting", "unavailable")
"""Whatever the gate says: nobody knows yet what the hardware does."""


@click.command()
@click.option("--timeout", default="60s", show_default=True, metavar="TIME", help="How long.")
@click.option("--json", "as_json", is_flag=True, help="As JSON (esnode.power_gate/1).")
@with_socket
@click.pass_context
def gate(ctx: click.Context, timeout: str, as_json: bool, socket_path: str | None) -> None:
    """Wait until this machine may start work, and end with 0.

    After a reboot the limits of its hardware are gone: until the agent has set the cap, read it
    back and let it settle, nothing may run here. Put it before whatever starts work.

    \b
    systemd unit      ExecStartPre=/usr/bin/esnode power gate --timeout 60
    Slurm             Prolog=/etc/slurm/prolog.sh, which ends with: esnode power gate
    Kubernetes        a start-up taint, taken off once esnode power gate ends with 0

    Exit codes: 0 open and settled; 1 not within the time, or no agent answers (then nobody knows);
    2 wrong usage.
    """
    ends = monotonic_seconds() + seconds_of("--timeout", timeout)
    began = monotonic_seconds()
    door = control_door(ctx, socket_path)
    told = ""
    while True:
        is_open, line = look(door, max(0.1, ends - monotonic_seconds()))
        if is_open:
            break
        now = monotonic_seconds()
        if line != told and now - began > TOLD_SECONDS:
            note(f"waiting: {line}")
            told = line
        if now >= ends:
            _say(False, line, as_json=as_json)
            fail(f"the gate of this machine is closed: {line}", code=EXIT_DEGRADED)
        time.sleep(min(ASK_SECONDS, max(0.0, ends - now)))
    _say(True, line, as_json=as_json)


def look(door: "Door", seconds: float) -> tuple[bool, str]:
    """Whether the gate is open beyond doubt, and what to say."""
    from esnode.cli.power_speaker import PATH, SCHEMA
    from esnode.client import TIMEOUT_SECONDS, AgentRefused, AgentUnreachable, ask

    try:
        document = ask(door, PATH, schema=SCHEMA, timeout_seconds=min(TIMEOUT_SECONDS, seconds))
        return judge(document)
    except (AgentUnreachable, AgentRefused) as error:
        return False, str(error)
    except (KeyError, TypeError, AttributeError):
        return False, f"what answers at {door.shown} is of another version"


def judge(document: dict[str, Any]) -> tuple[bool, str]:
    """By the document alone."""
    from esnode.power_orders.known import is_outside

    state, wall = str(document["state"]), document["gate"]
    if wall["is_open"] is not True:
        return False, str(wall["reason"] or document.get("detail") or f"this node is {state}")
    if is_outside(document):
        return False, (
            f"{document['node']} stands in no slot, and nothing is charged for its work; an "
            f"operator has to say `esnode power join {document['node']} --slot SLOT`"
        )
    if state in UNSURE_STATES:
        return False, str(document.get("detail") or f"this node is {state}")
    if state not in FREE_STATES and document["cap"]["is_settled"] is not True:
        return False, "the cap is set and has not settled yet"
    return True, f"open: {state}"


def _say(is_open: bool, line: str, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"schema": "esnode.power_gate/1", "is_open": is_open, "line": line}))
    elif is_open:
        click.echo(line)
