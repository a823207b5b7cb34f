"""``esnode job list``, ``show``, ``explain`` and ``top``."""

import datetime
import json
import shutil
import sys
import time
from typing import Any

import click

from esnode.cli.cluster_places import control_door, tells_errors_in_one_line, with_socket
from esnode.cli.cluster_text import cut
from esnode.cli.job_speaker import LIVE_STATES, fetch_job, fetch_jobs, find_job
from esnode.cli.text import UNKNOWN, duration, number, size, table
from esnode.clock import unix_seconds

SHORT = 8
TOP_SECONDS = 2.0


@click.command(name="list")
@click.option("--all", "-a", "is_all", is_flag=True, help="Also those that have ended.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@with_socket
@click.pass_context
@tells_errors_in_one_line
def list_jobs(ctx: click.Context, socket_path: str | None, *, is_all: bool, as_json: bool) -> None:
    """List the jobs of this node: those that wait or run, with --all also those that are over.

    \b
      esnode job list --all
    """
    document = fetch_jobs(control_door(ctx, socket_path))
    if as_json:
        click.echo(json.dumps(document))
        return
    if document["trouble"]:
        click.echo(f"esnode: no job is started: {document['trouble']}", err=True)
    jobs = [one for one in document["jobs"] if is_all or _is_open(one)]
    if not jobs:
        others = len(document["jobs"])
        hint = f"; {others} have ended (--all)" if others else ""
        click.echo(f"no jobs{hint}")
        return
    width = None if not sys.stdout.isatty() else shutil.get_terminal_size().columns
    rows = [_row(one) for one in jobs]
    header = ("JOB", "NAME", "STATE", "USER", "PRIO", "GPUS", "AGE", "WHY")
    text = table(header, rows, right=(4, 5))
    for line in text.split("\n"):
        click.echo(line if width is None else cut(line, width))


@click.command()
@click.argument("job")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@with_socket
@click.pass_context
@tells_errors_in_one_line
def show(ctx: click.Context, job: str, socket_path: str | None, *, as_json: bool) -> None:
    """Show everything that is known of JOB.

    \b
      esnode job show ticker
    """
    door = control_door(ctx, socket_path)
    document = fetch_job(door, find_job(door, job))
    if as_json:
        click.echo(json.dumps(document))
        return
    for name, value in _facts(document):
        click.echo(f"{name:<12}{value}")


@click.command()
@click.argument("job")
@with_socket
@click.pass_context
@tells_errors_in_one_line
def explain(ctx: click.Context, job: str, socket_path: str | None) -> None:
    """Say why JOB waits, or why it is where it is.

    \b
      esnode job explain ticker
    """
    door = control_door(ctx, socket_path)
    document = fetch_job(door, find_job(door, job))
    click.echo(f"{document['name']} ({document['id']}) is {document['state']}.")
    if document["phase"] == "queued" and not document["waits"]:
        click.echo("It is looked at within a second.")
    for line in document["waits"]:
        click.echo(f"  waits: {line}")
    if document["reason"]:
        click.echo(f"  last:  {document['reason']}")
    if document["trouble"]:
        click.echo(f"  now:   {document['trouble']}")
    if document["gpus"]:
        click.echo(f"  GPUs:  {', '.join(document['gpus'])}")
    if document["promised_by"]:
        click.echo(f"  it made room, and is to be started again by {document['promised_by']}")


@click.command()
@click.option("--once", is_flag=True, help="Print it once.")
@with_socket
@click.pass_context
@tells_errors_in_one_line
def top(ctx: click.Context, socket_path: str | None, *, once: bool) -> None:
    """Watch the jobs that run: processor time, memory, watts, energy, tokens. Ctrl-C ends it.

    \b
      esnode job top
    """
    door = control_door(ctx, socket_path)
    before: dict[str, tuple[float, float]] = {}
    is_live = sys.stdout.isatty() and not once
    while True:
        now = unix_seconds()
        jobs = [one for one in fetch_jobs(door)["jobs"] if one["state"] in LIVE_STATES]
        rows = [_top_row(one, before.get(one["id"]), now) for one in jobs]
        before = {
            one["id"]: (one["cpu_seconds"], now) for one in jobs if one["cpu_seconds"] is not None
        }
        header = (
            "JOB", "NAME", "STATE", "GPUS", "CPU", "MEMORY", "WATTS", "ENERGY", "TOKENS", "TOK/J",
        )  # fmt: skip
        text = table(header, rows, right=(3, 4, 5, 6, 7, 8, 9)) if rows else "no job runs"
        click.echo(f"\x1b[H\x1b[2J{text}" if is_live else text)
        if not is_live:
            return
        time.sleep(TOP_SECONDS)


def _is_open(job: dict[str, Any]) -> bool:
    return job["phase"] in ("queued", "running", "stopping", "handed")


def _row(job: dict[str, Any]) -> tuple[str, ...]:
    why = job["trouble"] or (job["waits"][0] if job["waits"] else "") or job["reason"]
    gpus = job["gpu_count"]
    return (
        job["id"][-SHORT:],
        job["name"] or UNKNOWN,
        job["state"],
        job["user"],
        UNKNOWN if job["priority"] is None else str(job["priority"]),
        UNKNOWN if gpus is None else str(gpus),
        _age(job["started_at"] if job["state"] in LIVE_STATES else job["submitted_at"]),
        why,
    )


def _top_row(
    job: dict[str, Any], before: tuple[float, float] | None, now: float
) -> tuple[str, ...]:
    cpu = UNKNOWN
    if before is not None and job["cpu_seconds"] is not None and now > before[1]:
        cpu = number((job["cpu_seconds"] - before[0]) / (now - before[1]) * 100, " %")
    energy = job["energy_joules"]
    return (
        job["id"][-SHORT:],
        job["name"],
        job["state"],
        str(len(job["gpus"])),
        cpu,
        size(job["memory_bytes"]),
        number(job["power_watts"], " W"),
        UNKNOWN if energy is None else number(energy / 1000, " kJ", 1),
        number(job["tokens"]),
        number(job["tokens_per_joule"], "", 2),
    )


def _age(text: str | None) -> str:
    if text is None:
        return UNKNOWN
    at = datetime.datetime.fromisoformat(text).timestamp()
    return duration(max(0.0, unix_seconds() - at))


def _facts(job: dict[str, Any]) -> list[tuple[str, str]]:
    facts: list[tuple[str, str]] = [
        ("job", job["id"]),
        ("name", job["name"]),
        ("state", job["state"] + (f" ({job['reason']})" if job["reason"] else "")),
        ("run right", f"epoch {job['epoch']}, start {job['attempt']}"),
        ("user", job["user"]),
        ("priority", UNKNOWN if job["priority"] is None else str(job["priority"])),
        ("submitted", job["submitted_at"] or UNKNOWN),
        ("started", job["started_at"] or UNKNOWN),
        ("ended", job["ended_at"] or UNKNOWN),
        ("GPUs", ", ".join(job["gpus"]) or f"{job['gpu_count']} wanted"),
        ("main pid", UNKNOWN if job["main_pid"] is None else str(job["main_pid"])),
        ("CPU", number(job["cpu_seconds"], " s", 1)),
        ("memory", size(job["memory_bytes"])),
        ("power", number(job["power_watts"], " W")),
        ("energy", number(job["energy_joules"], " J")),
        ("tokens", number(job["tokens"])),
        ("restarts", UNKNOWN if job["restarts"] is None else str(job["restarts"])),
        ("output", size(job["output_bytes"])),
    ]
    if job["exit_code"] is not None or job["exit_signal"] is not None:
        is_signal = job["exit_signal"] is not None
        end = f"signal {job['exit_signal']}" if is_signal else f"code {job['exit_code']}"
        facts.append(("exit", end))
    facts += [("waits", line) for line in job["waits"]]
    if job["trouble"]:
        facts.append(("trouble", job["trouble"]))
    facts.append(("spec", json.dumps(job["spec"])))
    return facts
