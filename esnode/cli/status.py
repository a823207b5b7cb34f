"""`esnode status`: one screen about one node."""

import json
import sys
from typing import Any

import click

from esnode.cli.context import (
    EXIT_DEGRADED,
    EXIT_UNREACHABLE,
    agent_url,
    fail,
    wants_color,
)
from esnode.cli.text import UNKNOWN, duration, number, size, table


@click.command()
@click.option("--json", "as_json", is_flag=True, help="The whole document (esnode.status/1).")
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    """Show what the agent says of this machine.

    \b
    esnode status                               the agent of this machine
    esnode --agent http://node7:9100 status     another one

    Exit code 0: healthy; 1: something is degraded or a source fails; 3: no agent answers.
    """
    from esnode.client import AgentRefused, AgentUnreachable, fetch_status

    url = agent_url(ctx)
    try:
        document = fetch_status(url)
    except AgentUnreachable as error:
        fail(str(error), code=EXIT_UNREACHABLE)
    except AgentRefused as error:
        fail(str(error), code=EXIT_UNREACHABLE)
    if as_json:
        click.echo(json.dumps(document, indent=2))
    else:
        click.echo(render(document, is_colored=wants_color(ctx)))
    if not document["healthy"] or document["degradation_score"]:
        sys.exit(EXIT_DEGRADED)


def render(document: dict[str, Any], *, is_colored: bool) -> str:
    """The screen."""

    def paint(text: str, color: str) -> str:
        return click.style(text, fg=color) if is_colored else text

    parts = [_summary(document, paint), _machine(document)]
    if document["gpus"]:
        parts.append(_gpus(document, paint))
    parts.extend(_troubles(document, paint))
    return "\n\n".join(part for part in parts if part)


def _summary(document: dict[str, Any], paint: Any) -> str:
    score = document["degradation_score"]
    if not document["healthy"]:
        word, color = "NOT HEALTHY", "red"
    elif score:
        word, color = f"DEGRADED ({score})", "yellow"
    else:
        word, color = "healthy", "green"
    up = duration(document["uptime_seconds"])
    head = (
        f"{document['hostname']}  {paint(word, color)}  agent {document['agent_version']}, up {up}"
    )
    tags = "  ".join(f"{name}={value}" for name, value in document["tags"].items())
    return f"{head}\n{tags}" if tags else head


def _machine(document: dict[str, Any]) -> str:
    loads = " ".join(number(document[f"load_avg_{minutes}m"], digits=2) for minutes in (1, 5, 15))
    node = document["node_power"]
    power = UNKNOWN
    if node:
        mark = "estimated, " if node["estimated"] else ""
        power = f"{node['watts']:,.0f} W ({mark}{node['source']})"
    envelope = document["node_power_envelope_watts"]
    if envelope:
        word = "EXCEEDED" if document["node_power_envelope_exceeded"] else "kept"
        power += f"  envelope {envelope:,.0f} W {word}"
    app = document["app"]
    used, total = size(document["mem_used_bytes"]), size(document["mem_total_bytes"])
    root_used, root = (size(document[f"disk_root_{what}_bytes"]) for what in ("used", "total"))
    received, sent = (size(document[f"net_{way}_bytes_per_sec"]) for way in ("rx", "tx"))
    busy, cores = number(document["cpu_util_percent"], " %"), document["cpu_cores"] or UNKNOWN
    rows = [
        ("CPU", f"{busy} of {cores} cores, load {loads}"),
        ("Memory", f"{used} of {total} used, swap {size(document['swap_used_bytes'])}"),
        ("Disk /", f"{root_used} of {root} used"),
        ("Network", f"{document['primary_nic'] or UNKNOWN}  in {received}/s  out {sent}/s"),
        ("Power", power),
    ]
    if app["endpoints"]:
        rate = number(app["tokens_per_sec"], "/s", 1)
        rows.append(("Tokens", f"{rate}, {number(app['tokens_per_joule'], ' per joule', 3)}"))
    return "\n".join(f"{name:<9}{text}" for name, text in rows)


def _gpus(document: dict[str, Any], paint: Any) -> str:
    rows = []
    for gpu in document["gpus"]:
        if not gpu["up"]:
            # Why is told below the table, where there is room.
            rows.append([gpu["gpu"] or UNKNOWN, "DOWN", *[UNKNOWN] * 6])
            continue
        rows.append([
            gpu["gpu"] or UNKNOWN,
            gpu["name"].removeprefix("NVIDIA "),
            number(gpu["util_percent"], " %"),
            f"{size(gpu['memory_used_bytes'])} / {size(gpu['memory_total_bytes'])}",
            number(gpu["temperature_celsius"], " C"),
            number(gpu["power_watts"], " W"),
            number(gpu["power_limit"]["enforced_watts"], " W"),
            _throttle(gpu["health"]["throttle_reasons"]),
        ])  # fmt: skip
    header = ["GPU", "Name", "Util", "Memory", "Temp", "Draw", "Cap", "Throttle"]
    lines = table(header, rows, right=(2, 3, 4, 5, 6)).splitlines()
    for i, gpu in enumerate(document["gpus"], start=1):
        if not gpu["up"]:
            lines[i] = paint(lines[i], "red")
        elif gpu["thermal_throttle"] or gpu["power_throttle"]:
            lines[i] = paint(lines[i], "yellow")
    return "\n".join(lines)


def _throttle(reasons: list[str] | None) -> str:
    if reasons is None:
        return UNKNOWN
    return ", ".join(reason for reason in reasons if reason != "gpu_idle") or "none"


def _troubles(document: dict[str, Any], paint: Any) -> list[str]:
    lines = [
        paint(f"! {flag['kind']} {flag['subject']}: {flag['detail']}".replace(" :", ":"), "yellow")
        for flag in document["degradation_flags"]
    ]
    down = {gpu["uuid"]: gpu for gpu in document["gpus"] if not gpu["up"]}
    lines += [
        paint(f"! GPU {gpu['gpu'] or gpu['uuid']} is down: {gpu['reason']}", "red")
        for gpu in down.values()
    ]
    told = {f"gpu:{gpu['gpu']}" for gpu in down.values()}
    driver = document.get("gpu_driver") or {}
    lines += [
        paint(f"! {lost['what']}: {lost['reason']}", "red")
        for lost in driver.get("lost", ())
        if lost["what"] not in told
    ]
    for source in document["sources"]:
        if source["state"] in ("failed", "stalled") and source["target"] not in down:
            name = f"{source['collector']} {source['target']}".rstrip()
            lines.append(paint(f"! {name} {source['state']}: {source['reason']}", "red"))
    missing = [
        f"  {name}: {absence['reason']}"
        for name, absences in document["absent"].items()
        for absence in absences
        if absence["what"] == name
    ]
    blocks = ["\n".join(lines)] if lines else []
    if missing:
        blocks.append(
            "Not on this machine (`esnode diagnostics` says more):\n" + "\n".join(missing)
        )
    return blocks
