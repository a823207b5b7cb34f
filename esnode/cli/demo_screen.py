"""What `esnode demo --nodes N` shows. Its own file because making the cluster is another matter."""

import json
import sys
import time
from pathlib import Path

import click

from esnode.cli.cluster_health import exit_code
from esnode.cli.cluster_screen import Wish, render
from esnode.cli.cluster_status import terminal_width
from esnode.cli.cluster_table import Look
from esnode.cli.cluster_text import colored, plain
from esnode.cli.context import EXIT_DEGRADED, fail, wants_color
from esnode.cli.demo_cluster import Demo, DemoFailed, running_demo
from esnode.cli.live import Screen
from esnode.clock import monotonic_seconds

DOWN_SECONDS = 15.0
"""Long enough to be given up: a crash on one machine is noticed within about 3 s."""
UP_SECONDS = 10.0
EVENTS_SHOWN = 5


def show_cluster(
    ctx: click.Context,
    folder: Path,
    wish: tuple[int, int, str],
    *,
    once: bool,
    as_json: bool,
    seconds: float | None,
    chaos: bool,
) -> None:
    """Run the demo: settled once, or live until Ctrl-C."""
    nodes, racks, hardware = wish
    is_colored = wants_color(ctx)
    look = Look(paint=colored if is_colored else plain, width=terminal_width())
    code = 0
    try:
        with running_demo(folder, nodes=nodes, racks=racks, hardware=hardware, tell=_tell) as demo:
            if once:
                document = demo.settled()
                click.echo(
                    json.dumps(document, indent=2) if as_json else render(document, Wish(look=look))
                )
                code = exit_code(document, None)
            else:
                screen = Screen(is_colored=is_colored)
                _show_live(demo, screen, look, seconds, chaos=chaos)
    except DemoFailed as error:
        fail(f"the demo ends early: {error}", code=EXIT_DEGRADED)
    except KeyboardInterrupt:
        pass
    sys.exit(code)


def _tell(line: str) -> None:
    click.echo(line, err=True)


def _show_live(
    demo: Demo, screen: Screen, look: Look, seconds: float | None, *, chaos: bool
) -> None:
    started = monotonic_seconds()
    while seconds is None or monotonic_seconds() - started < seconds:
        now = monotonic_seconds()
        if chaos:
            demo.play_chaos(now, down_seconds=DOWN_SECONDS, up_seconds=UP_SECONDS)
        seen = demo.document()
        if seen is not None:
            name, document = seen
            events = "".join(f"\n{line}" for line in demo.events[-EVENTS_SHOWN:])
            head = (
                f"esnode demo  {len(demo.machines)} agents on this machine; {name} is asked  "
                "(Ctrl-C ends it)"
            )
            screen.draw(head, render(document, Wish(look=look)) + events)
        time.sleep(1.0)
