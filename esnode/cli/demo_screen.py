"""What `esnode demo --nodes N` shows. Its own file because making the cluster is another matter."""

import json
import random
import secrets
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from esnode.cli.cluster_health import exit_code
from esnode.cli.cluster_screen import Wish, render
from esnode.cli.cluster_status import terminal_width
from esnode.cli.cluster_table import Look
from esnode.cli.cluster_text import colored, plain
from esnode.cli.context import EXIT_DEGRADED, fail, wants_color
from esnode.cli.demo_chaos import Chaos
from esnode.cli.demo_cluster import Demo, DemoFailed, running_demo
from esnode.cli.demo_power import RackNow, Racks
from esnode.cli.demo_witness import Verdict
from esnode.cli.live import Screen
from esnode.clock import monotonic_seconds

EVENTS_SHOWN = 5
FOLLOW_SECONDS = 8.0
"""Until watts have followed the work: a second to see it, two to settle, one to give."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterWish:
    """What kind of cluster is wanted, and what is shown of it."""

    nodes: int
    racks: int
    hardware: str
    budget_watts: int | None = None
    has_budget: bool = True
    is_once: bool = False
    as_json: bool = False
    seconds: float | None = None
    has_chaos: bool = False


def show_cluster(ctx: click.Context, folder: Path, wish: ClusterWish) -> None:
    """Run the demo: settled once, or live until Ctrl-C."""
    is_colored = wants_color(ctx)
    look = Look(paint=colored if is_colored else plain, width=terminal_width())
    code = 0
    try:
        with running_demo(
            folder, nodes=wish.nodes, racks=wish.racks, hardware=wish.hardware, tell=_tell
        ) as demo:
            racks = _found(demo, wish)
            if wish.is_once:
                code = _show_once(demo, racks, look, wish)
            else:
                screen = Screen(is_colored=is_colored)
                code = _show_live(demo, racks, screen, look, wish)
    except DemoFailed as error:
        fail(f"the demo ends early: {error}", code=EXIT_DEGRADED)
    except KeyboardInterrupt:
        pass
    sys.exit(code)


def _found(demo: Demo, wish: ClusterWish) -> Racks | None:
    if not wish.has_budget:
        return None
    demo.settled()
    racks = Racks(demo, wish.budget_watts)
    racks.found(_tell)
    return racks


def _tell(line: str) -> None:
    click.echo(line, err=True)


def _show_once(demo: Demo, racks: Racks | None, look: Look, wish: ClusterWish) -> int:
    """The cluster once its watts are where its work is."""
    seen: list[RackNow] = []
    if racks is not None:
        racks.shift(monotonic_seconds())
        time.sleep(FOLLOW_SECONDS)
        seen = racks.look()
    document = demo.settled(has_budget=racks is not None)
    if wish.as_json:
        click.echo(json.dumps(document, indent=2))
        return exit_code(document, None)
    click.echo(render(document, Wish(look=look)))
    for one in seen:
        click.echo(f"\n{_rack_text(one, look)}")
    is_over = racks is not None and _conclude(racks)
    return EXIT_DEGRADED if is_over else exit_code(document, None)


def _show_live(
    demo: Demo, racks: Racks | None, screen: Screen, look: Look, wish: ClusterWish
) -> int:
    chaos = Chaos(demo.machines, random.Random(secrets.randbits(64)))
    events: list[str] = []
    started = monotonic_seconds()
    try:
        while wish.seconds is None or monotonic_seconds() - started < wish.seconds:
            now = monotonic_seconds()
            if wish.has_chaos:
                chaos.play(now)
            moved = None if racks is None else racks.shift(now)
            events += [*chaos.events, *([moved] if moved else [])]
            chaos.events.clear()
            del events[:-EVENTS_SHOWN]
            _draw(demo, racks, screen, look, events)
            time.sleep(1.0)
    except KeyboardInterrupt:
        pass
    finally:
        chaos.end()
    if wish.has_chaos:
        _tell(f"{chaos.faults} agents were killed or stopped")
    return EXIT_DEGRADED if racks is not None and _conclude(racks) else 0


def _draw(demo: Demo, racks: Racks | None, screen: Screen, look: Look, events: list[str]) -> None:
    seen = demo.document()
    if seen is None:
        return
    name, document = seen
    head = (
        f"esnode demo  {len(demo.machines)} agents on this machine; {name} is asked  "
        "(Ctrl-C ends it)"
    )
    blocks = [_cluster_text(document, look, has_budget=racks is not None)]
    if racks is not None:
        blocks += [_rack_text(one, look) for one in racks.look()]
    screen.draw(head, "\n\n".join([*blocks, "\n".join(events)]))


def _cluster_text(document: dict[str, Any], look: Look, *, has_budget: bool) -> str:
    """The slots of a rack under a budget are its nodes: they need no second table."""
    wish = Wish(look=look)
    return render(document, replace(wish, parts=("summary",)) if has_budget else wish)


def _rack_text(one: RackNow, look: Look) -> str:
    """One rack: what its agents say, and what its machines' own histories say."""
    from esnode.cli.power_screen import render as render_power

    said = "no agent of it answers" if one.document is None else render_power(one.document, look)
    return f"{said}\n{_verdict_text(one.verdict, one.budget_watts, look)}"


def _verdict_text(verdict: Verdict, budget_watts: int, look: Look) -> str:
    now = "-" if verdict.now_watts is None else f"{verdict.now_watts:,.0f} W"
    over = look.paint(f"{verdict.over} over", "critical" if verdict.over else "ok")
    return (
        f"by the machines' own files, limits in force: {now} of {budget_watts:,} W; "
        f"{verdict.instants:,} instants, {over}"
    )


def _conclude(racks: Racks) -> bool:
    """The last word on every rack; whether one could draw too much."""
    is_over = False
    for rack, verdict in racks.conclude().items():
        allowed = racks.allowed_watts(rack)
        worst = "-" if verdict.worst_watts is None else f"{verdict.worst_watts:,.0f} W"
        _tell(
            f"rack {rack}: at most {worst} could be drawn of {allowed:,.0f} W (budget less "
            f"margin); {verdict.over} of {verdict.instants:,} instants were over"
        )
        is_over = is_over or verdict.over > 0
    return is_over
