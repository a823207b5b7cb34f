"""The command line: arguments in, one call out. Each command's code is loaded when it is called."""

import errno
import os
import sys
from typing import Any

import click

from esnode import __version__
from esnode.cli.context import EXIT_DEGRADED, add_config_options, remember_options
from esnode.cli.lazy import LazyCommands

COMMANDS = {
    "agent": "esnode.cli.agent:agent",
    "daemon": "esnode.cli.agent:agent",
    "status": "esnode.cli.status:status",
    "metrics": "esnode.cli.metrics:metrics",
    "diagnostics": "esnode.cli.diagnostics:diagnostics",
    "demo": "esnode.cli.demo:demo",
    "config": "esnode.cli.config:config",
    "enable-metric-set": "esnode.cli.config:enable_metric_set",
    "disable-metric-set": "esnode.cli.config:disable_metric_set",
    "profiles": "esnode.cli.metrics:profiles",
    "cluster": "esnode.cli.cluster:cluster",
    "power": "esnode.cli.power:power",
    "job": "esnode.cli.job:job",
    "control": "esnode.cli.control:control",
    "why": "esnode.cli.why:why",
    "audit": "esnode.cli.audit:audit",
    "simulated": "esnode.cli.simulated:simulated",
    "completion": "esnode.cli.completion:completion",
}
"""Where each command lives."""

SUMMARIES = {
    "agent": "Run the agent: collect this machine's telemetry and serve it.",
    "daemon": "The same as agent.",
    "status": "Show what the agent says of this machine.",
    "metrics": "Print the metrics that the agent serves.",
    "diagnostics": "Say what this machine offers, what is missing, and how to get it.",
    "demo": "See it work: an agent with simulated GPUs, and a live table.",
    "config": "Show the configuration and where each value comes from; change it.",
    "enable-metric-set": "Turn a set of collectors on in the configuration file.",
    "disable-metric-set": "Turn a set of collectors off in the configuration file.",
    "profiles": "List the named selections of metrics.",
    "cluster": "Make a cluster of several agents; see and run it from any of them.",
    "power": "Keep a rack below its power budget; see and change how.",
    "job": "Run work on this machine's GPUs, and follow it.",
    "control": "See, pause and undo what this node does by itself.",
    "why": "Say what was decided about a job, GPU, pid or unit, and on what evidence.",
    "audit": "Read what this node did by itself; check that nobody changed it.",
    "simulated": "Drive a simulated machine: load, heat, faults, reboots.",
    "completion": "Print the shell completion script.",
}

GUIDE = """\
esnode {version}: telemetry of this machine, its GPUs and its power.

  esnode agent                run it: metrics on http://0.0.0.0:9100/metrics
  esnode status               what it says of this machine
  esnode demo                 see it with simulated GPUs, nothing to install
  esnode diagnostics          what is missing on this machine, and how to get it
  esnode cluster              several agents as one: make it, join it, see it
  esnode power                a budget for each rack, kept by its nodes
  esnode job                  work on its GPUs: hand it in, follow it, stop it

`esnode --help` lists all commands, `esnode COMMAND --help` explains one.
"""


class Program(LazyCommands):
    """The commands of the program, which takes its own options wherever they stand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take our own options wherever they stand: `esnode status --agent URL` works too."""
        return super().parse_args(ctx, self._own_options_first(ctx, args))

    def _own_options_first(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`args` with the options of the whole program moved before the command.

        An option that the command has under the same name stays the command's.
        """
        ours = _options_of(self)
        moved: list[str] = []
        rest: list[str] = []
        command: click.Command | None = self
        words = iter(args)
        for word in words:
            name, equals, _ = word.partition("=")
            if word == "--":
                rest += [word, *words]
            elif name in ours:
                moved.append(word)
                if ours[name] and not equals:
                    value = next(words, None)
                    if value is None and ctx.resilient_parsing:  # a shell asks what may come
                        break
                    if value is None:
                        raise click.BadOptionUsage(name, f"Option '{name}' requires an argument.")
                    moved.append(value)
            else:
                rest.append(word)
                if isinstance(command, click.Group) and not word.startswith("-"):
                    command = command.get_command(ctx, word)
                    for taken in _options_of(command):
                        ours.pop(taken, None)
        return moved + rest


def _options_of(command: click.Command | None) -> dict[str, bool]:
    """A command's options, and whether each takes a value; those that click adds are left out."""
    options = [p for p in (command.params if command else ()) if isinstance(p, click.Option)]
    return {
        name: not option.is_flag
        for option in options
        for name in option.opts
        if option.name != "version"
    }


@click.command(
    cls=Program,
    name="esnode",
    invoke_without_command=True,
    places=COMMANDS,
    summaries=SUMMARIES,
    unlisted=("daemon",),
)
@click.version_option(__version__, prog_name="esnode")
@click.option("--config", "config_file", metavar="FILE", help="Configuration file to read.")
@click.option("--agent", "agent_url", metavar="URL", help="Agent to ask (also ESNODE_AGENT).")
@click.option("--no-color", is_flag=True, help="No colours (also NO_COLOR).")
@add_config_options(is_hidden=True)
@click.pass_context
def cli(ctx: click.Context, /, **options: Any) -> None:
    """Telemetry, local control and power of a GPU node.

    Every configuration key is also an option, before or after the command, and an environment
    variable ESNODE_KEY; `esnode agent --help` lists them.

    \b
    esnode agent --scrape-interval 1s
    esnode status --agent http://node7:9100

    Exit codes: 0 healthy, 1 degraded or failed, 2 wrong usage, 3 agent not reachable, 4 not
    allowed, 5 this side of the cluster is cut off from the rest.
    """
    remember_options(ctx, options)
    if ctx.invoked_subcommand is None:
        click.echo(GUIDE.format(version=__version__), nl=False)


def main() -> None:
    """The `esnode` command."""
    try:
        cli.main(prog_name="esnode", standalone_mode=True)
    except BrokenPipeError:
        # `esnode metrics | head`: the reader has seen enough.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO) or error.filename:
            raise
        print(f"esnode: the output cannot be written: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left of it is written at the end
        sys.exit(EXIT_DEGRADED)
