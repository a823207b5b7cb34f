"""`esnode metrics` and `esnode profiles`."""

import click

from esnode.cli.context import EXIT_UNREACHABLE, agent_url, fail

PROFILES = {
    "full": "every family that the agent serves",
    "basic": "the two dozen that an overview needs",
    "gpu-only": "GPUs",
    "power-only": "power and energy of the node, its processors and its baseboard controller",
}
"""Named selections; the agent knows the same names."""


@click.command()
@click.argument("profile", type=click.Choice(list(PROFILES)), default="full")
@click.pass_context
def metrics(ctx: click.Context, profile: str) -> None:
    """Print the metrics that the agent serves, in Prometheus' text format.

    \b
    esnode metrics                all of them
    esnode metrics gpu-only       only the GPUs
    esnode metrics | grep watts
    """
    from esnode.client import AgentRefused, AgentUnreachable, fetch

    try:
        response = fetch(agent_url(ctx), f"/metrics?profile={profile}")
    except (AgentUnreachable, AgentRefused) as error:
        fail(str(error), code=EXIT_UNREACHABLE)
    click.echo(response.text, nl=False)


@click.command()
def profiles() -> None:
    """List the named selections of metrics that `esnode metrics` takes.

    \b
    esnode profiles
    esnode metrics power-only
    """
    for name, text in PROFILES.items():
        click.echo(f"{name:<12}{text}")
