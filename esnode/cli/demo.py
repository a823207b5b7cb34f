"""`esnode demo`: a real agent with simulated GPUs, put under changing load, in a live table."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import click

from esnode.cli.context import EXIT_DEGRADED, EXIT_USAGE, fail, wants_color
from esnode.cli.demo_load import SCENES, play
from esnode.cli.live import Screen
from esnode.cli.status import render
from esnode.clock import monotonic_seconds

START_SECONDS = 20.0
SETTLE_SECONDS = 4.0
"""Until the simulated GPUs' draw has followed the load, and two rounds have been read."""

SCENE_SECONDS = 8


@click.command()
@click.option("--hardware", default="h100x8", metavar="SPEC", help="GPUs, e.g. h100x8, l40sx2.")
@click.option("--once", is_flag=True, help="Print the settled state once and exit.")
@click.option("--json", "as_json", is_flag=True, help="With --once: the status document.")
@click.option("--seconds", type=float, default=None, help="End after this long.")
@click.option(
    "--nodes", type=click.IntRange(1, 32), default=1, help="How many agents; they form a cluster."
)
@click.option("--racks", type=click.IntRange(1, 32), default=1, help="In how many racks.")
@click.option("--chaos", is_flag=True, help="Kill or stop an agent now and then; it comes back.")
@click.option(
    "--budget", metavar="WATTS", help="Of each rack, e.g. 9kW; else half of what it wants."
)
@click.option("--no-budget", is_flag=True, help="A cluster without rack power.")
@click.pass_context
def demo(
    ctx: click.Context,
    hardware: str,
    once: bool,
    as_json: bool,
    seconds: float | None,
    nodes: int,
    racks: int,
    chaos: bool,
    budget: str | None,
    no_budget: bool,
) -> None:
    """See it work: an agent with simulated GPUs, and a live table; or a whole cluster of them.

    Starts a real agent on a free port of 127.0.0.1, with simulated GPUs and this machine's real
    processors, memory, disks and network. Nothing is installed and nothing remains. Ctrl-C ends it.

    With --nodes, so many agents form a cluster by real invites, over real UDP and TLS, and each
    rack comes under a power budget. Work moves from node to node, and watts follow it. Beside what
    the agents say stands what the limits in the machines' own files come to; with one instant over
    the budget less its margin the demo ends with 1, also under --chaos.

    \b
    esnode demo
    esnode demo --hardware h100x4+l40sx2
    esnode demo --once
    esnode demo --nodes 6 --racks 2 --chaos
    """
    from esnode.drivers.simulated.parts import parse_spec

    spec = hardware.removeprefix("simulated:")
    try:
        parse_spec(spec)
    except ValueError as error:
        fail(str(error), code=EXIT_USAGE)
    is_cluster = nodes > 1 or chaos or racks > 1
    watts = _budget_watts(budget, has_none=no_budget, is_cluster=is_cluster)
    for number in (signal.SIGTERM, signal.SIGHUP):  # a closed terminal must not leave the agent
        signal.signal(number, _end)
    folder = Path(tempfile.mkdtemp(prefix="esnode-demo-"))
    if is_cluster:
        from esnode.cli.demo_screen import ClusterWish, show_cluster

        wished = ClusterWish(
            nodes=max(nodes, racks, 2), racks=racks, hardware=spec, budget_watts=watts,
            has_budget=not no_budget, is_once=once, as_json=as_json, seconds=seconds,
            has_chaos=chaos,
        )  # fmt: skip
        show_cluster(ctx, folder, wished)
        return
    wish = OneWish(hardware=spec, is_once=once, as_json=as_json, seconds=seconds)
    _show_one(ctx, folder, wish)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneWish:
    """Which machine is wanted, and what is shown of it."""

    hardware: str
    is_once: bool
    as_json: bool
    seconds: float | None


def _show_one(ctx: click.Context, folder: Path, wish: OneWish) -> None:
    try:
        with running_agent(folder, wish.hardware) as url, told_in_one_line():
            if wish.is_once:
                _show_once(ctx, folder, url, as_json=wish.as_json)
            else:
                _show_live(ctx, folder, url, wish.seconds)
    except KeyboardInterrupt:
        pass
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _budget_watts(text: str | None, *, has_none: bool, is_cluster: bool) -> int | None:
    from esnode.power_orders.quantities import BadQuantity, read_watts

    if text is None:
        return None
    if not is_cluster:
        fail("--budget is of a rack of several agents: give --nodes as well", code=EXIT_USAGE)
    if has_none:
        fail("--budget and --no-budget: choose one", code=EXIT_USAGE)
    try:
        return read_watts(text)
    except BadQuantity as bad:
        fail(f"--budget {bad}", code=EXIT_USAGE)


def _end(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)


@contextmanager
def running_agent(folder: Path, hardware: str) -> Iterator[str]:
    """A real agent in a process of its own; its URL."""
    from esnode.state import announced_address

    command = [
        sys.executable, "-m", "esnode", "agent", "--listen-address", "127.0.0.1:0",
        "--state-dir", str(folder), "--hardware", f"simulated:{hardware}",
        "--scrape-interval", "1s", "--enable-ipmi", "false",
    ]  # fmt: skip
    log = folder / "agent.log"
    kept = {name: text for name, text in os.environ.items() if not name.startswith("ESNODE_")}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=kept, cwd=folder)
    try:
        deadline = monotonic_seconds() + START_SECONDS
        while (url := announced_address(folder)) is None:
            if process.poll() is not None or monotonic_seconds() > deadline:
                last = log.read_text(errors="replace").strip().splitlines()[-1:]
                fail(f"the agent did not start: {' '.join(last)}", code=EXIT_DEGRADED)
            time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def told_in_one_line() -> Iterator[None]:
    """Turn what the agent, or the machine under it, fails with into one line."""
    from esnode.client import AgentRefused, AgentUnreachable
    from esnode.drivers.simulated.store import StoreFailed

    try:
        yield
    except (AgentUnreachable, AgentRefused, StoreFailed) as error:
        fail(f"the demo ends early: {error}", code=EXIT_DEGRADED)


def _show_once(ctx: click.Context, folder: Path, url: str, *, as_json: bool) -> None:
    from esnode.client import fetch_status

    if sys.stderr.isatty():
        click.echo(f"agent at {url}; putting load on its GPUs ...", err=True)
    play(folder, SCENES[2][1])
    time.sleep(SETTLE_SECONDS)
    document = fetch_status(url)
    if as_json:
        click.echo(json.dumps(document, indent=2))
    else:
        click.echo(render(document, is_colored=wants_color(ctx)))


def _show_live(ctx: click.Context, folder: Path, url: str, seconds: float | None) -> None:
    from esnode.client import fetch_status

    screen = Screen(is_colored=wants_color(ctx))
    started = monotonic_seconds()
    scene = -1
    while True:
        passed = monotonic_seconds() - started
        if seconds is not None and passed >= seconds:
            return
        wanted = int(passed / SCENE_SECONDS) % len(SCENES)
        if wanted != scene:
            scene = wanted
            play(folder, SCENES[scene][1])
        text = render(fetch_status(url), is_colored=wants_color(ctx))
        head = f"esnode demo  {url}  {SCENES[scene][0]}  (Ctrl-C ends it)"
        screen.draw(head, text)
        time.sleep(1.0)
