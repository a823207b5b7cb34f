"""Groups of commands whose code is loaded when one of them is called, so that --help is quick.

Its own file because the program and `esnode cluster` are both such groups. It must not know which
commands there are.
"""

import importlib
from collections.abc import Mapping
from typing import Any

import click


class LazyCommands(click.Group):
    """A group that knows where each command lives, and what it is for, without importing it."""

    def __init__(
        self,
        *arguments: Any,
        places: Mapping[str, str],
        summaries: Mapping[str, str],
        unlisted: tuple[str, ...] = (),
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._places = places
        self._summaries = summaries
        self._unlisted = unlisted

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which one meets them."""
        return [name for name in self._places if name not in self._unlisted]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        where = self._places.get(cmd_name)
        if where is None:
            return None
        module, _, attribute = where.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command when there is none of that name."""
        name = args[0] if args else ""
        if name and name not in self._places and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, self._places, n=1)
            other = f"`{ctx.command_path} --help` lists the commands"
            hint = f"did you mean {near[0]}?" if near else other
            raise click.UsageError(f"no command {name!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._summaries[name]) for name in self.list_commands(ctx)])
