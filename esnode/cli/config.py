"""`esnode config show|set`, and the predecessor's `enable-metric-set` and `disable-metric-set`."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from esnode.cli.context import EXIT_USAGE, config_or_exit, fail
from esnode.cli.text import table
from esnode.config.keys import KEYS
from esnode.config.load import (
    FILE_NAME,
    SYSTEM_FILE,
    ConfigError,
    LoadedConfig,
    find_file,
    simulated_hardware_file,
    state_directory,
)
from esnode.config.schema import Key
from esnode.config.values import MASK, Address, without_credentials

SETS = {
    "host": ("enable_cpu", "enable_memory", "enable_disk", "enable_network", "enable_numa"),
    "gpu": ("enable_gpu",),
    "power": ("enable_power", "enable_ipmi"),
    "app": ("enable_app",),
    "mcp": ("enable_mcp",),
}
SETS["all"] = tuple(key for keys in SETS.values() for key in keys)


@click.group()
def config() -> None:
    """Show the configuration and where each value comes from; change it.

    Flags win over environment variables (ESNODE_KEY), those over esnode.toml (working directory,
    then /etc/esnode, or --config), those over the defaults.

    \b
    esnode config show
    esnode config set scrape_interval=1s
    """


@config.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON (esnode.config/1).")
@click.option("--all", "show_all", is_flag=True, help="Also keys that have no effect yet.")
@click.pass_context
def show(ctx: click.Context, as_json: bool, show_all: bool) -> None:
    """Show every value and where it comes from. Secrets are masked.

    \b
    esnode config show
    ESNODE_SCRAPE_INTERVAL=1s esnode config show --json
    """
    loaded = config_or_exit(ctx)
    entries = _entries(loaded, show_all=show_all)
    if as_json:
        document = {
            "schema": "esnode.config/1",
            "file": None if loaded.file is None else str(loaded.file),
            "values": entries,
        }
        click.echo(json.dumps(document, indent=2))
        return
    rows = [
        [
            entry["key"],
            _shown(entry["value"]),
            f"{entry['source']} {entry['where']}".strip()
            + ("" if entry["has_effect"] else "  (no effect in this version)"),
        ]
        for entry in entries
    ]
    click.echo(table(["KEY", "VALUE", "FROM"], rows))


def _entries(loaded: LoadedConfig, *, show_all: bool) -> list[dict[str, Any]]:
    entries = []
    for key in KEYS.values():
        origin = loaded.origins[key.name]
        if key.is_dormant and origin.source == "default" and not show_all:
            continue
        value = _in_force(loaded, key)
        entries.append(
            {
                "key": key.name,
                "value": MASK if key.is_secret and value else _plain(key.name, value),
                "source": origin.source,
                "where": origin.where,
                "has_effect": not key.is_dormant,
            }
        )
    return entries


def _in_force(loaded: LoadedConfig, key: Key) -> object:
    """The value that is used; for places that are worked out when not set, the place."""
    match key.name:
        case "state_dir":
            return str(state_directory(loaded.config, os.environ))
        case "simulated_hardware_path" if loaded.config.hardware != "auto":
            return str(simulated_hardware_file(loaded.config, os.environ))
        case _:
            return getattr(loaded.config, key.attribute)


def _plain(name: str, value: object) -> object:
    match value:
        case Address():
            return str(value)
        case tuple() if name == "tags":
            return dict(value)
        case tuple():
            return [_plain("", item) for item in value]
        case str():
            return without_credentials(value)
        case float() if "interval" in name or "deadline" in name or name.endswith("latency"):
            return f"{value:g}s"
        case _:
            return value


def _shown(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "true" if value else "false"
        case list():
            return ",".join(map(str, value)) or "-"
        case dict():
            return ",".join(f"{name}={text}" for name, text in value.items()) or "-"
        case _:
            return str(value)


@config.command("set")
@click.argument("assignment", nargs=-1, required=True, metavar="KEY=VALUE...")
@click.pass_context
def set_(ctx: click.Context, assignment: tuple[str, ...]) -> None:
    """Change keys in the configuration file; comments and order stay.

    \b
    esnode config set scrape_interval=1s
    esnode config set orchestrator.token=... tags=env=prod,row=7

    The file is the one that would be read, else esnode.toml here. A running agent takes the change
    at SIGHUP; keys that need a restart say so in its log.
    """
    changes = {}
    for text in assignment:
        key, equals, value = text.partition("=")
        if not equals:
            fail(f"{text!r} is not KEY=VALUE, e.g. scrape_interval=1s", code=EXIT_USAGE)
        changes[key.strip()] = value
    file = _write(ctx, changes)
    click.echo(f"{file}: {', '.join(changes)} set; a running agent takes it at SIGHUP")
    _tell_dormant(changes)


def _write(ctx: click.Context, changes: dict[str, str]) -> Path:
    from esnode.config.edit import set_keys

    kept: dict[str, Any] = ctx.find_root().obj or {}
    try:
        named = kept.get("config_file") or os.environ.get("ESNODE_CONFIG")
        file = Path(named) if named else find_file(None, {}, Path.cwd())
        if file is None:
            is_system = os.geteuid() == 0 and SYSTEM_FILE.parent.is_dir()
            file = SYSTEM_FILE if is_system else Path.cwd() / FILE_NAME
        set_keys(file, changes)
    except ConfigError as error:
        fail(*error.problems, code=EXIT_USAGE)
    return file


def _switch(ctx: click.Context, name: str, value: str) -> None:
    file = _write(ctx, dict.fromkeys(SETS[name], value))
    word = "on" if value == "true" else "off"
    click.echo(f"{file}: {', '.join(SETS[name])} {word}; a running agent takes it at SIGHUP")
    _tell_dormant(SETS[name])


def _tell_dormant(names: Iterable[str]) -> None:
    for name in names:
        if KEYS[name].is_dormant:
            click.echo(f"note: {name} has no effect in this version", err=True)


@click.command("enable-metric-set")
@click.argument("name", type=click.Choice(list(SETS)), metavar="SET")
@click.pass_context
def enable_metric_set(ctx: click.Context, name: str) -> None:
    """Turn a set of collectors on in the configuration file.

    SET is host, gpu, power, app, mcp or all.

    \b
    esnode enable-metric-set app
    """
    _switch(ctx, name, "true")


@click.command("disable-metric-set")
@click.argument("name", type=click.Choice(list(SETS)), metavar="SET")
@click.pass_context
def disable_metric_set(ctx: click.Context, name: str) -> None:
    """Turn a set of collectors off in the configuration file.

    SET is host, gpu, power, app, mcp or all.

    \b
    esnode disable-metric-set gpu
    """
    _switch(ctx, name, "false")
