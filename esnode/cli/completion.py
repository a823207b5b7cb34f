"""`esnode completion`: the script that teaches a shell our commands."""

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the shell completion script.

    \b
    bash   eval "$(esnode completion bash)"        in ~/.bashrc
    zsh    eval "$(esnode completion zsh)"         in ~/.zshrc
    fish   esnode completion fish > ~/.config/fish/completions/esnode.fish
    """
    from click.shell_completion import get_completion_class

    from esnode.cli import cli

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, "esnode", "_ESNODE_COMPLETE").source())
