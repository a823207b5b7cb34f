"""`esnode diagnostics`: what this machine offers, what is missing, and how to get it."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import trio

from esnode import __version__
from esnode.checks import Check, system_checks
from esnode.cli.context import EXIT_DEGRADED, agent_url, config_or_exit, wants_color
from esnode.cli.text import table
from esnode.clock import monotonic_seconds
from esnode.collect import Collection
from esnode.config import Config, state_directory
from esnode.readings.sample import Reading

COLORS = {"ok": "green", "note": "cyan", "missing": "yellow", "broken": "red"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON (esnode.diagnostics/1).")
@click.pass_context
def diagnostics(ctx: click.Context, as_json: bool) -> None:
    """Say what this machine offers, what is missing, and how to get it.

    Reads every source once by itself, so it needs no running agent, and changes nothing. Exit code
    1 when something that should work does not.

    \b
    esnode diagnostics
    esnode --hardware simulated:h100x8 diagnostics --json
    """
    loaded = config_or_exit(ctx)
    if sys.stderr.isatty():
        click.echo("reading every source once ...", err=True)
    url = agent_url(ctx)
    checks = [check_agent(url)]
    checks += system_checks(
        procfs=Path(loaded.config.procfs_path),
        sysfs=Path(loaded.config.sysfs_path),
        state_dir=state_directory(loaded.config, os.environ),
        listen=loaded.config.listen_address,
        is_agent_up=checks[0].state == "ok",
    )
    checks += source_checks(read_once(loaded.config))
    checks += [
        Check(
            subject=f"key {name}",
            state="note",
            detail="is set, and nothing in this version reads it",
            advice="remove it, or keep it for later",
        )
        for name in loaded.dormant_keys_in_use()
    ]
    if as_json:
        click.echo(json.dumps(_document(checks), indent=2))
    else:
        click.echo(render(checks, is_colored=wants_color(ctx)))
    if any(check.state == "broken" for check in checks):
        sys.exit(EXIT_DEGRADED)


def check_agent(url: str) -> Check:
    """Whether an agent answers."""
    from esnode.client import AgentRefused, AgentUnreachable, fetch_status

    try:
        document = fetch_status(url)
    except AgentUnreachable:
        return Check(
            subject="agent",
            state="note",
            detail=f"none answers at {url}",
            advice="start one with `esnode agent`",
        )
    except AgentRefused as error:
        return Check(subject="agent", state="broken", detail=str(error))
    version = document["agent_version"]
    if version != __version__:
        detail = f"{url} runs {version}, this command is {__version__}"
        return Check(subject="agent", state="note", detail=detail, advice="restart the agent")
    return Check(subject="agent", state="ok", detail=f"{url} answers, version {version}")


def read_once(config: Config) -> Reading:
    """One round of every source, as the agent would make it."""
    from esnode.plan import Hardware, make_plan

    hardware = Hardware(config, os.environ)
    collection = Collection(clock=monotonic_seconds)

    async def run() -> Reading:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(collection.run, make_plan(config, hardware))
            slowest = max(
                config.collect_deadline, config.ipmi_deadline if config.enable_ipmi else 0
            )
            with trio.move_on_after(slowest + 1.5):
                await until_answered(collection)
            nursery.cancel_scope.cancel()
        return collection.reading()

    reading = trio.run(run)
    hardware.programs.close()
    hardware.release()
    return reading


async def until_answered(collection: Collection) -> None:
    """Wait until every source, and every target found meanwhile, has answered once."""
    await trio.sleep(0.3)
    while any(s.state == "pending" for s in collection.reading().sources):  # noqa: ASYNC110
        await trio.sleep(0.05)


def source_checks(reading: Reading) -> Iterator[Check]:
    """One line for each source, and one for each thing that it cannot provide."""
    absent = {
        name: sample.value.absent
        for name in ("cpu", "memory", "disk", "network", "numa", "power", "ipmi", "gpu")
        if (sample := getattr(reading, name)) is not None
    }
    absent |= {f"app:{url}": sample.value.absent for url, sample in reading.apps.items()}
    for status in reading.sources:
        match status.state:
            case "ok":
                took = (status.duration_seconds or 0) * 1000
                yield Check(subject=f"source {status.name}", state="ok", detail=f"{took:.1f} ms")
            case "unavailable":
                yield Check(subject=f"source {status.name}", state="missing", detail=status.reason)
            case "pending":
                yield Check(subject=f"source {status.name}", state="broken", detail="no answer yet")
            case _:
                yield Check(subject=f"source {status.name}", state="broken", detail=status.reason)
        for absence in absent.get(status.name, ()):
            yield Check(subject=f"  {absence.what}", state="missing", detail=absence.reason)
    for uuid, gpu in reading.gpus.items():
        fields = ", ".join(absence.what for absence in gpu.value.absent)
        if fields:
            detail = f"not given by this part or driver: {fields} (reasons: /status)"
            yield Check(subject=f"  {uuid}", state="note", detail=detail)
    for name in reading.disabled:
        detail = "turned off by the configuration"
        yield Check(subject=f"source {name}", state="note", detail=detail)


def _document(checks: list[Check]) -> dict[str, object]:
    return {
        "schema": "esnode.diagnostics/1",
        "agent_version": __version__,
        "checks": [
            {
                "subject": check.subject.strip(),
                "state": check.state,
                "detail": check.detail,
                "advice": check.advice,
            }
            for check in checks
        ],
    }


def render(checks: list[Check], *, is_colored: bool) -> str:
    """The report: one line each, advice below it."""
    lines = []
    rows = [[check.state.upper(), check.subject, check.detail] for check in checks]
    for check, line in zip(checks, table(["", "", ""], rows).splitlines()[1:], strict=True):
        lines.append(click.style(line, fg=COLORS[check.state]) if is_colored else line)
        if check.advice:
            lines.append(f"{'':9}-> {check.advice}")
    return "\n".join(lines)
