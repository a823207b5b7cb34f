"""`esnode power status`: the budget of this agent's rack and every slot, once or over and over.

Its own file because it turns options into a screen, and the document into an exit code. It must not
know how the screen looks.
"""

import json
import shutil
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from esnode.cli.cluster_places import note, reading_door, reading_what, tells_errors_in_one_line
from esnode.cli.cluster_status import WATCH_SECONDS_MIN, seconds_of, terminal_width
from esnode.cli.cluster_table import Look
from esnode.cli.cluster_text import Units, colored, plain
from esnode.cli.context import EXIT_DEGRADED, EXIT_USAGE, fail, wants_color
from esnode.cli.power_screen import render, render_other_rack
from esnode.cli.power_speaker import read_power
from esnode.clock import monotonic_seconds

if TYPE_CHECKING:
    from esnode.client import Door

BAD_STATES = ("parked", "quarantined", "unavailable")


@click.command()
@click.option("--rack", metavar="RACK", help="Of another rack: what its nodes tell.")
@click.option("--gpus", "has_gpus", is_flag=True, help="Also the devices of the agent's machine.")
@click.option("--json", "as_json", is_flag=True, help="The document (esnode.power/1).")
@click.option("--watch", is_flag=False, flag_value="2s", metavar="[TIME]",
              help="Over and over; every 2 s unless TIME is given.")  # fmt: skip
@click.option("--units", type=click.Choice([unit.value for unit in Units]),
              default=Units.AUTO.value, help="How watts are written.")  # fmt: skip
@click.pass_context
@tells_errors_in_one_line
def status(
    ctx: click.Context,
    rack: str | None,
    has_gpus: bool,
    as_json: bool,
    watch: str | None,
    units: str,
) -> None:
    """Show the power of the rack in which the agent is.

    All watts are those of whole machines at their inlets. `-` is not known, `~` a sum over a part.
    The grade says what may be relied on: A enforced and metered, B enforced and modelled, C
    unprotected, with the slots for which it is.

    \b
    esnode power status
    esnode power status --watch
    esnode power status --gpus --agent http://gpu-07:9100

    Exit codes: 0 grade A or B, or no budget at all; 1 grade C, an alarm, or this node is parked; 3
    agent not reachable.
    """
    paint = colored if wants_color(ctx) else plain
    door = reading_door(ctx)
    read = partial(_read_rack, door, rack)

    def show(document: dict[str, Any]) -> str:
        look = Look(width=terminal_width(), units=Units(units), paint=paint)
        with reading_what(door.shown):
            if "asked_rack" in document:
                return render_other_rack(document["rack"], str(document["asked_rack"]), look)
            return render(document, look, has_gpus=has_gpus)

    if watch is not None:
        interval = max(WATCH_SECONDS_MIN, seconds_of("--watch", watch))
        _watch(read, show, interval, as_json=as_json)
        return
    document = read()
    click.echo(json.dumps(document, indent=2) if as_json else show(document))
    sys.exit(exit_code(document))


def exit_code(document: dict[str, Any]) -> int:
    """Whether the rack is protected, and this node a part of it."""
    if "asked_rack" in document:
        currencies = (document["rack"].get("power") or {}).get("currencies") or ()
        return EXIT_DEGRADED if any(one["grade"] == "C" for one in currencies) else 0
    is_bad = (
        document["state"] in BAD_STATES
        or bool(document.get("alarms"))
        or any(one["grade"] == "C" or one.get("alarms") for one in document["currencies"])
    )
    return EXIT_DEGRADED if is_bad else 0


def _read_rack(door: "Door", rack: str | None) -> dict[str, Any]:
    """The power document of the agent; of another rack its totals, and what its nodes told."""
    from esnode.client import AgentRefused, ask

    if rack is None:
        return read_power(door)
    document = ask(door, "/v1/cluster", schema="esnode.cluster_status/")
    with reading_what(door.shown):
        asked = str(document["asked"]["rack"])
        if asked == rack:
            return read_power(door)
        found = next((one for one in document["racks"] if one["id"] == rack), None)
        if found is None:
            known = ", ".join(str(one["id"]) for one in document["racks"]) or "none"
            fail(f"unknown rack {rack}; known are {known}", code=EXIT_USAGE)
        shown = {"schema": "esnode.power_rack/1", "asked_rack": asked, "rack": found}
    try:
        detail = ask(door, f"/v1/racks/{quote(rack)}/power", schema="esnode.power_rack/")
    except AgentRefused as error:
        if error.status != 404:  # an earlier version knows the totals alone
            raise
        return shown
    totals = found.get("power") or {}
    return {**shown, "rack": {**found, "power": {**totals, **detail}}}


def _watch(
    read: Callable[[], dict[str, Any]],
    show: Callable[[dict[str, Any]], str],
    interval_seconds: float,
    *,
    as_json: bool,
) -> None:
    from esnode.cli.live import Screen
    from esnode.client import AgentUnreachable

    is_terminal = sys.stdout.isatty() and not as_json
    screen = Screen(is_colored=False)
    last = ""
    try:
        while True:
            began = monotonic_seconds()
            try:
                document = read()
                last = json.dumps(document) if as_json else show(document)
                if is_terminal:
                    screen.draw("esnode power status   Ctrl-C ends it", _clipped(last))
                else:
                    click.echo(last if as_json else f"{last}\n")
            except AgentUnreachable as error:
                if not last:
                    raise
                if is_terminal:
                    screen.draw(f"NOT REACHABLE NOW, what follows is old: {error}", _clipped(last))
                else:
                    note(f"esnode: {error}")
            time.sleep(max(0.0, began + interval_seconds - monotonic_seconds()))
    except KeyboardInterrupt:
        if is_terminal:
            click.echo()


def _clipped(text: str) -> str:
    """As many lines as the terminal has, with room for the head."""
    lines = text.splitlines()
    room = max(4, shutil.get_terminal_size().lines - 3)
    if len(lines) <= room:
        return text
    return "\n".join([*lines[: room - 1], f"(and {len(lines) - room + 1} lines more)"])
