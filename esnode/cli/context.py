"""What all commands share: the configuration options, the loaded configuration, the agent's URL."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from esnode.config.keys import KEYS
from esnode.config.load import (
    ConfigError,
    LoadedConfig,
    find_file,
    load,
    simulated_hardware_file,
    state_directory,
)

EXIT_DEGRADED = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3
EXIT_NOT_ALLOWED = 4
EXIT_ISOLATED = 5

F = TypeVar("F", bound=Callable[..., Any])


def add_config_options(*, is_hidden: bool) -> Callable[[F], F]:
    """Give a command one option for each configuration key."""

    def decorate(function: F) -> F:
        for key in reversed(list(KEYS.values())):
            for alias, _ in key.file_aliases:
                # An option of its own, because it has its own kind of value.
                older = "--" + alias.replace("_", "-")
                function = click.option(older, alias, metavar=key.metavar, hidden=True)(function)
            option = click.option(
                key.flag,
                *key.flag_aliases,
                key.attribute,
                metavar=key.metavar,
                default=None,
                hidden=is_hidden or key.is_dormant,
                help=key.help,
            )
            function = option(function)
        return function

    return decorate


def remember_options(ctx: click.Context, options: dict[str, Any]) -> None:
    """Keep the options given here; those of a later command win over those before it."""
    kept = ctx.ensure_object(dict)
    kept.update({name: value for name, value in options.items() if value not in (None, False)})


def flags_given(ctx: click.Context) -> dict[str, str]:
    """The configuration keys given as options, by the name that a file would use."""
    kept: dict[str, Any] = ctx.find_root().obj or {}
    names = {key.attribute: key.name for key in KEYS.values()}
    names |= {alias: alias for key in KEYS.values() for alias, _ in key.file_aliases}
    return {names[option]: text for option, text in kept.items() if option in names}


def read_config(ctx: click.Context) -> LoadedConfig:
    """Load the configuration.

    Raises:
        ConfigError: it cannot be used.
    """
    kept: dict[str, Any] = ctx.find_root().obj or {}
    environment = dict(os.environ)
    file = find_file(kept.get("config_file"), environment, Path.cwd())
    return load(flags=flags_given(ctx), environment=environment, file=file)


def config_or_exit(ctx: click.Context) -> LoadedConfig:
    """Load the configuration, or say every mistake in a line each and exit with 2."""
    try:
        return read_config(ctx)
    except ConfigError as error:
        fail(*error.problems, code=EXIT_USAGE)


def fail(*lines: str, code: int) -> NoReturn:
    """Say what went wrong and exit."""
    for line in lines:
        click.echo(f"esnode: {line}", err=True)
    sys.exit(code)


def simulated_hardware_path(ctx: click.Context) -> Path:
    """The simulated machine's file by the configuration."""
    return simulated_hardware_file(config_or_exit(ctx).config, os.environ)


def agent_url(ctx: click.Context, *, known: str | None = None) -> str:
    """Where the agent is: `--agent`, `ESNODE_AGENT`, else the configured listen address.

    An agent that chooses its port comes back on another: `known` is where it was until then.
    """
    kept: dict[str, Any] = ctx.find_root().obj or {}
    named = kept.get("agent_url") or os.environ.get("ESNODE_AGENT")
    if named:
        text = str(named)
        return text.rstrip("/") if "://" in text else f"http://{text}".rstrip("/")
    loaded = config_or_exit(ctx)
    config = loaded.config
    if loaded.origins["state_dir"].source != "default" or config.listen_address.port == 0:
        from esnode.state import announced_address

        announced = announced_address(state_directory(config, os.environ))
        if announced is not None:
            return announced
        if known is not None:
            return known
        if loaded.origins["state_dir"].source == "flag":
            folder = state_directory(config, os.environ)
            fail(
                f"no agent runs in {folder}; start one with `esnode agent --state-dir {folder}`, "
                "or name another with --agent URL",
                code=EXIT_UNREACHABLE,
            )
    host, port = config.listen_address
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"
    shown = f"[{host}]" if ":" in host else host
    scheme = "https" if config.tls_certificate_path else "http"
    return f"{scheme}://{shown}:{port}"


def wants_color(ctx: click.Context) -> bool:
    """Whether to colour: a terminal, and nobody said no (no-color.org)."""
    kept: dict[str, Any] = ctx.find_root().obj or {}
    refused = (
        kept.get("no_color") or os.environ.get("NO_COLOR") or os.environ.get("ESNODE_NO_COLOR")
    )
    return not refused and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
