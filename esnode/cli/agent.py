"""`esnode agent`: run the agent in the foreground until SIGTERM or Ctrl-C."""

import os
from dataclasses import replace
from typing import Any

import click

from esnode.cli.context import (
    EXIT_DEGRADED,
    add_config_options,
    config_or_exit,
    fail,
    read_config,
    remember_options,
    wants_color,
)
from esnode.config.load import LoadedConfig


@click.command()
@click.option("--live", is_flag=True, help="Show what it reads in a live table (see `status`).")
@add_config_options(is_hidden=False)
@click.pass_context
def agent(ctx: click.Context, /, live: bool, **options: Any) -> None:
    """Run the agent: collect this machine's telemetry and serve it.

    \b
    esnode agent                                        everything, on port 9100
    esnode agent --live                                 and a live table here
    esnode agent --listen-address 127.0.0.1:9200        this machine only, another port
    esnode agent --hardware simulated:h100x8            eight GPUs that do not exist
    esnode agent --enable-app true --app-metrics-url http://127.0.0.1:8000/metrics

    SIGHUP loads the configuration again; SIGTERM and Ctrl-C end it within 2 seconds.
    """
    remember_options(ctx.find_root(), options)
    loaded = config_or_exit(ctx)
    from esnode.listener import ListenError
    from esnode.node import run_agent
    from esnode.state import StateInUse

    show = None
    if live:
        from esnode.cli.live import Screen

        show = Screen(is_colored=wants_color(ctx)).show

    def as_shown(loaded: LoadedConfig) -> LoadedConfig:
        # The live table shows what goes wrong; log lines would tear it.
        quiet = replace(loaded.config, log_level="error")
        return replace(loaded, config=quiet) if live else loaded

    try:
        run_agent(
            as_shown(loaded),
            reload=lambda: as_shown(read_config(ctx)),
            environment=dict(os.environ),
            show=show,
        )
    except (ListenError, StateInUse) as error:
        fail(str(error), code=EXIT_DEGRADED)
